/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One run is: PREPARE, warm-up, RUN (timed), CHECK. The ranks' answers to a command are the barrier
 * before the next. Time per operation is that of n operations back to back, from the moment at
 * which all ranks start to the one at which the last of them knows that it is over, over n: what
 * the model predicts and what trib sim reports (nccl-tests -a 3).
 */
#include "host/launch/ranks.h"

#include "host/bench/layout.h"
#include "host/coll/alg/sched.h"
#include "host/launch/job_processes.h"
#include "io/rundir.h"
#include "io/shared.h"

#include <errno.h>
#include <rte_common.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define CONNECT_S     60.0     /* EAL, memif and JOINs of all ranks on a slow machine */
#define OVER_S        2.0      /* by which a row may exceed --max-wall, */
#define OVER          0.1      /* and by so much of it; what takes longer ends the job */
#define CONNECT_LEAST 10.0     /* seconds for connecting, whatever --max-wall says, */
#define CONNECT_RANK  1.0      /* and for each rank */
#define WARM_SHARE    0.5      /* of a place's time that warm-ups may take */
#define SLACK_S       60.0     /* on top of what a command should take, before it counts as stuck */
#define TRIES         3        /* of one run, each at a higher dilation, when it may be chosen */
#define START_NS      10000000 /* wall time from telling ranks to run until they do, */
#define START_RANK_NS 1000000  /* and for each that is told */
#define LATE_NS       2000000 /* of wall time: a rank is late, whatever this machine does meanwhile */

struct answers {
    struct sweep *s;
    uint8_t *blobs;
    double ps; /* of the last rank */
    uint64_t wrong;
    int64_t entered_ps,
        left_ps; /* the last one that entered a barrier, the first one that left it */
    struct ulp ulp;
    uint32_t aggregated, algo, ops;
    int64_t staging_ns;                 /* of the rank that staged longest */
    const struct coll_prediction *pred; /* of what runs */
    const char *label;
    unsigned iters;
    /* a run that is to end early: which operation each rank has begun; how many have said so */
    bool stopping;
    uint32_t begun, said;
    uint8_t has_said[FAB_MAX_MEMBERS];
};

/* ---- the row's time ---- */

static double left_s(int64_t until)
{
    return (double)(until - clock_mono_ns()) * 1e-9;
}

static double over_s(const struct sweep *s)
{
    return OVER_S + OVER * s->o->max_wall;
}

static void begin_time(struct sweep *s, const struct row *r, int place)
{
    int64_t now = clock_mono_ns(), all = (int64_t)(s->o->max_wall * 1e9);

    if (place == OUT_OF_PLACE) {
        s->row_until = now + all;
        s->slow = 1;
    }
    s->until =
        place == OUT_OF_PLACE && coll_can_be_in_place(r->coll) ? now + all / 2 : s->row_until;
}

/* Once all know that a run ends early, and where everybody is: it ends one operation after the
 * foremost. */
static void tell_limit(struct answers *a)
{
    struct msg_progress p = {RTE_MIN(a->begun + 1, a->iters), 0};

    if (a->stopping && a->said == a->s->nranks)
        for (unsigned r = 0; r < a->s->nranks; r++)
            job_send(a->s->job, r, MSG_LIMIT, &p, sizeof(p));
}

static void said(struct answers *a, unsigned rank, uint32_t begun)
{
    if (a->has_said[rank])
        return;
    a->has_said[rank] = 1;
    a->said++;
    a->begun = RTE_MAX(a->begun, begun);
    tell_limit(a);
}

static void stop_run(void *ctx)
{
    struct answers *a = ctx;

    a->stopping = true;
    for (unsigned r = 0; r < a->s->nranks; r++)
        if (!a->has_said[r])
            job_send(a->s->job, r, MSG_STOP, NULL, 0);
}

static int take_blob(void *ctx, unsigned rank, const struct msg *m)
{
    struct answers *a = ctx;

    if (m->len != COMM_BLOB)
        return -EPROTO;
    memcpy(a->blobs + (size_t)rank * COMM_BLOB, m->body, COMM_BLOB);
    return 0;
}

