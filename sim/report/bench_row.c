/* SPDX-License-Identifier: BSD-3-Clause */
/* One row in one place: warm-up, timed operations, checks. */
#include "collective/sched.h"
#include "sim/report/bench_priv.h"
#include "sim/report/protocol_counters.h"
#include "switch/net/net_stats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OPS_PS       (100 * PS_PER_S) /* longer than ranks wait for each other */
#define POOL_EVENTS  64u              /* events between two readings of the pool's level */
#define CLOCK_EVENTS 65536u           /* events between two readings of the wall clock */
#define TERMINAL_S   0.25 /* between two lines of progress on a terminal, and elsewhere */
#define LOG_S        30.0

static const char timed_ops[] = "timed";

/* ---- while it runs ---- */

bool bench_too_few_frames(const struct bench *b)
{
    return b->peak >= b->cfg.frames || frame_pool_missed(b->cfg.pool);
}

int bench_explain_too_few(const struct bench *b, char *err)
{
    snprintf(err, COMM_TEXT, "%u frames were not enough, expected more, such as --frames %u",
             b->cfg.frames, 4 * b->cfg.frames);
    return -ECANCELED;
}

static void bench_row_show(struct bench *b, double now)
{
    double past = now - b->shown_s;
    double done = (double)(world_now(b->w) - b->begun_ps);
    double want = (double)b->row->pred.time_ps * b->ops;
    double left = done > 0 && want > done ? (now - b->begun_s) * (want - done) / done : 0;

    if (past < (b->cfg.terminal ? TERMINAL_S : LOG_S))
        return;
    fprintf(stderr, "%s%s %llu B %s, %s: %.3f of about %.3f ms, %.2f M events/s, %.0f s left%s",
            b->cfg.terminal ? "\r\033[K" : "trib-sim: ", row_algo_name(b->row),
            (unsigned long long)b->row->bytes, b->place == IN_PLACE ? "in-place" : "out-of-place",
            b->what, done * 1e-9, want * 1e-9,
            (double)(world_events(b->w) - b->shown_events) / past * 1e-6, left,
            b->cfg.terminal ? "" : "\n");
    b->shown_s = now;
    b->shown_events = world_events(b->w);
}

static bool is_late(struct bench *b, double now)
{
    b->late = now - b->born_s > b->cfg.o->max_wall;
    return b->late;
}

