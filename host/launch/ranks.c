/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A run of a row is PREPARE, warm-up, RUN (timed), CHECK. The ranks' answers to a command are the
 * barrier before the next. The time per operation is the time of n operations back to back, divided
 * by n: from the common start of all ranks until the last rank has seen the end. The model and trib
 * sim define it alike (nccl-tests -a 3).
 */
#include "host/launch/ranks_priv.h"
#include "host/launch/ranks_timeline.h"
#include "machine/telemetry_client.h"

#include <errno.h>
#include <rte_common.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define WARM_SHARE    0.5           /* fraction of a run's time that warm-ups may take */
#define TRIES         DILATION_RUNS /* runs, each at a higher dilation, if it may be chosen */
#define START_NS      10000000      /* wall time from sending RUN until all ranks run, */
#define START_RANK_NS 1000000       /* plus this for each rank, */
#define START_AWAY_NS 30000000 /* plus this if some are on other machines, behind a remote shell */
#define LATE_NS       2000000  /* least wall time by which a late rank enters a barrier late */

static void begin_time(struct sweep *s, const struct row *r, int place)
{
    int64_t now = clock_mono_ns(), all = (int64_t)(s->o->max_wall * 1e9);

    if (place == OUT_OF_PLACE || s->o->place == PLACE_IN) {
        s->row_until = now + all;
        s->slow = 1;
    }
    s->until = s->o->place == PLACE_BOTH && place == OUT_OF_PLACE && coll_can_be_in_place(r->coll)
                   ? now + all / 2
                   : s->row_until;
}

static double wall_of(const struct answers *a, unsigned n, uint32_t dilation)
{
    return (double)a->pred->time_ps * 1e-12 * n * dilation;
}

/* Wall time from sending RUN until all ranks run. */
static int64_t start_wall_ns(const struct sweep *s)
{
    bool away = false;

    for (unsigned r = 0; r < s->nranks; r++)
        away |= job_is_away(s->job, r);
    return START_NS + (int64_t)s->nranks * START_RANK_NS + (away ? START_AWAY_NS : 0);
}

/* Expected wall time to start and run n operations, from the time of earlier ones. */
static double cost_s(const struct sweep *s, const struct answers *a, double n)
{
    return wall_of(a, 1, clock_dilation(s->rd->sh)) * s->slow * n + (double)start_wall_ns(s) * 1e-9;
}

/* Wall time of one check of a barrier: one rank is late, then all pass it. */
static double late_check_s(const struct sweep *s, const struct answers *a)
{
    return cost_s(s, a, 1) + 2 * wall_of(a, 1, clock_dilation(s->rd->sh)) + LATE_NS * 1e-9;
}

/* Wall time of the checks that follow the timed operations. */
static double checks_s(const struct sweep *s, const struct row *r, const struct answers *a,
                       int place)
{
    if (!s->o->check)
        return 0;
    if (r->coll == COLL_BARRIER)
        return late_check_s(s, a) * RTE_MIN(s->nranks, ROW_LATE);
    return place == IN_PLACE ? cost_s(s, a, 1) : 0;
}

/* Whether the row has too little time left for this. It may exceed its time by RANKS_OVER_S / 2. */
static bool exceeds(const struct sweep *s, double seconds)
{
    return seconds > ranks_left_s(s->until) + RANKS_OVER_S / 2;
}

__attribute__((format(printf, 2, 3))) static void run_cut(struct run_result *run, const char *fmt,
                                                          ...)
{
    size_t at = strlen(run->cut);
    va_list ap;

    if (at && at < sizeof(run->cut) - 3)
        at += (size_t)snprintf(run->cut + at, sizeof(run->cut) - at, ", ");
    va_start(ap, fmt);
    vsnprintf(run->cut + at, sizeof(run->cut) - at, fmt, ap);
    va_end(ap);
}

/* Fabric time until a command that is sent now has reached every rank; 0: some ranks are elsewhere
 * and have other clocks. */
static int64_t start_after(const struct sweep *s)
{
    for (unsigned r = 0; r < s->nranks; r++)
        if (rank_is_elsewhere(s, r))
            return 0;
    return start_wall_ns(s) * 1000 / clock_dilation(s->rd->sh);
}

