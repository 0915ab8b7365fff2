/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/step/step_groups.h"

#include "collective/sched.h"
#include "collective/topo.h"
#include "host/bench/verify/layout.h"
#include "model/predict.h"
#include "sim/step/step_load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_PS (60 * PS_PER_S)
#define LIMIT_PS   (1000 * PS_PER_S)
#define SHAPES     16u /* of groups, compared by the model */
#define HOPS       32u

/* ---- which groups, which hosts ---- */

/* Hosts that take part. */
static unsigned hosts_of(const struct fabric *f, const struct step_collective *u)
{
    return u->gpus && u->gpus < f->n_hosts ? (unsigned)u->gpus : f->n_hosts;
}

/*
 * All groups of the kind, by their first hosts; returns how many. Of a pipeline pairs of neighbours:
 * with 1F1B a stage's forward pass runs beside the next one's backward pass, so the stages 0 and 1,
 * 2 and 3, ... exchange a message each way at the same time, and then 1 and 2, 3 and 4, ...
 * (`turn` 1).
 */
static unsigned list_groups(const struct fabric *f, const struct step_collective *u,
                            unsigned members, unsigned turn, uint16_t *first)
{
    unsigned hosts = hosts_of(f, u), n = 0;
    bool pairs = u->coll == COLL_SENDRECV;

    for (unsigned h = 0; h + (members - 1) * u->stride < hosts; h++) {
        uint64_t index = h / u->stride % u->degree;

        if (pairs ? index + 1 < u->degree && index % 2 == turn : !index)
            first[n++] = (uint16_t)h;
    }
    return n;
}

/* Whether the links of one group are less loaded by it alone than by all of its kind. */
static bool levels_are_shared(const struct cost_levels *l, const struct step_collective *u)
{
    return u->coll != COLL_SENDRECV &&
           step_bound(l, u, u->ranks, u->bytes, STEP_HOSTS, false) >
               step_bound(l, u, u->ranks, u->bytes, STEP_HOSTS, true) * 1.001;
}

/* What is known of a kind's groups while some of them are chosen. */
struct step_choice {
    const struct step_measurement *ms;
    struct step_collective *u;
    uint16_t *first; /* [n] of all groups */
    bool *taken;     /* [n] */
    unsigned n, turn;
    struct step_load all, some, one; /* of all groups, of those chosen, of one */
};

static void add_group(const struct step_choice *c, struct step_load *l, unsigned g)
{
    step_load_add(l, c->u, ALGO_DIRECT, c->first[g], c->u->ranks, c->u->bytes);
}

static void list_turn(struct step_choice *c, unsigned turn)
{
    c->turn = turn;
    c->n = list_groups(c->ms->f, c->u, c->u->ranks, turn, c->first);
    step_load_clear(&c->all);
    for (unsigned g = 0; g < c->n; g++)
        add_group(c, &c->all, g);
}

/* The group that loads a resource most; of equal ones the first. */
static unsigned heaviest(struct step_choice *c, unsigned at, double *s)
{
    unsigned best = 0;

    *s = 0;
    for (unsigned g = 0; g < c->n; g++) {
        double before = c->one.s[at], own;

        add_group(c, &c->one, g);
        own = c->one.s[at] - before;
        if (own > *s * 1.000001) {
            best = g;
            *s = own;
        }
    }
    return best;
}

/* Links between each member of a group and the next, and which are in one GPU node, as a number. */
static uint64_t shape_of(const struct step_choice *c, unsigned g)
{
    const struct fabric *f = c->ms->f;
    unsigned first = c->first[g], stride = (unsigned)c->u->stride, n = c->u->ranks;
    uint64_t shape = 0;

    for (unsigned i = 0; i < n; i++) {
        unsigned from = first + i * stride, to = first + (i + 1) % n * stride, links = 0;
        struct fab_channel ch[SCHED_MAX_CHANS];
        uint32_t path[HOPS];

        if (from != to && fabric_channels(f, from, to, ch, SCHED_MAX_CHANS))
            links = fabric_path_ports(f, f->hosts[from], ch->port_a, f->hosts[to], ch->port_b, path,
                                      HOPS);
        shape = shape * 1000003 + 2 * links + (fabric_domain(f, from) == fabric_domain(f, to));
    }
    return shape;
}

