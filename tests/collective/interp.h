/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs the schedules of all ranks in memory, without verbs, in any order that dependencies and
 * lanes allow, chosen from a seed. Strict about what steps may rely on: a message is read at any
 * moment between the begin of its send and its delivery, a send is done some time after, a receive
 * takes only what is posted, a slot is free when it is received to, memory in a slot's place is
 * garbage once it is posted, the aggregation node and the multimem's switches read memory at the
 * begin or the end of a step. A deadlock ends the test with the names of ranks and steps.
 */
#ifndef TRIB_TESTS_COLLECTIVE_INTERP_H
#define TRIB_TESTS_COLLECTIVE_INTERP_H

#include "aggregation/proto.h"
#include "collective/sched.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define INTERP_RANKS 72

/* State of a lane while its schedule runs. Steps: done <= landed <= begun. */
struct ilane {
    uint64_t begun, landed;
    uint8_t **held; /* SEND, MM: [n] data read early, else NULL; RECV: [SCHED_SLOTS] slots */
    unsigned mate;  /* SEND: the lane of the receiver; RECV: of the sender, + 1; 0 not found */
};

struct irank {
    struct sched s;
    uint8_t *in, *out, *tmp, *stage;
    uint64_t *done; /* [lanes] as sched_ready() wants it */
    struct ilane *lane;
    uint64_t sent, mm_out, mm_in, agg_up, agg_down; /* bytes */
    unsigned place;                                 /* in its domain */
};

struct interp {
    unsigned n;
    const uint16_t *domain;
    struct irank r[INTERP_RANKS];
    uint64_t seed, steps;
};

static inline uint32_t interp_random(struct interp *w)
{
    w->seed = w->seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(w->seed >> 33);
}

static inline const char *interp_kind(enum lane_kind k)
{
    static const char *const name[] = {"cpu", "send", "recv", "agg", "mm"};

    return name[k];
}

static inline uint8_t *interp_at(struct irank *r, struct ref ref, uint64_t len)
{
    uint64_t size = ref.buf == BUF_IN    ? r->s.in_bytes
                    : ref.buf == BUF_OUT ? r->s.out_bytes
                    : ref.buf == BUF_TMP ? r->s.tmp_bytes
                                         : r->s.stage_bytes;

    if (ref.buf == BUF_SLOT) {
        assert_non_null(r->lane[ref.lane].held[ref.off % SCHED_SLOTS]);
        return r->lane[ref.lane].held[ref.off % SCHED_SLOTS];
    }
    assert_true(ref.buf != BUF_NONE || !len);
    if (ref.buf != BUF_NONE)
        assert_true(ref.off <= size && len <= size - ref.off);
    return (ref.buf == BUF_IN    ? r->in
            : ref.buf == BUF_OUT ? r->out
            : ref.buf == BUF_TMP ? r->tmp
                                 : r->stage) +
           ref.off;
}

static inline void interp_average(struct irank *r, const struct step *st, uint8_t *p)
{
    if (st->last && r->s.in.op == OP_AVG)
        arith_divide(p, r->s.in.type, r->s.in.nranks, st->len / r->s.esize);
}

static inline void interp_cpu(struct interp *w, unsigned rank, const struct step *st)
{
    struct irank *r = &w->r[rank];
    const struct ref *used[2] = {&st->a, &st->b};
    uint8_t *out;

    if (!st->len)
        return;
    out = interp_at(r, st->dst, st->len);
    if (st->op == STEP_COPY) {
        memmove(out, interp_at(r, st->a, st->len), st->len);
    } else {
        const void *both[2] = {interp_at(r, st->a, st->len), interp_at(r, st->b, st->len)};

        assert_int_equal(st->op, STEP_REDUCE);
        arith_scalar(r->s.in.op, r->s.in.type)(out, both, 2, st->len / r->s.esize);
    }
    interp_average(r, st, out);
    for (unsigned i = 0; i < 2; i++)
        if (used[i]->buf == BUF_SLOT) {
            struct ilane *l = &r->lane[used[i]->lane];

            if (lane_step(&r->s.lane[used[i]->lane], used[i]->off)->a.buf == BUF_NONE)
                free(l->held[used[i]->off % SCHED_SLOTS]);
            l->held[used[i]->off % SCHED_SLOTS] = NULL;
        }
}