static int take_done(void *ctx, unsigned rank, const struct msg *m)
{
    struct answers *a = ctx;
    struct msg_done d;

    if (m->len != sizeof(d))
        return -EPROTO;
    memcpy(&d, m->body, sizeof(d));
    if (d.ops) {
        said(a, rank, d.ops);
        a->ops = d.ops;
    }
    a->ps = (double)d.ps > a->ps ? (double)d.ps : a->ps;
    a->wrong += d.wrong;
    a->entered_ps = d.entered_ps > a->entered_ps ? d.entered_ps : a->entered_ps;
    a->left_ps = d.left_ps < a->left_ps ? d.left_ps : a->left_ps;
    a->ulp.max = d.ulp.max > a->ulp.max ? d.ulp.max : a->ulp.max;
    a->ulp.sum += d.ulp.sum;
    a->ulp.n += d.ulp.n;
    a->staging_ns = d.staging_ns > a->staging_ns ? d.staging_ns : a->staging_ns;
    d.where[sizeof(d.where) - 1] = 0;
    if (!rank && *d.where)
        memcpy(a->s->where, d.where, sizeof(d.where));
    d.granted.why[sizeof(d.granted.why) - 1] = 0;
    if (!rank && d.granted.asked && d.granted.trees <= COLL_TREES)
        sweep_granted(a->s, &d.granted);
    a->aggregated = d.aggregated < a->aggregated ? d.aggregated : a->aggregated;
    a->algo = d.algo;
    d.fell_back[sizeof(d.fell_back) - 1] = 0;
    if (*d.fell_back)
        memcpy(a->s->fell_back, d.fell_back, sizeof(d.fell_back));
    return 0;
}

static int take_progress(void *ctx, unsigned rank, const struct msg *m)
{
    struct answers *a = ctx;
    struct msg_progress p;
    char line[160];

    if (m->len != sizeof(p))
        return -EPROTO;
    memcpy(&p, m->body, sizeof(p));
    if (p.begun)
        said(a, rank, p.begun);
    snprintf(line, sizeof(line), "%s, %u of %u", a->label, p.done, a->iters);
    sweep_show(a->s, line);
    return 0;
}

/* Sends a command to all ranks and waits for all answers, no longer than the row's time allows; a
 * run is told to end when it is over. */
static int command(struct sweep *s, uint32_t type, const void *body, size_t len, double seconds,
                   struct answers *a)
{
    double hard = left_s(s->row_until) + over_s(s);
    char bound[MSG_TEXT / 2];
    struct job_limits l = {.seconds = seconds + SLACK_S};
    int rc;

    if (hard < l.seconds) {
        snprintf(bound, sizeof(bound), "%s not measured: --max-wall %g s is over", a->label,
                 s->o->max_wall);
        l.bound = bound;
        l.seconds = RTE_MAX(hard, OVER_S / 2);
    }
    if (type == MSG_RUN) {
        l.soft = stop_run;
        l.soft_s = RTE_MAX(0.0, left_s(s->until));
        a->stopping = false;
        a->begun = a->said = a->ops = 0;
        memset(a->has_said, 0, sizeof(a->has_said));
    }
    rc = job_bcast(s->job, type, body, len);

    a->ps = 0;
    a->wrong = 0;
    a->entered_ps = INT64_MIN;
    a->left_ps = INT64_MAX;
    a->ulp = (struct ulp){0};
    a->staging_ns = 0;
    a->aggregated = UINT32_MAX;
    if (!rc)
        rc = job_gather_within(s->job, MSG_DONE, &l, take_done, take_progress, a);
    if (rc == -ETIMEDOUT && l.bound)
        s->unmeasured++;
    return rc;
}

/* ---- set-up ---- */

static bool is_elsewhere(const struct sweep *s, unsigned rank)
{
    return s->fab->nodes[s->fab->hosts[s->host_of_rank[rank]]].outside;
}