/* Of one group alone, by the fastest algorithm of the hosts; 0: none. */
static int64_t predicted_ps(const struct step_choice *c, unsigned g)
{
    const struct step_collective *u = c->u;
    struct coll_args a = step_args(u, u->ranks, u->bytes);
    struct coll_prediction p;
    uint16_t host[STEP_MAX_RANKS];
    enum coll_algo algo;
    char why[COLL_WHY];

    for (unsigned r = 0; r < u->ranks; r++)
        host[r] = (uint16_t)(c->first[g] + r * u->stride);
    return coll_auto(c->ms->f, &a, u->ranks, host, NULL, 0, 0, step_host_algos(u), &algo, &p, why)
               ? 0
               : p.time_ps;
}

/* Of the groups that load a resource for so long, the slowest by the model, which is asked for one
 * of each shape; of equal ones the first. */
static unsigned slowest(struct step_choice *c, double load)
{
    uint64_t seen[SHAPES];
    int64_t longest = -1;
    unsigned best = 0, n = 0;

    for (unsigned g = 0; g < c->n && n < SHAPES; g++) {
        unsigned i;
        int64_t ps;

        step_load_clear(&c->one);
        add_group(c, &c->one, g);
        if (step_load_worst(&c->one, 0, c->one.n, NULL) < load * (1 - 1e-6))
            continue;
        seen[n] = shape_of(c, g);
        for (i = 0; seen[i] != seen[n];)
            i++;
        if (i < n)
            continue;
        n++;
        ps = predicted_ps(c, g);
        if (ps > longest) {
            longest = ps;
            best = g;
        }
    }
    return best;
}

static void step_choice_take(struct step_choice *c, unsigned g)
{
    c->taken[g] = true;
    c->u->first[c->u->groups++] = c->first[g];
    add_group(c, &c->some, g);
}

/* Takes those that load links which the chosen ones load; `at`: this one's first. Where hashes
 * choose links, flows of some groups meet on one and those of others do not, and the slowest
 * counts: all that use such links. */
static void take_neighbours(struct step_choice *c, unsigned at)
{
    struct step_collective *u = c->u;
    unsigned before = 0;

    for (bool first = true; first || before != u->groups; first = false) {
        before = first ? 0 : u->groups;
        for (unsigned g = 0; g < c->n; g++) {
            bool meet = false;

            if (c->taken[g])
                continue;
            if (u->groups == STEP_MAX_GROUPS || (u->groups + 1) * u->ranks > STEP_MAX_TOGETHER)
                return;
            step_load_clear(&c->one);
            add_group(c, &c->one, g);
            for (unsigned i = c->one.switches; i < c->one.n && !first; i++)
                meet |= c->one.s[i] > 0 && (c->some.s[i] > 0 || c->ms->f->ecmp == FAB_ECMP_HASH);
            if (first ? c->one.s[at] > 0 : meet)
                step_choice_take(c, g);
        }
    }
}

/* Links between switches delay groups by others if they are so busy, relative to the busiest port:
 * where flows have links of their own (balanced) if they are busier; by hash two may meet on one
 * link well before that. */
static double busy_share(const struct step_choice *c)
{
    if (levels_are_shared(&c->ms->levels, c->u))
        return 0;
    return c->ms->f->ecmp == FAB_ECMP_BALANCED ? 1.001 : 0.25;
}

static void choose_from(struct step_choice *c)
{
    unsigned shared = 0;
    double worst, ports, between, own;

    list_turn(c, 0);
    worst = step_load_worst(&c->all, 0, c->all.n, NULL);
    if (c->u->coll == COLL_SENDRECV && c->u->degree > 2) {
        list_turn(c, 1);
        if (!c->n || step_load_worst(&c->all, 0, c->all.n, NULL) <= worst * (1 + 1e-9))
            list_turn(c, 0);
    }
    ports = step_load_worst(&c->all, 0, c->all.switches, NULL);
    between = step_load_worst(&c->all, c->all.switches, c->all.n, &shared);
    c->u->groups = 0;
    if (between > busy_share(c) * ports) {
        unsigned g = heaviest(c, shared, &own);

        if (between > own * 1.001 || c->ms->f->ecmp == FAB_ECMP_HASH) {
            step_choice_take(c, g);
            take_neighbours(c, shared);
            return;
        }
    }
    step_choice_take(c, slowest(c, between > ports ? between : ports));
}

