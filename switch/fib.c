/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/fib.h"

#include "base/assert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEARNED 1024u /* learned outside hosts; new ones replace old ones */
#define FLOWS   1024u /* cache of balanced assignments, direct mapped */

struct hop {
    uint32_t ip; /* 0: free */
    uint16_t dest;
    uint16_t n, port; /* port: the only one, or FIB_NO_PORT */
};

struct fib_flow {
    uint32_t src_ip;
    uint16_t dest, port;
};

struct learned {
    uint8_t mac[6];
    uint16_t port; /* FIB_NO_PORT: free */
};

struct fib {
    const struct fabric *fab;
    uint16_t node;
    bool balanced;
    unsigned shift;
    uint32_t mask;
    uint32_t n_hops; /* entries of hops in use: at most half */
    struct hop *hops;
    struct fib_flow flows[FLOWS];
    struct learned learned[LEARNED];
};

static inline uint32_t slot_of(uint32_t key, unsigned shift)
{
    return key * 0x9e3779b1u >> shift;
}

static inline bool inner(const uint8_t mac[6])
{
    return mac[0] == 0x02 && mac[1] == 0x54;
}

static struct learned *learned_of(struct fib *fib, const uint8_t mac[6])
{
    uint32_t key = load_be32(mac + 2) ^ (uint32_t)load_be16(mac) << 7;

    return &fib->learned[slot_of(key, 22)];
}
_Static_assert(LEARNED == 1u << (32 - 22), "slot_of() of learned_of()");

static const struct hop *fib_find(const struct fib *fib, uint32_t ip)
{
    for (uint32_t i = slot_of(ip, fib->shift);; i++) {
        const struct hop *h = &fib->hops[i & fib->mask];

        if (likely(h->ip == ip))
            return ip ? h : NULL;
        if (h->ip == 0)
            return NULL;
    }
}

/* The fabric's balanced assignment depends on source and destination only, and is expensive to
 * compute, so it is cached. */
static uint16_t balanced_port(struct fib *fib, const struct hop *h, const struct packet_class *k)
{
    struct fib_flow *f = &fib->flows[slot_of(k->src_ip * 31 + h->ip, 22)];

    if (f->src_ip != k->src_ip || f->dest != h->dest || k->src_ip == 0) {
        f->src_ip = k->src_ip;
        f->dest = h->dest;
        f->port = fabric_next_port(fib->fab, fib->node, h->dest, packet_flow_hash(k), k->src_ip);
    }
    return f->port;
}
_Static_assert(FLOWS == 1u << (32 - 22), "slot_of() of balanced_port()");

uint16_t fib_lookup(struct fib *fib, const uint8_t dst[6], const struct packet_class *k, bool *any)
{
    const struct hop *h = likely(inner(dst)) ? fib_find(fib, load_be32(dst + 2)) : NULL;

    *any = !h || h->n <= 1;
    if (unlikely(!h)) {
        const struct learned *l = learned_of(fib, dst);

        if (inner(dst) && fabric_dest_of_ip(fib->fab, load_be32(dst + 2)) >= 0)
            return FIB_NO_PORT;
        return l->port != FIB_NO_PORT && mac_equal(l->mac, dst) ? l->port : FIB_OUTSIDE;
    }
    T_ASSERT_HOT(h->n != 1 || h->port < fib->fab->nodes[fib->node].n_ports,
                 "a route leads to a port that is not there");
    if (likely(h->n <= 1))
        return h->port;
    if (fib->balanced)
        return balanced_port(fib, h, k);
    return fabric_next_port(fib->fab, fib->node, h->dest, packet_flow_hash(k), k->src_ip);
}

uint16_t fib_only_port(const struct fib *fib, const uint8_t dst[6])
{
    const struct hop *h = likely(inner(dst)) ? fib_find(fib, load_be32(dst + 2)) : NULL;

    return likely(h != NULL) ? h->port : FIB_NO_PORT;
}

void fib_learn(struct fib *fib, const uint8_t src[6], uint16_t port)
{
    struct learned *l;

    if ((src[0] & 1) || (inner(src) && fabric_dest_of_ip(fib->fab, load_be32(src + 2)) >= 0))
        return;
    l = learned_of(fib, src);
    memcpy(l->mac, src, 6);
    l->port = port;
}

void fib_forget_port(struct fib *fib, uint16_t port)
{
    for (unsigned i = 0; i < LEARNED; i++)
        if (fib->learned[i].port == port)
            fib->learned[i].port = FIB_NO_PORT;
}

/* Allocates an entry for the caller to fill in. */
static struct hop *hop_for(struct fib *fib, uint32_t ip)
{
    uint32_t i = slot_of(ip, fib->shift);

    while (fib->hops[i & fib->mask].ip && fib->hops[i & fib->mask].ip != ip)
        i++;
    if (!fib->hops[i & fib->mask].ip)
        fib->n_hops++;
    T_ASSERT(fib->n_hops <= (fib->mask + 1) / 2, "more routes than the table was made for");
    return &fib->hops[i & fib->mask];
}

void fib_reroute(struct fib *fib, const struct fabric *f)
{
    T_ASSERT(!fib->fab || (f->n_nodes == fib->fab->n_nodes && f->n_dests == fib->fab->n_dests),
             "routes of a fabric of other nodes");
    fib->fab = f;
    memset(fib->flows, 0, sizeof(fib->flows));
    for (unsigned i = 0; i < LEARNED; i++)
        fib->learned[i].port = FIB_NO_PORT;
    for (uint16_t d = 0; d < f->n_dests; d++) {
        uint16_t port = FIB_NO_PORT;
        unsigned n = fabric_hops(f, fib->node, d, &port, 1);

        if (n || fib_find(fib, f->dests[d].ip))
            *hop_for(fib, f->dests[d].ip) = (struct hop){
                .ip = f->dests[d].ip,
                .dest = d,
                .n = (uint16_t)n,
                .port = n == 1 ? port : FIB_NO_PORT,
            };
    }
}

int fib_create(struct fib **out, const struct fabric *f, uint16_t node)
{
    struct fib *fib = calloc(1, sizeof(*fib));
    uint32_t size = 16, routes = 0;

    *out = NULL;
    if (!fib)
        return -ENOMEM;
    for (uint16_t d = 0; d < f->n_dests; d++)
        routes += fabric_hops(f, node, d, NULL, 0) > 0;
    while (size < 2 * routes)
        size *= 2;
    fib->node = node;
    fib->balanced = f->ecmp == FAB_ECMP_BALANCED;
    fib->mask = size - 1;
    fib->shift = 32 - (unsigned)__builtin_ctz(size);
    fib->hops = calloc(size, sizeof(*fib->hops));
    if (!fib->hops) {
        free(fib);
        return -ENOMEM;
    }
    fib_reroute(fib, f);
    *out = fib;
    return 0;
}

void fib_destroy(struct fib *fib)
{
    if (!fib)
        return;
    free(fib->hops);
    free(fib);
}
