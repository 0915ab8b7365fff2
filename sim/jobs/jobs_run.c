/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs in one world, event by event. Jobs without a start connect one after the other, in the order
 * of the file, and begin together: that is time 0. A job with a start connects then, while others
 * run, and begins when it has connected. Each leaves when its loop has ended.
 *
 * Rejected: job_create() and job_destroy(), one job after the other. They run the world until a job
 * has connected or left, and a start, a death or an end of others that falls into that time would be
 * seen too late.
 */
#include "base/assert.h"
#include "base/random.h"
#include "sim/job/sim_job.h"
#include "sim/jobs/jobs_ops.h"
#include "sim/world/fault_player.h"
#include "switch/reduce/an.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_PS  (60 * PS_PER_S)   /* fabric time, for connecting and for leaving */
#define OPS_PS      (100 * PS_PER_S)  /* longer than ranks wait for each other */
#define RELEASE_PS  (2 * PS_PER_S)    /* until switches must have given everything back */
#define SETTLE_PS   (100 * PS_PER_US) /* for frames in flight when the last rank has left */
#define POOL_EVENTS 64u               /* events between two readings of the pool's level */

enum state {
    STATE_WAITING,
    STATE_CONNECTING,
    STATE_BINDING,
    STATE_READY,
    STATE_RUNNING,
    STATE_LEAVING,
    STATE_GONE
};

struct running {
    const struct jobs_job *job;
    struct jobs_result *res;
    enum state state;
    struct job *j; /* NULL: not open */
    struct jobs_ops ops;
    struct job_loop loop;
    unsigned *world_rank; /* [nranks] */
    uint64_t key;
    int64_t until_ps; /* of the state; PS_NEVER: none */
};

struct run {
    const struct jobs_world_cfg *cfg;
    struct world *w;
    struct running of[JOBS_MAX];
    unsigned n;
    struct fault_plan plan; /* the file's, and deaths of jobs */
    struct faults *faults;
    int64_t zero_ps; /* JOBS_NEVER: not yet */
    uint64_t pool_read, missed;
    unsigned peak;
    bool few;
    int rc; /* of what cannot go on */
};

static int64_t since_zero(const struct run *r)
{
    return r->zero_ps >= 0 ? world_now(r->w) - r->zero_ps : 0;
}

/* ---- what switches hold ---- */

static unsigned groups_of(struct run *r, const struct running *u)
{
    const struct fabric *f = r->cfg->fab;
    unsigned n = 0;

    for (uint16_t i = 0; i < f->n_nodes; i++) {
        const struct an *an = f->nodes[i].kind == FAB_SWITCH ? net_an(world_net(r->w), i) : NULL;

        n += an ? an_groups_of(an, u->key) : 0;
    }
    return n;
}

/* Notes a death, and the moment at which a job that has died or ended holds nothing any more. */
static void watch(struct run *r, struct running *u)
{
    struct jobs_result *res = u->res;

    if (r->plan.n && res->died_ps < 0 && r->zero_ps >= 0 && u->state < STATE_GONE)
        for (unsigned n = 0; n < u->job->nranks && res->died_ps < 0; n++)
            if (world_dead(r->w, u->world_rank[n]))
                res->died_ps = since_zero(r);
    if (res->released_ps < 0 && (u->state == STATE_GONE || res->died_ps >= 0) && !groups_of(r, u))
        res->released_ps = since_zero(r);
}

/* ---- from one state to the next ---- */

static void leave(struct run *r, struct running *u)
{
    job_close(u->j);
    u->state = STATE_LEAVING;
    u->until_ps = world_now(r->w) + CONNECT_PS;
}

static void end(struct run *r, struct running *u, enum jobs_end how, const char *why)
{
    u->res->end = u->res->died_ps >= 0 ? JOBS_DIED : how;
    snprintf(u->res->why, sizeof(u->res->why), "%.*s", COMM_TEXT - 1, why);
    u->res->ended_ps = since_zero(r);
    if (u->j)
        leave(r, u);
    else
        u->state = STATE_GONE;
}

