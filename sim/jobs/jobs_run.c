/* SPDX-License-Identifier: BSD-3-Clause */
/* A job of a world from state to state. */
#include "sim/jobs/jobs_run.h"

#include "switch/protocol/protocol_node.h"
#include "switch/reduce/an.h"

#include <errno.h>
#include <string.h>

#define OPS_PS     (100 * PS_PER_S) /* longer than ranks wait for each other */
#define RELEASE_PS (2 * PS_PER_S)   /* until switches must have given everything back */

/* ---- what switches hold ---- */

static unsigned groups_of(struct jobs_world *r, const struct jobs_running *u)
{
    const struct fabric *f = r->cfg->fab;
    unsigned n = 0;

    for (uint16_t i = 0; i < f->n_nodes; i++) {
        const struct an *an = net_an(world_net(r->w), i);
        const struct protocol_node *p = net_protocols(world_net(r->w), i);

        n += an ? an_groups_of(an, u->key) : 0;
        n += p ? protocol_node_jobs_of(p, u->key) : 0;
    }
    return n;
}

/* Whether what the job holds may still change: JOINs of ranks that have died can be on their way. */
static bool unsettled(const struct jobs_world *r, const struct jobs_running *u)
{
    const struct jobs_result *res = u->res;

    if (res->died_ps >= 0 && u->state < JOBS_GONE)
        return true;
    return res->released_ps < 0 ||
           (res->died_ps >= 0 && jobs_since_zero(r) < res->died_ps + JOBS_SETTLE_PS);
}

/* Notes a death, and the moment from which on a job that has died or ended holds nothing any
 * more. */
static void watch(struct jobs_world *r, struct jobs_running *u)
{
    struct jobs_result *res = u->res;
    unsigned held;

    if (r->plan.n && res->died_ps < 0 && r->zero_ps >= 0 && u->state < JOBS_GONE)
        for (unsigned n = 0; n < u->job->nranks && res->died_ps < 0; n++)
            if (world_dead(r->w, u->world_rank[n]))
                res->died_ps = jobs_since_zero(r);
    if ((u->state < JOBS_GONE && res->died_ps < 0) || !unsettled(r, u))
        return;
    held = groups_of(r, u);
    res->groups = RTE_MAX(res->groups, held);
    if (held)
        res->released_ps = JOBS_NEVER;
    else if (res->released_ps < 0)
        res->released_ps = jobs_since_zero(r);
}

bool jobs_over(const struct jobs_world *r, const struct jobs_running *u)
{
    int64_t late = u->res->ended_ps + JOBS_CONNECT_PS + RELEASE_PS;

    return u->state == JOBS_GONE && (!unsettled(r, u) || jobs_since_zero(r) >= late);
}

/* ---- from one state to the next ---- */

static void jobs_world_leave(struct jobs_world *r, struct jobs_running *u)
{
    job_close(u->j);
    u->state = JOBS_LEAVING;
    u->until_ps = world_now(r->w) + JOBS_CONNECT_PS;
}

/* The first rank that lives; 0: none. */
static unsigned living(const struct jobs_running *u)
{
    for (unsigned n = 0; n < u->job->nranks; n++)
        if (!job_dead(u->j, n))
            return n;
    return 0;
}

/* Switches may have taken back a part of the windows since the job was connected. */
static void note_window(struct jobs_running *u)
{
    struct coll_grant now, *g = &u->res->grant;

    comm_granted(job_comm(u->j, living(u)), &now);
    if (now.trees == g->trees && (now.window < g->window || now.rail < g->rail))
        *g = now;
}

static void jobs_world_end(struct jobs_world *r, struct jobs_running *u, enum jobs_end how,
                           const char *why)
{
    if (how == JOBS_DIED && u->res->died_ps < 0)
        u->res->died_ps = jobs_since_zero(r);
    u->res->end = u->res->died_ps >= 0 ? JOBS_DIED : how;
    snprintf(u->res->why, sizeof(u->res->why), "%.*s", COMM_TEXT - 1, why);
    u->res->ended_ps = jobs_since_zero(r);
    if (u->j && u->state > JOBS_CONNECTING)
        note_window(u);
    if (u->j)
        jobs_world_leave(r, u);
    else
        u->state = JOBS_GONE;
}

struct job *jobs_open_one(const struct jobs_world *r)
{
    for (unsigned i = 0; i < r->n; i++)
        if (r->of[i].j)
            return r->of[i].j;
    return NULL;
}

/* Nobody starts a job on processes that have died. */
static bool starts(struct jobs_world *r, struct jobs_running *u)
{
    char why[COMM_TEXT];

    for (unsigned n = 0; n < u->job->nranks; n++)
        if (world_dead(r->w, u->world_rank[n])) {
            snprintf(why, sizeof(why), "rank %u had died before the job started", n);
            jobs_world_end(r, u, JOBS_DIED, why);
            return false;
        }
    return true;
}

