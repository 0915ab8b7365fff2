/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/report/bench.h"

#include "host/bench/test_pattern.h"
#include "host/coll/alg/sched.h"
#include "sim/job/sim_job.h"
#include "sim/world/fault_player.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_PS  (60 * PS_PER_S)   /* fabric time */
#define OPS_PS      (100 * PS_PER_S)  /* more than ranks wait for each other */
#define SETTLE_PS   (100 * PS_PER_US) /* for what is on links when the last rank has left */
#define LOOK_EVENTS 64u               /* the pool's level is looked at after so many */
#define SHOW_EVENTS 65536u
#define SHOW_S      0.25
#define SAY_S       30.0

static const char timed[] = "timed";

struct bench {
    struct bench_cfg cfg;
    struct world *w;
    struct job *j;
    struct test_pattern val;
    struct faults *faults;          /* NULL: none */
    struct background_flow *beside; /* NULL: none */
    bool background_flow_failed;
    unsigned aggregated; /* operations begun before that, of the running loop */
    /* the running loop */
    const struct row *row;
    int place;
    const char *what;
    unsigned ops;
    int64_t begun_ps;
    unsigned peak;
    uint64_t looked, asked; /* events when the pool, and the clock, were last looked at */
    uint64_t begun_events;
    double born_s, begun_s, shown_s;
    bool late; /* --max-wall is over */
    bool few;  /* frames */
    uint64_t shown_events;
    struct stopwatch steady;
};

/* ---- while it runs ---- */

/* Somebody found no frame, or would soon: what comes of that depends on threads and on who looks.
 * Frames that are taken between two looks at the level are seen by those who got none. */
static bool too_few(const struct bench *b)
{
    return b->peak >= b->cfg.frames || frame_pool_missed(b->cfg.pool);
}

static int say_too_few(const struct bench *b, char *err)
{
    snprintf(err, COMM_TEXT, "%u frames were not enough, expected more, such as --frames %u",
             b->cfg.frames, 4 * b->cfg.frames);
    return -ECANCELED;
}

static void show(struct bench *b, double now)
{
    double past = now - b->shown_s;
    double done = (double)(world_now(b->w) - b->begun_ps);
    double want = (double)b->row->pred.time_ps * b->ops;
    double left = done > 0 && want > done ? (now - b->begun_s) * (want - done) / done : 0;

    if (past < (b->cfg.terminal ? SHOW_S : SAY_S))
        return;
    fprintf(stderr, "%s%s %llu B %s, %s: %.3f of about %.3f ms, %.2f M events/s, %.0f s left%s",
            b->cfg.terminal ? "\r\033[K" : "trib-sim: ", sched_algo_name(b->row->algo),
            (unsigned long long)b->row->bytes, b->place == IN_PLACE ? "in-place" : "out-of-place",
            b->what, done * 1e-9, want * 1e-9,
            (double)(world_events(b->w) - b->shown_events) / past * 1e-6, left,
            b->cfg.terminal ? "" : "\n");
    b->shown_s = now;
    b->shown_events = world_events(b->w);
}

static bool stop(void *ctx)
{
    struct bench *b = ctx;
    uint64_t events = world_events(b->w);

    if (likely(b->what == timed))
        stopwatch_tick(&b->steady, world_frames(b->w));
    if (events - b->looked >= LOOK_EVENTS) {
        unsigned used = world_frames_used(b->w);

        b->peak = used > b->peak ? used : b->peak;
        b->few = too_few(b);
        b->looked = events;
    }
    /* Before the first event ranks begin, one after the other. */
    if (events - b->asked >= SHOW_EVENTS || events == b->begun_events) {
        double now = wall_s();

        b->asked = events;
        show(b, now);
        b->late = now - b->born_s > b->cfg.o->max_wall;
    }
    if (b->beside && background_flow_progress(b->beside))
        b->background_flow_failed = true;
    return *b->cfg.stop || b->late || b->background_flow_failed || b->few;
}

/* ---- one row in one place ---- */

static struct layout layout_of(const struct bench *b, unsigned rank)
{
    const struct row *r = b->row;

    return (struct layout){.kind = r->coll,
                           .rank = rank,
                           .nranks = r->nranks,
                           .root = r->root,
                           .sparse = r->sparse,
                           .count = r->count,
                           .in_place = b->place == IN_PLACE};
}