/* Fabric time at which all ranks start a RUN that is sent now; 0: at once. */
static int64_t start_of(const struct sweep *s)
{
    int64_t after = start_after(s);

    return after ? clock_fabric_ps(s->rd->sh) + after : 0;
}

static bool sample_stops(void *ctx)
{
    struct sweep *s = ctx;

    return job_look_interrupted(s->job) || exceeds(s, 0);
}

/* Computes the results of the row's sampled elements. cut: a failover after the buffers were filled
 * may have broken off an operation. -ETIME: the row has no time left for it. */
static int row_sample(struct sweep *s, const struct row *r, enum coll_algo by, bool cut)
{
    const struct expected_job j = {.fab = s->fab,
                                   .nranks = s->nranks,
                                   .host_of_rank = s->host_of_rank,
                                   .n_trees = s->last_trees ? s->last_trees : s->granted.trees,
                                   .tree = s->last_trees ? s->last_tree : s->granted.tree,
                                   .n_rail_trees = s->n_trees,
                                   .rail_tree = s->tree,
                                   .stop = sample_stops,
                                   .stop_ctx = s};
    const struct layout l = {
        .kind = r->coll, .nranks = r->nranks, .root = r->root, .count = r->count};
    char why[OPT_ERR];
    int rc = s->o->check ? sampled_set(&s->sampled, &j, s->o, r, &l, by, cut) : 0;

    if (rc == -ECANCELED)
        return job_interrupted(s->job) ? rc : -ETIME;
    if (rc) {
        snprintf(why, sizeof(why), "sampled elements of %s by %s: %s", coll_name(r->coll),
                 sched_algo_name(by),
                 rc == -ENOMEM ? "no memory" : "the ranks' schedules leave different results");
        s->abort_job(s, why);
    }
    return rc;
}

/* Sends one check of data, which the row's algorithm or its replacement computed. */
static int send_check(struct sweep *s, const struct msg_check *c, const struct run_result *run,
                      struct answers *a)
{
    size_t more = c->ways ? sampled_bytes(&s->sampled) : 0;
    uint8_t *body = malloc(sizeof(*c) + more);
    int rc;

    if (!body)
        return -ENOMEM;
    memcpy(body, c, sizeof(*c));
    if (more)
        memcpy(body + sizeof(*c), s->sampled.want, more);
    rc = ranks_command(s, MSG_CHECK, body, sizeof(*c) + more, 5 * wall_of(a, 1, run->dilation), a);
    free(body);
    return rc;
}

static int check_data(struct sweep *s, struct row *r, int place, struct answers *a)
{
    struct run_result *run = &r->run[place];
    struct msg_check c = {.again = place == IN_PLACE};
    char before[COMM_TEXT];
    int rc;

    if (c.again && exceeds(s, cost_s(s, a, 1))) {
        run_cut(run, "not checked");
        s->unmeasured++;
        return 0;
    }
    do {
        memcpy(before, s->fell_back, sizeof(before));
        rc = a->sampled ? row_sample(s, r, a->by, strcmp(a->before, s->fell_back) != 0) : 0;
        c.ways = a->sampled ? s->sampled.ways : 0;
        if (!rc)
            rc = send_check(s, &c, run, a);
        /* Repeat if a failover broke off the operation of the check: its results differ then. */
    } while (!rc && c.again && a->wrong && strcmp(before, s->fell_back) != 0);
    if (rc == -ETIME) {
        run_cut(run, "not checked");
        s->unmeasured++;
        return 0;
    }
    run->checked = rc == 0;
    run->wrong = rc ? 0 : a->wrong;
    s->wrong += run->wrong;
    return rc;
}

