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
#include "base/random.h"
#include "sim/jobs/jobs_run.h"
#include "sim/world/fault_player.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define POOL_EVENTS 64u /* events between two readings of the pool's level */

/* Jobs that repeat until the others have ended do so in the iteration that runs then. */
static void cut_loops(struct jobs_world *r)
{
    for (unsigned i = 0; i < r->n; i++)
        if (r->of[i].job->repeat && r->of[i].state < JOBS_LEAVING)
            return;
    for (unsigned i = 0; i < r->n; i++) {
        struct jobs_running *u = &r->of[i];

        if (u->job->repeat || u->state != JOBS_RUNNING || u->until_ps != PS_NEVER)
            continue;
        job_loop_cut(u->j, u->job->n_ops);
        u->until_ps = world_now(r->w) + u->loop.limit_ps;
    }
}

/* ---- time ---- */

static bool world_over(const struct jobs_world *r)
{
    for (unsigned i = 0; i < r->n; i++)
        if (!jobs_over(r, &r->of[i]))
            return false;
    return true;
}

/* The next time at which something is due that is no event of the world. */
static int64_t next_due(const struct jobs_world *r)
{
    int64_t due = world_now(r->w) + JOBS_SETTLE_PS;

    for (unsigned i = 0; i < r->n && r->zero_ps >= 0; i++)
        if (r->of[i].state == JOBS_WAITING)
            due = RTE_MIN(due, r->zero_ps + r->of[i].job->start_ps);
    return due;
}

static void jobs_world_step(struct jobs_world *r)
{
    struct job *j = jobs_open_one(r);
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

static bool goes_on(const struct jobs_world *r)
{
    return !r->rc && !r->few && !*r->cfg->stop && !(r->faults && faults_state(r->faults));
}

/* Jobs without a start, one after the other. */
static void set_up(struct jobs_world *r)
{
    for (unsigned i = 0; i < r->n && goes_on(r); i++) {
        struct jobs_running *u = &r->of[i];

        if (u->job->start_ps && r->cfg->only < 0)
            continue;
        jobs_open(r, u);
        while (goes_on(r) && u->state != JOBS_READY && u->state != JOBS_GONE) {
            jobs_world_step(r);
            jobs_advance(r, u);
        }
    }
}

static void run_jobs(struct jobs_world *r)
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
        jobs_advance(r, &r->of[i]);
    while (goes_on(r) && !world_over(r)) {
        jobs_world_step(r);
        for (unsigned i = 0; i < r->n && goes_on(r); i++)
            jobs_advance(r, &r->of[i]);
        cut_loops(r);
    }
}

/* ---- the world ---- */

static void notify_death(void *ctx, unsigned rank)
{
    struct jobs_world *r = ctx;

    for (unsigned i = 0; i < r->n; i++)
        for (unsigned n = 0; r->of[i].j && n < r->of[i].job->nranks; n++)
            if (r->of[i].world_rank[n] == rank)
                job_notify_death(r->of[i].j, n);
}

/* The plan of the file, and a death of each rank of a job that is to die. */
static int plan_faults(struct jobs_world *r)
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

static int make_job(struct jobs_world *r, unsigned i)
{
    struct jobs_running *u = &r->of[r->n++];
    const struct jobs_job *job = &r->cfg->plan->job[i];

    *u = (struct jobs_running){
        .job = job,
        .until_ps = PS_NEVER,
        .key = random_mix(r->cfg->seed + ((uint64_t)i + 1) * 0x9e3779b97f4a7c15u)};
    u->world_rank = calloc(job->nranks, sizeof(*u->world_rank));
    for (unsigned n = 0; u->world_rank && n < job->nranks; n++)
        u->world_rank[n] = job->first_rank + n;
    return u->world_rank ? jobs_ops_init(&u->ops, job, r->w, r->cfg->lengths) : -ENOMEM;
}

static int make_world(struct jobs_world *r, struct jobs_result *res)
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

static void free_world(struct jobs_world *r)
{
    for (unsigned i = 0; i < r->n; i++) {
        if (r->of[i].j && r->of[i].state == JOBS_RUNNING)
            job_loop_finish(r->of[i].j);
        if (r->of[i].j)
            job_discard(r->of[i].j);
        jobs_ops_free(&r->of[i].ops);
        free(r->of[i].world_rank);
    }
    faults_destroy(r->faults);
    fault_plan_free(&r->plan);
    world_destroy(r->w);
}

static int read_totals(struct jobs_world *r, struct jobs_totals *t)
{
    const struct jobs_world_cfg *cfg = r->cfg;
    int64_t settled = world_now(r->w) + JOBS_SETTLE_PS;
    int rc = 0;

    while (world_step(r->w, settled))
        ;
    if (cfg->counters) {
        rc = counters_end_run(cfg->counters, world_net(r->w), "all jobs",
                              (double)jobs_since_zero(r) * 1e-6);
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
    struct jobs_world *r = calloc(1, sizeof(*r));
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