static uint8_t *buffer(const struct bench *b, unsigned rank, unsigned which)
{
    return job_buffer(b->j, rank, which);
}

static struct coll_args args_of(const struct bench *b, unsigned rank)
{
    struct layout l = layout_of(b, rank);
    struct coll_args a = row_args(b->row);
    size_t size = dtype_size(a.type);

    a.send = buffer(b, rank, l.in_place ? 1 : 0) + layout_send_at(&l) * size;
    if (!layout_no_recv(&l))
        a.recv = buffer(b, rank, 1) + layout_recv_at(&l) * size;
    return a;
}

/* What runs the row at hand. */
static enum coll_algo runs_by(const struct bench *b)
{
    struct comm *c = job_comm(b->j, 0);
    struct coll_args a = args_of(b, 0);

    return comm_fell_back(c) ? comm_runs_by(c, &a) : a.algo;
}

enum coll_algo bench_runs_by(struct bench *b, const struct row *r)
{
    b->row = r;
    return runs_by(b);
}

/* Of ranks of several hosts at the same time. */
static void args(void *ctx, unsigned rank, struct coll_args *a)
{
    struct bench *b = ctx;

    if (!rank && runs_by(b) == b->row->algo)
        b->aggregated++;
    *a = args_of(b, rank);
}

static void fill(struct bench *b)
{
    for (unsigned i = 0; !b->cfg.lengths && i < b->cfg.nranks; i++) {
        struct layout l = layout_of(b, i);

        pattern_set(&b->val, &l, b->row->type, b->row->op);
        pattern_prepare(&b->val, &l, buffer(b, i, 0), buffer(b, i, 1));
    }
}

/* n operations back to back; *us: of one, from the moment at which all start to the one at which
 * the last rank knows that it is over, as the model says it. */
static int operate(struct bench *b, const char *what, unsigned n, double *us, char *err)
{
    struct job_loop l = {.n = n,
                         .args = args,
                         .stop = stop,
                         .by_steps = b->beside != NULL,
                         .ctx = b,
                         .limit_ps = 100 * n * b->row->pred.time_ps + OPS_PS};
    int rc;

    b->what = what;
    b->ops = n;
    b->aggregated = 0;
    b->begun_ps = world_now(b->w);
    b->begun_s = b->shown_s = wall_s();
    b->shown_events = b->begun_events = world_events(b->w);
    rc = job_loop_run(b->j, &l);
    stopwatch_end(&b->steady, world_frames(b->w));
    if (b->cfg.terminal)
        fprintf(stderr, "\r\033[K");
    if (us)
        *us = (double)l.time_ps / n * 1e-6;
    b->few = too_few(b);
    if (!rc && b->faults)
        rc = faults_state(b->faults);
    if (rc == -ECANCELED && b->background_flow_failed)
        background_flow_end(b->beside, b->row, b->place, err);
    else if (rc == -ECANCELED && b->late)
        snprintf(err, COMM_TEXT, "stopped after %g s of wall time (--max-wall)",
                 b->cfg.o->max_wall);
    else if (b->few && !*b->cfg.stop)
        rc = say_too_few(b, err);
    else if (rc)
        snprintf(err, COMM_TEXT, "%.*s", COMM_TEXT - 1,
                 rc == -ECANCELED ? "interrupted"
                 : l.text[0]      ? l.text
                                  : strerror(-rc));
    return rc;
}

static int measure_error(struct bench *b, struct row *r, char *err)
{
    int rc;

    for (unsigned i = 0; i < b->cfg.nranks; i++) {
        struct layout l = layout_of(b, i);

        exact_fill(buffer(b, i, 0), r->type, l.nranks, i, 0, layout_send(&l));
    }
    rc = operate(b, "error", 1, NULL, err);
    for (unsigned i = 0; !rc && i < b->cfg.nranks; i++) {
        struct layout l = layout_of(b, i);
        struct piece p;

        for (unsigned k = 0; !rc && layout_piece(&l, k, &p); k++)
            if (p.source == LAYOUT_ALL)
                rc = exact_error(&r->ulp, buffer(b, i, 1) + p.at * dtype_size(r->type), r->type,
                                 r->op == OP_AVG, l.nranks, p.first, p.n);
        if (rc)
            snprintf(err, COMM_TEXT, "no memory for the exact sums");
    }
    return rc;
}

