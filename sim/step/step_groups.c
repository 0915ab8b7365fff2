/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/step/step_groups.h"

#include "host/coll/comm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_PS (60 * PS_PER_S)
#define LIMIT_PS   (1000 * PS_PER_S)

/* ---- which groups, which hosts ---- */

/* Leaf of a host's NIC, its last port; FAB_NONE: it has none. */
static uint16_t leaf_of(const struct fabric *f, unsigned host)
{
    const struct fab_node *h = &f->nodes[f->hosts[host]];
    uint16_t peer = h->n_ports ? h->ports[h->n_ports - 1].peer_node : FAB_NONE;

    return peer != FAB_NONE && f->nodes[peer].role == FAB_ROLE_LEAF ? peer : FAB_NONE;
}

/* Whether two groups have ranks below the same leaf. */
static bool share_leaf(const struct fabric *f, const struct step_collective *u, unsigned first,
                       unsigned other)
{
    for (unsigned a = 0; a < u->ranks; a++)
        for (unsigned b = 0; b < u->ranks; b++) {
            uint16_t leaf = leaf_of(f, (unsigned)(first + a * u->stride));

            if (leaf != FAB_NONE && leaf == leaf_of(f, (unsigned)(other + b * u->stride)))
                return true;
        }
    return false;
}

/* Whether the links of one group are less loaded by it alone than by all of its kind. */
static bool links_are_shared(const struct cost_levels *l, const struct step_collective *u)
{
    return step_bound(l, u, u->ranks, u->bytes, STEP_HOSTS, false) >
           step_bound(l, u, u->ranks, u->bytes, STEP_HOSTS, true) * 1.001;
}

static void choose_groups(const struct step_measurement *ms, struct step_collective *u)
{
    uint64_t last = (u->ranks - 1) * u->stride; /* member of the first group */

    u->groups = 1;
    u->first[0] = 0;
    if (u->coll == COLL_SENDRECV || !links_are_shared(&ms->levels, u))
        return;
    for (unsigned o = 1; o < u->stride && last + o < ms->f->n_hosts; o++) {
        if (u->groups == STEP_MAX_GROUPS || (u->groups + 1) * u->ranks > STEP_MAX_TOGETHER)
            break;
        if (share_leaf(ms->f, u, 0, o))
            u->first[u->groups++] = (uint16_t)o;
    }
}

static int by_number(const void *a, const void *b)
{
    return *(const uint16_t *)a - *(const uint16_t *)b;
}

int step_groups_choose(struct step_measurement *ms, struct step_collective *u, unsigned n)
{
    unsigned all = 0;

    ms->host = malloc((size_t)n * STEP_MAX_TOGETHER * sizeof(*ms->host));
    if (!ms->host)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++) {
        u[i].ranks = u[i].coll == COLL_SENDRECV ? 2 : STEP_MAX_RANKS;
        u[i].ranks = u[i].degree < u[i].ranks ? u[i].degree : u[i].ranks;
        while ((u[i].ranks - 1) * u[i].stride >= ms->f->n_hosts)
            u[i].ranks--;
        choose_groups(ms, &u[i]);
        for (unsigned k = 0; k < u[i].groups; k++)
            for (unsigned r = 0; r < u[i].ranks; r++)
                ms->host[all++] = (uint16_t)(u[i].first[k] + r * u[i].stride);
    }
    qsort(ms->host, all, sizeof(*ms->host), by_number);
    for (unsigned i = 0; i < all; i++)
        if (!i || ms->host[i] != ms->host[i - 1])
            ms->host[ms->ranks++] = ms->host[i];
    return 0;
}

void step_group_of(const struct step_measurement *ms, const struct step_collective *u, unsigned k,
                   struct step_group *g)
{
    g->nranks = u->ranks;
    for (unsigned r = 0; r < u->ranks; r++) {
        uint16_t h = (uint16_t)(u->first[k] + r * u->stride);
        const uint16_t *at = bsearch(&h, ms->host, ms->ranks, sizeof(*ms->host), by_number);

        g->host_of_rank[r] = h;
        g->world_rank[r] = (unsigned)(at - ms->host);
    }
    g->n_trees = trees_choose(ms->f, g->nranks, g->host_of_rank, g->tree);
}

