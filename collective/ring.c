/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings (F20, F21): reduce-scatter and all-gather of N blocks in N - 1 steps each. In step t of the
 * reduce-scatter rank r sends block r - t and adds its own to block r - t - 1, so that block c is
 * summed as ((x[c] op x[c+1]) op x[c+2]) ..., ranks modulo N, whatever the timing: results are
 * reproducible.
 *
 * Slices keep the links busy: a slice of step t leaves as soon as the same slice of step t - 1 is
 * reduced, while the slices next to it are still in flight. A step then costs max(chunk time, slice
 * time + path latency), so slices are small (an eighth of a block's stripe on the slowest edge),
 * but whole packets, and at most SCHED_SLICE_MAX.
 *
 * If a step has costs of its own (`step` of the fabric's costs), a rank begins a step on a channel
 * once it has noticed all of the previous step there, as NCCL's kernels do, and uses as few
 * messages as possible.
 *
 * Where neighbours have several channels (planes of NVSwitches), a block is striped over them in
 * proportion to their rates: several parallel rings, which share the NIC where the ring leaves a
 * node.
 */
#include "base/assert.h"
#include "collective/alg.h"

#define ROUND_MAX (512ULL << 10) /* bytes of a block at a time, if partial sums are in BUF_TMP */
#define ROUND_STEPS                                                                                \
    (32ULL << 20) /* the same over all channels where steps show: some of their time, so that it \
                     hides in long blocks */

void ring_edge(const struct alg *a, const struct team *t, struct ring_edge *e)
{
    struct stripes p;

    T_ASSERT(t->n && t->me < t->n, "a ring without this rank");
    e->t = t;
    e->slices = t->steps ? 1 : t->slices;
    e->steps = t->steps;
    e->left = t->rank[(t->me + t->n - 1) % t->n];
    e->right = t->rank[(t->me + 1) % t->n];
    alg_stripes(a, e->left, t->rank[t->me], &p);
    e->n_left = p.n;
    alg_stripes(a, t->rank[t->me], e->right, &p);
    e->n_right = p.n;
}

void ring_no_pause(struct ring_edge *e)
{
    e->slices = e->t->slices;
    e->steps = false;
}

void ring_send(struct alg *a, const struct ring_edge *e, struct ref src, uint64_t len)
{
    for (struct cut c = alg_cut(a, &e->t->ring, len, e->slices); alg_next(&c);) {
        struct dep before = {0};

        if (e->steps)
            before = alg_so_far(a, LANE_RECV, e->left, c.chan % e->n_left);
        alg_send_after(a, e->right, c.chan % e->n_right, alg_plus(src, c.off), c.len, before);
    }
}

void ring_recv(struct alg *a, const struct ring_edge *e, struct ref dst, uint64_t len, bool caused)
{
    for (struct cut c = alg_cut(a, &e->t->ring, len, e->slices); alg_next(&c);)
        (caused ? alg_recv_caused : alg_recv)(a, e->left, c.chan % e->n_left, alg_plus(dst, c.off),
                                              c.len);
}

void ring_recv_reduce(struct alg *a, const struct ring_edge *e, struct ref dst, struct ref other,
                      uint64_t len, bool last)
{
    for (struct cut c = alg_cut(a, &e->t->ring, len, e->slices); alg_next(&c);)
        alg_recv_reduce(a, e->left, c.chan % e->n_left, alg_plus(dst, c.off),
                        alg_plus(other, c.off), c.len, last);
}

void ring_scatter_step(struct alg *a, const struct ring_edge *e, unsigned i,
                       const struct ring_scatter *s)
{
    const struct team *t = e->t;
    bool end = i + 2 == t->n;
    unsigned k = (t->me + s->shift + t->n - i) % t->n;
    uint64_t off, len, at;

    T_ASSERT_HOT(i + 1 < t->n, "a step beyond the last one of the ring");
    alg_block(a, i ? s->wb : s->b, k, &off, &len);
    ring_send(a, e, alg_plus(i ? s->work : s->in, off), len);
    k = (k + t->n - 1) % t->n;
    alg_block(a, s->wb, k, &at, &len);
    alg_block(a, s->b, k, &off, &len);
    ring_recv_reduce(a, e, end && s->final ? *s->final : alg_plus(s->work, at),
                     alg_plus(s->in, off), len, end && s->last);
}

void ring_reduce_scatter(struct alg *a, const struct team *t, const struct blocks *b, struct ref in,
                         const struct blocks *wb, struct ref work, const struct ref *final,
                         unsigned shift, bool last)
{
    const struct ring_scatter s = {b, wb, in, work, final, shift, last};
    struct ring_edge e;

    ring_edge(a, t, &e);
    for (unsigned i = 0; i + 1 < t->n; i++)
        ring_scatter_step(a, &e, i, &s);
}

void ring_gather_step(struct alg *a, const struct ring_edge *e, unsigned i,
                      const struct ring_gather *g)
{
    const struct team *t = e->t;
    uint64_t off, len;

    T_ASSERT_HOT(i + 1 < t->n, "a step beyond the last one of the ring");
    alg_block(a, g->b, (t->me + g->shift + t->n - i) % t->n, &off, &len);
    ring_send(a, e, i || !g->own ? alg_plus(g->at, off) : *g->own, len);
    alg_block(a, g->b, (t->me + g->shift + 2 * t->n - i - 1) % t->n, &off, &len);
    ring_recv(a, e, alg_plus(g->at, off), len, g->caused);
}

void ring_allgather(struct alg *a, const struct team *t, const struct blocks *b, struct ref at,
                    const struct ref *own, unsigned shift, bool caused)
{
    const struct ring_gather g = {b, at, own, shift, caused};
    struct ring_edge e;

    ring_edge(a, t, &e);
    for (unsigned i = 0; i + 1 < t->n; i++)
        ring_gather_step(a, &e, i, &g);
}

int alg_ring_allreduce(struct alg *a)
{
    struct nodes g;
    struct blocks b = {.total = a->s->in_bytes, .n = a->s->in.nranks};
    struct ref out = alg_ref(BUF_OUT, 0);
    int rc = alg_everybody(a, &g);

    if (!rc) {
        ring_reduce_scatter(a, &g.all, &b, alg_ref(BUF_IN, 0), &b, out, NULL, 0, true);
        ring_allgather(a, &g.all, &b, out, NULL, 1, true);
    }
    alg_nodes_free(&g);
    return rc;
}

int alg_ring_allgather(struct alg *a)
{
    struct nodes g;
    struct blocks b = {.each = a->s->in_bytes, .n = a->s->in.nranks};
    struct ref own = alg_ref(BUF_IN, 0);
    int rc = alg_everybody(a, &g);

    if (!rc) {
        if (!a->s->in.in_place)
            alg_copy(a, alg_ref(BUF_OUT, a->s->in.rank * b.each), own, b.each, false);
        ring_allgather(a, &g.all, &b, alg_ref(BUF_OUT, 0), &own, 0, false);
    }
    alg_nodes_free(&g);
    return rc;
}

static struct ref part_sum(const struct ring_part *p, unsigned i)
{
    return alg_ref(BUF_TMP, p->tmp + i % RING_PART_BUF * p->len);
}

/* A part of the block of the rank `back` places before this one in the ring. */
static struct ref part_of(const struct alg *a, const struct team *t, const struct ring_part *p,
                          unsigned back)
{
    return alg_ref(BUF_IN, t->rank[(t->me + 2 * t->n - back) % t->n] * a->s->out_bytes + p->off);
}

void ring_part_step(struct alg *a, const struct ring_edge *e, unsigned i, const struct ring_part *p)
{
    bool end = i + 2 == e->t->n;

    T_ASSERT_HOT(i + 1 < e->t->n, "a step beyond the last one of the ring");
    ring_send(a, e, i ? part_sum(p, i - 1) : part_of(a, e->t, p, 1), p->len);
    ring_recv_reduce(a, e, end ? alg_ref(BUF_OUT, p->off) : part_sum(p, i),
                     part_of(a, e->t, p, i + 2), p->len, end);
}

uint64_t ring_rounds(const struct team *t, uint64_t each)
{
    uint64_t most = t->steps ? ROUND_STEPS : ROUND_MAX * t->ring.n;

    return (each + most - 1) / most;
}

/* The user's buffer has room only for this rank's block, so long blocks go round part by part. */
int alg_ring_reduce_scatter(struct alg *a)
{
    struct nodes g;
    struct ring_edge e;
    uint64_t each = a->s->out_bytes;
    int rc = alg_everybody(a, &g);

    if (!rc) {
        uint64_t rounds = ring_rounds(&g.all, each);
        struct ring_part p = {0};

        ring_edge(a, &g.all, &e);
        sched_part(each, a->s->esize, rounds, 0, &p.off, &p.len);
        alg_tmp(a, RING_PART_BUF * p.len);
        for (uint64_t q = 0; q < rounds && !a->s->rc; q++) {
            sched_part(each, a->s->esize, rounds, q, &p.off, &p.len);
            for (unsigned i = 0; i + 1 < g.all.n; i++)
                ring_part_step(a, &e, i, &p);
            ring_no_pause(&e);
        }
    }
    alg_nodes_free(&g);
    return rc;
}