/* The lane at the other end. */
static inline struct ilane *interp_mate(struct interp *w, unsigned rank, unsigned lane,
                                        struct lane **sched)
{
    struct lane *l = &w->r[rank].s.lane[lane];
    struct irank *peer = &w->r[l->peer];
    enum lane_kind kind = l->kind == LANE_SEND ? LANE_RECV : LANE_SEND;

    for (unsigned i = 0; !w->r[rank].lane[lane].mate && i < peer->s.n_lanes; i++)
        if (peer->s.lane[i].kind == kind && peer->s.lane[i].peer == rank &&
            peer->s.lane[i].chan == l->chan)
            w->r[rank].lane[lane].mate = i + 1;
    if (!w->r[rank].lane[lane].mate)
        fail_msg("rank %u: no lane at the other end of %s rank %u channel %u", rank,
                 interp_kind(l->kind), l->peer, l->chan);
    *sched = &peer->s.lane[w->r[rank].lane[lane].mate - 1];
    return &peer->lane[w->r[rank].lane[lane].mate - 1];
}

static inline uint8_t *interp_read(struct irank *r, const struct step *st)
{
    uint8_t *p = malloc(st->len + 1);

    memcpy(p, interp_at(r, st->a, st->len), st->len);
    return p;
}

/* Delivers the next message of a SEND lane where both ends have begun theirs. */
static inline bool interp_deliver(struct interp *w, unsigned rank, unsigned lane)
{
    struct irank *r = &w->r[rank], *to = &w->r[r->s.lane[lane].peer];
    struct ilane *l = &r->lane[lane], *m;
    struct lane *far;
    const struct step *st, *recv;
    uint64_t i = l->landed;
    uint8_t *data;

    if (i == l->begun)
        return false;
    m = interp_mate(w, rank, lane, &far);
    if (m->begun <= i)
        return false;
    st = lane_step(&r->s.lane[lane], i);
    recv = lane_step(far, i);
    if (st->len != recv->len)
        fail_msg("rank %u sends %lu bytes, rank %u expects %lu (message %lu)", rank, st->len,
                 r->s.lane[lane].peer, recv->len, i);
    data = l->held[i] ? l->held[i] : interp_read(r, st);
    l->held[i] = NULL;
    if (recv->dst.buf == BUF_SLOT) {
        assert_null(m->held[i % SCHED_SLOTS]);
        assert_int_equal(recv->dst.off, i);
        assert_true(recv->len <= SCHED_SLICE_MAX);
        m->held[i % SCHED_SLOTS] = data;
        if (recv->a.buf != BUF_NONE) {
            m->held[i % SCHED_SLOTS] = interp_at(to, recv->a, recv->len);
            memcpy(m->held[i % SCHED_SLOTS], data, recv->len);
            free(data);
        }
    } else {
        if (recv->len)
            memcpy(interp_at(to, recv->dst, recv->len), data, recv->len);
        free(data);
    }
    r->sent += st->len;
    l->landed++;
    to->done[far - to->s.lane]++;
    return true;
}

