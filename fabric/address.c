/*
 * Addresses, all derived from a node's place, so that no table is needed to go from one to the
 * other:
 *
 *   host i, port p    10.0.(8 p + i / 250).(1 + i % 250)
 *   switch s          10.1.(s / 250).(1 + s % 250)
 *
 * i is the host's index, s the switch's among the switches. The last byte is never 0 or 255, which
 * some tools take for a network or a broadcast. MACs follow from the addresses (roce/wire.h).
 */
#include "fabric/build.h"

#include <errno.h>

#define PER_BYTE 250u
#define BLOCKS   8u /* of PER_BYTE hosts for one port number */
_Static_assert(FAB_MAX_HOSTS <= BLOCKS * PER_BYTE && FAB_MAX_HOST_PORTS * BLOCKS <= 256,
               "hosts fit");
_Static_assert(FAB_MAX_NODES <= 256 * PER_BYTE, "switches fit");

static uint32_t host_ip(unsigned i, unsigned p)
{
    return 10u << 24 | (BLOCKS * p + i / PER_BYTE) << 8 | (1 + i % PER_BYTE);
}

static uint32_t switch_ip(unsigned s)
{
    return 10u << 24 | 1u << 16 | (s / PER_BYTE) << 8 | (1 + s % PER_BYTE);
}

static int add_node(struct build *b, uint16_t i)
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
        uint32_t ip = n->kind == FAB_HOST ? host_ip(n->host_index, p) : switch_ip(n->ord);

        if (n->ip_of_port)
            n->ip_of_port[p] = ip;
        f->dests[f->n_dests++] = (struct fab_dest){ip, i, (uint16_t)p};
    }
    n->ip = f->dests[n->dest].ip;
    return 0;
}

void address_build(struct build *b)
{
    struct fabric *f = b->f;

    f->dests =
        build_alloc(b, f->n_switches + (size_t)f->n_hosts * FAB_MAX_HOST_PORTS, sizeof(*f->dests));
    for (unsigned i = 0; f->dests && i < f->n_nodes; i++)
        if (add_node(b, (uint16_t)i))
            return;
}

int fabric_dest_of_ip(const struct fabric *f, uint32_t ip)
{
    unsigned x = ip >> 8 & 255, y = ip & 255, i, port = 0;
    const struct fab_node *n;

    if (y < 1 || y > PER_BYTE)
        return -ENOENT;
    switch (ip >> 16) {
    case 10u << 8:
        i = x % BLOCKS * PER_BYTE + y - 1;
        port = x / BLOCKS;
        if (i >= f->n_hosts || port >= f->nodes[f->hosts[i]].n_ports)
            return -ENOENT;
        n = &f->nodes[f->hosts[i]];
        break;
    case 10u << 8 | 1:
        i = x * PER_BYTE + y - 1;
        if (i >= f->n_switches)
            return -ENOENT;
        n = &f->nodes[f->switches[i]];
        break;
    default:
        return -ENOENT;
    }
    return n->dest + (int)port;
}
