/* SPDX-License-Identifier: BSD-3-Clause */
/* A job from its first rank's communicator to its last LEAVE. */
#include "host/bench/timeline.h"
#include "host/coll/comm_hooks.h"
#include "sim/job/sim_job_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool all_connected(void *ctx)
{
    struct job *j = ctx;

    /* Called after each event: the next call begins with the rank that is not ready. */
    while (j->at < j->cfg.nranks &&
           (job_dead(j, j->at) || comm_state(j->mem[j->at].comm) == COMM_READY))
        j->at++;
    return j->at == j->cfg.nranks || j->failed;
}

static int64_t now_ps(void *ctx)
{
    return world_now(((const struct job *)ctx)->cfg.w);
}

/* A rank that is late begins so much later. */
static void launch(void *ctx, int64_t ps)
{
    struct world_sleep *s = ctx;

    ps += world_late_ps(s->w, s->rank);
    if (ps)
        world_sleep(s, ps);
}

static bool launched(const void *ctx)
{
    return !((const struct world_sleep *)ctx)->on;
}

static int connect_all(struct job *j, char *err)
{
    unsigned n = j->cfg.nranks;
    char *blobs = calloc(n, COMM_BLOB);
    int rc = blobs ? 0 : -ENOMEM;

    for (unsigned r = 0; !rc && r < n; r++) {
        const struct comm_hooks hooks = {.unback = j->cfg.lengths ? hca_mr_unback : NULL,
                                         .waiting = world_waiting(j->cfg.w, job_world_rank(j, r)),
                                         .launch = launch,
                                         .launched = launched,
                                         .ctx = &j->mem[r].launch};
        struct comm_cfg cc = {.fab = j->cfg.fab,
                              .rank = r,
                              .nranks = n,
                              .host_of_rank = j->cfg.host_of_rank,
                              .group = j->cfg.group,
                              .key = j->cfg.key,
                              .n_trees = j->cfg.n_trees,
                              .window = j->cfg.window,
                              .algos = j->cfg.algos,
                              .n_policy = j->cfg.n_policy,
                              .now_ps = now_ps,
                              .now_ctx = j,
                              .hooks = &hooks,
                              .watch = j->cfg.timeline ? timeline_watch(j->cfg.timeline, r) : NULL};

        j->mem[r].launch = (struct world_sleep){.w = j->cfg.w, .rank = job_world_rank(j, r)};
        T_ASSERT(job_world_rank(j, r) < world_ranks(j->cfg.w),
                 "a job has a rank that its world does not have");
        T_ASSERT(cc.n_policy <= ALGO_COUNT, "a policy names more algorithms than there are");
        for (unsigned i = 0; i < cc.n_policy; i++)
            cc.policy[i] = j->cfg.policy[i];
        cc.ctx = world_contexts(j->cfg.w, job_world_rank(j, r), &cc.n_ctx);
        for (unsigned t = 0; t < COLL_TREES; t++)
            cc.tree[t] = j->cfg.trees ? t < j->cfg.n_trees ? j->cfg.trees[t] : 0
                                      : (uint16_t)(j->cfg.tree + t);
        rc = comm_create(&j->mem[r].comm, &cc, blobs + r * COMM_BLOB, err);
    }
    for (unsigned r = 0; !rc && r < n; r++)
        rc = comm_connect(j->mem[r].comm, blobs, err);
    free(blobs);
    return rc;
}

/* Names a rank that failed rather than those that wait for it. */
static int sim_job_connect_connected(struct job *j, char *err)
{
    unsigned waits = j->cfg.nranks; /* the first that is still connecting */

    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        enum comm_state s = comm_state(j->mem[r].comm);

        if (job_dead(j, r))
            continue;
        if (s == COMM_FAILED) {
            snprintf(err, COMM_TEXT, "rank %u: %.200s", r, comm_error(j->mem[r].comm));
            return -ECONNREFUSED;
        }
        if (s != COMM_READY && waits == j->cfg.nranks)
            waits = r;
    }
    if (waits == j->cfg.nranks)
        return 0;
    snprintf(err, COMM_TEXT, "rank %u: still connecting", waits);
    return -ETIME;
}