static bool bench_row_stop(void *ctx)
{
    struct bench *b = ctx;
    uint64_t events = world_events(b->w);

    if (unlikely(b->recorded) && b->what == timed_ops)
        net_timeline_step(b->cfg.line);
    if (likely(b->what == timed_ops))
        stopwatch_tick(&b->timed, world_frames(b->w));
    if (events - b->pool_read >= POOL_EVENTS) {
        unsigned used = world_frames_used(b->w);

        b->peak = used > b->peak ? used : b->peak;
        b->few = bench_too_few_frames(b);
        b->pool_read = events;
    }
    /* Before the first event ranks start, one after the other. */
    if (events - b->clock_read >= CLOCK_EVENTS || events == b->begun_events) {
        double now = wall_s();

        b->clock_read = events;
        bench_row_show(b, now);
        is_late(b, now);
    }
    if (b->background && background_flow_progress(b->background))
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

static uint8_t *row_buffer(const struct bench *b, unsigned rank, unsigned which)
{
    return job_buffer(b->j, rank, which);
}

static struct coll_args args_of(const struct bench *b, unsigned rank)
{
    struct layout l = layout_of(b, rank);
    struct coll_args a = row_args(b->row);
    size_t size = dtype_size(a.type);

    a.send = row_buffer(b, rank, l.in_place ? 1 : 0) + layout_send_at(&l) * size;
    if (!layout_no_recv(&l))
        a.recv = row_buffer(b, rank, 1) + layout_recv_at(&l) * size;
    return a;
}

/* The algorithm that runs the current row; after a failover it may not be the row's own. */
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

/* Called for ranks of several hosts at the same time. */
static void bench_args(void *ctx, unsigned rank, struct coll_args *a)
{
    struct bench *b = ctx;

    if (!rank && runs_by(b) == b->row->algo)
        b->aggregated++;
    *a = args_of(b, rank);
}

static const char *fell_back(const struct bench *b)
{
    const char *why = comm_fell_back(job_comm(b->j, 0));

    return why ? why : "";
}

static bool sample_stops(void *ctx)
{
    struct bench *b = ctx;

    return *b->cfg.stop || is_late(b, wall_s());
}

/* Why the run ends before its time. */
static void explain_stop(const struct bench *b, char *err)
{
    if (b->late)
        snprintf(err, COMM_TEXT, "stopped after %g s of wall time (--max-wall)",
                 b->cfg.o->max_wall);
    else
        snprintf(err, COMM_TEXT, "interrupted");
}

/* Computes the possible results of the row's sampled elements, by the trees of the last operation;
 * cut: a failover has happened since the buffers were filled. */
static int bench_row_sample(struct bench *b, bool cut, char *err)
{
    uint16_t tree[COLL_TREES];
    unsigned n = comm_last_trees(job_comm(b->j, 0), tree);
    const struct expected_job j = {.fab = b->cfg.fab,
                                   .nranks = b->cfg.nranks,
                                   .host_of_rank = b->cfg.host_of_rank,
                                   .n_trees = n ? n : b->grant.trees,
                                   .tree = n ? tree : b->grant.tree,
                                   .n_rail_trees = b->cfg.n_trees,
                                   .rail_tree = b->cfg.tree,
                                   .stop = sample_stops,
                                   .stop_ctx = b};
    struct layout l = layout_of(b, 0);
    int rc =
        sampled_set(&b->sampled, &j, b->cfg.o, b->row, &l, cut ? b->sampled.by : runs_by(b), cut);

    if (rc == -ECANCELED)
        explain_stop(b, err);
    else if (rc)
        snprintf(err, COMM_TEXT, "sampled elements by %s: %s", sched_algo_name(b->sampled.by),
                 rc == -ENOMEM ? "no memory" : "the ranks' schedules leave different results");
    return rc;
}

static int bench_row_fill(struct bench *b, char *err)
{
    const struct sampled *s = &b->sampled;
    int rc = b->cfg.lengths ? 0 : bench_row_sample(b, false, err);

    snprintf(b->fell_back, sizeof(b->fell_back), "%s", fell_back(b));
    for (unsigned i = 0; !rc && !b->cfg.lengths && i < b->cfg.nranks; i++) {
        struct layout l = layout_of(b, i);

        pattern_set(&b->val, &l, b->row->type, b->row->op);
        pattern_within(&b->val, b->row->bound);
        pattern_sample(&b->val, s->ways ? &s->at : NULL, s->want, s->ways);
        b->val.given = s->given;
        pattern_prepare(&b->val, &l, row_buffer(b, i, 0), row_buffer(b, i, 1));
    }
    return rc;
}

/* n operations back to back; l->time_ps: from the start of all ranks until the last rank knows that
 * its last has ended, as in the model. */
static int operate_loop(struct bench *b, const char *what, unsigned n, struct job_loop *l,
                        char *err)
{
    *l = (struct job_loop){.n = n,
                           .args = bench_args,
                           .stop = bench_row_stop,
                           .ends_ps = l->ends_ps,
                           .by_steps = b->background != NULL,
                           .ctx = b,
                           .limit_ps = 100 * n * b->row->pred.time_ps + OPS_PS};
    int rc;

    T_ASSERT(n, "a loop of no operations has no time of one");
    b->what = what;
    b->ops = n;
    b->aggregated = 0;
    b->cut = comm_cut(job_comm(b->j, 0));
    b->begun_ps = world_now(b->w);
    b->begun_s = b->shown_s = wall_s();
    b->shown_events = b->begun_events = world_events(b->w);
    if (what == timed_ops)
        bench_line_begin(b);
    rc = job_loop_run(b->j, l);
    if (what == timed_ops)
        bench_line_end(b);
    stopwatch_end(&b->timed, world_frames(b->w));
    if (b->cfg.terminal)
        fprintf(stderr, "\r\033[K");
    b->few = bench_too_few_frames(b);
    if (!rc && b->faults)
        rc = faults_state(b->faults);
    if (rc == -ECANCELED && b->background_flow_failed)
        background_flow_end(b->background, b->row, b->place, err);
    else if (rc == -ECANCELED && b->late)
        explain_stop(b, err);
    else if (b->few && !*b->cfg.stop)
        rc = bench_explain_too_few(b, err);
    else if (rc == -ECANCELED)
        explain_stop(b, err);
    else if (rc)
        snprintf(err, COMM_TEXT, "%.*s", COMM_TEXT - 1, l->text[0] ? l->text : strerror(-rc));
    return rc;
}

static int operate(struct bench *b, const char *what, unsigned n, char *err)
{
    struct job_loop l = {0};

    return operate_loop(b, what, n, &l, err);
}

static int operate_timed(struct bench *b, unsigned n, struct run_result *run, char *err)
{
    struct job_loop l = {.ends_ps = calloc(n, sizeof(*l.ends_ps))};
    int rc = l.ends_ps ? operate_loop(b, timed_ops, n, &l, err) : -ENOMEM;

    run->time_us = (double)l.time_ps / n * 1e-6;
    if (!rc)
        rc = op_times_set(&run->times, (int64_t *)l.ends_ps, n);
    if (rc == -ENOMEM)
        snprintf(err, COMM_TEXT, "no memory for the times of %u operations", n);
    free(l.ends_ps);
    return rc;
}

static int measure_error(struct bench *b, struct row *r, char *err)
{
    int rc;

    for (unsigned i = 0; i < b->cfg.nranks; i++) {
        struct layout l = layout_of(b, i);

        exact_fill(row_buffer(b, i, 0), r->type, l.nranks, i, 0, layout_send(&l));
    }
    rc = operate(b, "error", 1, err);
    for (unsigned i = 0; !rc && i < b->cfg.nranks; i++) {
        struct layout l = layout_of(b, i);
        struct piece p;

        for (unsigned k = 0; !rc && layout_piece(&l, k, &p); k++)
            if (p.source == LAYOUT_ALL)
                rc = exact_error(&r->ulp, row_buffer(b, i, 1) + p.at * dtype_size(r->type), r->type,
                                 r->op == OP_AVG, l.nranks, p.first, p.n);
        if (rc)
            snprintf(err, COMM_TEXT, "no memory for the exact sums");
    }
    return rc;
}

/* Checks barriers that one rank enters late: each rank in turn, ROW_LATE ranks at most. */
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

        if (bench_too_few_frames(b))
            return bench_explain_too_few(b, err);
        if (rc || res.failed_ranks) {
            snprintf(err, COMM_TEXT, "%.*s", COMM_TEXT - 1, res.text);
            return rc ? rc : -EIO;
        }
        run->wrong += res.wrong != 0;
    }
    run->checked = true;
    return 0;
}

