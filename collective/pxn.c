/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All-to-all in two hops on GPU nodes whose rails have leaves of their own (PXN, as NCCL calls it):
 * a block goes to the GPU of its own node that is on the destination's rail, over the node's
 * planes, and from there over that rail. No block changes rails in the network, so spines between
 * the leaves of a unit carry nothing; a NIC sends as many bytes as by direct exchange.
 *
 * Step k is for the node k further on. Its own block for that node leaves at once, the others'
 * blocks behind it as they come, so that a NIC never waits for the planes.
 */
#include "base/assert.h"
#include "collective/alg.h"

#include <errno.h>

struct pxn {
    struct nodes g;
    uint64_t each;
    unsigned me, node; /* own place in the node; the node's number */
};

static unsigned rank_at(const struct pxn *p, unsigned node, unsigned place)
{
    return p->g.at[node % p->g.n * p->g.local + place % p->g.local];
}

/* Does rank `from` have a block for rank `to`? */
static bool has_block(const struct alg *a, unsigned from, unsigned to)
{
    unsigned n = a->s->in.nranks;

    return !a->s->in.sparse || (to + n - from) % n < a->s->in.sparse;
}

static struct ref block_for(const struct pxn *p, enum step_buf buf, unsigned rank)
{
    return alg_ref(buf, rank * p->each);
}

/* Of the node's GPU at `place`, for own rail's GPU of a node: kept until it is sent on. */
static struct ref relayed(const struct pxn *p, unsigned node, unsigned place)
{
    return alg_ref(BUF_TMP, (node % p->g.n * p->g.local + place % p->g.local) * p->each);
}

/* Blocks for all GPUs of a node go to those of the own one that are on their rails. */
static void spread(struct alg *a, const struct pxn *p, unsigned node)
{
    unsigned here = p->node;
    bool own = node % p->g.n == here;

    for (unsigned i = 1; i < p->g.local; i++) {
        unsigned to = rank_at(p, node, p->me + i);

        if (has_block(a, a->s->in.rank, to))
            alg_send_all(a, rank_at(p, here, p->me + i), block_for(p, BUF_IN, to), p->each);
    }
    for (unsigned i = 1; i < p->g.local; i++) {
        unsigned from = rank_at(p, here, p->me + p->g.local - i), to = rank_at(p, node, p->me);

        if (has_block(a, from, to))
            alg_recv_all(a, from,
                         own ? block_for(p, BUF_OUT, from)
                             : relayed(p, node, p->me + p->g.local - i),
                         p->each, false);
    }
}

/* Sends to the own rail's GPU of a node what GPU `place` of this one has for it. */
static void send_on(struct alg *a, const struct pxn *p, unsigned node, unsigned place)
{
    unsigned from = rank_at(p, p->node, place), to = rank_at(p, node, p->me);

    if (has_block(a, from, to))
        alg_send_all(a, to,
                     from == a->s->in.rank ? block_for(p, BUF_IN, to) : relayed(p, node, place),
                     p->each);
}

static void recv_from(struct alg *a, const struct pxn *p, unsigned node, unsigned place)
{
    unsigned from = rank_at(p, node, place);

    if (has_block(a, from, a->s->in.rank))
        alg_recv_all(a, rank_at(p, node, p->me), block_for(p, BUF_OUT, from), p->each, false);
}

int alg_pxn_alltoall(struct alg *a)
{
    struct pxn p = {.each = a->s->in_bytes / a->s->in.nranks};
    int rc = alg_nodes(a, &p.g);

    if (rc) {
        alg_nodes_free(&p.g);
        return rc;
    }
    p.me = p.g.node.me;
    p.node = p.g.rail.me;
    T_ASSERT(rank_at(&p, p.node, p.me) == a->s->in.rank, "a rank is not where its node has it");
    alg_tmp(a, a->s->in_bytes);
    alg_copy(a, block_for(&p, BUF_OUT, a->s->in.rank), block_for(&p, BUF_IN, a->s->in.rank), p.each,
             false);
    for (unsigned k = 1; k < p.g.n; k++) {
        send_on(a, &p, p.node + k, p.me);
        recv_from(a, &p, p.node + p.g.n - k, p.me);
    }
    for (unsigned k = 1; k < p.g.n; k++) {
        spread(a, &p, p.node + k);
        for (unsigned i = 1; i < p.g.local; i++) {
            send_on(a, &p, p.node + k, p.me + p.g.local - i);
            recv_from(a, &p, p.node + p.g.n - k, p.me + p.g.local - i);
        }
    }
    spread(a, &p, p.node);
    alg_nodes_free(&p.g);
    return 0;
}
