/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes a rank's schedule from a file. The verifier has checked that steps on the same chunks are
 * in order. So, as in every algorithm, dependencies follow from shared bytes, slice by slice: a
 * slice leaves as soon as the same slice of the earlier step has come. If a line names a step
 * without a common chunk, it waits for the whole step.
 *
 * All messages are cut alike (struct alg_edges), so data from a wide edge goes on over a narrow one
 * in the same slices.
 */
#include "base/assert.h"
#include "collective/alg.h"
#include "collective/file/sched_file_priv.h"

#include <errno.h>
#include <stdlib.h>

/* The ends of a step that others wait for as a whole. */
struct ends {
    unsigned n;
    struct dep d[SCHED_MAX_CHANS];
};

struct file_run {
    struct alg *a;
    const struct sched_file *f;
    uint64_t one; /* bytes of the vector that is divided into chunks */
    bool equal;   /* chunks have the same length */
    struct alg_edges edges;
    unsigned slices;
    struct ends **ends; /* of the rank's steps; NULL: nobody waits for it */
};

static uint64_t chunk_bytes(const struct file_run *r, uint32_t chunk, uint64_t *off)
{
    uint64_t len;

    sched_part(r->one, r->a->s->esize, r->f->chunks, chunk, off, &len);
    return len;
}

/* Where the k-th chunk of a reference begins. */
static struct ref place_of(const struct file_run *r, struct file_ref ref, uint32_t k)
{
    static const enum step_buf buf[] = {BUF_NONE, BUF_IN, BUF_OUT, BUF_TMP};
    uint32_t at = ref.first + k;
    uint64_t off;

    if (ref.buf == FILE_SCRATCH)
        return alg_ref(BUF_TMP, at * chunk_bytes(r, 0, &off)); /* the longest */
    chunk_bytes(r, at % r->f->chunks, &off);
    return alg_ref(buf[ref.buf], at / r->f->chunks * r->one + off);
}

static unsigned channels(const struct file_run *r, unsigned peer)
{
    struct stripes p;

    alg_stripes(r->a, r->a->s->in.rank, peer, &p);
    return p.n;
}

/* Appends the step's work on `len` bytes from its chunk k on. */
static void put_bytes(struct file_run *r, const struct file_step *s, uint32_t k, uint64_t len)
{
    struct alg *a = r->a;
    struct ref x = place_of(r, s->a, k), y = place_of(r, s->b, k), dst = place_of(r, s->dst, k);
    bool last = r->f->part[s->first_part + k].last, caused = s->caused[a->s->in.in_place];
    unsigned n = file_is_local(s) ? 1 : channels(r, s->peer);

    for (struct cut c = alg_cut(a, &r->edges.wide, len, r->slices); alg_next(&c);) {
        struct ref xs = alg_plus(x, c.off), ys = alg_plus(y, c.off), to = alg_plus(dst, c.off);

        switch (s->op) {
        case FILE_SEND:
            alg_send(a, s->peer, c.chan % n, xs, c.len);
            break;
        case FILE_RECV:
            (caused ? alg_recv_caused : alg_recv)(a, s->peer, c.chan % n, to, c.len);
            break;
        case FILE_RECV_REDUCE:
            alg_recv_reduce(a, s->peer, c.chan % n, to, ys, c.len, last);
            break;
        case FILE_REDUCE:
            alg_reduce(a, 0, to, xs, ys, c.len, last);
            break;
        default:
            alg_copy(a, to, xs, c.len, false);
        }
    }
}

/* Appends a step. Chunks that are contiguous in memory at both ends become one message. */
static void put_step(struct file_run *r, const struct file_step *s)
{
    const struct file_part *part = &r->f->part[s->first_part];
    bool in_place = r->a->s->in.in_place, whole = !s->mixed && (r->equal || !s->scratch);
    uint64_t len = 0, off;

    if (s->op == FILE_COPY && file_cell(r->f, s->rank, s->a, 0, in_place) ==
                                  file_cell(r->f, s->rank, s->dst, 0, in_place))
        return; /* in place, the data is already there */
    for (uint32_t k = 0; k < s->n; k++) {
        len += chunk_bytes(r, part[k].chunk, &off);
        if (whole && k + 1 < s->n)
            continue;
        put_bytes(r, s, whole ? 0 : k, len);
        len = 0;
    }
}