/* In place, the timed operations reduced the buffers repeatedly: fills them and runs once more. */
static int bench_row_check(struct bench *b, struct run_result *run, char *err)
{
    int rc = 0;

    if (b->row->coll == COLL_BARRIER)
        return check_barrier(b, run, err);
    if (b->place == IN_PLACE)
        rc = bench_row_fill(b, err);
    if (!rc && b->place == IN_PLACE)
        rc = operate(b, "check", 1, err);
    if (!rc && b->val.samples)
        rc = bench_row_sample(b, strcmp(b->fell_back, fell_back(b)) != 0, err);
    if (rc)
        return rc;
    b->val.ways = b->sampled.ways;
    for (unsigned i = 0; i < b->cfg.nranks; i++) {
        struct layout l = layout_of(b, i);

        run->wrong += pattern_check(&b->val, &l, row_buffer(b, i, 0), row_buffer(b, i, 1));
    }
    run->checked = true;
    return 0;
}

/* Notes a failover before or during the row: the operation that it cut does not count as one by the
 * row's own algorithm. */
static void note_failover(struct bench *b, struct run_result *run)
{
    bool changed = strcmp(b->fell_back, fell_back(b)) != 0;

    run->aggregated = run->iters;
    run->end.goes_on = bench_runs_by(b, b->row) == b->row->algo;
    if (run->end.goes_on && !changed && !comm_lacks_trees(job_comm(b->j, 0), b->row->algo))
        return;
    snprintf(run->fell_back, sizeof(run->fell_back), "%s", fell_back(b));
    run->aggregated = b->aggregated - RTE_MIN(b->aggregated, comm_cut(job_comm(b->j, 0)) - b->cut);
}

