/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank's part in the launcher's commands: operations, and the checks of their results. */
#include "host/bench/perf_options.h"
#include "host/launch/msg_read.h"
#include "host/launch/rank_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PROGRESS_NS  200000000 /* how often rank 0 reports */
#define LATE_STEP_NS 500000    /* a late rank sleeps in steps, as others need its progress */

static struct layout layout_of(const struct launch_rank *k)
{
    const struct msg_prepare *p = &k->row;

    return (struct layout){.kind = p->coll,
                           .rank = k->init.rank,
                           .nranks = k->init.nranks,
                           .root = p->root,
                           .sparse = p->sparse,
                           .count = p->count,
                           .in_place = p->in_place};
}

static struct coll_args args_of(const struct launch_rank *k)
{
    const struct msg_prepare *p = &k->row;
    struct layout l = layout_of(k);
    size_t size = dtype_size(p->type);

    return (struct coll_args){.kind = p->coll,
                              .algo = p->algo,
                              .send = k->buf[p->in_place ? 1 : 0] + layout_send_at(&l) * size,
                              .recv =
                                  layout_no_recv(&l) ? NULL : k->buf[1] + layout_recv_at(&l) * size,
                              .count = p->count,
                              .type = p->type,
                              .op = p->op,
                              .root = p->root,
                              .sparse = p->sparse,
                              .mm_self = p->mm_self,
                              .file = k->file};
}

int rank_operate(struct launch_rank *k, bool *own)
{
    struct coll_args a = args_of(k);
    struct coll_req *req = NULL;
    char err[COMM_TEXT] = "";
    int rc = coll_start(k->comm, &a, &req, err);

    if (rc)
        return rank_fail(k, "cannot start the operation", *err ? err : strerror(-rc));
    while ((rc = coll_test(req)) == 0) {
        comm_progress(k->comm);
        if (rank_look(k)) {
            comm_abort(k->comm, k->text);
            coll_free(req);
            return -ECANCELED;
        }
    }
    if (own)
        *own = coll_as_asked(req);
    coll_free(req);
    return rc < 0 ? rank_fail(k, comm_error(k->comm), NULL) : 0;
}

/* Fails the rank if work in its GPU's memory has failed. 0 or -ECANCELED. */
static int gpu_check(struct launch_rank *k)
{
    const char *why = k->memory.device ? device_error(k->memory.device) : NULL;

    return why ? rank_fail(k, why, NULL) : 0;
}

static int64_t staging_ns(const struct launch_rank *k)
{
    return k->memory.device ? device_staging_ns(k->memory.device) : 0;
}

static int rank_op_fill(struct launch_rank *k)
{
    struct layout l = layout_of(k);

    pattern_set(&k->val, &l, k->row.type, k->row.op);
    pattern_within(&k->val, k->row.bound);
    pattern_sample(&k->val, k->row.sampled ? &k->samples : NULL, NULL, 0);
    pattern_prepare(&k->val, &l, k->buf[0], k->buf[1]);
    return gpu_check(k);
}

/* Makes the row's connections, so that its first operation makes none. */
static int connect_row(struct launch_rank *k, const struct coll_args *a)
{
    char err[COMM_TEXT] = "";
    int rc = coll_connect(k->comm, a, err);

    if (rc)
        return rank_fail(k, *err ? err : strerror(-rc), NULL);
    while (!comm_connected(k->comm)) {
        comm_progress(k->comm);
        if (comm_state(k->comm) == COMM_FAILED)
            return rank_fail(k, comm_error(k->comm), NULL);
        if (rank_look(k)) {
            comm_abort(k->comm, k->text);
            return -ECANCELED;
        }
    }
    return 0;
}

int rank_prepare(struct launch_rank *k, const struct msg *m)
{
    int rc = msg_read_prepare(m, k->init.nranks, k->buf_bytes, &k->row);
    if (rc)
        return rank_fail(
            k, rc == -E2BIG ? "PREPARE asks for more than the buffers hold" : "malformed PREPARE",
            NULL);
    struct layout l = layout_of(k);
    if (k->row.sampled)
        samples_choose(&k->samples, &l, k->row.type, k->fab->mtu);
    if (rank_op_fill(k))
        return -ECANCELED;
    struct coll_args a = args_of(k);
    if (connect_row(k, &a))
        return -ECANCELED;
    return rank_answer(k, &(struct msg_done){.algo = comm_runs_by(k->comm, &a)}, NULL);
}

/* The command reaches ranks one after the other: if they started at once, they would wait for each
 * other in the first operation. */
int64_t rank_wait_for_start(const struct launch_rank *k, int64_t start_ps, int64_t *late_ns)
{
    int64_t left;

    *late_ns = 0;
    if (!start_ps)
        return clock_fabric_ps(k->sh);
    while ((left = clock_wall_ns_until(k->sh, start_ps)) > 0)
        nanosleep(&(struct timespec){left / 1000000000, left % 1000000000}, NULL);
    *late_ns = (clock_fabric_ps(k->sh) - start_ps) * clock_dilation(k->sh) / 1000;
    return start_ps;
}

/* Whether the requested algorithm still runs the row. */
static bool goes_on(struct launch_rank *k)
{
    struct coll_args a = args_of(k);

    return !comm_fell_back(k->comm) || comm_runs_by(k->comm, &a) == a.algo;
}