static struct job *some_job(const struct run *r)
{
    for (unsigned i = 0; i < r->n; i++)
        if (r->of[i].j)
            return r->of[i].j;
    return NULL;
}

/* Nobody starts a job on processes that have died. */
static bool starts(struct run *r, struct running *u)
{
    char why[COMM_TEXT];

    for (unsigned n = 0; n < u->job->nranks; n++)
        if (world_dead(r->w, u->world_rank[n])) {
            snprintf(why, sizeof(why), "rank %u had died before the job started", n);
            end(r, u, JOBS_DIED, why);
            return false;
        }
    return true;
}

static void open_job(struct run *r, struct running *u)
{
    const struct jobs_job *job = u->job;
    struct job_cfg jc = {.w = r->w,
                         .fab = r->cfg->fab,
                         .nranks = job->nranks,
                         .host_of_rank = job->host_of_rank,
                         .world_rank = u->world_rank,
                         .sibling = some_job(r),
                         .group = job->group,
                         .key = u->key,
                         .n_trees = job->n_trees,
                         .trees = job->tree,
                         .window = job->window,
                         .algos = job->algos,
                         .n_policy = job->n_policy,
                         .policy = job->policy,
                         .lengths = r->cfg->lengths,
                         .limit_ps = CONNECT_PS};
    char err[COMM_TEXT] = "";
    int rc;

    if (!starts(r, u))
        return;
    rc = job_open(&u->j, &jc, err);
    u->ops.j = u->j;
    u->state = STATE_CONNECTING;
    u->until_ps = world_now(r->w) + CONNECT_PS;
    if (rc == -ENOMEM)
        r->rc = rc;
    else if (rc)
        end(r, u, JOBS_REFUSED, *err ? err : strerror(-rc));
}

/* The first rank that lives; 0: none. */
static unsigned living(const struct running *u)
{
    for (unsigned n = 0; n < u->job->nranks; n++)
        if (!job_dead(u->j, n))
            return n;
    return 0;
}

static void bind_op(struct run *r, struct running *u)
{
    char err[COMM_TEXT] = "";
    int rc = job_connect_start(u->j, jobs_ops_connect, &u->ops, err);

    if (rc)
        end(r, u, JOBS_REFUSED, *err ? err : strerror(-rc));
}

static void connected(struct run *r, struct running *u)
{
    char err[COMM_TEXT] = "";
    int rc = job_opened(u->j, err);

    if (rc == -EAGAIN)
        return;
    if (rc) {
        end(r, u, JOBS_REFUSED, err);
        return;
    }
    comm_granted(job_comm(u->j, living(u)), &u->res->grant);
    r->rc = jobs_ops_fill(&u->ops);
    u->state = STATE_BINDING;
    u->ops.connects = 0;
    if (!r->rc)
        bind_op(r, u);
}

static void bound(struct run *r, struct running *u)
{
    if (!job_connect_done(u->j))
        return;
    if (++u->ops.connects < u->job->n_ops) {
        bind_op(r, u);
        return;
    }
    u->state = STATE_READY;
    u->res->groups = groups_of(r, u);
}

static void begin(struct run *r, struct running *u)
{
    unsigned iterations = r->cfg->iterations ? r->cfg->iterations : u->job->repeat;
    int64_t model = 0;

    for (unsigned k = 0; k < u->job->n_ops; k++)
        model += u->job->op[k].model_ps;
    u->loop = (struct job_loop){.n = iterations ? iterations * u->job->n_ops : UINT32_MAX,
                                .args = jobs_ops_next,
                                .ctx = &u->ops,
                                .limit_ps = OPS_PS + 100 * model * (iterations ? iterations : 1)};
    u->until_ps = iterations ? world_now(r->w) + u->loop.limit_ps : PS_NEVER;
    u->res->began_ps = since_zero(r);
    u->state = STATE_RUNNING;
    job_loop_start(u->j, &u->loop);
}