/* Lets one rank after the other enter late, by more than a barrier lasts. */
static int check_barrier(struct sweep *s, struct run_result *run, struct answers *a)
{
    double wall = wall_of(a, 1, run->dilation);
    int rc = 0;

    run->wrong = 0;
    for (unsigned k = 0; !rc && k < s->nranks && k < ROW_LATE; k++) {
        if (exceeds(s, late_check_s(s, a))) {
            run_cut(run, "%u of %u checks", k, RTE_MIN(s->nranks, ROW_LATE));
            s->unmeasured++;
            s->wrong += run->wrong;
            return 0;
        }
        struct msg_check c = {.late = row_late(s->nranks, k),
                              .late_ns = (uint64_t)(2e9 * wall) + LATE_NS};

        rc = ranks_command(s, MSG_CHECK, &c, sizeof(c), 10 * wall, a);
        run->wrong += !rc && a->left_ps < a->entered_ps;
    }
    run->checked = rc == 0;
    s->wrong += run->wrong;
    return rc;
}

/* Spreads the lateness of the beginning evenly over all hand-offs of the run. */
static int64_t begin_lag_ns(const struct answers *a)
{
    uint64_t handoffs = (uint64_t)RTE_MAX(a->ops, 1u) * RTE_MAX(a->pred->handoffs, 1u);

    return a->late_ns / (int64_t)handoffs;
}

/* Fabric time of one operation of a run of n, in us. */
static double ran_us(const struct answers *a, unsigned n)
{
    return (double)a->ends[n - 1] / n * 1e-6;
}

/* Runs n operations. *lag_ns: the p99 lateness of hand-offs meanwhile, or that of the beginning. */
static int run_n(struct sweep *s, unsigned n, struct answers *a, int64_t *lag_ns)
{
    struct lag_hist *h = calloc(2, sizeof(*h));
    struct msg_run m = {n, s->terminal, start_of(s)};
    int64_t began = clock_mono_ns();
    int rc;

    free(a->ends);
    a->ends = calloc(n, sizeof(*a->ends));
    if (!h || !a->ends) {
        free(h);
        return -ENOMEM;
    }
    a->iters = n;
    lag_snapshot(s->rd->sh, &h[0]);
    rc = ranks_command(s, MSG_RUN, &m, sizeof(m), 5 * wall_of(a, n, clock_dilation(s->rd->sh)), a);
    lag_snapshot(s->rd->sh, &h[1]);
    if (!rc && a->ops)
        s->slow = RTE_MAX(1.0, ((double)(clock_mono_ns() - began) * 1e-9 - cost_s(s, a, 0)) /
                                   wall_of(a, a->ops, clock_dilation(s->rd->sh)));
    *lag_ns = RTE_MAX(lag_quantile(&h[0], &h[1], 0.99), begin_lag_ns(a));
    free(h);
    return rc;
}

/* Starts the search for a dilation: from a guess, or in place from the out-of-place result. */
static void begin_dilation(struct sweep *s, const struct answers *a, int place)
{
    if (place == IN_PLACE && s->o->place == PLACE_BOTH && s->tries_algo == a->algo) {
        dilation_again(&s->tries);
        return;
    }
    s->tries = (struct dilation_tries){0};
    s->tries_algo = a->algo;
    if (s->dilation.adaptive)
        ranks_set_dilation(s, dilation_first(&s->dilation, a->pred, s->nranks));
}

/* Runs the warm-up. If this job may choose the dilation, runs warm-ups at one dilation after the
 * other until the search settles or time runs out. */
static int warm_up(struct sweep *s, struct answers *a, struct run_result *run)
{
    double share = ranks_left_s(s->until) * (1 - WARM_SHARE); /* time for the rest of the row */
    unsigned done = 0;
    int rc = 0;

    while (!rc && s->o->warmup && !s->tries.settled) {
        uint32_t d = clock_dilation(s->rd->sh);
        unsigned n = dilation_warm_up(&s->dilation, s->o->warmup, a->pred, d);
        int64_t lag;

        if (ranks_left_s(s->until) - cost_s(s, a, n) < share) {
            if (s->dilation.adaptive)
                ranks_set_dilation(s, dilation_end(&s->dilation, &s->tries, a->pred, d));
            run_cut(run, "after %u warm-ups", done);
            break;
        }
        rc = run_n(s, n, a, &lag);
        n = a->ops ? a->ops : n;
        done++;
        if (!s->dilation.adaptive)
            break;
        if (!rc)
            ranks_set_dilation(s, dilation_settle(&s->dilation, &s->tries, a->pred, d,
                                                  dilation_judge(a->pred, lag, 0, d).needed,
                                                  ran_us(a, n)));
    }
    return rc;
}