/* All members of an aggregation group are at the same step. */
static inline bool interp_aggregate(struct interp *w, unsigned rank, unsigned lane)
{
    const struct lane *l = &w->r[rank].s.lane[lane];
    unsigned who[INTERP_RANKS], at[INTERP_RANKS], n = 0, from = 0;
    const void *in[INTERP_RANKS];
    const struct step *st = lane_step(l, w->r[rank].done[lane]);
    uint8_t *sum;

    for (unsigned k = 0; k < w->n; k++) {
        struct irank *r = &w->r[k];
        unsigned i = 0;

        if (l->peer && r->place != w->r[rank].place)
            continue;
        while (i < r->s.n_lanes && (r->s.lane[i].kind != LANE_AGG || r->s.lane[i].peer != l->peer ||
                                    r->s.lane[i].chan != l->chan))
            i++;
        assert_true(i < r->s.n_lanes);
        if (r->lane[i].begun == r->done[i])
            return false;
        assert_int_equal(r->done[i], w->r[rank].done[lane]);
        who[n] = k, at[n++] = i;
    }
    sum = calloc(1, st->len + 8);
    for (unsigned k = 0; k < n; k++) {
        struct irank *r = &w->r[who[k]];
        const struct step *o = lane_step(&r->s.lane[at[k]], r->done[at[k]]);

        assert_true(o->off == st->off && o->len == st->len && o->total == st->total &&
                    o->root == st->root && o->agg == st->agg);
        assert_true(st->off % AGG_MSG_BYTES(r->s.in.mtu) == 0);
        assert_true(st->len == AGG_MSG_BYTES(r->s.in.mtu) || st->off + st->len == st->total);
        if (o->a.buf != BUF_NONE) {
            in[from++] = interp_at(r, o->a, o->len);
            r->agg_up += o->len;
        }
        assert_int_equal(o->a.buf != BUF_NONE,
                         st->len && (st->agg != AGG_BROADCAST || who[k] == st->root));
        assert_int_equal(o->dst.buf != BUF_NONE,
                         st->len && (st->agg == AGG_ALLREDUCE ||
                                     (st->agg == AGG_REDUCE) == (who[k] == st->root)));
    }
    if (st->len)
        arith_scalar(w->r[0].s.in.op, w->r[0].s.in.type)(sum, in, from, st->len / w->r[0].s.esize);
    for (unsigned k = 0; k < n; k++) {
        struct irank *r = &w->r[who[k]];
        const struct step *o = lane_step(&r->s.lane[at[k]], r->done[at[k]]);

        if (o->dst.buf != BUF_NONE) {
            memcpy(interp_at(r, o->dst, o->len), sum, o->len);
            interp_average(r, o, interp_at(r, o->dst, o->len));
            r->agg_down += o->len;
        }
        r->done[at[k]]++;
    }
    free(sum);
    return true;
}

/* The switches of a domain, on behalf of `rank`. */
static inline uint8_t *interp_mm_load(struct interp *w, unsigned rank, const struct step *st)
{
    struct irank *r = &w->r[rank];
    const void *in[INTERP_RANKS];
    unsigned n = 0;
    uint8_t *sum = calloc(1, st->len + 8);

    for (unsigned k = 0; k < w->n; k++)
        if (w->domain[k] == w->domain[rank] && (st->self || k != rank)) {
            in[n++] = interp_at(&w->r[k], (struct ref){.buf = st->region, .off = st->off}, st->len);
            w->r[k].mm_out += st->len;
        }
    arith_scalar(r->s.in.op, r->s.in.type)(sum, in, n, st->len / r->s.esize);
    interp_average(r, st, sum);
    r->mm_in += st->len;
    return sum;
}

static inline void interp_mm_end(struct interp *w, unsigned rank, const struct step *st,
                                 uint8_t *data)
{
    struct irank *r = &w->r[rank];

    if (st->op == STEP_MM_LOAD) {
        memcpy(interp_at(r, st->dst, st->len), data, st->len);
        return;
    }
    r->mm_out += st->len;
    for (unsigned k = 0; k < w->n; k++)
        if (w->domain[k] == w->domain[rank] && (st->self || k != rank)) {
            memcpy(interp_at(&w->r[k], (struct ref){.buf = st->region, .off = st->off}, st->len),
                   data, st->len);
            w->r[k].mm_in += st->len;
        }
}

static inline void interp_begin(struct interp *w, unsigned rank, unsigned lane)
{
    struct irank *r = &w->r[rank];
    struct ilane *l = &r->lane[lane];
    const struct step *st = lane_step(&r->s.lane[lane], l->begun);
    bool early = interp_random(w) & 1;

    switch (r->s.lane[lane].kind) {
    case LANE_CPU:
        interp_cpu(w, rank, st);
        r->done[lane]++;
        break;
    case LANE_SEND:
        assert_true(st->len <= SCHED_SLICE_MAX);
        if (early)
            l->held[l->begun] = interp_read(r, st);
        break;
    case LANE_RECV:
        if (st->a.buf != BUF_NONE)
            memset(interp_at(r, st->a, st->len), 0x5a, st->len);
        break;
    case LANE_MM:
        if (early)
            l->held[l->begun] =
                st->op == STEP_MM_LOAD ? interp_mm_load(w, rank, st) : interp_read(r, st);
        break;
    default:
        break;
    }
    l->begun++;
}