/* Runs run->n operations, or fewer after a STOP. ends[n]: fabric time from the start to each end.
 */
static int run_all(struct launch_rank *k, const struct msg_run *run, struct msg_done *d,
                   int64_t *ends)
{
    int64_t late, start = rank_wait_for_start(k, run->start_ps, &late);
    int64_t staged = staging_ns(k), report = clock_mono_ns() + PROGRESS_NS;
    uint64_t before[TRIB_COUNTERS];

    comm_counted(k->comm, k->row.algo, before);
    k->limit = run->n;
    k->stop_after = 0;
    for (unsigned i = 0; i < k->limit; i++) {
        bool own;
        k->op = i + 1;
        if (rank_operate(k, &own))
            return -ECANCELED;
        ends[i] = clock_fabric_ps(k->sh) - start;
        if (k->stop_after == k->op && rank_wait_limit(k))
            return -ECANCELED;
        d->aggregated += own;
        if (run->progress && k->init.rank == 0 && clock_mono_ns() >= report) {
            struct msg_progress pr = {i + 1, 0};
            report = clock_mono_ns() + PROGRESS_NS;
            msg_send(k->fd, MSG_PROGRESS, &pr, sizeof(pr));
        }
    }
    d->ops = k->op;
    k->op = k->stop_after = 0;
    d->late_ns = late;
    d->staging_ns = staging_ns(k) - staged;
    d->goes_on = goes_on(k);
    d->lacks_trees = comm_lacks_trees(k->comm, k->row.algo);
    comm_counted(k->comm, k->row.algo, d->counted);
    for (unsigned i = 0; i < TRIB_COUNTERS; i++)
        d->counted[i] -= before[i];
    return 0;
}

int rank_run(struct launch_rank *k, const struct msg *m)
{
    struct msg_run run;
    struct msg_done d = {0};

    if (msg_read_run(m, &run))
        return rank_fail(k, "malformed RUN", NULL);
    int64_t *ends = calloc(run.n, sizeof(*ends));
    if (!ends)
        return rank_fail(k, "cannot allocate the times of operations", NULL);
    int rc = run_all(k, &run, &d, ends);
    if (!rc)
        rc = rank_answer(k, &d, ends);
    free(ends);
    return rc;
}

/* Runs a barrier once more: no rank may leave it before the last one has entered. Ranks elsewhere
 * have other clocks and are not checked. */
static int check_barrier(struct launch_rank *k, const struct msg_check *c)
{
    int64_t until = clock_mono_ns() + (int64_t)c->late_ns;
    struct msg_done d = {.entered_ps = INT64_MIN, .left_ps = INT64_MAX};

    while (c->late == k->init.rank && clock_mono_ns() < until) {
        comm_progress(k->comm);
        if (rank_look(k))
            return -ECANCELED;
        nanosleep(&(struct timespec){.tv_nsec = LATE_STEP_NS}, NULL);
    }
    if (!k->elsewhere)
        d.entered_ps = clock_fabric_ps(k->sh);
    if (rank_operate(k, NULL))
        return -ECANCELED;
    if (!k->elsewhere)
        d.left_ps = clock_fabric_ps(k->sh);
    return rank_answer(k, &d, NULL);
}

int rank_check(struct launch_rank *k, const struct msg *m)
{
    struct msg_check c;

    uint64_t samples = k->row.sampled ? (uint64_t)k->samples.n * dtype_size(k->row.type) : 0;
    if (msg_read_check(m, samples, &c))
        return rank_fail(k, "malformed CHECK", NULL);
    if (k->row.coll == COLL_BARRIER)
        return check_barrier(k, &c);
    /* Copy the results out of the message: an operation reads further messages into its buffer. */
    uint8_t *want = malloc(c.ways * samples + 1);
    if (!want)
        return rank_fail(k, "cannot allocate the sampled results", NULL);
    memcpy(want, m->body + sizeof(c), c.ways * samples);
    if (c.again && (rank_op_fill(k) || rank_operate(k, NULL))) {
        free(want);
        return -ECANCELED;
    }
    struct layout l = layout_of(k);
    pattern_sample(&k->val, k->val.samples, want, c.ways);
    struct msg_done d = {.wrong = pattern_check(&k->val, &l, k->buf[0], k->buf[1])};
    pattern_sample(&k->val, k->val.samples, NULL, 0);
    free(want);
    return gpu_check(k) ? -ECANCELED : rank_answer(k, &d, NULL);
}

/* After a PREPARE out of place: runs once with random floats, and answers with their error. */
int rank_error(struct launch_rank *k)
{
    const struct msg_prepare *p = &k->row;
    struct layout l = layout_of(k);
    struct msg_done d = {0};
    struct piece got;

    if (!options_has_error(p->coll, p->type, p->op) || p->in_place || k->memory.device)
        return rank_fail(k, "malformed ERROR", NULL);
    exact_fill(k->buf[0], p->type, l.nranks, l.rank, 0, layout_send(&l));
    if (rank_operate(k, NULL))
        return -ECANCELED;
    for (unsigned i = 0; layout_piece(&l, i, &got); i++)
        if (got.source == LAYOUT_ALL &&
            exact_error(&d.ulp, k->buf[1] + got.at * dtype_size(p->type), p->type, p->op == OP_AVG,
                        l.nranks, got.first, got.n))
            return rank_fail(k, "cannot allocate the exact sums", NULL);
    return rank_answer(k, &d, NULL);
}