/* ---- steps that are waited for as a whole ---- */

static bool meet(const struct file_run *r, const struct file_step *x, struct file_ref p,
                 const struct file_step *y, struct file_ref q)
{
    bool in_place = r->a->s->in.in_place;
    uint32_t a, b;

    if (!p.buf || !q.buf)
        return false;
    a = file_cell(r->f, x->rank, p, 0, in_place);
    b = file_cell(r->f, y->rank, q, 0, in_place);
    return a < b + y->n && b < a + x->n;
}

/* Whether one of the steps writes a chunk that the other uses. */
static bool share_chunk(const struct file_run *r, const struct file_step *x,
                        const struct file_step *y)
{
    return meet(r, x, x->dst, y, y->a) || meet(r, x, x->dst, y, y->b) ||
           meet(r, x, x->dst, y, y->dst) || meet(r, y, y->dst, x, x->a) ||
           meet(r, y, y->dst, x, x->b);
}

static void note_ends(const struct file_run *r, const struct file_step *s, struct ends *e)
{
    enum lane_kind kind = s->op == FILE_SEND   ? LANE_SEND
                          : s->op == FILE_RECV ? LANE_RECV
                                               : LANE_CPU;
    unsigned peer = file_is_local(s) ? s->rank : s->peer,
             n = file_is_local(s) ? 1 : channels(r, peer);

    T_ASSERT(n <= SCHED_MAX_CHANS, "more channels to a peer than there may be");
    for (e->n = 0; e->n < n; e->n++)
        e->d[e->n] = alg_so_far(r->a, kind, peer, e->n);
}

static void wait_whole(struct file_run *r, const struct file_step *s)
{
    struct alg *a = r->a;

    a->n_fence = 0;
    for (uint32_t i = 0; i < s->n_after; i++) {
        const struct ends *e = r->ends[r->f->after[s->first_after + i]];

        if (share_chunk(r, &r->f->step[file_after(r->f, s, i)], s))
            continue;
        for (unsigned k = 0; e && k < e->n; k++)
            a->fence[a->n_fence++] = e->d[k];
    }
}

/* Memory for the ends of steps that are waited for as a whole. */
static int find_whole(struct file_run *r, uint32_t from, uint32_t to)
{
    r->ends = calloc(to - from + 1, sizeof(*r->ends));
    if (!r->ends)
        return -ENOMEM;
    for (uint32_t i = from; i < to; i++) {
        const struct file_step *s = &r->f->step[i];

        for (uint32_t k = 0; k < s->n_after; k++) {
            uint32_t u = file_after(r->f, s, k) - from;

            if (r->ends[u] || share_chunk(r, &r->f->step[from + u], s))
                continue;
            r->ends[u] = calloc(1, sizeof(**r->ends));
            if (!r->ends[u])
                return -ENOMEM;
        }
    }
    return 0;
}

int alg_sched_file(struct alg *a)
{
    _Static_assert(SCHED_FILE_AFTER * SCHED_MAX_CHANS <= ALG_FENCES, "room for what a step names");
    const struct sched_file *f = a->s->in.file;
    struct file_run r = {.a = a, .f = f, .one = a->s->in.count * a->s->esize};
    uint32_t from = f->first[a->s->in.rank], to = f->first[a->s->in.rank + 1];
    uint64_t off;
    int rc;

    r.equal = a->s->in.count % f->chunks == 0;
    for (uint32_t i = 0; i < f->n_edges; i++)
        alg_edges_add(a, &r.edges, f->edge[i].from, f->edge[i].to);
    r.slices = alg_edges_slices(&r.edges);
    if (f->scratch)
        alg_tmp(a, f->scratch * chunk_bytes(&r, 0, &off));
    T_ASSERT(from <= to && to <= f->n_steps, "a rank's steps beyond those of its file");
    rc = find_whole(&r, from, to);
    for (uint32_t i = from; i < to && !rc && !a->s->rc; i++) {
        wait_whole(&r, &f->step[i]);
        put_step(&r, &f->step[i]);
        if (r.ends[i - from])
            note_ends(&r, &f->step[i], r.ends[i - from]);
    }
    for (uint32_t i = from; r.ends && i < to; i++)
        free(r.ends[i - from]);
    free(r.ends);
    return rc;
}
