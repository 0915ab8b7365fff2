/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings through all NICs of GPU nodes at once (F20, F21), as NCCL's channels go: one for each GPU of
 * a node, each with a part of the vector. Ring c enters a node at GPU c and leaves it at another;
 * the next node is entered there, on the same rail, and passed the other way round, back to GPU c.
 * With an even number of nodes every link between them stays on its rail; with an odd one the last
 * link of a ring crosses to another rail. A NIC carries one ring each way.
 *
 * In a node of n GPUs ring c goes c, c + 1, c - 1, c + 2, c - 2, ... (modulo n). For even n each GPU
 * then sends to each other one of its node in exactly one ring (a row-complete Latin square,
 * Williams 1949). So rings share no lane: where one waits for its step between nodes, which takes
 * longer, the others do not wait behind it. For odd n two rings may share a lane.
 *
 * All ranks append a step of every ring before the next one. A block of ring c is summed along the
 * ring, from where it starts: results are reproducible.
 */
#include "base/assert.h"
#include "collective/alg.h"

#include <errno.h>
#include <stdlib.h>

struct one_ring {
    struct team t;
    struct ring_edge e;
    uint64_t off, len; /* its part of the vector, or of every block */
};

struct rings {
    struct nodes g;
    unsigned n;            /* rings: local ranks */
    struct one_ring *ring; /* [n] */
    uint16_t *rank;        /* [n][all ranks] in order of each ring */
};

/* The j-th GPU of ring c in a node that is passed forwards. */
static unsigned zigzag(unsigned c, unsigned j, unsigned n)
{
    return (j % 2 ? c + (j + 1) / 2 : c + n - j / 2) % n;
}

static void ring_order(const struct alg *a, const struct nodes *g, unsigned c, uint16_t *rank,
                       unsigned *me)
{
    unsigned n = g->local;

    T_ASSERT(c < n, "more rings than a node has GPUs");
    for (unsigned d = 0; d < g->n; d++)
        for (unsigned j = 0; j < n; j++) {
            rank[d * n + j] = g->at[d * n + zigzag(c, d % 2 ? n - 1 - j : j, n)];
            if (rank[d * n + j] == a->s->in.rank)
                *me = d * n + j;
        }
}

/* bytes: of what is divided among the rings. rings_end() in any case. */
static int rings_begin(struct alg *a, struct rings *r, uint64_t bytes)
{
    unsigned all = a->s->in.nranks;
    int rc;

    *r = (struct rings){0};
    rc = alg_nodes(a, &r->g);
    if (rc)
        return rc;
    r->n = r->g.local;
    r->ring = calloc(r->n, sizeof(*r->ring));
    r->rank = malloc((size_t)r->n * all * sizeof(*r->rank));
    if (!r->ring || !r->rank)
        return -ENOMEM;
    for (unsigned c = 0; c < r->n; c++) {
        struct one_ring *o = &r->ring[c];

        o->t = (struct team){
            .n = all, .rank = &r->rank[c * all], .steps = a->s->in.topo && a->s->in.topo->steps};
        ring_order(a, &r->g, c, &r->rank[c * all], &o->t.me);
        alg_ring_of(a, &o->t);
        ring_edge(a, &o->t, &o->e);
        sched_part(bytes, a->s->esize, r->n, c, &o->off, &o->len);
    }
    return 0;
}

static void rings_end(struct rings *r)
{
    free(r->ring);
    free(r->rank);
    alg_nodes_free(&r->g);
}

int alg_rings_allreduce(struct alg *a)
{
    unsigned n = a->s->in.nranks;
    struct rings r;
    int rc = rings_begin(a, &r, a->s->in_bytes);

    for (unsigned i = 0; !rc && i < 2 * (n - 1); i++)
        for (unsigned c = 0; c < r.n; c++) {
            const struct one_ring *o = &r.ring[c];
            struct blocks b = {.total = o->len, .n = n};
            struct ref in = alg_ref(BUF_IN, o->off), out = alg_ref(BUF_OUT, o->off);
            struct ring_scatter s = {&b, &b, in, out, NULL, 0, true};
            struct ring_gather g = {&b, out, NULL, 1, true};

            if (i < n - 1)
                ring_scatter_step(a, &o->e, i, &s);
            else
                ring_gather_step(a, &o->e, i - (n - 1), &g);
        }
    rings_end(&r);
    return rc;
}

int alg_rings_allgather(struct alg *a)
{
    unsigned n = a->s->in.nranks;
    uint64_t each = a->s->in_bytes;
    struct rings r;
    int rc = rings_begin(a, &r, each);

    if (!rc && !a->s->in.in_place)
        alg_copy(a, alg_ref(BUF_OUT, a->s->in.rank * each), alg_ref(BUF_IN, 0), each, false);
    for (unsigned i = 0; !rc && i < n - 1; i++)
        for (unsigned c = 0; c < r.n; c++) {
            const struct one_ring *o = &r.ring[c];
            struct blocks b = {.each = each, .part = o->len, .n = n, .at = o->t.rank};
            struct ref own = alg_ref(BUF_IN, o->off);
            struct ring_gather g = {&b, alg_ref(BUF_OUT, o->off), &own, 0, false};

            if (o->len)
                ring_gather_step(a, &o->e, i, &g);
        }
    rings_end(&r);
    return rc;
}

int alg_rings_reduce_scatter(struct alg *a)
{
    unsigned n = a->s->in.nranks;
    struct rings r;
    int rc = rings_begin(a, &r, a->s->out_bytes);
    uint64_t rounds = rc ? 0 : ring_rounds(&r.ring[0].t, r.ring[0].len), off, longest = 0;

    if (rounds)
        sched_part(r.ring[0].len, a->s->esize, rounds, 0, &off, &longest);
    alg_tmp(a, (rc ? 0 : r.n) * RING_PART_BUF * longest);
    for (uint64_t q = 0; q < rounds && !a->s->rc; q++)
        for (unsigned i = 0; i < n - 1; i++)
            for (unsigned c = 0; c < r.n; c++) {
                struct one_ring *o = &r.ring[c];
                struct ring_part p = {.tmp = c * RING_PART_BUF * longest};

                sched_part(o->len, a->s->esize, rounds, q, &p.off, &p.len);
                p.off += o->off;
                ring_part_step(a, &o->e, i, &p);
                if (i + 2 == n)
                    ring_no_pause(&o->e);
            }
    rings_end(&r);
    return rc;
}