/* What the ranks have done, while their communicators are still there. */
static void measure(struct run *r, struct running *u)
{
    struct jobs_result *res = u->res;
    unsigned one = living(u);

    res->iterations = UINT32_MAX;
    for (unsigned n = 0; n < u->job->nranks; n++) {
        const struct jobs_rank *k = &u->ops.rank[n];
        double ps;

        if (job_loop_done(u->j, n))
            jobs_ops_end(&u->ops, n);
        if (k->iterations < res->iterations)
            res->iterations = k->iterations;
        ps = k->iterations ? (double)(k->iteration_ps - r->zero_ps - res->began_ps) / k->iterations
                           : 0;
        res->iteration_ps = ps > res->iteration_ps ? ps : res->iteration_ps;
        if (!*res->fell_back && !job_dead(u->j, n) && comm_fell_back(job_comm(u->j, n)))
            snprintf(res->fell_back, sizeof(res->fell_back), "%s",
                     comm_fell_back(job_comm(u->j, n)));
    }
    if (!res->iterations)
        res->iteration_ps = 0;
    res->wrong = u->ops.wrong;
    res->checked = u->ops.checked;
    for (unsigned k = 0; k < u->job->n_ops && !job_dead(u->j, one); k++) {
        struct coll_args a = {0};

        u->ops.connects = k;
        jobs_ops_connect(&u->ops, one, &a);
        res->ran_by[k] = *res->fell_back ? comm_runs_by(job_comm(u->j, one), &a) : a.algo;
    }
}

static void finish(struct run *r, struct running *u)
{
    int rc;

    measure(r, u);
    rc = job_loop_finish(u->j);
    end(r, u, rc == -ETIME ? JOBS_HANGS : rc ? JOBS_FAILED : JOBS_DONE, u->loop.text);
}

static void gone(struct running *u)
{
    job_free(u->j);
    u->j = u->ops.j = NULL;
    u->state = STATE_GONE;
}

static bool may_start(const struct run *r, const struct running *u)
{
    return r->zero_ps >= 0 && since_zero(r) >= u->job->start_ps;
}

/* A state can be over at once: goes on until nothing changes. */
static void advance(struct run *r, struct running *u)
{
    enum state before;

    do {
        bool late = u->until_ps != PS_NEVER && world_now(r->w) >= u->until_ps;

        before = u->state;
        watch(r, u);
        if (u->state == STATE_WAITING && may_start(r, u))
            open_job(r, u);
        else if (u->state == STATE_CONNECTING)
            connected(r, u);
        else if (u->state == STATE_BINDING)
            bound(r, u);
        else if (u->state == STATE_READY && r->zero_ps >= 0)
            begin(r, u);
        else if (u->state == STATE_RUNNING && (late || job_loop_over(u->j)))
            finish(r, u);
        else if (u->state == STATE_LEAVING && (late || job_closed(u->j)))
            gone(u);
        if (u->state == before && late &&
            (u->state == STATE_CONNECTING || u->state == STATE_BINDING))
            end(r, u, JOBS_HANGS, "it did not connect within 60 s of fabric time");
        watch(r, u);
    } while (u->state != before && !r->rc);
}

/* Jobs that repeat until the others have ended do so in the iteration that runs then. */
static void cut_loops(struct run *r)
{
    for (unsigned i = 0; i < r->n; i++)
        if (r->of[i].job->repeat && r->of[i].state < STATE_LEAVING)
            return;
    for (unsigned i = 0; i < r->n; i++)
        if (!r->of[i].job->repeat && !r->cfg->iterations && r->of[i].state == STATE_RUNNING)
            job_loop_cut(r->of[i].j, r->of[i].job->n_ops);
}

/* ---- time ---- */

static bool over(const struct run *r)
{
    for (unsigned i = 0; i < r->n; i++) {
        const struct running *u = &r->of[i];
        int64_t late = u->res->ended_ps + r->zero_ps + CONNECT_PS + RELEASE_PS;

        if (u->state != STATE_GONE || (u->res->released_ps < 0 && world_now(r->w) < late))
            return false;
    }
    return true;
}