static inline bool interp_end(struct interp *w, unsigned rank, unsigned lane)
{
    struct irank *r = &w->r[rank];
    struct ilane *l = &r->lane[lane];
    const struct step *st;
    uint8_t *data;

    if (r->s.lane[lane].kind == LANE_SEND) {
        if (l->landed > r->done[lane] && interp_random(w) % 4 == 0) {
            r->done[lane] = l->landed;
            return true;
        }
        /* landed, not acknowledged yet, is no deadlock */
        return interp_deliver(w, rank, lane) || l->landed > r->done[lane];
    }
    if (l->begun == r->done[lane])
        return false;
    if (r->s.lane[lane].kind == LANE_AGG)
        return interp_aggregate(w, rank, lane);
    if (r->s.lane[lane].kind != LANE_MM)
        return false;
    st = lane_step(&r->s.lane[lane], r->done[lane]);
    data = l->held[r->done[lane]];
    l->held[r->done[lane]] = NULL;
    if (!data)
        data = st->op == STEP_MM_LOAD ? interp_mm_load(w, rank, st) : interp_read(r, st);
    interp_mm_end(w, rank, st, data);
    free(data);
    r->done[lane]++;
    return true;
}

static inline bool interp_lane(struct interp *w, unsigned rank, unsigned lane)
{
    struct irank *r = &w->r[rank];
    const struct lane *l = &r->s.lane[lane];
    bool moved = false;
    unsigned tries = 1 + interp_random(w) % 6;

    while (tries-- && r->lane[lane].begun < l->n &&
           sched_ready(lane_step(l, r->lane[lane].begun), r->done)) {
        interp_begin(w, rank, lane);
        moved = true;
        w->steps++;
    }
    tries = 1 + interp_random(w) % 6;
    while (tries-- && interp_end(w, rank, lane))
        moved = true;
    return moved;
}

static inline void interp_stuck(struct interp *w)
{
    char text[2048];
    size_t at = 0;
    bool stuck = false;

    for (unsigned k = 0; k < w->n; k++)
        for (unsigned i = 0; i < w->r[k].s.n_lanes; i++) {
            const struct lane *l = &w->r[k].s.lane[i];

            if (w->r[k].done[i] == l->n)
                continue;
            stuck = true;
            if (at < sizeof(text) - 100)
                at += (size_t)snprintf(text + at, sizeof(text) - at,
                                       "\n rank %u %s peer %u chan %u: %lu begun, %lu done of %u",
                                       k, interp_kind(l->kind), l->peer, l->chan,
                                       w->r[k].lane[i].begun, w->r[k].done[i], l->n);
        }
    if (stuck)
        fail_msg("deadlock:%s", text);
}

/* Memory of the ranks is the caller's. */
static inline void interp_run(struct interp *w)
{
    bool moved = true;

    for (unsigned k = 0; k < w->n; k++) {
        struct irank *r = &w->r[k];

        r->place = 0;
        for (unsigned o = 0; o < k; o++)
            r->place += w->domain[o] == w->domain[k];
        r->tmp = malloc(r->s.tmp_bytes + 1);
        memset(r->tmp, 0x5a, r->s.tmp_bytes + 1);
        r->stage = malloc(r->s.stage_bytes + 1);
        memset(r->stage, 0x5a, r->s.stage_bytes + 1);
        r->done = calloc(r->s.n_lanes + 1, sizeof(*r->done));
        r->lane = calloc(r->s.n_lanes + 1, sizeof(*r->lane));
        for (unsigned i = 0; i < r->s.n_lanes; i++)
            r->lane[i].held =
                calloc(r->s.lane[i].kind == LANE_RECV ? SCHED_SLOTS : r->s.lane[i].n + 1,
                       sizeof(uint8_t *));
    }
    while (moved) {
        moved = false;
        for (unsigned k = 0, from = interp_random(w) % w->n; k < w->n; k++) {
            unsigned rank = (from + k) % w->n, n = w->r[rank].s.n_lanes;

            for (unsigned i = 0, first = n ? interp_random(w) % n : 0; i < n; i++)
                moved |= interp_lane(w, rank, (first + i) % n);
        }
    }
    interp_stuck(w);
    for (unsigned k = 0; k < w->n; k++) {
        for (unsigned i = 0; i < w->r[k].s.n_lanes; i++)
            free(w->r[k].lane[i].held);
        free(w->r[k].lane);
        free(w->r[k].done);
        free(w->r[k].tmp);
        free(w->r[k].stage);
    }
}

#endif
