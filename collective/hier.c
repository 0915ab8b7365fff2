/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * By levels (F28): within the GPU nodes over their planes, between them over the rails, each of
 * which joins the ranks of one local rank. All-reduce is a
 * reduce-scatter in the node, an all-reduce of the own block on the rail (ring, or the switches'
 * aggregation), and an all-gather in the node. The vector goes through in pieces, so that the
 * levels work at the same time: a piece comes back into the node some pieces after it left.
 */
#include "base/assert.h"
#include "aggregation/proto.h"
#include "collective/alg.h"

#include <errno.h>

/* Most pieces. The pipeline loses the time of the first and the last piece through the levels. */
#define PIECES      16u            /* short ones */
#define LONG_PIECES 128u           /* of blocks that are twice as long, or in which */
#define NODE_BLOCK  (64ULL << 10)  /* each step of the node's ring is so long */
#define MM_PIECES   256u           /* with multimem in the node, as pieces have no ring steps */
#define PIECE_BLOCK (128ULL << 10) /* least bytes of a step on the rail per piece */
#define PIECE_PART  (1ULL << 20)   /* least bytes of a block per piece, for steps in the node */
#define LAG         2u             /* pieces on the rail while the node works on others */
#define MM_LAG      8u             /* the same with multimem in the node */

static unsigned pieces(uint64_t bytes, uint64_t least, unsigned most)
{
    uint64_t n = bytes / least;

    return n < 1 ? 1 : n < most ? (unsigned)n : most;
}

static unsigned vector_pieces(const struct alg *a, const struct nodes *g)
{
    uint64_t block = a->s->in_bytes / g->local / (a->s->in.algo == ALGO_HIER ? g->n : 1);
    unsigned few = pieces(block, PIECE_BLOCK, PIECES),
             many = pieces(block, 2 * PIECE_BLOCK, LONG_PIECES);

    if (a->s->in.algo == ALGO_NVLS_SHARP)
        return pieces(block, PIECE_BLOCK, MM_PIECES);
    if (a->s->in.algo == ALGO_HIER_SHARP)
        return pieces(block, NODE_BLOCK * g->local, LONG_PIECES);
    return few > many ? few : many;
}

/* A piece of the vector, and the block of it that this rank reduces. */
struct hier_piece {
    uint64_t off, own, own_len;
    struct blocks b;
};

static struct hier_piece piece_of(const struct alg *a, const struct nodes *g, unsigned n,
                                  unsigned k)
{
    struct hier_piece p = {.b.n = g->local};

    sched_part(a->s->in_bytes, a->s->esize, n, k, &p.off, &p.b.total);
    alg_block(a, &p.b, g->node.me, &p.own, &p.own_len);
    p.own += p.off;
    return p;
}

static void across(struct alg *a, const struct nodes *g, const struct hier_piece *p)
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
        struct hier_piece p;

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