/* The next time at which something is due that is no event of the world. */
static int64_t next_due(const struct run *r)
{
    int64_t due = world_now(r->w) + PS_PER_S;

    for (unsigned i = 0; i < r->n && r->zero_ps >= 0; i++)
        if (r->of[i].state == STATE_WAITING)
            due = RTE_MIN(due, r->zero_ps + r->of[i].job->start_ps);
    return due;
}

static void step(struct run *r)
{
    struct job *j = some_job(r);
    int64_t due = next_due(r);

    if (j)
        job_step(j, due);
    else
        world_step(r->w, due);
    if (world_events(r->w) - r->pool_read >= POOL_EVENTS) {
        unsigned used = world_frames_used(r->w);

        r->pool_read = world_events(r->w);
        r->peak = RTE_MAX(r->peak, used);
        r->few |= used >= r->cfg->frames || frame_pool_missed(r->cfg->pool) > r->missed;
    }
}

static bool goes_on(const struct run *r)
{
    return !r->rc && !r->few && !*r->cfg->stop && !(r->faults && faults_state(r->faults));
}

/* Jobs without a start, one after the other. */
static void set_up(struct run *r)
{
    for (unsigned i = 0; i < r->n && goes_on(r); i++) {
        struct running *u = &r->of[i];

        if (u->job->start_ps && r->cfg->only < 0)
            continue;
        open_job(r, u);
        while (goes_on(r) && u->state != STATE_READY && u->state != STATE_GONE) {
            step(r);
            advance(r, u);
        }
    }
}

static void run_jobs(struct run *r)
{
    set_up(r);
    if (!goes_on(r))
        return;
    r->zero_ps = world_now(r->w);
    if (r->faults)
        faults_start(r->faults);
    if (r->cfg->counters)
        counters_begin(r->cfg->counters, world_net(r->w));
    for (unsigned i = 0; i < r->n && goes_on(r); i++)
        advance(r, &r->of[i]);
    while (goes_on(r) && !over(r)) {
        step(r);
        for (unsigned i = 0; i < r->n && goes_on(r); i++)
            advance(r, &r->of[i]);
        cut_loops(r);
    }
}

/* ---- the world ---- */

static void notify_death(void *ctx, unsigned rank)
{
    struct run *r = ctx;

    for (unsigned i = 0; i < r->n; i++)
        for (unsigned n = 0; r->of[i].j && n < r->of[i].job->nranks; n++)
            if (r->of[i].world_rank[n] == rank)
                job_notify_death(r->of[i].j, n);
}

/* The plan of the file, and a death of each rank of a job that is to die. */
static int plan_faults(struct run *r)
{
    const struct fault_plan *given = r->cfg->faults;
    int rc = 0;

    for (unsigned i = 0; given && !rc && i < given->n; i++)
        rc = fault_plan_add(&r->plan, &given->e[i]);
    for (unsigned i = 0; r->cfg->only < 0 && i < r->n; i++) {
        const struct jobs_job *job = r->of[i].job;

        for (unsigned n = 0; !rc && job->die_ps >= 0 && n < job->nranks; n++) {
            struct fault_event e =
                fault_event(FAULT_RANK, (uint16_t)(job->first_rank + n), job->die_ps);

            e.die = true;
            rc = fault_plan_add(&r->plan, &e);
        }
    }
    fault_plan_sort(&r->plan);
    return rc;
}

static int make_job(struct run *r, unsigned i)
{
    struct running *u = &r->of[r->n++];
    const struct jobs_job *job = &r->cfg->plan->job[i];

    *u =
        (struct running){.job = job,
                         .until_ps = PS_NEVER,
                         .key = random_mix(r->cfg->seed + ((uint64_t)i + 1) * 0x9e3779b97f4a7c15u)};
    u->world_rank = calloc(job->nranks, sizeof(*u->world_rank));
    for (unsigned n = 0; u->world_rank && n < job->nranks; n++)
        u->world_rank[n] = job->first_rank + n;
    return u->world_rank ? jobs_ops_init(&u->ops, job, r->w, r->cfg->lengths) : -ENOMEM;
}

