/* SPDX-License-Identifier: BSD-3-Clause */
/* A row of a test: builds the schedules of a collective, interprets them, and compares results with
 * a plain reference. */
#ifndef TRIB_TESTS_COLLECTIVE_SCHED_ROW_H
#define TRIB_TESTS_COLLECTIVE_SCHED_ROW_H

#include "collective/stage.h"
#include "tests/collective/interp.h"

#include <errno.h>
#include <stdio.h>

/* A fabric as algorithms see it: ranks in domains of so many (0: none), and planes in them. */
struct shape {
    unsigned domain; /* ranks of one */
    unsigned planes; /* channels within a domain */
    unsigned trees;
    bool deal;                     /* ranks are dealt to domains in turn, not in blocks */
    uint64_t tree_bps[COLL_TREES]; /* all 0: equal shares */
};

struct row {
    enum coll_kind kind;
    enum coll_algo algo;
    unsigned n, root;
    uint64_t count;
    enum dtype type;
    enum redop op;
    bool in_place, mm_self;
    bool staged, reached; /* for GPU memory (stage.h) */
    unsigned sparse;
    uint32_t mtu;
    struct shape shape;
    const struct sched_file *file; /* of ALGO_SCHEDULE */
};

static const uint64_t plane_rate[4] = {5, 4, 4, 5};
static uint16_t domains[INTERP_RANKS];
static struct shape current;

static unsigned channels(void *ctx, unsigned a, unsigned b, uint64_t *rate, unsigned max)
{
    (void)ctx;
    assert_true(max >= 4);
    if (domains[a] != domains[b] || current.planes < 2) {
        rate[0] = 2;
        return 1;
    }
    memcpy(rate, plane_rate, sizeof(plane_rate));
    return current.planes;
}

static struct sched_topo topo_of(const struct row *w)
{
    unsigned per = w->shape.domain ? w->shape.domain : 1, n = (w->n + per - 1) / per;

    current = w->shape;
    for (unsigned r = 0; r < w->n; r++)
        domains[r] = (uint16_t)(w->shape.deal ? r % n : r / per);
    struct sched_topo t = {.domain = domains,
                           .channels = channels,
                           .trees = w->shape.trees,
                           .rail_trees = w->shape.trees,
                           .multimem = w->shape.domain > 1,
                           .steps = w->count % 2};

    memcpy(t.tree_bps, w->shape.tree_bps, sizeof(t.tree_bps));
    return t;
}

static struct sched_in in_of(const struct row *w, const struct sched_topo *t, unsigned rank)
{
    return (struct sched_in){.kind = w->kind,
                             .algo = w->algo,
                             .rank = rank,
                             .nranks = w->n,
                             .root = w->root,
                             .count = w->count,
                             .type = w->type,
                             .op = w->op,
                             .in_place = w->in_place,
                             .mtu = w->mtu,
                             .sparse = w->sparse,
                             .mm_self = w->mm_self,
                             .topo = t,
                             .file = w->file};
}

static const char *row_name(const struct row *w)
{
    static const char *const kind[] = {"all_reduce",     "reduce",   "broadcast", "all_gather",
                                       "reduce_scatter", "alltoall", "gather",    "scatter",
                                       "sendrecv",       "barrier"};
    static char text[200];

    snprintf(text, sizeof(text),
             "%s %s, %u ranks, root %u, %lu of %s%s, mtu %u, domains of %u%s, %u planes, sparse %u",
             kind[w->kind], sched_algo_name(w->algo), w->n, w->root, w->count, dtype_name(w->type),
             w->in_place ? " in place" : "", w->mtu, w->shape.domain, w->shape.deal ? " dealt" : "",
             w->shape.planes, w->sparse);
    return text;
}

/* Element i of rank's contribution: small, so that sums of floats are exact. */
static void put_value(uint8_t *p, enum dtype t, uint64_t i, unsigned rank)
{
    int v = (int)((i * 31 + rank * 17 + i / 251) % 13) - 4;

    if (t == DT_INT32)
        ((int32_t *)(void *)p)[i] = v * 1000003;
    else if (t == DT_FP32)
        ((float *)(void *)p)[i] = (float)v;
    else if (t == DT_FP64)
        ((double *)(void *)p)[i] = v;
    else
        p[i] = (uint8_t)v;
}

static uint8_t *make_input(const struct row *w, uint64_t bytes, unsigned rank)
{
    unsigned size = dtype_size(w->type);
    uint8_t *p = calloc(1, bytes + 8);

    for (uint64_t i = 0; i < bytes / size; i++)
        put_value(p, w->type, i, rank);
    return p;
}

