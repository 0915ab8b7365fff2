/*
 * By levels (figures.md F28): within the GPU nodes over their planes, between them over the rails,
 * on which the ranks with the same place in their nodes talk to each other only. All-reduce is a
 * reduce-scatter in the node, an all-reduce of the own block on the rail (ring, or the switches'
 * aggregation), and an all-gather in the node. The vector goes through in pieces, so that the levels
 * work at the same time: a piece comes back into the node some pieces after it left.
 */
#include "host/coll/alg.h"
#include "switch/reduce/proto.h"

#include <errno.h>

#define PIECES      16u           /* at most */
#define PIECE_BLOCK (256ULL << 10) /* bytes of a step on the rail that are worth a piece */
#define LAG         2u            /* pieces on the rail while the node goes on */

static unsigned pieces(const struct alg *a, const struct nodes *g)
{
    uint64_t n = a->s->in_bytes / ((uint64_t)g->n * g->local * PIECE_BLOCK);

    return n < 1 ? 1 : n < PIECES ? (unsigned)n : PIECES;
}

/* A piece of the vector, and the block of it that this rank is about. */
struct piece {
    uint64_t off, own, own_len;
    struct blocks b;
};

static struct piece piece_of(const struct alg *a, const struct nodes *g, unsigned n, unsigned k)
{
    struct piece p = {.b.n = g->local};

    sched_part(a->s->in_bytes, a->s->esize, n, k, &p.off, &p.b.total);
    alg_block(a, &p.b, g->node.me, &p.own, &p.own_len);
    p.own += p.off;
    return p;
}

static void across(struct alg *a, const struct nodes *g, const struct piece *p)
{
    struct blocks b = {.total = p->own_len, .n = g->n};
    struct ref own = alg_ref(BUF_OUT, p->own);

    if (a->s->in.algo != ALGO_HIER) {
        agg_vector(a, GROUP_RAIL, AGG_ALLREDUCE, 0, own, own, p->own_len, true);
        return;
    }
    ring_reduce_scatter(a, &g->rail, &b, own, &b, own, NULL, 0, true);
    ring_allgather(a, &g->rail, &b, own, NULL, 1, true);
}

static bool can_cross(const struct alg *a)
{
    return a->s->in.algo == ALGO_HIER || a->s->in.topo->rail_trees;
}

int alg_hier_allreduce(struct alg *a)
{
    struct nodes g;
    int rc = alg_nodes(a, &g);
    unsigned n = rc ? 0 : pieces(a, &g);

    if (!rc && !can_cross(a))
        rc = -ENOTSUP;
    for (unsigned k = 0; !rc && k < n + LAG; k++) {
        struct piece p;

        if (k < n) {
            p = piece_of(a, &g, n, k);
            ring_reduce_scatter(a, &g.node, &p.b, alg_ref(BUF_IN, p.off), &p.b,
                                alg_ref(BUF_OUT, p.off), NULL, g.local - 1, false);
            across(a, &g, &p);
        }
        if (k >= LAG && k - LAG < n) {
            p = piece_of(a, &g, n, k - LAG);
            ring_allgather(a, &g.node, &p.b, alg_ref(BUF_OUT, p.off), NULL, 0, true);
        }
    }
    alg_nodes_free(&g);
    return rc;
}

/* The same with the node's switches in place of its ring. */
int alg_nvls_sharp_allreduce(struct alg *a)
{
    struct nodes g;
    struct stripes planes;
    uint64_t tmp = 0;
    int rc = alg_nodes(a, &g);
    unsigned n = rc ? 0 : pieces(a, &g);

    if (!rc)
        rc = can_cross(a) ? mm_planes(a, &g.node, &planes) : -ENOTSUP;
    if (!rc) {
        mm_barrier(a, &g.node, &planes);
        if (!a->s->in.mm_self)
            alg_tmp(a, (a->s->in_bytes / g.local / a->s->esize + PIECES) * a->s->esize);
    }
    for (unsigned k = 0; !rc && k < n + LAG; k++) {
        struct mm_work w = {.tmp = tmp};
        struct piece p;

        if (k >= LAG) {
            p = piece_of(a, &g, n, k - LAG);
            w.src = alg_ref(BUF_OUT, p.own), w.store_to = p.own, w.store = p.own_len;
        }
        if (k < n) {
            p = piece_of(a, &g, n, k);
            w.from = w.to = p.own, w.load = p.own_len;
            tmp += p.own_len;
        }
        mm_load_store(a, &planes, &w);
        if (k < n)
            across(a, &g, &p);
    }
    if (!rc)
        mm_barrier(a, &g.node, &planes);
    alg_nodes_free(&g);
    return rc;
}

/* Blocks go round the rail; each that comes goes round the node, with those that came on the other
 * rails. */
int alg_hier_allgather(struct alg *a)
{
    struct nodes g;
    struct ring_edge rail;
    struct ref out = alg_ref(BUF_OUT, 0), in = alg_ref(BUF_IN, 0);
    uint64_t each = a->s->in_bytes;
    int rc = alg_nodes(a, &g);

    if (!rc) {
        if (!a->s->in.in_place)
            alg_copy(a, alg_ref(BUF_OUT, a->s->in.rank * each), in, each, false);
        ring_edge(a, &g.rail, &rail);
    }
    for (unsigned i = 0; !rc && i < g.n; i++) {
        unsigned at = (g.rail.me + g.n - i) % g.n, next = (at + g.n - 1) % g.n;
        struct blocks b = {.each = each, .n = g.local, .at = &g.at[at * g.local]};

        if (i + 1 < g.n) {
            ring_send(a, &rail, i ? alg_ref(BUF_OUT, g.rail.rank[at] * each) : in, each);
            ring_recv(a, &rail, alg_ref(BUF_OUT, g.rail.rank[next] * each), each, false);
        }
        ring_allgather(a, &g.node, &b, out, i ? NULL : &in, 0, false);
    }
    alg_nodes_free(&g);
    return rc;
}

/* The other way round: the blocks of one node after the other are summed in each node, and go on
 * along the rail to the node they are of. */
int alg_hier_reduce_scatter(struct alg *a)
{
    struct nodes g;
    struct ring_edge rail;
    uint64_t each = a->s->out_bytes, sums = 2 * each;
    struct ref sent = alg_ref(BUF_NONE, 0);
    int rc = alg_nodes(a, &g);

    if (!rc) {
        sums *= g.local;
        alg_tmp(a, sums + g.n * each);
        ring_edge(a, &g.rail, &rail);
    }
    for (unsigned i = 0; !rc && i < g.n; i++) {
        unsigned at = (g.rail.me + 2 * g.n - i - 1) % g.n;
        struct blocks b = {.each = each, .n = g.local, .at = &g.at[at * g.local]};
        struct blocks wb = {.each = each, .n = g.local};
        struct ref sum = alg_ref(BUF_TMP, sums + at * each);
        bool end = i + 1 == g.n;

        ring_reduce_scatter(a, &g.node, &b, alg_ref(BUF_IN, 0), &wb,
                            alg_ref(BUF_TMP, i % 2 * g.local * each), &sum, g.local - 1, false);
        if (i) {
            ring_send(a, &rail, sent, each);
            ring_recv_reduce(a, &rail, end ? alg_ref(BUF_OUT, 0) : sum, sum, each, end);
        }
        sent = sum;
    }
    alg_nodes_free(&g);
    return rc;
}
