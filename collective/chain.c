/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chains: the vector goes slice by slice from rank to rank, starting at the root (broadcast) or
 * ending there (reduce): it takes B / W, and a slice's time for each rank on the way. The longer
 * the chain, the smaller the slices. The chain is the ring cut at the root, and striped like it.
 */
#include "collective/alg.h"

#define KEPT 32u /* partial sums kept until their sends are acknowledged */

static unsigned parts(const struct alg *a)
{
    return ALG_SLICES * a->s->in.nranks;
}

/* This rank's distance from the root. */
static unsigned place(const struct alg *a)
{
    return (a->s->in.rank + a->s->in.nranks - a->s->in.root) % a->s->in.nranks;
}

int alg_chain_broadcast(struct alg *a)
{
    struct nodes g;
    struct ring_edge e;
    unsigned at = place(a), n = a->s->in.nranks;
    uint64_t bytes = a->s->out_bytes;
    struct ref out = alg_ref(BUF_OUT, 0), in = alg_ref(BUF_IN, 0);
    int rc = alg_everybody(a, &g);

    if (!rc) {
        ring_edge(a, &g.all, &e);
        if (!at && !a->s->in.in_place)
            alg_copy(a, out, in, bytes, false);
        for (struct cut c = alg_cut(a, &g.all.ring, bytes, parts(a)); alg_next(&c);) {
            if (at)
                alg_recv(a, e.left, c.chan % e.n_left, alg_plus(out, c.off), c.len);
            if (at + 1 < n)
                alg_send(a, e.right, c.chan % e.n_right, alg_plus(at ? out : in, c.off), c.len);
        }
    }
    alg_nodes_free(&g);
    return rc;
}

/* From the root's right neighbour around the ring to the root. */
int alg_chain_reduce(struct alg *a)
{
    struct nodes g;
    struct ring_edge e;
    unsigned at = place(a);
    uint64_t bytes = a->s->in_bytes;
    struct ref in = alg_ref(BUF_IN, 0);
    int rc = alg_everybody(a, &g);

    if (!rc) {
        ring_edge(a, &g.all, &e);
        if (at > 1)
            alg_tmp(a, (uint64_t)g.all.ring.n * KEPT * alg_slice(a, bytes, parts(a)));
        for (struct cut c = alg_cut(a, &g.all.ring, bytes, parts(a)); alg_next(&c);) {
            struct ref mine = alg_plus(in, c.off), sum = alg_ref(BUF_OUT, c.off);

            if (at > 1)
                sum =
                    alg_ref(BUF_TMP, (c.chan * KEPT + c.k % KEPT) * alg_slice(a, bytes, parts(a)));
            if (at != 1)
                alg_recv_reduce(a, e.left, c.chan % e.n_left, sum, mine, c.len, !at);
            if (at)
                alg_send(a, e.right, c.chan % e.n_right, at > 1 ? sum : mine, c.len);
        }
    }
    alg_nodes_free(&g);
    return rc;
}