/* What rank r has to have in its receive buffer; bytes that must stay untouched keep 0xa5. */
static uint8_t *expected(const struct row *w, uint8_t *const *in, uint64_t bytes, unsigned r)
{
    uint64_t one = w->count * dtype_size(w->type),
             off = w->kind == COLL_REDUCE_SCATTER ? r * one : 0;
    const void *all[INTERP_RANKS];
    uint8_t *p = malloc(bytes + 8);

    memset(p, 0xa5, bytes + 8);
    if (!bytes)
        return p;
    switch (w->kind) {
    case COLL_ALLREDUCE:
    case COLL_REDUCE:
    case COLL_REDUCE_SCATTER:
        for (unsigned k = 0; k < w->n; k++)
            all[k] = in[k] + off;
        arith_scalar(w->op, w->type)(p, all, w->n, w->count);
        if (w->op == OP_AVG)
            arith_divide(p, w->type, w->n, w->count);
        break;
    case COLL_BROADCAST:
        memcpy(p, in[w->root], one);
        break;
    case COLL_SCATTER:
        memcpy(p, in[w->root] + r * one, one);
        break;
    case COLL_SENDRECV:
        memcpy(p, in[(r + w->n - 1) % w->n], one);
        break;
    case COLL_ALLTOALL:
        for (unsigned k = 0; k < w->n; k++)
            if (!w->sparse || (r + w->n - k) % w->n < w->sparse)
                memcpy(p + k * one, in[k] + r * one, one);
        break;
    default:
        for (unsigned k = 0; k < w->n; k++)
            memcpy(p + k * one, in[k], one);
        break;
    }
    return p;
}

/* Memory of a rank; in place the two buffers are one. */
static void give_memory(const struct row *w, struct irank *r, unsigned rank, const uint8_t *input)
{
    uint64_t own = rank * w->count * dtype_size(w->type), in = r->s.in_bytes, out = r->s.out_bytes;
    bool gather = w->kind == COLL_ALLGATHER || w->kind == COLL_GATHER;
    bool scatter = w->kind == COLL_REDUCE_SCATTER || w->kind == COLL_SCATTER;

    r->out = malloc((in > out ? in : out) + 8);
    memset(r->out, 0xa5, (in > out ? in : out) + 8);
    r->in = r->out;
    if (!w->in_place)
        r->in = malloc(in + 8);
    else if (gather && out)
        r->in = r->out + own;
    else if (scatter && in)
        r->out += own;
    memcpy(r->in, input, in);
}

static void take_memory(const struct row *w, struct irank *r)
{
    bool scatter = w->kind == COLL_REDUCE_SCATTER || w->kind == COLL_SCATTER;

    free(w->in_place && scatter ? r->in : r->out);
    if (!w->in_place)
        free(r->in);
    sched_free(&r->s);
}

static void no_message_in_gpu_memory(const struct sched *s, bool reached)
{
    for (unsigned l = 0; l < s->n_lanes; l++)
        for (uint64_t i = 0; s->lane[l].kind != LANE_CPU && i < s->lane[l].n; i++) {
            const struct step *st = lane_step(&s->lane[l], i);

            assert_true((reached && st->op != STEP_RECV) || st->a.buf == BUF_NONE ||
                        st->a.buf == BUF_STAGE);
            assert_true(st->dst.buf == BUF_NONE || st->dst.buf == BUF_STAGE ||
                        st->dst.buf == BUF_SLOT);
        }
}

/* Builds and runs; -ENOTSUP where the algorithm is not for this shape. *out (n ranks): what was
 * sent and so on. */
static int run_row(const struct row *w, uint64_t seed, struct interp *x)
{
    struct sched_topo t = topo_of(w);
    uint8_t *in[INTERP_RANKS];

    memset(x, 0, sizeof(*x));
    x->n = w->n, x->domain = domains, x->seed = seed;
    for (unsigned r = 0; r < w->n; r++) {
        struct sched_in i = in_of(w, &t, r);
        int rc = sched_init(&x->r[r].s, &i);

        if (rc == -ENOTSUP && !r)
            return rc;
        if (!rc && w->staged) {
            rc = sched_stage(&x->r[r].s, w->reached);
            if (rc == -ENOTSUP && !r) {
                sched_free(&x->r[r].s);
                return rc;
            }
            no_message_in_gpu_memory(&x->r[r].s, w->reached);
        }
        if (rc)
            fail_msg("%s: rank %u: %d", row_name(w), r, rc);
        in[r] = make_input(w, x->r[r].s.in_bytes, r);
        give_memory(w, &x->r[r], r, in[r]);
    }
    interp_run(x);
    for (unsigned r = 0; r < w->n; r++) {
        struct irank *k = &x->r[r];
        uint8_t *want = expected(w, in, k->s.out_bytes, r);

        if (memcmp(k->out, want, k->s.out_bytes))
            fail_msg("%s: rank %u is wrong", row_name(w), r);
        if (!w->in_place && memcmp(k->in, in[r], k->s.in_bytes))
            fail_msg("%s: rank %u: the input changed", row_name(w), r);
        free(want);
    }
    for (unsigned r = 0; r < w->n; r++) {
        take_memory(w, &x->r[r]);
        free(in[r]);
    }
    return 0;
}

static struct interp box;

#endif
