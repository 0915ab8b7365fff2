/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings (F20, F21): reduce-scatter and all-gather of N blocks in N - 1 steps each. In
 * step t of the reduce-scatter rank r sends block r - t and adds its own to block r - t - 1, so
 * that block c is summed as ((x[c] op x[c+1]) op x[c+2]) ..., ranks modulo N, whatever the timing:
 * results are reproducible.
 *
 * Slices keep the links busy: a slice of step t leaves as soon as the same slice of step t - 1 is
 * reduced, while the slices next to it are still in flight. A step then costs max(chunk time, slice
 * time + path latency), so slices are small (an eighth of a block's stripe on the slowest edge),
 * but whole packets, and at most SCHED_SLICE_MAX.
 *
 * Where neighbours have several channels (planes of NVSwitches), a block is striped over them in
 * proportion to their rates: several parallel rings, which share the NIC where the ring leaves a
 * node.
 */
#include "host/coll/alg/alg.h"

#define ROUND_MAX (512ULL << 10) /* of a block at a time, where partial sums are in BUF_TMP */
#define ROUND_BUF 4u /* steps whose partial sums are kept until their sends are acknowledged */

void ring_edge(const struct alg *a, const struct team *t, struct ring_edge *e)
{
    struct stripes p;

    e->t = t;
    e->left = t->rank[(t->me + t->n - 1) % t->n];
    e->right = t->rank[(t->me + 1) % t->n];
    alg_stripes(a, e->left, t->rank[t->me], &p);
    e->n_left = p.n;
    alg_stripes(a, t->rank[t->me], e->right, &p);
    e->n_right = p.n;
}

void ring_send(struct alg *a, const struct ring_edge *e, struct ref src, uint64_t len)
{
    for (struct cut c = alg_cut(a, &e->t->ring, len, e->t->slices); alg_next(&c);)
        alg_send(a, e->right, c.chan % e->n_right, alg_plus(src, c.off), c.len);
}

void ring_recv(struct alg *a, const struct ring_edge *e, struct ref dst, uint64_t len, bool caused)
{
    for (struct cut c = alg_cut(a, &e->t->ring, len, e->t->slices); alg_next(&c);)
        (caused ? alg_recv_caused : alg_recv)(a, e->left, c.chan % e->n_left, alg_plus(dst, c.off),
                                              c.len);
}

void ring_recv_reduce(struct alg *a, const struct ring_edge *e, struct ref dst, struct ref other,
                      uint64_t len, bool last)
{
    for (struct cut c = alg_cut(a, &e->t->ring, len, e->t->slices); alg_next(&c);)
        alg_recv_reduce(a, e->left, c.chan % e->n_left, alg_plus(dst, c.off),
                        alg_plus(other, c.off), c.len, last);
}

void ring_reduce_scatter(struct alg *a, const struct team *t, const struct blocks *b, struct ref in,
                         const struct blocks *wb, struct ref work, const struct ref *final,
                         unsigned shift, bool last)
{
    struct ring_edge e;
    uint64_t off, len, at;

    ring_edge(a, t, &e);
    for (unsigned i = 0; i + 1 < t->n; i++) {
        bool end = i + 2 == t->n;
        unsigned k = (t->me + shift + t->n - i) % t->n;

        alg_block(a, i ? wb : b, k, &off, &len);
        ring_send(a, &e, alg_plus(i ? work : in, off), len);
        k = (k + t->n - 1) % t->n;
        alg_block(a, wb, k, &at, &len);
        alg_block(a, b, k, &off, &len);
        ring_recv_reduce(a, &e, end && final ? *final : alg_plus(work, at), alg_plus(in, off), len,
                         end && last);
    }
}

void ring_allgather(struct alg *a, const struct team *t, const struct blocks *b, struct ref at,
                    const struct ref *own, unsigned shift, bool caused)
{
    struct ring_edge e;
    uint64_t off, len;

    ring_edge(a, t, &e);
    for (unsigned i = 0; i + 1 < t->n; i++) {
        alg_block(a, b, (t->me + shift + t->n - i) % t->n, &off, &len);
        ring_send(a, &e, i || !own ? alg_plus(at, off) : *own, len);
        alg_block(a, b, (t->me + shift + 2 * t->n - i - 1) % t->n, &off, &len);
        ring_recv(a, &e, alg_plus(at, off), len, caused);
    }
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

/* One part of every block: [off, off + len) of each. */
static void scatter_round(struct alg *a, const struct ring_edge *e, uint64_t off, uint64_t len)
{
    unsigned n = e->t->n, me = e->t->me;
    uint64_t each = a->s->out_bytes;

    for (unsigned i = 0; i + 1 < n; i++) {
        bool end = i + 2 == n;
        struct ref sent = alg_ref(BUF_TMP, (i + ROUND_BUF - 1) % ROUND_BUF * len);
        struct ref sum = alg_ref(BUF_TMP, i % ROUND_BUF * len);

        if (!i)
            sent = alg_ref(BUF_IN, (me + n - 1) % n * each + off);
        ring_send(a, e, sent, len);
        ring_recv_reduce(a, e, end ? alg_ref(BUF_OUT, off) : sum,
                         alg_ref(BUF_IN, (me + 2 * n - i - 2) % n * each + off), len, end);
    }
}

/* The user's buffer holds this rank's block only: long blocks go round part by part. */
int alg_ring_reduce_scatter(struct alg *a)
{
    struct nodes g;
    struct ring_edge e;
    uint64_t each = a->s->out_bytes, off, len;
    int rc = alg_everybody(a, &g);

    if (!rc) {
        uint64_t most = ROUND_MAX * g.all.ring.n, rounds = (each + most - 1) / most;

        ring_edge(a, &g.all, &e);
        sched_part(each, a->s->esize, rounds, 0, &off, &len);
        alg_tmp(a, ROUND_BUF * len);
        for (uint64_t q = 0; q < rounds && !a->s->rc; q++) {
            sched_part(each, a->s->esize, rounds, q, &off, &len);
            scatter_round(a, &e, off, len);
        }
    }
    alg_nodes_free(&g);
    return rc;
}