static int choose_groups(const struct step_measurement *ms, struct step_collective *u)
{
    struct step_choice c = {.ms = ms,
                            .u = u,
                            .first = malloc(ms->f->n_hosts * sizeof(*c.first)),
                            .taken = calloc(ms->f->n_hosts, sizeof(*c.taken))};
    int rc = step_load_init(&c.all, ms->f);

    rc = rc ? rc : step_load_init(&c.some, ms->f);
    rc = rc ? rc : step_load_init(&c.one, ms->f);
    rc = rc ? rc : c.first && c.taken ? 0 : -ENOMEM;
    if (!rc)
        choose_from(&c);
    step_load_free(&c.all);
    step_load_free(&c.some);
    step_load_free(&c.one);
    free(c.first);
    free(c.taken);
    return rc;
}

struct coll_args step_args(const struct step_collective *u, unsigned ranks, uint64_t bytes)
{
    uint64_t blocks = layout_blocks(u->coll, ranks, 0), count = bytes / blocks / 2;

    return (struct coll_args){
        .kind = u->coll, .type = DT_BF16, .op = OP_SUM, .count = count ? count : 1};
}

unsigned step_host_algos(const struct step_collective *u)
{
    unsigned all = ((1u << ALGO_USUAL) - 1) & ~STEP_SWITCH_ALGOS;

    return u->named != ALGO_AUTO && all & 1u << u->named ? 1u << u->named : all;
}

double step_groups_bound(const struct step_measurement *ms, const struct step_collective *u,
                         enum coll_algo algo)
{
    uint16_t *first = malloc(ms->f->n_hosts * sizeof(*first));
    unsigned members = u->coll == COLL_SENDRECV ? 2 : u->degree;
    struct step_load l;
    double s = 0;

    while (members > 1 && (members - 1) * u->stride >= hosts_of(ms->f, u))
        members--;
    if (!step_load_init(&l, ms->f) && first && members <= STEP_LOAD_RANKS)
        for (unsigned turn = 0; turn < (u->coll == COLL_SENDRECV ? 2 : 1); turn++) {
            unsigned n = list_groups(ms->f, u, members, turn, first);
            double t;

            step_load_clear(&l);
            for (unsigned g = 0; g < n; g++)
                step_load_add(&l, u, algo, first[g], members, u->bytes);
            t = l.striped ? 0 : step_load_worst(&l, 0, l.n, NULL);
            s = t > s ? t : s;
        }
    step_load_free(&l);
    free(first);
    return s;
}

double step_groups_load(const struct step_measurement *ms, const struct step_collective *u,
                        enum coll_algo algo, uint64_t bytes)
{
    struct step_load l;
    double s = 0;

    if (!step_load_init(&l, ms->f)) {
        for (unsigned k = 0; k < u->groups; k++)
            step_load_add(&l, u, algo, u->first[k], u->ranks, bytes);
        s = l.striped ? 0 : step_load_worst(&l, 0, l.n, NULL);
    }
    step_load_free(&l);
    return s;
}

static int by_number(const void *a, const void *b)
{
    return *(const uint16_t *)a - *(const uint16_t *)b;
}

int step_groups_choose(struct step_measurement *ms, struct step_collective *u, unsigned n)
{
    unsigned all = 0;
    int rc;

    ms->host = malloc((size_t)n * STEP_MAX_TOGETHER * sizeof(*ms->host));
    if (!ms->host)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++) {
        u[i].ranks = u[i].coll == COLL_SENDRECV ? 2 : STEP_MAX_RANKS;
        u[i].ranks = u[i].degree < u[i].ranks ? u[i].degree : u[i].ranks;
        while ((u[i].ranks - 1) * u[i].stride >= hosts_of(ms->f, &u[i]))
            u[i].ranks--;
        rc = choose_groups(ms, &u[i]);
        if (rc)
            return rc;
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