/* Ranks elsewhere have no run directory: they are told what the fabric is. */
static int send_fabric(struct sweep *s)
{
    char path[RUN_PATH + 32], *text = NULL;
    size_t size = 0;
    FILE *f;
    int rc = rundir_path(s->rd, path, sizeof(path), "fabric.conf");

    f = rc ? NULL : fopen(path, "re");
    if (!f)
        return rc ? rc : -errno;
    if (getdelim(&text, &size, 0, f) < 0)
        rc = -EIO;
    fclose(f);
    for (unsigned r = 0; !rc && r < s->nranks; r++)
        if (is_elsewhere(s, r))
            job_send(s->job, r, MSG_FABRIC, text, strlen(text));
    free(text);
    return rc;
}

/* Ids and keys that no other job of this fabric has. */
static int send_init(struct sweep *s)
{
    size_t hosts = s->nranks * sizeof(s->host_of_rank[0]);
    uint8_t body[sizeof(struct msg_init) + sizeof(s->host_of_rank)];
    struct msg_init in = {.nranks = s->nranks,
                          .window = s->o->window,
                          .algos = s->set_up,
                          .n_trees = s->n_trees,
                          .n_policy = s->o->n_policy,
                          .gpu = s->o->gpu,
                          .buf_bytes = options_buffer(s->o, s->nranks)};

    for (unsigned i = 0; i < s->o->n_policy; i++)
        in.policy[i] = (uint8_t)s->o->policy[i];
    memcpy(in.tree, s->tree, sizeof(in.tree));

    if (getrandom(&in.group, sizeof(in.group), 0) < 0 || getrandom(&in.key, sizeof(in.key), 0) < 0)
        return -errno;
    for (unsigned r = 0; r < s->nranks; r++) {
        in.rank = r;
        memcpy(body, &in, sizeof(in));
        memcpy(body + sizeof(in), s->host_of_rank, hosts);
        job_send(s->job, r, MSG_INIT, body, sizeof(in) + hosts);
    }
    return 0;
}

int ranks_connect(struct sweep *s)
{
    struct answers a = {.s = s};
    double until = s->o->max_wall, least = CONNECT_LEAST + CONNECT_RANK * s->nranks;
    int64_t began = clock_mono_ns();
    struct job_limits l = {.bound = "ranks not connected: --max-wall is over"};

    until = RTE_MIN(RTE_MAX(until, least), 2 * CONNECT_S);
    a.blobs = calloc(s->nranks, COMM_BLOB);
    if (!a.blobs)
        return -ENOMEM;
    if (s->pace.adaptive)
        clock_set_dilation(s->rd->sh, DILATION_CONTROL);
    sweep_show(s, "connecting ranks");
    int rc = send_init(s);
    if (!rc)
        rc = send_fabric(s);
    if (!rc)
        l.seconds = until, rc = job_gather_within(s->job, MSG_HELLO, &l, take_blob, NULL, &a);
    if (!rc)
        rc = job_bcast(s->job, MSG_CONNECT, a.blobs, (size_t)s->nranks * COMM_BLOB);
    if (!rc)
        l.seconds = until - (double)(clock_mono_ns() - began) * 1e-9,
        rc = job_gather_within(s->job, MSG_DONE, &l, take_done, NULL, &a);
    if (!rc)
        rc = job_bcast(s->job, MSG_GRANTED, NULL, 0);
    if (!rc)
        l.seconds = until - (double)(clock_mono_ns() - began) * 1e-9,
        rc = job_gather_within(s->job, MSG_DONE, &l, take_done, NULL, &a);
    free(a.blobs);
    sweep_show(s, "");
    return rc;
}

/* ---- one run ---- */

static double wall_of(const struct answers *a, unsigned n, uint32_t dilation)
{
    return (double)a->pred->time_ps * 1e-12 * n * dilation;
}

