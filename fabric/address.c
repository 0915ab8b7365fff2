/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses are computed from a node's index, so no table maps one to the other:
 *
 *   host i, port p    10.(2 p).(i / 250).(1 + i % 250)
 *   switch s          10.1.(s / 250).(1 + s % 250)
 *
 * i is the host's index, s the switch's among the switches. If there are more than 64,000, every further
 * 64,000 add 64 to the second byte and start again at 0 in the third. The last byte is never 0 or 255,
 * because some tools take these for a network or a broadcast. MACs follow from the addresses
 * (roce/wire.h).
 */
#include "fabric/build.h"

#include <errno.h>

#define PER_BYTE  250u
#define PER_BLOCK (256 * PER_BYTE)
#define BLOCK     64u /* added to the second byte */
_Static_assert(2 * FAB_MAX_HOST_PORTS <= BLOCK, "ports of a block fit");
_Static_assert(FAB_MAX_NODES <= 256 / BLOCK * PER_BLOCK, "hosts and switches fit");

static uint32_t network_address(unsigned i, unsigned second)
{
    return 10u << 24 | (i / PER_BLOCK * BLOCK + second) << 16 | (i % PER_BLOCK / PER_BYTE) << 8 |
           (1 + i % PER_BYTE);
}

static uint32_t host_ip(unsigned i, unsigned p)
{
    return network_address(i, 2 * p);
}

static uint32_t switch_ip(unsigned s)
{
    return network_address(s, 1);
}

static int add_node(struct build *b, fab_id i)
{
    struct fabric *f = b->f;
    struct fab_node *n = &f->nodes[i];
    unsigned count = n->kind == FAB_HOST ? n->n_ports : 1;

    n->dest = f->n_dests;
    if (n->kind == FAB_HOST) {
        n->ip_of_port = build_alloc(b, n->n_ports, sizeof(*n->ip_of_port));
        if (!n->ip_of_port)
            return -ENOMEM;
    }
    for (unsigned p = 0; p < count; p++) {
        uint32_t ip = n->kind == FAB_HOST ? host_ip(n->host_index, p) : switch_ip(n->ordinal);

        if (n->ip_of_port)
            n->ip_of_port[p] = ip;
        f->dests[f->n_dests++] = (struct fab_dest){ip, i, (fab_id)p};
    }
    n->ip = f->dests[n->dest].ip;
    return 0;
}

void address_build(struct build *b)
{
    struct fabric *f = b->f;
    size_t total = f->n_switches;

    for (unsigned i = 0; i < f->n_hosts; i++)
        total += f->nodes[f->hosts[i]].n_ports;
    if (total > FAB_MAX_DESTS) {
        build_error(b, 0,
                    "found %zu addresses (ports of hosts, and switches), expected at most %u%s",
                    total, FAB_MAX_DESTS,
                    FAB_MAX_DESTS < FAB_PLAN_DESTS
                        ? " in a fabric that runs; trib plan and trib model take more"
                        : "");
        b->graph_broken = true;
        return;
    }
    f->dests = build_alloc(b, total, sizeof(*f->dests));
    for (unsigned i = 0; f->dests && i < f->n_nodes; i++)
        if (add_node(b, (fab_id)i))
            return;
}

int fabric_dest_of_ip(const struct fabric *f, uint32_t ip)
{
    unsigned byte = (ip >> 16 & 255) % BLOCK, port = 0,
             i = (ip >> 16 & 255) / BLOCK * PER_BLOCK + (ip >> 8 & 255) * PER_BYTE + (ip & 255) - 1;
    const struct fab_node *n;

    if (ip >> 24 != 10 || (ip & 255) < 1 || (ip & 255) > PER_BYTE)
        return -ENOENT;
    if (byte == 1) {
        if (i >= f->n_switches)
            return -ENOENT;
        n = &f->nodes[f->switches[i]];
    } else {
        port = byte / 2;
        if (byte % 2 || i >= f->n_hosts || port >= f->nodes[f->hosts[i]].n_ports)
            return -ENOENT;
        n = &f->nodes[f->hosts[i]];
    }
    return n->dest + (int)port;
}
