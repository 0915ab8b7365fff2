/*
 * One run is: PREPARE, warm-up, RUN (timed), CHECK. The ranks' answers to a command are the barrier
 * before the next. Time per operation is that of n operations back to back, from the moment at
 * which all ranks start to the one at which the last of them knows that it is over, over n: what
 * the model predicts and what trib sim reports (nccl-tests -a 3).
 */
#include "host/perf/sweep.h"

#include "host/coll/sched.h"
#include "host/perf/layout.h"
#include "host/perf/nvls_hw.h"
#include "host/perf/table.h"
#include "switch/rim/shared.h"

#include <errno.h>
#include <rte_common.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define CONNECT_S     60.0     /* EAL, memif and JOINs of all ranks on a slow machine */
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
    uint32_t aggregated, algo;
    int64_t staging_ns;                 /* of the rank that staged longest */
    const struct coll_prediction *pred; /* of what runs */
    const char *label;
    unsigned iters;
};

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
    a->aggregated = d.aggregated < a->aggregated ? d.aggregated : a->aggregated;
    a->algo = d.algo;
    d.fell_back[sizeof(d.fell_back) - 1] = 0;
    if (*d.fell_back)
        memcpy(a->s->fell_back, d.fell_back, sizeof(d.fell_back));
    return 0;
}

static void show(const struct sweep *s, const char *text)
{
    if (s->terminal)
        fprintf(stderr, "\r\033[K%s", text);
}

static int take_progress(void *ctx, unsigned rank, const struct msg *m)
{
    struct answers *a = ctx;
    struct msg_progress p;
    char line[160];

    (void)rank;
    if (m->len != sizeof(p))
        return -EPROTO;
    memcpy(&p, m->body, sizeof(p));
    snprintf(line, sizeof(line), "%s, %u of %u", a->label, p.done, a->iters);
    show(a->s, line);
    return 0;
}

/* Sends a command to all ranks and waits for all answers. */
static int command(struct sweep *s, uint32_t type, const void *body, size_t len, double seconds,
                   struct answers *a)
{
    int rc = job_bcast(s->job, type, body, len);

    a->ps = 0;
    a->wrong = 0;
    a->entered_ps = INT64_MIN;
    a->left_ps = INT64_MAX;
    a->ulp = (struct ulp){0};
    a->staging_ns = 0;
    a->aggregated = UINT32_MAX;
    return rc ? rc : job_gather(s->job, MSG_DONE, seconds + SLACK_S, take_done, take_progress, a);
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
                          .max_bytes = s->o->max_bytes};

    for (unsigned i = 0; i < s->o->n_policy; i++)
        in.policy[i] = (uint8_t)s->o->policy[i];
    if (s->o->sparse) /* what is not sent has its place too */
        in.max_bytes = s->o->max_bytes / s->o->sparse * s->nranks + s->nranks * 8;
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

static int connect_ranks(struct sweep *s)
{
    struct answers a = {.s = s};

    a.blobs = calloc(s->nranks, COMM_BLOB);
    if (!a.blobs)
        return -ENOMEM;
    if (s->pace.adaptive)
        clock_set_dilation(s->rd->sh, PACE_CONTROL);
    show(s, "connecting ranks");
    int rc = send_init(s);
    if (!rc)
        rc = send_fabric(s);
    if (!rc)
        rc = job_gather(s->job, MSG_HELLO, CONNECT_S, take_blob, NULL, &a);
    if (!rc)
        rc = job_bcast(s->job, MSG_CONNECT, a.blobs, (size_t)s->nranks * COMM_BLOB);
    if (!rc)
        rc = job_gather(s->job, MSG_DONE, CONNECT_S, take_done, NULL, &a);
    free(a.blobs);
    show(s, "");
    return rc;
}

/* ---- one run ---- */

static double wall_of(const struct answers *a, unsigned n, uint32_t dilation)
{
    return (double)a->pred->time_ps * 1e-12 * n * dilation;
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
    int rc = command(s, MSG_CHECK, &c, sizeof(c), 5 * wall_of(a, 1, run->dilation), a);

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
    int rc;

    if (!h)
        return -ENOMEM;
    a->iters = n;
    lag_snapshot(s->rd->sh, &h[0]);
    rc = command(s, MSG_RUN, &m, sizeof(m), 5 * wall_of(a, n, clock_dilation(s->rd->sh)), a);
    lag_snapshot(s->rd->sh, &h[1]);
    *lag_ns = lag_quantile(&h[0], &h[1], 0.99);
    free(h);
    return rc;
}