static int make_world(struct run *r, struct jobs_result *res)
{
    const struct jobs_world_cfg *cfg = r->cfg;
    struct world_cfg wc = {.fab = cfg->fab,
                           .nranks = cfg->plan->nranks,
                           .host_of_rank = cfg->plan->host_of_rank,
                           .pool = cfg->pool,
                           .seed = cfg->seed,
                           .an_mbufs = cfg->frames,
                           .tap = cfg->tap,
                           .tap_ctx = cfg->tap_ctx,
                           .trace_lengths = true};
    struct faults_cfg fc = {.fab = cfg->fab,
                            .nranks = cfg->plan->nranks,
                            .host_of_rank = cfg->plan->host_of_rank,
                            .notify_death = notify_death,
                            .ctx = r};
    int rc = world_create(&r->w, &wc);

    for (unsigned i = 0; !rc && i < cfg->plan->n; i++) {
        if (cfg->only >= 0 && i != (unsigned)cfg->only)
            continue;
        res[i] = (struct jobs_result){.began_ps = JOBS_NEVER,
                                      .ended_ps = JOBS_NEVER,
                                      .died_ps = JOBS_NEVER,
                                      .released_ps = JOBS_NEVER};
        for (unsigned k = 0; k < JOBS_OPS; k++)
            res[i].ran_by[k] = cfg->plan->job[i].op[k].algo;
        rc = make_job(r, i);
        r->of[r->n - 1].res = &res[i];
    }
    if (!rc)
        rc = plan_faults(r);
    fc.w = r->w;
    if (!rc && r->plan.n)
        rc = faults_create(&r->faults, &r->plan, &fc);
    return rc;
}

static void free_world(struct run *r)
{
    for (unsigned i = 0; i < r->n; i++) {
        if (r->of[i].j && r->of[i].state == STATE_RUNNING)
            job_loop_finish(r->of[i].j);
        if (r->of[i].j)
            job_free(r->of[i].j);
        jobs_ops_free(&r->of[i].ops);
        free(r->of[i].world_rank);
    }
    faults_destroy(r->faults);
    fault_plan_free(&r->plan);
    world_destroy(r->w);
}

static int read_totals(struct run *r, struct jobs_totals *t)
{
    const struct jobs_world_cfg *cfg = r->cfg;
    int64_t settled = world_now(r->w) + SETTLE_PS;
    int rc = 0;

    while (world_step(r->w, settled))
        ;
    if (cfg->counters) {
        rc = counters_end_run(cfg->counters, world_net(r->w), "all jobs",
                              (double)since_zero(r) * 1e-6);
        t->links = counters_total(cfg->counters, world_net(r->w));
    }
    t->fabric_ps = world_now(r->w);
    t->events = world_events(r->w);
    t->frames = world_frames(r->w);
    t->trace = world_trace_hash(r->w);
    t->pool_peak = r->peak;
    congestion_read(&t->congestion, r->w, cfg->fab);
    return rc;
}

int jobs_run_world(const struct jobs_world_cfg *cfg, struct jobs_result *res,
                   struct jobs_totals *totals, char *err)
{
    struct run *r = calloc(1, sizeof(*r));
    int rc = r ? 0 : -ENOMEM;

    *err = '\0';
    if (r) {
        r->cfg = cfg;
        r->zero_ps = JOBS_NEVER;
        r->missed = frame_pool_missed(cfg->pool);
        rc = make_world(r, res);
    }
    if (!rc) {
        run_jobs(r);
        rc = r->rc ? r->rc : r->faults ? faults_state(r->faults) : 0;
    }
    if (!rc && r->few) {
        snprintf(err, COMM_TEXT, "%u frames were not enough, expected more, such as --frames %u",
                 cfg->frames, 4 * cfg->frames);
        rc = -ENOBUFS;
    } else if (!rc && *cfg->stop) {
        rc = -ECANCELED;
    }
    if (!rc)
        rc = read_totals(r, totals);
    if (rc && !*err)
        snprintf(err, COMM_TEXT, "%s", rc == -ECANCELED ? "interrupted" : strerror(-rc));
    if (r)
        free_world(r);
    free(r);
    return rc;
}