/* ---- jobs ---- */

int step_jobs_open(struct step_measurement *ms, const struct step_collective *u,
                   enum coll_algo algo, size_t bytes, struct step_jobs *jobs, char *err)
{
    int rc;

    jobs->n = 0;
    jobs->g = calloc(u->groups, sizeof(*jobs->g));
    rc = jobs->g ? 0 : -ENOMEM;
    for (unsigned k = 0; !rc && k < u->groups; k++) {
        struct step_group *g = &jobs->g[k];
        struct job_cfg jc = {.w = ms->w,
                             .fab = ms->f,
                             .sibling = k ? jobs->j[0] : NULL,
                             .group = ++ms->group,
                             .key = ms->seed,
                             .algos = 1u << algo,
                             .lengths = true,
                             .limit_ps = CONNECT_PS};

        step_group_of(ms, u, k, g);
        jc.nranks = g->nranks;
        jc.host_of_rank = g->host_of_rank;
        jc.world_rank = g->world_rank;
        jc.n_trees = g->n_trees;
        jc.trees = g->tree;
        jobs->j[k] = NULL;
        rc = job_create(&jobs->j[k], &jc, err);
        if (jobs->j[k])
            jobs->n++;
        if (!rc)
            rc = job_buffers(jobs->j[k], (bytes + 8192) & ~(size_t)4095);
        if (rc && !*err)
            snprintf(err, COMM_TEXT, "cannot connect %u ranks: %s", g->nranks, strerror(-rc));
    }
    return rc;
}

struct timed_op {
    struct job *j;
    struct coll_args a;
    const volatile int *stop;
};

static void op_args(void *ctx, unsigned rank, struct coll_args *a)
{
    const struct timed_op *s = ctx;

    *a = s->a;
    a->send = job_buffer(s->j, rank, 0);
    a->recv = job_buffer(s->j, rank, 1);
}

static bool op_stop(void *ctx)
{
    return *((struct timed_op *)ctx)->stop;
}

/* Several jobs of one world, all of which every step advances. */
static int run_together(const struct step_measurement *ms, struct step_jobs *jobs,
                        struct job_loop *l)
{
    int64_t until = world_now(ms->w) + LIMIT_PS;
    int rc = 0;

    for (unsigned k = 0; k < jobs->n; k++)
        job_loop_start(jobs->j[k], &l[k]);
    for (unsigned k = 0; k < jobs->n; k++)
        while (!job_loop_over(jobs->j[k]) && world_now(ms->w) < until && !*ms->stop)
            job_step(jobs->j[0], until);
    for (unsigned k = 0; k < jobs->n; k++) {
        int one = job_loop_finish(jobs->j[k]);

        rc = rc ? rc : one;
    }
    return rc;
}

int step_jobs_time(const struct step_measurement *ms, struct step_jobs *jobs,
                   const struct coll_args *a, double *s, char *err)
{
    struct timed_op op[STEP_MAX_GROUPS];
    struct job_loop l[STEP_MAX_GROUPS];
    const char *why = "";
    int64_t longest = 0;
    int rc;

    for (unsigned k = 0; k < jobs->n; k++) {
        op[k] = (struct timed_op){.j = jobs->j[k], .a = *a, .stop = ms->stop};
        l[k] = (struct job_loop){
            .n = 1, .args = op_args, .stop = op_stop, .ctx = &op[k], .limit_ps = LIMIT_PS};
    }
    rc = jobs->n == 1 ? job_loop_run(jobs->j[0], &l[0]) : run_together(ms, jobs, l);
    for (unsigned k = 0; k < jobs->n; k++) {
        longest = l[k].time_ps > longest ? l[k].time_ps : longest;
        why = *why ? why : l[k].text;
    }
    if (rc)
        snprintf(err, COMM_TEXT, "%.*s", COMM_TEXT - 1,
                 rc == -ECANCELED ? "interrupted"
                 : *why           ? why
                                  : strerror(-rc));
    *s = (double)longest * 1e-12;
    return rc;
}

int step_jobs_close(struct step_jobs *jobs)
{
    int rc = 0;

    for (unsigned k = jobs->n; k-- > 0;)
        if (job_destroy(jobs->j[k]))
            rc = -ETIME;
    free(jobs->g);
    return rc;
}