/* Where the dilation is looked for: from a guess on, in place from what was found out of place. */
static void begin_pace(struct sweep *s, const struct answers *a, int place)
{
    if (place == IN_PLACE && s->tries_algo == a->algo) {
        pace_again(&s->tries);
        return;
    }
    s->tries = (struct pace_tries){0};
    s->tries_algo = a->algo;
    if (s->pace.adaptive)
        clock_set_dilation(s->rd->sh, pace_dilation(&s->pace, a->pred, s->nranks));
}

/* Where the dilation may be chosen, warm-ups are what finds it: one after the other. */
static int warm_up(struct sweep *s, struct answers *a)
{
    int rc = 0;

    while (!rc && s->o->warmup && !s->tries.settled) {
        uint32_t d = clock_dilation(s->rd->sh);
        unsigned n = pace_warm_up(&s->pace, s->o->warmup, a->pred, d);
        int64_t lag;

        rc = run_n(s, n, a, &lag);
        if (!s->pace.adaptive)
            break;
        if (!rc)
            clock_set_dilation(s->rd->sh, pace_settle(&s->pace, &s->tries, a->pred, d,
                                                      pace_judge(a->pred, lag, 0, d).needed,
                                                      a->ps / n * 1e-6));
    }
    return rc;
}

/* The timed part; fills run, but for `wrong`. */
static int run_timed(struct sweep *s, struct run_result *run, struct answers *a)
{
    int64_t lag;
    int rc;

    run->dilation = clock_dilation(s->rd->sh);
    run->iters = pace_iters(&s->pace, s->o->iters, a->pred, run->dilation);
    rc = run_n(s, run->iters, a, &lag);
    if (rc)
        return rc;
    run->time_us = a->ps / run->iters * 1e-6;
    run->fid = pace_judge(a->pred, lag, s->tries.slow, run->dilation);
    run->valid = true;
    run->aggregated = a->aggregated;
    run->staging_us = (double)a->staging_ns * 1e-3 / run->iters / run->dilation;
    if (s->pace.adaptive)
        pace_learn(&s->pace, a->pred, s->nranks, lag, run->dilation, run->fid.ok);
    return 0;
}

/*
 * Repeats the timed part at a higher dilation while the emulation lags, where this job may choose
 * it. The try that lagged least is kept: one hiccup of the machine must not speak for a row.
 */
static int run_paced(struct sweep *s, struct run_result *run, struct answers *a)
{
    int rc = run_timed(s, run, a);
    struct run_result again = *run;
    uint32_t least = run->fid.needed;

    for (unsigned i = 1; !rc && !run->fid.ok && s->pace.adaptive && i < TRIES; i++) {
        uint32_t d = clock_dilation(s->rd->sh);
        uint32_t next = pace_retry(&s->pace, a->pred, d, least, i);
        if (next <= d)
            break;
        clock_set_dilation(s->rd->sh, next);
        rc = run_timed(s, &again, a);
        least = RTE_MIN(least, again.fid.needed);
        if (!rc && (again.fid.ok || again.fid.needed < run->fid.needed))
            *run = again;
    }
    return rc;
}

static int run_place(struct sweep *s, struct row *r, int place)
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
    show(s, label);
    int rc = command(s, MSG_PREPARE, &prep, sizeof(prep), 0, &a);
    if (!rc && a.algo != r->algo) {
        rc = sweep_instead(s, r, (enum coll_algo)a.algo, &now);
        a.pred = &now;
    }
    if (!rc) {
        begin_pace(s, &a, place);
        rc = warm_up(s, &a);
    }
    if (!rc)
        rc = run_paced(s, run, &a);
    if (!rc && s->o->check)
        rc = r->coll == COLL_BARRIER ? check_barrier(s, run, &a) : check_data(s, place, run, &a);
    if (!rc && s->o->error && place == OUT_OF_PLACE && options_has_error(r->coll, r->type, r->op)) {
        rc = command(s, MSG_ERROR, NULL, 0, 5 * wall_of(&a, 1, run->dilation), &a);
        r->ulp = a.ulp;
    }
    if (!rc && (run->aggregated < run->iters || strcmp(before, s->fell_back) != 0))
        memcpy(run->fell_back, s->fell_back, sizeof(run->fell_back));
    show(s, "");
    return rc;
}