/* One rank after the other enters late. */
static int check_barrier(struct bench *b, struct run_result *run, char *err)
{
    unsigned n = b->cfg.nranks;

    for (unsigned k = 0; k < n && k < ROW_LATE; k++) {
        struct job_op op = {.kind = COLL_BARRIER,
                            .algo = b->row->algo,
                            .skew_ps = 4 * b->row->pred.time_ps + PS_PER_US,
                            .late = row_late(n, k) + 1};
        struct job_result res;
        int rc = job_run(b->j, &op, &res);

        if (too_few(b))
            return say_too_few(b, err);
        if (rc || res.failed_ranks) {
            snprintf(err, COMM_TEXT, "%.*s", COMM_TEXT - 1, res.text);
            return rc ? rc : -EIO;
        }
        run->wrong += res.wrong != 0;
    }
    run->checked = true;
    return 0;
}

/* In place the buffers were reduced several times over: filled and run once more. */
static int check(struct bench *b, struct run_result *run, char *err)
{
    if (b->row->coll == COLL_BARRIER)
        return check_barrier(b, run, err);
    if (b->place == IN_PLACE) {
        fill(b);
        int rc = operate(b, "check", 1, NULL, err);
        if (rc)
            return rc;
    }
    for (unsigned i = 0; i < b->cfg.nranks; i++) {
        struct layout l = layout_of(b, i);

        run->wrong += pattern_check(&b->val, &l, buffer(b, i, 0), buffer(b, i, 1));
    }
    run->checked = true;
    return 0;
}

/* What the table says of a row during or before which switches' help was given up: the operation
 * that was cut is not one by its own algorithm. */
static void note_fall(struct bench *b, struct run_result *run)
{
    run->aggregated = run->iters;
    if (bench_runs_by(b, b->row) == b->row->algo)
        return;
    snprintf(run->fell_back, sizeof(run->fell_back), "%s", comm_fell_back(job_comm(b->j, 0)));
    run->aggregated = b->aggregated ? b->aggregated - 1 : 0;
}

int bench_place(struct bench *b, struct row *r, int place, char *err)
{
    const struct perf_opts *o = b->cfg.o;
    struct run_result *run = &r->run[place];
    int rc = 0;

    b->row = r;
    b->place = place;
    fill(b);
    if (o->warmup)
        rc = operate(b, "warm-up", o->warmup, NULL, err);
    if (!rc && b->cfg.counters)
        counters_begin(b->cfg.counters, world_net(b->w));
    if (!rc && b->beside)
        background_flow_begin(b->beside);
    if (!rc)
        rc = operate(b, timed, o->iters, &run->time_us, err);
    if (rc)
        return rc;
    run->valid = true;
    run->iters = o->iters;
    if (b->cfg.counters && counters_end(b->cfg.counters, world_net(b->w), r, place)) {
        snprintf(err, COMM_TEXT, "no memory for counters");
        return -ENOMEM;
    }
    if (b->beside)
        rc = background_flow_end(b->beside, r, place, err);
    if (rc)
        return rc;
    run->dilation = 1;
    run->fid = (struct fidelity){.ok = true, .needed = 1};
    note_fall(b, run);
    if (o->check && !b->cfg.lengths)
        rc = check(b, run, err);
    if (!rc && o->error && place == OUT_OF_PLACE && options_has_error(r->coll, r->type, r->op))
        rc = measure_error(b, r, err);
    return rc;
}

/* ---- life ---- */

unsigned bench_frames(unsigned nranks)
{
    return 16384 + 384 * nranks;
}

static int connect_all(struct bench *b, char *err)
{
    struct job_cfg jc = {.w = b->w,
                         .fab = b->cfg.fab,
                         .nranks = b->cfg.nranks,
                         .host_of_rank = b->cfg.host_of_rank,
                         .group = 1,
                         .key = b->cfg.seed,
                         .n_trees = b->cfg.n_trees,
                         .trees = b->cfg.tree,
                         .window = b->cfg.o->window,
                         .algos = b->cfg.algos,
                         .n_policy = b->cfg.o->n_policy,
                         .policy = b->cfg.o->policy,
                         .lengths = b->cfg.lengths,
                         .limit_ps = CONNECT_PS};
    int rc = job_create(&b->j, &jc, err);

    if (too_few(b))
        return say_too_few(b, err);
    if (rc) {
        if (!*err)
            snprintf(err, COMM_TEXT, "cannot connect %u ranks: %s", b->cfg.nranks, strerror(-rc));
        return rc;
    }
    rc = job_buffers(b->j, options_buffer(b->cfg.o, b->cfg.nranks));
    if (!rc)
        rc = pattern_init(&b->val);
    if (rc)
        snprintf(err, COMM_TEXT, "no memory for the buffers of %u ranks", b->cfg.nranks);
    return rc;
}

