/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/world/sim_memory.h"

#include "host/bench/host_resources.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* As measured over fabrics of 2 to 2,048 hosts (tests/e2e/memory.sh): the program itself with what
 * the EAL has; a link, with both of its queues and their share of routes; an aggregation node; a
 * node in a tree; a rank with its communicator, and each of its ports, with an HCA and rings in its
 * NIC; what a rank knows of each other one. */
#define PROGRAM_BYTES (8u << 20)
#define LINK_BYTES    8192u
#define AN_BYTES      131072u
#define TREE_BYTES    16u
#define RANK_BYTES    24576u
#define PORT_BYTES    106496u
#define PEER_BYTES    64u
#define DENSE         12 / 5 /* of the fabric and ranks: in pages of 2 MiB they take so much more */

#define MIB (1u << 20)

static uint64_t fabric_bytes(const struct fabric *f)
{
    uint64_t bytes = PROGRAM_BYTES + (uint64_t)f->n_links * LINK_BYTES +
                     (uint64_t)f->n_trees * f->n_nodes * TREE_BYTES;

    for (unsigned i = 0; i < f->n_nodes; i++)
        bytes += f->nodes[i].reduce.on || f->nodes[i].multimem ? AN_BYTES : 0;
    return bytes;
}

void sim_need(const struct sim_need_cfg *cfg, struct sim_need *n)
{
    const struct coll_memory_cfg *c = &cfg->coll;

    *n = (struct sim_need){.frames = cfg->frame_bytes, .fabric = fabric_bytes(c->fab)};
    for (unsigned r = 0; r < c->nranks; r++)
        n->ranks += RANK_BYTES + (uint64_t)c->nranks * PEER_BYTES +
                    (uint64_t)c->fab->nodes[c->fab->hosts[c->host_of_rank[r]]].n_ports * PORT_BYTES;
    if (c->dense) {
        n->fabric = n->fabric * DENSE;
        n->ranks = n->ranks * DENSE;
    }
    n->data = c->lengths ? 0 : cfg->data_bytes;
    n->addresses = 2 * cfg->buffer_bytes * c->nranks - n->data;
    if (coll_memory_predict(c, &n->coll))
        n->coll = (struct coll_memory){0};
    n->addresses += n->coll.address_bytes;
}

uint64_t sim_need_bytes(const struct sim_need *n)
{
    return n->frames + n->fabric + n->ranks + n->data + coll_memory_bytes(&n->coll);
}

int sim_need_check(const struct sim_need *n, char *err, size_t size)
{
    uint64_t bytes = sim_need_bytes(n);
    char what[384];

    snprintf(what, sizeof(what),
             ": frames %" PRIu64 ", fabric and ranks %" PRIu64 ", %" PRIu64
             " ends of connections %" PRIu64 ", schedules %" PRIu64 ", data %" PRIu64
             " (fewer ranks or --payload none need less)",
             n->frames / MIB, (n->fabric + n->ranks) / MIB, n->coll.conns, n->coll.conn_bytes / MIB,
             n->coll.sched_bytes / MIB, (n->data + n->coll.data_bytes) / MIB);
    return host_resources_has(bytes, bytes + n->addresses, what, err, size) ? 0 : -ENOMEM;
}
