/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs the schedules of all ranks in any order that their dependencies allow: the content of each
 * message and of each sum does not depend on it.
 */
#include "collective/topo.h"
#include "host/bench/verify/expected_priv.h"
#include "host/bench/verify/rule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STOP_TURNS 16 /* lanes to run before asking the caller whether to stop */

/* ---- buffers ---- */

static struct space *space_of(struct expected_rank *r, const struct ref *ref, uint64_t *off)
{
    *off = ref->off;
    if (ref->buf == BUF_TMP)
        return &r->tmp;
    *off += ref->buf == BUF_IN ? r->in_at : r->out_at;
    return &r->user;
}

int expected_read(struct expected *x, unsigned rank, const struct ref *ref, uint64_t len,
                  struct image *what)
{
    struct expected_rank *r = &x->rank[rank];
    uint64_t off;
    struct space *s;

    if (ref->buf == BUF_SLOT) {
        *what = r->lane[ref->lane].msg[ref->off];
        return 0;
    }
    s = space_of(r, ref, &off);
    return space_get(x, s, off, len, what);
}

int expected_write(struct expected *x, unsigned rank, const struct ref *ref,
                   const struct image *what)
{
    uint64_t off;
    struct space *s = space_of(&x->rank[rank], ref, &off);

    return space_put(x, s, off, what);
}

/* ---- lanes ---- */

void expected_wake(struct expected *x, unsigned rank, unsigned lane)
{
    struct expected_lane *l = &x->rank[rank].lane[lane];

    if (l->queued)
        return;
    l->queued = true;
    x->queue.at[(x->queue.head + x->queue.n++) % x->queue.room] = (struct expected_ref){rank, lane};
}

void expected_done(struct expected *x, unsigned rank, unsigned lane)
{
    struct expected_lane *l = x->rank[rank].lane;
    unsigned w = l[lane].waiters;

    l[lane].done++;
    l[lane].waiters = 0;
    x->left--;
    for (; w; w = l[w - 1].next) {
        l[w - 1].waits = false;
        expected_wake(x, rank, w - 1);
    }
}

/* Whether the step may run. If not, the lane is put into the list of a lane that it waits for,
 * which wakes it. A message may have woken it earlier; then it is in that list already. */
static bool is_ready(struct expected_rank *r, unsigned lane, const struct step *st)
{
    if (r->lane[lane].waits)
        return false;
    for (unsigned i = 0; i < st->n_deps; i++) {
        struct expected_lane *on = &r->lane[st->dep[i].lane];

        if (on->done < st->dep[i].count) {
            r->lane[lane].next = on->waiters;
            on->waiters = lane + 1;
            r->lane[lane].waits = true;
            return false;
        }
    }
    return true;
}

static void expected_combine(struct expected *x, const void *ctx, void *out, const void *const *v,
                             unsigned n, size_t count, unsigned first, uint64_t index)
{
    (void)ctx, (void)first, (void)index;
    rule_reduce(x->op, x->type, out, v, n, count);
}

/* 1: done */
static int cpu_step(struct expected *x, unsigned rank, const struct step *st)
{
    struct image in[2], out;
    int rc;

    if (!st->len)
        return 1;
    rc = expected_read(x, rank, &st->a, st->len, &in[0]);
    out = in[0];
    if (!rc && st->op == STEP_REDUCE) {
        rc = expected_read(x, rank, &st->b, st->len, &in[1]);
        if (!rc)
            rc = image_reduce(x, in, 2, expected_combine, NULL, 0, &out);
    }
    if (!rc && st->last && x->avg)
        rc = image_divide(x, &out, &out);
    if (!rc)
        rc = expected_write(x, rank, &st->dst, &out);
    return rc ? rc : 1;
}

static int send_step(struct expected *x, unsigned rank, unsigned lane, const struct step *st)
{
    struct expected_lane *l = &x->rank[rank].lane[lane];
    unsigned peer = x->rank[rank].s.lane[lane].peer;
    struct expected_lane *to = &x->rank[peer].lane[l->peer_lane];
    struct image *msg = &to->msg[l->done];
    int rc = st->len ? expected_read(x, rank, &st->a, st->len, msg) : 0;

    if (rc)
        return rc;
    to->sent++;
    expected_wake(x, peer, l->peer_lane);
    return 1;
}

/* 1: done; 0: the message is not there. */
static int recv_step(struct expected *x, unsigned rank, unsigned lane, const struct step *st)
{
    struct expected_lane *l = &x->rank[rank].lane[lane];
    int rc = 0;

    if (l->sent <= l->done)
        return 0;
    if (st->len && st->dst.buf != BUF_SLOT)
        rc = expected_write(x, rank, &st->dst, &l->msg[l->done]);
    return rc ? rc : 1;
}