/* As alg_hier_allreduce(), with the node's switches instead of its ring. */
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
            alg_tmp(a, (a->s->in_bytes / g.local / a->s->esize + MM_PIECES) * a->s->esize);
    }
    for (unsigned k = 0; !rc && k < n + MM_LAG; k++) {
        struct mm_work w = {.tmp = tmp};
        struct hier_piece p;

        if (k >= MM_LAG) {
            p = piece_of(a, &g, n, k - MM_LAG);
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

/* ---- broadcast ---- */

/* Passes slices from member `first` of a team along to all others, in order. src: data of the
 * first; the others receive it at `at`. */
static void pass_on(struct alg *a, const struct team *t, unsigned first, struct ref src,
                    struct ref at, uint64_t len)
{
    unsigned place = (t->me + t->n - first) % t->n;
    struct ring_edge e;

    T_ASSERT(t->me < t->n && first < t->n, "a member that its team does not have");
    ring_edge(a, t, &e);
    for (struct cut c = alg_cut(a, &t->ring, len, ALG_SLICES); alg_next(&c);) {
        if (place)
            alg_recv(a, e.left, c.chan % e.n_left, alg_plus(at, c.off), c.len);
        if (place + 1 < t->n)
            alg_send(a, e.right, c.chan % e.n_right, alg_plus(place ? at : src, c.off), c.len);
    }
}

/* Broadcasts along the rail, or by its switches. */
static void rail_broadcast(struct alg *a, const struct nodes *g, unsigned first, struct ref src,
                           struct ref at, uint64_t len)
{
    bool own = g->rail.me == first;
    struct ref none = {0};

    if (a->s->in.algo == ALGO_HIER)
        pass_on(a, &g->rail, first, src, at, len);
    else
        agg_vector(a, GROUP_RAIL, AGG_BROADCAST, g->rail.rank[first], own ? src : none,
                   own ? none : at, len, false);
}

/*
 * In the root's node the vector goes from GPU to GPU, and each sends its block on its rail; in the
 * other nodes blocks come by the rails and go round the node. So a GPU's NIC carries B / N, and its
 * planes B at most.
 */
int alg_hier_broadcast(struct alg *a)
{
    const struct sched_in *in = &a->s->in;
    struct nodes g;
    struct ref out = alg_ref(BUF_OUT, 0), src = in->rank == in->root ? alg_ref(BUF_IN, 0) : out;
    int rc = alg_nodes(a, &g);
    unsigned n = rc ? 0 : pieces(a->s->out_bytes / g.local, PIECE_BLOCK, PIECES), place = 0,
             first = 0;

    if (!rc && !can_cross(a))
        rc = -ENOTSUP;
    if (!rc) {
        first = in->topo->domain[in->root];
        while (g.at[first * g.local + place] != in->root)
            place++;
        T_ASSERT(place < g.local, "the root is not in its own node");
        if (in->rank == in->root && !in->in_place)
            alg_copy(a, out, src, a->s->out_bytes, false);
    }
    for (unsigned k = 0; !rc && k < n; k++) {
        struct blocks b = {.n = g.local};
        uint64_t off, own, len;

        sched_part(a->s->out_bytes, a->s->esize, n, k, &off, &b.total);
        alg_block(a, &b, g.node.me, &own, &len);
        if (g.rail.me == first)
            pass_on(a, &g.node, place, alg_plus(src, off), alg_plus(out, off), b.total);
        rail_broadcast(a, &g, first, alg_plus(src, off + own), alg_plus(out, off + own), len);
        if (g.rail.me != first)
            ring_allgather(a, &g.node, &b, alg_plus(out, off), NULL, 0, false);
    }
    alg_nodes_free(&g);
    return rc;
}

/* ---- all-gather and reduce-scatter ---- */

/*
 * All-gather and reduce-scatter: step i on the rail carries the blocks of one node, which go round
 * this node before or after it. The pieces of a block follow each other, in diagonals:
 * step i of piece p with step i - 1 of piece p + 1, so that a node has work while the rail brings
 * more.
 */
struct walk {
    unsigned n, steps, p, i; /* pieces, steps of each; the current ones */
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

/* Layout of whole blocks, of which only a piece is used. */
struct part {
    uint64_t off, len;
};

static struct part part_at(const struct alg *a, uint64_t each, unsigned n, unsigned k)
{
    struct part p;

    sched_part(each, a->s->esize, n, k, &p.off, &p.len);
    return p;
}

static struct part part_of(const struct alg *a, uint64_t each, const struct walk *w)
{
    return part_at(a, each, w->n, w->p);
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

/* Passes a part of one node's blocks, which have come over the rails, round this node. */
static void node_part(struct alg *a, const struct nodes *g, const struct stripes *planes,
                      unsigned at, struct part p)
{
    uint64_t each = a->s->in_bytes;
    struct ref out = alg_ref(BUF_OUT, p.off), in = alg_ref(BUF_IN, p.off);
    struct blocks b = {.each = each, .part = p.len, .n = g->local, .at = &g->at[at * g->local]};
    uint64_t to = g->rail.rank[at] * each;
    bool own = at == g->rail.me;

    if (planes)
        mm_load_store(a, planes,
                      &(struct mm_work){.src = own ? in : alg_plus(out, to),
                                        .store_to = to + p.off,
                                        .store = p.len});
    else
        ring_allgather(a, &g->node, &b, out, own ? &in : NULL, 0, false);
}

/*
 * All-gather with the rails' switches: each GPU sends its block up once, and the switches send it
 * to the same local rank of all other nodes (F33: leaves receive B and send B (M - 1)). Within the
 * node a ring, or its switches: then every GPU sends each of its rail's blocks once, its own first,
 * while the rails begin.
 */
static void gather_by_switches(struct alg *a, const struct nodes *g, const struct stripes *planes)
{
    uint64_t each = a->s->in_bytes;
    unsigned n = pieces(each, planes ? PIECE_BLOCK : PIECE_PART / 2, PIECES);
    struct ref none = {0};

    for (unsigned k = 0; k < n; k++)
        node_part(a, g, planes, g->rail.me, part_at(a, each, n, k));
    for (unsigned k = 0; k < n; k++) {
        struct part p = part_at(a, each, n, k);

        for (unsigned at = 0; at < g->n; at++) {
            bool own = at == g->rail.me;

            agg_vector(
                a, GROUP_RAIL, AGG_BROADCAST, g->rail.rank[at], own ? alg_ref(BUF_IN, p.off) : none,
                own ? none : alg_ref(BUF_OUT, g->rail.rank[at] * each + p.off), p.len, false);
        }
        for (unsigned at = 0; at < g->n; at++)
            if (at != g->rail.me)
                node_part(a, g, planes, at, p);
    }
}

int alg_hier_sharp_allgather(struct alg *a)
{
    struct nodes g;
    struct stripes planes;
    bool nvls = a->s->in.algo == ALGO_NVLS_SHARP;
    uint64_t each = a->s->in_bytes;
    int rc = alg_nodes(a, &g);

    if (!rc)
        rc = !can_cross(a) ? -ENOTSUP : nvls ? mm_planes(a, &g.node, &planes) : 0;
    if (!rc) {
        if (!a->s->in.in_place)
            alg_copy(a, alg_ref(BUF_OUT, a->s->in.rank * each), alg_ref(BUF_IN, 0), each, false);
        if (nvls)
            mm_barrier(a, &g.node, &planes);
        gather_by_switches(a, &g, nvls ? &planes : NULL);
        if (nvls)
            mm_barrier(a, &g.node, &planes);
    }
    alg_nodes_free(&g);
    return rc;
}

int alg_hier_allgather(struct alg *a)
{
    struct nodes g;
    struct ring_edge rail;
    uint64_t each = a->s->in_bytes;
    int rc = alg_nodes(a, &g);
    struct walk w = {.n = pieces(each, PIECE_PART, LONG_PIECES), .steps = g.n};

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

/* BUF_TMP: the node's sums of all blocks of this local rank, then room for the partial sums of two
 * parts. */
static void scatter_part(struct alg *a, const struct nodes *g, const struct ring_edge *rail,
                         unsigned i, struct part p, uint64_t room)
{
    uint64_t each = a->s->out_bytes;
    unsigned at = (g->rail.me + 2 * g->n - i - 1) % g->n, last = (at + 1) % g->n;
    struct blocks b = {.each = each, .part = p.len, .n = g->local, .at = &g->at[at * g->local]};
    struct blocks wb = {.each = p.len, .n = g->local};
    struct ref sum = alg_ref(BUF_TMP, at * each + p.off);
    bool end = i + 1 == g->n;

    T_ASSERT(i < g->n, "more steps than the rail has nodes");
    ring_reduce_scatter(a, &g->node, &b, alg_ref(BUF_IN, p.off), &wb, alg_ref(BUF_TMP, room), &sum,
                        g->local - 1, false);
    if (!i)
        return;
    ring_send(a, rail, alg_ref(BUF_TMP, last * each + p.off), p.len);
    ring_recv_reduce(a, rail, end ? alg_ref(BUF_OUT, p.off) : sum, sum, p.len, end);
}

/* Sums one node's blocks in this node, and then by the rail's switches, which send the result
 * there. */
static void scatter_by_switches(struct alg *a, const struct nodes *g, unsigned at, struct part p,
                                uint64_t room)
{
    uint64_t each = a->s->out_bytes;
    struct blocks b = {.each = each, .part = p.len, .n = g->local, .at = &g->at[at * g->local]};
    struct blocks wb = {.each = p.len, .n = g->local};
    struct ref sum = alg_ref(BUF_TMP, at * each + p.off), none = {0};

    ring_reduce_scatter(a, &g->node, &b, alg_ref(BUF_IN, p.off), &wb, alg_ref(BUF_TMP, room), &sum,
                        g->local - 1, false);
    agg_vector(a, GROUP_RAIL, AGG_REDUCE, g->rail.rank[at], sum,
               at == g->rail.me ? alg_ref(BUF_OUT, p.off) : none, p.len, true);
}

int alg_hier_reduce_scatter(struct alg *a)
{
    struct nodes g;
    struct ring_edge rail;
    uint64_t each = a->s->out_bytes, most = 0, off;
    int rc = alg_nodes(a, &g);
    struct walk w = {.n = pieces(each, PIECE_PART, LONG_PIECES), .steps = g.n};
    unsigned turn = 0;

    if (!rc && !can_cross(a))
        rc = -ENOTSUP;
    if (!rc) {
        sched_part(each, a->s->esize, w.n, 0, &off, &most);
        most *= g.local;
        alg_tmp(a, g.n * each + 2 * most);
        ring_edge(a, &g.rail, &rail);
    }
    for (bool more = !rc; more; more = walk_next(&w))
        if (a->s->in.algo == ALGO_HIER)
            scatter_part(a, &g, &rail, w.i, part_of(a, each, &w), g.n * each + turn++ % 2 * most);
        else
            scatter_by_switches(a, &g, w.i, part_of(a, each, &w), g.n * each + turn++ % 2 * most);
    alg_nodes_free(&g);
    return rc;
}