/* Whether faults of links make times vary. */
static bool has_faults(const struct fabric *f)
{
    for (unsigned i = 0; i < f->n_links; i++) {
        const struct fab_link *l = &f->links[i];

        if (l->loss > 0 || l->dup > 0 || l->reorder > 0 || l->corrupt > 0 || l->jitter_ps)
            return true;
    }
    return false;
}

/* Runs the timed operations and fills run, except for `wrong`. checks: seconds to leave for the
 * checks after it, at most half of the time left. -ETIME: there is too little time. */
static int run_timed(struct sweep *s, struct run_result *run, struct answers *a, double checks)
{
    double left = ranks_left_s(s->until), start = cost_s(s, a, 0), one = cost_s(s, a, 1) - start;
    struct ranks_links links;
    bool steady;
    int64_t lag;
    int rc;

    if (exceeds(s, start + one))
        return -ETIME;
    left -= start + RTE_MIN(checks, left / 2);
    run->dilation = clock_dilation(s->rd->sh);
    run->iters = dilation_iters(&s->dilation, s->o->iters, a->pred, run->dilation);
    if (one * run->iters > left)
        run->iters = left > one ? (unsigned)(left / one) : 1;
    ranks_links_begin(s, &links);
    rc = run_n(s, run->iters, a, &lag);
    ranks_links_end(s, &links, rc ? NULL : &run->link);
    if (rc)
        return rc;
    run->iters = a->ops ? a->ops : run->iters;
    run->time_us = ran_us(a, run->iters);
    if (op_times_set(&run->times, a->ends, run->iters))
        return -ENOMEM;
    steady = s->dilation.adaptive && !has_faults(s->fab);
    run->fid = dilation_judge(a->pred, lag, steady ? 0 : s->tries.slow, run->dilation);
    if (steady)
        dilation_compare(&run->fid, &s->tries, run->dilation, run->time_us);
    run->valid = true;
    run->aggregated = a->aggregated;
    run->end = a->end;
    run->counted.n = 0;
    row_counters_add_ranks(&run->counted, a->by, a->counted);
    run->staging_us = (double)a->staging_ns * 1e-3 / run->iters / run->dilation;
    if (s->dilation.adaptive)
        dilation_learn(&s->dilation, a->pred, s->nranks, lag, run->dilation, run->fid.ok);
    return 0;
}

/* Swaps two runs, except for the text of what was cut. */
static void swap(struct run_result *run, struct run_result *again)
{
    struct run_result other = *run;

    *run = *again;
    memcpy(run->cut, other.cut, sizeof(run->cut));
    *again = other;
}

/*
 * Runs the timed operations, and repeats them at higher dilations while the emulation lags, if this
 * job may choose the dilation. Keeps the try that lagged least: one interruption must not decide.
 */
static int run_judged(struct sweep *s, struct run_result *run, struct answers *a, double checks)
{
    int rc = run_timed(s, run, a, checks);
    struct run_result again = *run;
    uint32_t least = run->fid.needed;

    again.times = (struct op_times){0};
    for (unsigned i = 1; !rc && !run->fid.ok && s->dilation.adaptive && i < TRIES; i++) {
        uint32_t d = clock_dilation(s->rd->sh);
        uint32_t next = dilation_retry(&s->dilation, a->pred, d, least, i, run->fid.blind);
        if (next <= d)
            break;
        ranks_set_dilation(s, next);
        if (cost_s(s, a, RTE_MIN(2u, s->o->iters)) + checks > ranks_left_s(s->until)) {
            ranks_set_dilation(s, d);
            run_cut(run, "after %u %s", i, i == 1 ? "try" : "tries");
            break;
        }
        rc = run_timed(s, &again, a, checks);
        if (rc)
            break;
        least = RTE_MIN(least, again.fid.needed);
        if (again.fid.ok || again.fid.needed < run->fid.needed)
            swap(run, &again);
    }
    op_times_free(&again.times);
    return rc == -ETIME && run->valid ? 0 : rc;
}