static int run_lane(struct expected *x, unsigned rank, unsigned lane)
{
    struct expected_rank *r = &x->rank[rank];
    const struct lane *l = &r->s.lane[lane];

    while (r->lane[lane].done < l->n) {
        const struct step *st = lane_step(l, r->lane[lane].done);
        int rc;

        if (!is_ready(r, lane, st))
            return 0;
        rc = l->kind == LANE_SEND   ? send_step(x, rank, lane, st)
             : l->kind == LANE_RECV ? recv_step(x, rank, lane, st)
             : l->kind == LANE_AGG  ? expected_agg(x, rank, lane, st)
             : l->kind == LANE_MM   ? expected_mm(x, rank, lane, st)
                                    : cpu_step(x, rank, st);
        if (rc <= 0)
            return rc;
        if (l->kind != LANE_AGG) /* steps of AGG lanes end for all ranks at the same time */
            expected_done(x, rank, lane);
    }
    return 0;
}

static bool is_stopped(const struct expected *x)
{
    return x->job->stop && x->job->stop(x->job->stop_ctx);
}

static int expected_run_all(struct expected *x)
{
    unsigned turns = 0;
    int rc = 0;

    for (unsigned r = 0; r < x->job->nranks; r++)
        for (unsigned l = 0; l < x->rank[r].s.n_lanes; l++)
            expected_wake(x, r, l);
    while (!rc && x->queue.n) {
        struct expected_ref at = x->queue.at[x->queue.head];

        x->queue.head = (x->queue.head + 1) % x->queue.room;
        x->queue.n--;
        x->rank[at.rank].lane[at.lane].queued = false;
        rc = run_lane(x, at.rank, at.lane);
        if (!rc && ++turns % STOP_TURNS == 0 && is_stopped(x))
            rc = -ECANCELED;
    }
    return rc || !x->left ? rc : -EINVAL;
}

/* ---- set-up ---- */

/* In place both are one memory, as coll.h says. */
static void place_buffers(struct expected_rank *r)
{
    const struct sched_in *in = &r->s.in;
    uint64_t own = in->rank * in->count * r->s.esize;

    if (!in->in_place)
        r->in_at = r->s.out_bytes;
    else if (in->kind == COLL_REDUCE_SCATTER)
        r->out_at = own;
}

/* Puts the rank's whole stream into its input buffer. */
static int put_input(struct expected *x, unsigned rank)
{
    struct expected_rank *r = &x->rank[rank];
    const struct samples *s = x->samples;
    uint8_t *v = arena_alloc(&x->arena, s->n + 1, x->size);
    struct expected_run all = {.len = r->s.in_bytes, .v = v};

    if (!v)
        return -ENOMEM;
    for (unsigned i = 0; i < s->n; i++) {
        uint64_t u = samples_value(x->type, x->op, x->job->nranks, rank, s->at[i]);

        memcpy(v + (size_t)i * x->size, &u, x->size);
    }
    return space_put(x, &r->user, r->in_at, &(struct image){&all, 1});
}

static int make_rank(struct expected *x, unsigned rank, const struct sched_in *like, bool repaired)
{
    struct expected_rank *r = &x->rank[rank];
    struct sched_in in = *like;
    int rc;

    in.rank = rank;
    rc = sched_init(&r->s, &in);
    if (!rc && repaired) {
        struct sched was = r->s;

        rc =
            in.algo == ALGO_SHARP ? sched_repair(&r->s, &was, &(struct sched_repair){0}) : -ENOTSUP;
        if (rc)
            memset(&r->s, 0, sizeof(r->s));
        sched_free(&was);
    }
    if (rc)
        return rc;
    place_buffers(r);
    r->lane = calloc(r->s.n_lanes + 1ul, sizeof(*r->lane));
    if (!r->lane)
        return -ENOMEM;
    for (unsigned l = 0; l < r->s.n_lanes; l++) {
        const struct lane *lane = &r->s.lane[l];

        x->left += lane->n;
        if (lane->kind == LANE_RECV)
            r->lane[l].msg = arena_alloc(&x->arena, lane->n + 1ul, sizeof(struct image));
        if (lane->kind == LANE_RECV && !r->lane[l].msg)
            return -ENOMEM;
    }
    x->queue.room += r->s.n_lanes;
    return put_input(x, rank);
}