void jobs_open(struct jobs_world *r, struct jobs_running *u)
{
    const struct jobs_job *job = u->job;
    struct job_cfg jc = {.w = r->w,
                         .fab = r->cfg->fab,
                         .nranks = job->nranks,
                         .host_of_rank = job->host_of_rank,
                         .world_rank = u->world_rank,
                         .sibling = jobs_open_one(r),
                         .group = job->group,
                         .key = u->key,
                         .n_trees = job->n_trees,
                         .trees = job->tree,
                         .window = job->window,
                         .algos = job->algos,
                         .n_policy = job->n_policy,
                         .policy = job->policy,
                         .lengths = r->cfg->lengths,
                         .limit_ps = JOBS_CONNECT_PS};
    char err[COMM_TEXT] = "";
    int rc;

    if (!starts(r, u))
        return;
    rc = job_open(&u->j, &jc, err);
    u->ops.j = u->j;
    u->state = JOBS_CONNECTING;
    u->until_ps = world_now(r->w) + JOBS_CONNECT_PS;
    if (rc == -ENOMEM)
        r->rc = rc;
    else if (rc)
        jobs_world_end(r, u, JOBS_REFUSED, *err ? err : strerror(-rc));
}

static bool all_dead(const struct jobs_running *u)
{
    return u->j && job_dead(u->j, living(u));
}

static void bind_op(struct jobs_world *r, struct jobs_running *u)
{
    char err[COMM_TEXT] = "";
    int rc = job_connect_start(u->j, jobs_ops_connect, &u->ops, err);

    if (rc)
        jobs_world_end(r, u, JOBS_REFUSED, *err ? err : strerror(-rc));
}

static void jobs_world_connected(struct jobs_world *r, struct jobs_running *u)
{
    char err[COMM_TEXT] = "";
    int rc = job_opened(u->j, err);

    if (rc == -EAGAIN)
        return;
    if (rc) {
        jobs_world_end(r, u, JOBS_REFUSED, err);
        return;
    }
    comm_granted(job_comm(u->j, living(u)), &u->res->grant);
    r->rc = jobs_ops_fill(&u->ops);
    u->state = JOBS_BINDING;
    u->ops.connects = 0;
    if (!r->rc)
        bind_op(r, u);
}

static void jobs_world_bound(struct jobs_world *r, struct jobs_running *u)
{
    if (!job_connect_done(u->j))
        return;
    if (++u->ops.connects < u->job->n_ops) {
        bind_op(r, u);
        return;
    }
    u->state = JOBS_READY;
    u->res->groups = groups_of(r, u);
}

static void jobs_world_begin(struct jobs_world *r, struct jobs_running *u)
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
    u->res->began_ps = jobs_since_zero(r);
    note_window(u);
    u->state = JOBS_RUNNING;
    job_loop_start(u->j, &u->loop);
}

/* What the ranks have done, while their communicators are still there. */
static void jobs_world_measure(struct jobs_world *r, struct jobs_running *u)
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

static void jobs_world_finish(struct jobs_world *r, struct jobs_running *u)
{
    int rc;

    jobs_world_measure(r, u);
    rc = job_loop_finish(u->j);
    jobs_world_end(r, u, rc == -ETIME ? JOBS_HANGS : rc ? JOBS_FAILED : JOBS_DONE, u->loop.text);
}

static void gone(struct jobs_running *u)
{
    job_discard(u->j);
    u->j = u->ops.j = NULL;
    u->state = JOBS_GONE;
}

static bool may_start(const struct jobs_world *r, const struct jobs_running *u)
{
    return r->zero_ps >= 0 && jobs_since_zero(r) >= u->job->start_ps;
}

void jobs_advance(struct jobs_world *r, struct jobs_running *u)
{
    enum jobs_state before;

    do {
        bool late = u->until_ps != PS_NEVER && world_now(r->w) >= u->until_ps;

        before = u->state;
        watch(r, u);
        if (u->state < JOBS_RUNNING && all_dead(u))
            jobs_world_end(r, u, JOBS_DIED, "before its first operation");
        else if (u->state == JOBS_WAITING && may_start(r, u))
            jobs_open(r, u);
        else if (u->state == JOBS_CONNECTING)
            jobs_world_connected(r, u);
        else if (u->state == JOBS_BINDING)
            jobs_world_bound(r, u);
        else if (u->state == JOBS_READY && r->zero_ps >= 0)
            jobs_world_begin(r, u);
        else if (u->state == JOBS_RUNNING && (late || job_loop_over(u->j)))
            jobs_world_finish(r, u);
        else if (u->state == JOBS_LEAVING && (late || job_closed(u->j)))
            gone(u);
        if (u->state == before && late && (u->state == JOBS_CONNECTING || u->state == JOBS_BINDING))
            jobs_world_end(r, u, JOBS_HANGS, "it did not connect within 60 s of fabric time");
        watch(r, u);
    } while (u->state != before && !r->rc);
}