/* What n operations are to take by what those before them took, beyond what is to happen anyhow. */
static double cost_s(const struct sweep *s, const struct answers *a, double n)
{
    return wall_of(a, 1, clock_dilation(s->rd->sh)) * s->slow * n +
           (START_NS + s->nranks * (double)START_RANK_NS) * 1e-9;
}

/* A check of a barrier: one rank is late, then all go through it. */
static double late_check_s(const struct sweep *s, const struct answers *a)
{
    return cost_s(s, a, 1) + 2 * wall_of(a, 1, clock_dilation(s->rd->sh)) + LATE_NS * 1e-9;
}

/* What is run after the timed operations, and is to fit as well. */
static double checks_s(const struct sweep *s, const struct row *r, const struct answers *a,
                       int place)
{
    if (!s->o->check)
        return 0;
    if (r->coll == COLL_BARRIER)
        return late_check_s(s, a) * RTE_MIN(s->nranks, ROW_LATE);
    return place == IN_PLACE ? cost_s(s, a, 1) : 0;
}

/* Is there no time for something that takes so long? What is nearly over may be a little late. */
static bool is_over(const struct sweep *s, double seconds)
{
    return seconds > left_s(s->until) + OVER_S / 2;
}

static void cut(struct run_result *run, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void cut(struct run_result *run, const char *fmt, ...)
{
    size_t at = strlen(run->cut);
    va_list ap;

    if (at && at < sizeof(run->cut) - 3)
        at += (size_t)snprintf(run->cut + at, sizeof(run->cut) - at, ", ");
    va_start(ap, fmt);
    vsnprintf(run->cut + at, sizeof(run->cut) - at, fmt, ap);
    va_end(ap);
}

/* When all ranks will know that they are to run. Ranks elsewhere have clocks of their own. */
static int64_t start_of(const struct sweep *s)
{
    int64_t wall_ns = START_NS + (int64_t)s->nranks * START_RANK_NS;

    for (unsigned r = 0; r < s->nranks; r++)
        if (is_elsewhere(s, r))
            return 0;
    return clock_fabric_ps(s->rd->sh) + wall_ns * 1000 / clock_dilation(s->rd->sh);
}

static int check_data(struct sweep *s, int place, struct run_result *run, struct answers *a)
{
    struct msg_check c = {.again = place == IN_PLACE};
    int rc;

    if (c.again && is_over(s, cost_s(s, a, 1))) {
        cut(run, "not checked");
        s->unmeasured++;
        return 0;
    }
    rc = command(s, MSG_CHECK, &c, sizeof(c), 5 * wall_of(a, 1, run->dilation), a);

    run->checked = rc == 0;
    run->wrong = rc ? 0 : a->wrong;
    s->wrong += run->wrong;
    return rc;
}

/* One rank after the other enters much later than a barrier takes that does not wait for it. */
static int check_barrier(struct sweep *s, struct run_result *run, struct answers *a)
{
    double wall = wall_of(a, 1, run->dilation);
    int rc = 0;

    run->wrong = 0;
    for (unsigned k = 0; !rc && k < s->nranks && k < ROW_LATE; k++) {
        if (is_over(s, late_check_s(s, a))) {
            cut(run, "%u of %u checks", k, RTE_MIN(s->nranks, ROW_LATE));
            s->unmeasured++;
            s->wrong += run->wrong;
            return 0;
        }
        struct msg_check c = {.late = row_late(s->nranks, k),
                              .late_ns = (uint64_t)(2e9 * wall) + LATE_NS};

        rc = command(s, MSG_CHECK, &c, sizeof(c), 10 * wall, a);
        run->wrong += !rc && a->left_ps < a->entered_ps;
    }
    run->checked = rc == 0;
    s->wrong += run->wrong;
    return rc;
}

/* n operations, and how late hand-offs were meanwhile. */
static int run_n(struct sweep *s, unsigned n, struct answers *a, int64_t *lag_ns)
{
    struct lag_hist *h = calloc(2, sizeof(*h));
    struct msg_run m = {n, s->terminal, start_of(s)};
    int64_t began = clock_mono_ns();
    int rc;

    if (!h)
        return -ENOMEM;
    a->iters = n;
    lag_snapshot(s->rd->sh, &h[0]);
    rc = command(s, MSG_RUN, &m, sizeof(m), 5 * wall_of(a, n, clock_dilation(s->rd->sh)), a);
    lag_snapshot(s->rd->sh, &h[1]);
    if (!rc && a->ops)
        s->slow = RTE_MAX(1.0, ((double)(clock_mono_ns() - began) * 1e-9 - cost_s(s, a, 0)) /
                                   wall_of(a, a->ops, clock_dilation(s->rd->sh)));
    *lag_ns = lag_quantile(&h[0], &h[1], 0.99);
    free(h);
    return rc;
}

/* Where the dilation is looked for: from a guess on, in place from what was found out of place. */
static void begin_pace(struct sweep *s, const struct answers *a, int place)
{
    if (place == IN_PLACE && s->tries_algo == a->algo) {
        dilation_again(&s->tries);
        return;
    }
    s->tries = (struct dilation_tries){0};
    s->tries_algo = a->algo;
    if (s->pace.adaptive)
        clock_set_dilation(s->rd->sh, dilation_dilation(&s->pace, a->pred, s->nranks));
}

/* Where the dilation may be chosen, warm-ups are what finds it: one after the other, while there is
 * time for them. */
static int warm_up(struct sweep *s, struct answers *a, struct run_result *run)
{
    double share = left_s(s->until) * (1 - WARM_SHARE); /* is left to what follows */
    unsigned done = 0;
    int rc = 0;

    while (!rc && s->o->warmup && !s->tries.settled) {
        uint32_t d = clock_dilation(s->rd->sh);
        unsigned n = dilation_warm_up(&s->pace, s->o->warmup, a->pred, d);
        int64_t lag;

        if (left_s(s->until) - cost_s(s, a, n) < share) {
            if (s->pace.adaptive)
                clock_set_dilation(s->rd->sh, dilation_end(&s->pace, &s->tries, a->pred, d));
            cut(run, "after %u warm-ups", done);
            break;
        }
        rc = run_n(s, n, a, &lag);
        n = a->ops ? a->ops : n;
        done++;
        if (!s->pace.adaptive)
            break;
        if (!rc)
            clock_set_dilation(s->rd->sh, dilation_settle(&s->pace, &s->tries, a->pred, d,
                                                          dilation_judge(a->pred, lag, 0, d).needed,
                                                          a->ps / n * 1e-6));
    }
    return rc;
}

/* The timed part; fills run, but for `wrong`. checks: seconds that are to be left after it, if
 * there is so much. -ETIME: there is no time for it. */
static int run_timed(struct sweep *s, struct run_result *run, struct answers *a, double checks)
{
    double left = left_s(s->until), start = cost_s(s, a, 0), one = cost_s(s, a, 1) - start;
    int64_t lag;
    int rc;

    if (is_over(s, start + one))
        return -ETIME;
    left -= start + RTE_MIN(checks, left / 2);
    run->dilation = clock_dilation(s->rd->sh);
    run->iters = dilation_iters(&s->pace, s->o->iters, a->pred, run->dilation);
    if (one * run->iters > left)
        run->iters = left > one ? (unsigned)(left / one) : 1;
    rc = run_n(s, run->iters, a, &lag);
    if (rc)
        return rc;
    run->iters = a->ops ? a->ops : run->iters;
    run->time_us = a->ps / run->iters * 1e-6;
    run->fid = dilation_judge(a->pred, lag, s->tries.slow, run->dilation);
    run->valid = true;
    run->aggregated = a->aggregated;
    run->staging_us = (double)a->staging_ns * 1e-3 / run->iters / run->dilation;
    if (s->pace.adaptive)
        dilation_learn(&s->pace, a->pred, s->nranks, lag, run->dilation, run->fid.ok);
    return 0;
}

/*
 * Repeats the timed part at a higher dilation while the emulation lags, where this job may choose
 * it. The try that lagged least is kept: one hiccup of the machine must not speak for a row.
 */
static int run_paced(struct sweep *s, struct run_result *run, struct answers *a, double checks)
{
    int rc = run_timed(s, run, a, checks);
    struct run_result again = *run;
    uint32_t least = run->fid.needed;

    for (unsigned i = 1; !rc && !run->fid.ok && s->pace.adaptive && i < TRIES; i++) {
        uint32_t d = clock_dilation(s->rd->sh);
        uint32_t next = dilation_retry(&s->pace, a->pred, d, least, i);
        if (next <= d)
            break;
        clock_set_dilation(s->rd->sh, next);
        if (cost_s(s, a, RTE_MIN(2u, s->o->iters)) + checks > left_s(s->until)) {
            clock_set_dilation(s->rd->sh, d);
            cut(run, "after %u %s", i, i == 1 ? "try" : "tries");
            break;
        }
        rc = run_timed(s, &again, a, checks);
        if (rc == -ETIME)
            return 0;
        least = RTE_MIN(least, again.fid.needed);
        if (!rc && (again.fid.ok || again.fid.needed < run->fid.needed))
            memcpy(again.cut, run->cut, sizeof(again.cut)), *run = again;
    }
    return rc;
}

int ranks_place(struct sweep *s, struct row *r, int place)
{
    struct run_result *run = &r->run[place];
    struct answers a = {.s = s, .pred = &r->pred};
    struct coll_prediction now;
    struct msg_prepare prep = {r->coll,   r->algo,           r->type,    r->op,   r->root,
                               r->sparse, place == IN_PLACE, r->mm_self, r->count};
    char label[120], before[COMM_TEXT];

    memcpy(before, s->fell_back, sizeof(before));
    snprintf(label, sizeof(label), "%s %llu B %s %s %s", sched_algo_name(r->algo),
             (unsigned long long)r->bytes, row_type(r), row_op(r),
             place == IN_PLACE ? "in-place" : "out-of-place");
    a.label = label;
    begin_time(s, r, place);
    run->cut[0] = 0;
    sweep_show(s, label);
    int rc = command(s, MSG_PREPARE, &prep, sizeof(prep), 0, &a);
    if (!rc && a.algo != r->algo) {
        rc = sweep_instead(s, r, (enum coll_algo)a.algo, &now);
        a.pred = &now;
    }
    if (!rc) {
        begin_pace(s, &a, place);
        rc = warm_up(s, &a, run);
    }
    if (!rc)
        rc = run_paced(s, run, &a, checks_s(s, r, &a, place));
    if (rc == -ETIME) {
        snprintf(run->cut, sizeof(run->cut), "not measured, an operation takes about %.3g s here",
                 cost_s(s, &a, 1));
        s->unmeasured++;
        sweep_show(s, "");
        return 0;
    }
    if (!rc && run->iters < s->o->iters)
        cut(run, "%u of %u iterations", run->iters, s->o->iters);
    if (!rc && s->o->check)
        rc = r->coll == COLL_BARRIER ? check_barrier(s, run, &a) : check_data(s, place, run, &a);
    if (!rc && s->o->error && place == OUT_OF_PLACE && options_has_error(r->coll, r->type, r->op)) {
        rc = command(s, MSG_ERROR, NULL, 0, 5 * wall_of(&a, 1, run->dilation), &a);
        r->ulp = a.ulp;
    }
    if (rc == -ETIMEDOUT)
        snprintf(run->cut, sizeof(run->cut), run->valid ? "not checked" : "not measured");
    if (!rc && (run->aggregated < run->iters || strcmp(before, s->fell_back) != 0))
        memcpy(run->fell_back, s->fell_back, sizeof(run->fell_back));
    sweep_show(s, "");
    return rc;
}

void ranks_leave(struct sweep *s)
{
    if (s->pace.adaptive)
        clock_set_dilation(s->rd->sh, DILATION_CONTROL);
}