static int join_lanes(struct expected *x)
{
    for (unsigned r = 0; r < x->job->nranks; r++)
        for (unsigned l = 0; l < x->rank[r].s.n_lanes; l++) {
            const struct lane *lane = &x->rank[r].s.lane[l];
            unsigned *peer = &x->rank[r].lane[l].peer_lane;

            if (lane->kind == LANE_SEND &&
                (!sched_has_lane(&x->rank[lane->peer].s, LANE_RECV, r, lane->chan, peer) ||
                 x->rank[lane->peer].s.lane[*peer].n != lane->n))
                return -EINVAL;
        }
    return 0;
}

/* Splits vectors as a communicator does. */
static void use_trees(struct expected *x)
{
    const struct expected_job *j = x->job;
    struct fab_members members;

    if (j->n_trees > 1)
        topo_use_trees(&x->topo, j->tree, j->n_trees,
                       topo_members(j->fab, j->nranks, j->host_of_rank, &members, NULL) ? &members
                                                                                        : NULL);
}

static int make_ranks(struct expected *x, const struct coll_args *a, bool in_place, bool repaired)
{
    const struct expected_job *j = x->job;
    int rc = topo_init(&x->topo, j->fab, 0, j->nranks, j->host_of_rank, j->n_trees);
    struct sched_in in = {.kind = a->kind,
                          .algo = a->algo,
                          .nranks = j->nranks,
                          .root = a->root,
                          .count = a->count,
                          .type = a->type,
                          .op = a->op,
                          .in_place = in_place,
                          .mtu = j->fab->mtu,
                          .mm_self = a->mm_self,
                          .topo = &x->topo.sched,
                          .file = a->file};

    if (rc)
        return rc;
    x->topo.sched.rail_trees = j->n_rail_trees > 0;
    x->rank = calloc(j->nranks, sizeof(*x->rank));
    rc = x->rank ? expected_groups(x) : -ENOMEM;
    if (!rc)
        use_trees(x);
    for (unsigned r = 0; !rc && r < j->nranks; r++)
        rc = is_stopped(x) ? -ECANCELED : make_rank(x, r, &in, repaired);
    if (!rc)
        rc = join_lanes(x);
    x->queue.at = calloc(x->queue.room + 1, sizeof(*x->queue.at));
    return rc || x->queue.at ? rc : -ENOMEM;
}

/* ---- results ---- */

/* Copies the values of a rank's result to out; those that another rank has written must be the
 * same. */
static int take_result(struct expected *x, unsigned rank, const struct coll_args *a, uint8_t *have,
                       uint8_t *out)
{
    struct layout l = {.kind = a->kind,
                       .rank = rank,
                       .nranks = x->job->nranks,
                       .root = a->root,
                       .count = a->count};
    struct piece p;
    struct image got;

    if (!layout_piece(&l, 0, &p) || p.source != LAYOUT_ALL)
        return 0;
    int rc = space_get(x, &x->rank[rank].user, x->rank[rank].out_at, p.n * x->size, &got);
    uint64_t at = p.first * x->size;

    for (unsigned i = 0; !rc && i < got.n; i++) {
        unsigned k = image_samples(x, at), end = image_samples(x, at + got.run[i].len);
        const uint8_t *v = got.run[i].v;

        if (got.run[i].from != at)
            return -EINVAL;
        for (; k < end; k++, v += x->size) {
            if (have[k] && memcmp(out + (size_t)k * x->size, v, x->size) != 0)
                return -EINVAL;
            memcpy(out + (size_t)k * x->size, v, x->size);
            have[k] = 1;
        }
        at += got.run[i].len;
    }
    return rc;
}

static void expected_release(struct expected *x)
{
    for (unsigned r = 0; x->rank && r < x->job->nranks; r++) {
        sched_free(&x->rank[r].s);
        free(x->rank[r].lane);
        free(x->rank[r].user.e);
        free(x->rank[r].tmp.e);
    }
    expected_groups_free(x);
    free(x->rank);
    free(x->queue.at);
    topo_free(&x->topo);
    arena_free(x->arena);
}

int expected_values(const struct expected_job *j, const struct coll_args *a, bool in_place,
                    bool repaired, const struct samples *s, uint8_t *out)
{
    struct expected x = {.job = j,
                         .samples = s,
                         .op = a->op == OP_AVG ? OP_SUM : a->op,
                         .avg = a->op == OP_AVG,
                         .type = a->type,
                         .size = dtype_size(a->type)};
    uint8_t *have = calloc(1, SAMPLES_MAX);
    int rc = have ? make_ranks(&x, a, in_place, repaired) : -ENOMEM;

    if (!rc)
        rc = expected_run_all(&x);
    for (unsigned r = 0; !rc && r < j->nranks; r++)
        rc = take_result(&x, r, a, have, out);
    for (unsigned i = 0; !rc && i < s->n; i++)
        rc = have[i] ? 0 : -EINVAL;
    expected_release(&x);
    free(have);
    return rc;
}
