/*
 * By levels (figures.md F28): within the GPU nodes over their planes, between them over the rails,
 * on which the ranks with the same place in their nodes talk to each other only. All-reduce is a
 * reduce-scatter in the node, an all-reduce of the own block on the rail (ring, or the switches'
 * aggregation), and an all-gather in the node. The vector goes through in pieces, so that the
 * levels work at the same time: a piece comes back into the node some pieces after it left.
 */
#include "host/coll/alg.h"
#include "switch/reduce/proto.h"

#include <errno.h>

#define PIECES      16u            /* at most */
#define PIECE_BLOCK (128ULL << 10) /* bytes of a step on the rail that are worth a piece */
#define PIECE_PART  (1ULL << 20)   /* bytes of a block that are: steps in the node are this long */
#define LAG         2u             /* pieces on the rail while the node goes on */

static unsigned pieces(uint64_t bytes, uint64_t least)
{
    uint64_t n = bytes / least;

    return n < 1 ? 1 : n < PIECES ? (unsigned)n : PIECES;
}

static unsigned vector_pieces(const struct alg *a, const struct nodes *g)
{
    unsigned blocks = g->local * (a->s->in.algo == ALGO_HIER ? g->n : 1);

    return pieces(a->s->in_bytes / blocks, PIECE_BLOCK);
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
    unsigned n = rc ? 0 : vector_pieces(a, &g);

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
    unsigned n = rc ? 0 : vector_pieces(a, &g);

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

/*
 * All-gather and reduce-scatter: step i on the rail is about the blocks of one node, which go round
 * this node before or after. Of every block the pieces go one after the other, and by diagonals:
 * step i of piece p with step i - 1 of piece p + 1, so that a node has work while the rail brings
 * more.
 */
struct walk {
    unsigned n, steps, p, i; /* pieces, steps of each; where we are */
};

static bool walk_next(struct walk *w)
{
    do {
        if (w->p && w->i + 1 < w->steps) {
            w->p--, w->i++;
        } else {
            w->p += w->i + 1;
            w->i = 0;
        }
        if (w->p >= w->n + w->steps)
            return false;
    } while (w->p >= w->n);
    return true;
}

/* Blocks as whole ones, of which a piece is meant. */
struct part {
    uint64_t off, len;
};

static struct part part_of(const struct alg *a, uint64_t each, const struct walk *w)
{
    struct part p;

    sched_part(each, a->s->esize, w->n, w->p, &p.off, &p.len);
    return p;
}

static void gather_part(struct alg *a, const struct nodes *g, const struct ring_edge *rail,
                        unsigned i, struct part p)
{
    uint64_t each = a->s->in_bytes;
    unsigned at = (g->rail.me + g->n - i) % g->n, next = (at + g->n - 1) % g->n;
    struct ref out = alg_ref(BUF_OUT, p.off), in = alg_ref(BUF_IN, p.off);
    struct blocks b = {.each = each, .part = p.len, .n = g->local, .at = &g->at[at * g->local]};

    if (i + 1 < g->n) {
        ring_send(a, rail, i ? alg_plus(out, g->rail.rank[at] * each) : in, p.len);
        ring_recv(a, rail, alg_plus(out, g->rail.rank[next] * each), p.len, false);
    }
    ring_allgather(a, &g->node, &b, out, i ? NULL : &in, 0, false);
}

int alg_hier_allgather(struct alg *a)
{
    struct nodes g;
    struct ring_edge rail;
    uint64_t each = a->s->in_bytes;
    int rc = alg_nodes(a, &g);
    struct walk w = {.n = pieces(each, PIECE_PART), .steps = g.n};

    if (!rc) {
        if (!a->s->in.in_place)
            alg_copy(a, alg_ref(BUF_OUT, a->s->in.rank * each), alg_ref(BUF_IN, 0), each, false);
        ring_edge(a, &g.rail, &rail);
    }
    for (bool more = !rc; more; more = walk_next(&w))
        gather_part(a, &g, &rail, w.i, part_of(a, each, &w));
    alg_nodes_free(&g);
    return rc;
}

/* BUF_TMP: the node's sums of all blocks of this place, then room for two parts' sums on the way.
 */
static void scatter_part(struct alg *a, const struct nodes *g, const struct ring_edge *rail,
                         unsigned i, struct part p, uint64_t room)
{
    uint64_t each = a->s->out_bytes;
    unsigned at = (g->rail.me + 2 * g->n - i - 1) % g->n, last = (at + 1) % g->n;
    struct blocks b = {.each = each, .part = p.len, .n = g->local, .at = &g->at[at * g->local]};
    struct blocks wb = {.each = p.len, .n = g->local};
    struct ref sum = alg_ref(BUF_TMP, at * each + p.off);
    bool end = i + 1 == g->n;

    ring_reduce_scatter(a, &g->node, &b, alg_ref(BUF_IN, p.off), &wb, alg_ref(BUF_TMP, room), &sum,
                        g->local - 1, false);
    if (!i)
        return;
    ring_send(a, rail, alg_ref(BUF_TMP, last * each + p.off), p.len);
    ring_recv_reduce(a, rail, end ? alg_ref(BUF_OUT, p.off) : sum, sum, p.len, end);
}

int alg_hier_reduce_scatter(struct alg *a)
{
    struct nodes g;
    struct ring_edge rail;
    uint64_t each = a->s->out_bytes, most = 0, off;
    int rc = alg_nodes(a, &g);
    struct walk w = {.n = pieces(each, PIECE_PART), .steps = g.n};
    unsigned turn = 0;

    if (!rc) {
        sched_part(each, a->s->esize, w.n, 0, &off, &most);
        most *= g.local;
        alg_tmp(a, g.n * each + 2 * most);
        ring_edge(a, &g.rail, &rail);
    }
    for (bool more = !rc; more; more = walk_next(&w))
        scatter_part(a, &g, &rail, w.i, part_of(a, each, &w), g.n * each + turn++ % 2 * most);
    alg_nodes_free(&g);
    return rc;
}