/* Reads the bytes that every direction of every link has carried so far. */
static void read_sent(const struct bench *b, uint64_t *sent)
{
    for (unsigned d = 0; d < 2u * b->cfg.fab->n_links; d++)
        net_sent_bytes(world_net(b->w), b->cfg.fab, d, &sent[d]);
}

static void read_protocol(const struct bench *b, struct row_counters *r)
{
    protocol_counters_read(b->j, b->w, b->cfg.fab, b->cfg.nranks, b->row->algo, r);
}

static int run_place(struct bench *b, struct row *r, int place, char *err)
{
    const struct perf_opts *o = b->cfg.o;
    struct run_result *run = &r->run[place];
    struct row_counters before;
    int rc;

    b->row = r;
    b->place = place;
    rc = bench_row_fill(b, err);
    if (!rc && o->warmup)
        rc = operate(b, "warm-up", o->warmup, err);
    else if (!rc)
        rc = job_connect(b->j, bench_args, b, err);
    if (!rc && b->cfg.counters)
        counters_begin(b->cfg.counters, world_net(b->w));
    if (!rc && b->background)
        background_flow_begin(b->background);
    if (!rc) {
        read_sent(b, b->sent_before);
        read_protocol(b, &before);
        rc = operate_timed(b, o->iters, run, err);
    }
    if (rc)
        return rc;
    read_sent(b, b->sent);
    read_protocol(b, &run->counted);
    row_counters_since(&run->counted, &before);
    run->valid = true;
    run->iters = o->iters;
    run->link = link_use_busiest(b->cfg.fab, b->sent_before, b->sent);
    if (b->cfg.counters && counters_end(b->cfg.counters, world_net(b->w), r, place)) {
        snprintf(err, COMM_TEXT, "no memory for counters");
        return -ENOMEM;
    }
    if (b->background)
        rc = background_flow_end(b->background, r, place, err);
    if (rc)
        return rc;
    run->dilation = 1;
    run->fid = (struct fidelity){.ok = true, .needed = 1};
    note_failover(b, run);
    if (o->check && !b->cfg.lengths)
        rc = bench_row_check(b, run, err);
    if (!rc && o->error && place == OUT_OF_PLACE && options_has_error(r->coll, r->type, r->op))
        rc = measure_error(b, r, err);
    return rc;
}

int bench_place(struct bench *b, struct row *r, int place, char *err)
{
    int rc;

    T_ASSERT(place >= 0 && place < PLACES, "a row has no such place");
    b->rows += place == OUT_OF_PLACE || !r->run[OUT_OF_PLACE].valid;
    rc = run_place(b, r, place, err);
    bench_line_about(b, rc ? err : "");
    return rc;
}