/* ---- all rows ---- */

/* What the model says of the row; for auto also which algorithm it is. */
static int predict(struct sweep *s, struct row *r)
{
    struct coll_args a = {.kind = r->coll,
                          .algo = r->algo,
                          .count = r->count,
                          .type = r->type,
                          .op = r->op,
                          .root = r->root,
                          .sparse = r->sparse,
                          .mm_self = r->mm_self};
    char why[OPT_ERR];
    int rc;

    a.send = &a; /* not in place: the model looks at no more than whether the two are one */
    a.recv = r;
    if (r->algo == PERF_NVLS_HW) {
        a.algo = ALGO_NVLS;
        if (coll_predict_trees(s->fab, &a, s->nranks, s->host_of_rank, s->tree, s->n_trees,
                               s->o->window, &r->pred))
            r->pred = (struct coll_prediction){0};
        return 0;
    }
    if (r->chosen)
        rc = coll_auto(s->fab, &a, s->nranks, s->host_of_rank, s->tree, s->n_trees, s->o->window,
                       s->exist, &r->algo, &r->pred, r->why);
    else
        rc = coll_predict_trees(s->fab, &a, s->nranks, s->host_of_rank, s->tree, s->n_trees,
                                s->o->window, &r->pred);
    if (!rc && r->pred.time_ps <= 0)
        r->pred.time_ps = 1; /* a single rank: nothing moves */
    if (rc) {
        snprintf(why, sizeof(why), "no prediction for %s %llu B: %s", perf_algo_name(row_asked(r)),
                 (unsigned long long)r->bytes, strerror(-rc));
        if (s->job)
            job_abort(s->job, why);
        memcpy(s->cause, why, sizeof(s->cause));
    }
    return rc;
}

static void busiest(const struct sweep *s, struct row *r)
{
    if (r->pred.busiest_dirlink / 2 < s->fab->n_links)
        r->link_bps = s->fab->links[r->pred.busiest_dirlink / 2].rate_bps;
}

int sweep_instead(struct sweep *s, struct row *r, enum coll_algo now, struct coll_prediction *p)
{
    struct row like = *r;
    int rc;

    like.algo = now;
    like.chosen = false;
    rc = predict(s, &like);
    *p = like.pred;
    if (!rc && !r->run[OUT_OF_PLACE].valid) {
        r->pred = like.pred;
        busiest(s, r);
    }
    return rc;
}

static int run_hw(struct sweep *s, struct row *r, int place)
{
    char label[80];
    int rc;

    snprintf(label, sizeof(label), "nvls-hw %llu B %s %s", (unsigned long long)r->bytes,
             row_type(r), row_op(r));
    show(s, label);
    rc = nvls_hw_place(s->hw, r, place, s->cause);
    if (rc && s->job)
        job_abort(s->job, s->cause);
    s->wrong += r->run[place].wrong;
    show(s, "");
    return rc;
}

static int add_row(struct sweep *s, enum coll_algo algo, uint64_t bytes, enum dtype type,
                   enum redop op)
{
    unsigned blocks = layout_blocks(s->o->coll, s->nranks, s->o->sparse);
    struct row *r = &s->rows[s->n_rows];