static void told(void *ctx, unsigned rank)
{
    struct bench *b = ctx;

    if (b->j)
        job_notify_death(b->j, rank);
}

static int begin_faults(struct bench *b)
{
    struct faults_cfg fc = {.w = b->w,
                            .fab = b->cfg.fab,
                            .nranks = b->cfg.nranks,
                            .host_of_rank = b->cfg.host_of_rank,
                            .told = told,
                            .ctx = b};

    return b->cfg.plan ? faults_create(&b->faults, b->cfg.plan, &fc) : 0;
}

/* The ranks, and behind them the two that send beside. */
static int create_world(struct bench *b)
{
    const struct bench_cfg *cfg = &b->cfg;
    uint16_t *host = calloc(cfg->nranks + 2u, sizeof(*host));
    struct world_cfg wc = {.fab = cfg->fab,
                           .nranks = cfg->nranks,
                           .host_of_rank = host,
                           .pool = cfg->pool,
                           .seed = cfg->seed,
                           .an_mbufs = cfg->frames,
                           .threads = cfg->threads,
                           .tap = cfg->tap,
                           .tap_ctx = cfg->tap_ctx,
                           .trace_lengths = true};
    int rc;

    if (!host)
        return -ENOMEM;
    memcpy(host, cfg->host_of_rank, cfg->nranks * sizeof(*host));
    if (cfg->beside) {
        host[wc.nranks++] = cfg->beside->from;
        host[wc.nranks++] = cfg->beside->to;
    }
    rc = world_create(&b->w, &wc);
    free(host);
    return rc;
}

int bench_create(struct bench **out, const struct bench_cfg *cfg, char *err)
{
    struct bench *b = calloc(1, sizeof(*b));
    int rc = b ? 0 : -ENOMEM;

    *err = '\0';
    if (!rc) {
        b->cfg = *cfg;
        b->born_s = wall_s();
        rc = create_world(b);
    }
    if (!rc)
        rc = begin_faults(b);
    if (rc)
        snprintf(err, COMM_TEXT, "cannot make the fabric with %u ranks: %s", cfg->nranks,
                 strerror(-rc));
    else
        rc = connect_all(b, err);
    if (!rc && cfg->beside)
        rc = background_flow_create(&b->beside, cfg->fab, b->w, cfg->beside, cfg->nranks, err);
    if (b && b->beside && too_few(b))
        rc = say_too_few(b, err);
    if (rc && b)
        bench_destroy(b);
    if (!rc)
        *err = '\0';
    if (!rc && b->faults)
        faults_start(b->faults);
    *out = rc ? NULL : b;
    return rc;
}

void bench_granted(const struct bench *b, struct coll_grant *g)
{
    comm_granted(job_comm(b->j, 0), g);
}

struct net *bench_net(const struct bench *b)
{
    return world_net(b->w);
}

const struct background_flow *bench_background_flow(const struct bench *b)
{
    return b->beside;
}

void bench_congestion(const struct bench *b, struct congestion *c)
{
    congestion_read(c, b->w, b->cfg.fab);
}

void bench_state(const struct bench *b, struct bench_state *s)
{
    *s = (struct bench_state){.fabric_ps = world_now(b->w),
                              .events = world_events(b->w),
                              .frames = world_frames(b->w),
                              .trace = world_trace_hash(b->w),
                              .pool_peak = b->peak,
                              .steady = b->steady,
                              .threads = world_threads(b->w)};
}

int bench_leave(struct bench *b)
{
    int rc = b->j ? job_destroy(b->j) : 0;
    int64_t limit = b->w ? world_now(b->w) + SETTLE_PS : 0;

    if (b->j)
        while (world_step(b->w, limit))
            ;
    b->j = NULL;
    return rc;
}

void bench_destroy(struct bench *b)
{
    bench_leave(b);
    faults_destroy(b->faults);
    background_flow_destroy(b->beside);
    pattern_free(&b->val);
    world_destroy(b->w);
    free(b);
}