int job_open(struct job **out, const struct job_cfg *cfg, char *err)
{
    struct job *j = calloc(1, sizeof(*j));
    int rc;

    err[0] = '\0';
    *out = NULL;
    if (j)
        j->mem = calloc(cfg->nranks, sizeof(*j->mem));
    if (!j || !j->mem) {
        free(j);
        return -ENOMEM;
    }
    j->cfg = *cfg;
    j->next_tick = world_now(cfg->w) + JOB_TICK_PS;
    j->next_timer = PS_NEVER;
    j->next = j;
    job_events_init(j);
    job_record(j, JOB_CONNECTING, cfg->nranks, cfg->group);
    if (cfg->sibling) {
        T_ASSERT(cfg->sibling->cfg.w == cfg->w, "sibling jobs are of two worlds");
        j->next = cfg->sibling->next;
        cfg->sibling->next = j;
    }
    rc = connect_all(j, err);
    *out = j;
    return rc;
}

int job_opened(struct job *j, char *err)
{
    return all_connected(j) ? sim_job_connect_connected(j, err) : -EAGAIN;
}

int job_create(struct job **out, const struct job_cfg *cfg, char *err)
{
    int rc = job_open(out, cfg, err);
    struct job *j = *out;

    if (!rc) {
        job_drive(j, world_now(cfg->w) + cfg->limit_ps, all_connected, j);
        rc = sim_job_connect_connected(j, err);
        job_record(j, JOB_CONNECTED, j->at, cfg->nranks);
    }
    if (rc && j) {
        job_destroy(j);
        *out = NULL;
    }
    return rc;
}

static bool links_made(void *ctx)
{
    struct job *j = ctx;

    for (unsigned r = 0; r < j->cfg.nranks; r++)
        if (!job_dead(j, r) && comm_state(j->mem[r].comm) == COMM_READY &&
            !comm_connected(j->mem[r].comm))
            return false;
    return true;
}

int job_connect_start(struct job *j, void (*args)(void *ctx, unsigned rank, struct coll_args *a),
                      void *ctx, char *err)
{
    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        struct coll_args a = {0};
        int rc = 0;

        args(ctx, r, &a);
        if (!job_dead(j, r))
            rc = coll_connect(j->mem[r].comm, &a, err);
        if (rc)
            return rc;
        job_progress(j, r);
    }
    return 0;
}

bool job_connect_done(struct job *j)
{
    return links_made(j);
}

int job_connect(struct job *j, void (*args)(void *ctx, unsigned rank, struct coll_args *a),
                void *ctx, char *err)
{
    int rc = job_connect_start(j, args, ctx, err);

    if (rc)
        return rc;
    job_drive(j, world_now(j->cfg.w) + j->cfg.limit_ps, links_made, j);
    if (links_made(j))
        return 0;
    snprintf(err, COMM_TEXT, "some ranks are still connecting");
    return -ETIME;
}

/* ---- the end ---- */

static bool all_closed(void *ctx)
{
    struct job *j = ctx;

    while (j->at < j->cfg.nranks &&
           (!j->mem[j->at].comm || job_dead(j, j->at) || comm_closed(j->mem[j->at].comm)))
        j->at++;
    return j->at == j->cfg.nranks;
}

static bool ans_idle(void *ctx)
{
    struct job *j = ctx;

    return world_ans_idle(j->cfg.w);
}

void job_close(struct job *j)
{
    T_ASSERT(!j->loop, "a job is closed within its loop");
    job_record(j, JOB_CLOSING, j->cfg.nranks, j->cfg.group);
    for (unsigned r = 0; r < j->cfg.nranks; r++)
        if (j->mem[r].comm && !job_dead(j, r))
            comm_close(j->mem[r].comm);
    j->at = 0;
}

bool job_closed(struct job *j)
{
    return all_closed(j);
}

/* Frees the ranks' communicators and buffers. */
static void free_ranks(struct job *j)
{
    job_record(j, JOB_CLOSED, j->at, j->cfg.nranks);
    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        if (j->mem[r].comm)
            comm_destroy(j->mem[r].comm);
        j->mem[r].comm = NULL;
        job_unmap(j, j->mem[r].mem);
        j->mem[r].mem = NULL;
        if (j->mem[r].launch.w)
            world_wake_up(&j->mem[r].launch);
    }
}

void job_discard(struct job *j)
{
    free_ranks(j);
    for (struct job *p = j->next; p != j; p = p->next)
        if (p->next == j) {
            p->next = j->next;
            break;
        }
    events_fini(&j->events);
    free(j->mem);
    free(j);
}

int job_destroy(struct job *j)
{
    int rc = 0;

    job_close(j);
    job_drive(j, world_now(j->cfg.w) + j->cfg.limit_ps, all_closed, j);
    if (!all_closed(j))
        rc = -ETIME;
    free_ranks(j);
    /* Aggregation nodes still leave each other, and repeat LEAVEs that are lost. */
    if (j->next == j)
        job_drive(j, world_now(j->cfg.w) + j->cfg.limit_ps, ans_idle, j);
    job_discard(j);
    return rc;
}