    *r = (struct row){.coll = s->o->coll,
                      .algo = algo,
                      .chosen = algo == ALGO_AUTO,
                      .type = type,
                      .op = op,
                      .root = s->o->root,
                      .nranks = s->nranks,
                      .sparse = s->o->sparse,
                      .mm_self = s->o->mm_self,
                      .staged = *s->where && !s->hw};
    if (r->coll != COLL_BARRIER) {
        r->count = bytes / dtype_size(type) / blocks;
        if (!r->count)
            return 0; /* smaller than one element: nothing to run, as in nccl-tests */
    }
    r->bytes = r->count * dtype_size(type) * blocks;
    int rc = predict(s, r);
    if (rc)
        return rc;
    busiest(s, r);
    s->n_rows++;
    for (int place = 0; place < PLACES && !rc; place++)
        if (place == OUT_OF_PLACE || coll_can_be_in_place(r->coll))
            rc = s->hw      ? run_hw(s, r, place)
                 : s->place ? s->place(s, r, place)
                            : run_place(s, r, place);
    if (!rc)
        table_row(stdout, r);
    if (s->row_done)
        s->row_done(s);
    return rc;
}

/* The reduction of a collective that has none is of no interest: once is enough. So are types and
 * sizes to a barrier. */
static bool wanted(const struct sweep *s, enum dtype t, enum redop op)
{
    const struct perf_opts *o = s->o;

    if (o->coll == COLL_BARRIER)
        return t == 0 && op == 0;
    if (!(o->types & (1u << t)))
        return false;
    if (s->hw && !nvls_hw_has(t, op))
        return false;
    return coll_reduces(o->coll) ? (o->ops & (1u << op)) && arith_valid(op, t) : op == 0;
}

static int run_algo(struct sweep *s, enum coll_algo algo, const uint64_t *sizes, unsigned n_sizes)
{
    unsigned first = s->n_rows;
    int rc = 0;

    table_columns(stdout, algo, *s->where && !s->hw);
    for (unsigned i = 0; i < n_sizes && !rc; i++)
        for (int t = 0; t < DT_COUNT && !rc; t++)
            for (int op = 0; op < OP_COUNT && !rc; op++)
                if (wanted(s, (enum dtype)t, (enum redop)op))
                    rc = add_row(s, algo, sizes[i], (enum dtype)t, (enum redop)op);
    if (!rc)
        table_footer(stdout, s->rows + first, s->n_rows - first);
    return rc;
}

/* After everything else. What keeps it from beginning is no failure of the others. */
static int run_hw_algo(struct sweep *s, const uint64_t *sizes, unsigned n)
{
    int rc = nvls_hw_open(&s->hw, s->o, s->nranks, s->no_hw);

    if (rc && sweep_has_ranks(s))
        return 0;
    if (rc) {
        snprintf(s->cause, sizeof(s->cause), "nvls-hw: %.*s", OPT_ERR - 16, s->no_hw);
        return rc;
    }
    table_gpus(stdout, s->nranks, nvls_hw_gpu(s->hw));
    rc = run_algo(s, PERF_NVLS_HW, sizes, n);
    nvls_hw_rest(s->o, s->no_hw);
    nvls_hw_close(s->hw);
    s->hw = NULL;
    return rc;
}

int sweep_run(struct sweep *s)
{
    uint64_t sizes[PERF_MAX_SIZES];
    unsigned n = options_sizes(s->o, sizes, PERF_MAX_SIZES);

    if (s->o->coll == COLL_BARRIER)
        n = 1;
    s->max_rows = n * DT_COUNT * OP_COUNT * PERF_ALGOS;
    s->rows = calloc(s->max_rows, sizeof(*s->rows));
    if (!s->rows)
        return -ENOMEM;
    int rc = s->place || !sweep_has_ranks(s) ? 0 : connect_ranks(s);
    if (!rc && *s->where)
        table_where(stdout, s->where);
    for (int a = 0; a < ALGOS_ASKED && !rc; a++)
        if (s->algos & (1u << a))
            rc = run_algo(s, (enum coll_algo)a, sizes, n);
    if (!rc && (s->algos & (1u << PERF_NVLS_HW)))
        rc = run_hw_algo(s, sizes, n);
    if (!rc && *s->no_hw)
        table_left_out(stdout, PERF_NVLS_HW, s->no_hw);
    if (!rc) {
        table_compare(stdout, s->rows, s->n_rows);
        table_error(stdout, s->rows, s->n_rows);
    }
    /* Leaving the group is round trips: quick ones. */
    if (s->pace.adaptive)
        clock_set_dilation(s->rd->sh, PACE_CONTROL);
    return rc;
}

void sweep_free(struct sweep *s)
{
    free(s->rows);
    s->rows = NULL;
}
