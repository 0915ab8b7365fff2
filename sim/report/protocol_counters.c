/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/report/protocol_counters.h"

#include "switch/protocol/protocol_node.h"

#include <stdio.h>
#include <string.h>

struct counters_reading {
    struct row_counters *r;
    char prefix[32]; /* of the protocol's counters */
};

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);

    return n >= k && !strcmp(s + n - k, end);
}

static void protocol_counters_take(void *ctx, const char *name, uint64_t v)
{
    const struct counters_reading *g = ctx;
    size_t n = strlen(g->prefix);
    char as[48];

    if (strncmp(name, g->prefix, n) != 0)
        return;
    name += n;
    snprintf(as, sizeof(as), "switch_%s", name);
    row_counters_add(g->r, as, v,
                     ends_with(name, "_peak") || !strcmp(name, "memory") || !strcmp(name, "slots"));
}

void protocol_counters_read(struct job *j, struct world *w, const struct fabric *f, unsigned nranks,
                            enum coll_algo a, struct row_counters *r)
{
    const struct trib_protocol *p = coll_protocol(a);
    struct counters_reading g = {.r = r};
    uint64_t n[TRIB_COUNTERS];

    r->n = 0;
    if (!p)
        return;
    for (unsigned k = 0; k < nranks; k++) {
        comm_counted(job_comm(j, k), a, n);
        row_counters_add_ranks(r, a, n);
    }
    snprintf(g.prefix, sizeof(g.prefix), "%s_", p->name);
    for (uint16_t i = 0; i < f->n_nodes; i++)
        if (net_protocols(world_net(w), i))
            protocol_node_print(net_protocols(world_net(w), i), protocol_counters_take, &g);
}