/* Sets up the row and its data at all ranks. They answer which algorithm will run it. */
static int row_prepare(struct sweep *s, const struct row *r, int place, struct answers *a)
{
    struct msg_prepare prep = {.coll = r->coll,
                               .algo = r->algo,
                               .type = r->type,
                               .op = r->op,
                               .root = r->root,
                               .sparse = r->sparse,
                               .in_place = place == IN_PLACE,
                               .mm_self = r->mm_self,
                               .count = r->count,
                               .bound = r->bound};
    int rc = row_sample(s, r, r->algo, false);

    memcpy(a->before, s->fell_back, sizeof(a->before));
    a->sampled = s->o->check && s->sampled.ways && !*s->memory;
    prep.sampled = a->sampled;
    if (!rc)
        rc = ranks_command(s, MSG_PREPARE, &prep, sizeof(prep), 0, a);
    a->by = (enum coll_algo)a->algo;
    return rc;
}

static int run_place(struct sweep *s, struct row *r, int place, struct answers *a)
{
    struct run_result *run = &r->run[place];
    char label[120];
    int rc;

    snprintf(label, sizeof(label), "%s %llu B %s %s %s", row_algo_name(r),
             (unsigned long long)r->bytes, row_type(r), row_op(r),
             place == IN_PLACE ? "in-place" : "out-of-place");
    a->label = label;
    begin_time(s, r, place);
    run->cut[0] = 0;
    sweep_show(s, label);
    rc = row_prepare(s, r, place, a);
    if (!rc && a->algo != r->algo) {
        rc = sweep_instead(s, r, (enum coll_algo)a->algo, &a->instead);
        a->pred = &a->instead;
    }
    if (!rc) {
        begin_dilation(s, a, place);
        rc = warm_up(s, a, run);
    }
    if (!rc)
        rc = run_judged(s, run, a, checks_s(s, r, a, place));
    if (rc == -ETIME) {
        if (exceeds(s, 0))
            snprintf(run->cut, sizeof(run->cut), "not measured, its time is over");
        else
            snprintf(run->cut, sizeof(run->cut),
                     "not measured, an operation takes about %.3g s here", cost_s(s, a, 1));
        s->unmeasured++;
        sweep_show(s, "");
        return 0;
    }
    if (!rc && run->iters < s->o->iters)
        run_cut(run, "%u of %u iterations", run->iters, s->o->iters);
    if (!rc && s->o->check)
        rc = r->coll == COLL_BARRIER ? check_barrier(s, run, a) : check_data(s, r, place, a);
    if (!rc && s->o->error && place == OUT_OF_PLACE && options_has_error(r->coll, r->type, r->op)) {
        rc = ranks_command(s, MSG_ERROR, NULL, 0, 5 * wall_of(a, 1, run->dilation), a);
        r->ulp = a->ulp;
    }
    if (rc == -ETIMEDOUT)
        snprintf(run->cut, sizeof(run->cut), run->valid ? "not checked" : "not measured");
    if (!rc && (run->aggregated < run->iters || strcmp(a->before, s->fell_back) != 0 ||
                run->end.lacks_trees))
        memcpy(run->fell_back, s->fell_back, sizeof(run->fell_back));
    if (!rc)
        rc =
            ranks_timeline_record(s, r, place, start_after(s), 5 * wall_of(a, 1, run->dilation), a);
    sweep_show(s, "");
    return rc;
}

int ranks_place(struct sweep *s, struct row *r, int place)
{
    struct answers a = {.s = s, .pred = &r->pred};
    int rc = sweep_left_out(s, r, place) ? 0 : run_place(s, r, place, &a);

    free(a.ends);
    return rc;
}

void ranks_set_dilation(struct sweep *s, unsigned dilation)
{
    (void)telemetry_client_set_dilation("trib-perf", s->rd->path, dilation);
}

void ranks_leave(struct sweep *s)
{
    if (s->dilation.adaptive)
        ranks_set_dilation(s, DILATION_CONTROL);
}
