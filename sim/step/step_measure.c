/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times each collective once, in virtual time, with lengths instead of data: on a representative
 * group (at most STEP_MAX_RANKS ranks) and up to a size that keeps links
 * busy for long. Beyond that times are extrapolated: to bytes by the line through the last two
 * sizes, of which the last is doubled until the line is no flatter than the links allow (links are
 * not saturated before, or the pipeline of a schedule still fills), and to ranks by the ratio of the model's predictions.
 * Other groups of the same kind run at the same time: those that share links between switches with
 * it are simulated together with it (at most STEP_MAX_TOGETHER ranks of all), if all of them keep
 * these links busy. Where all groups of the kind together need longer on their links than what is
 * simulated, that is the time.
 *
 * One world holds the ranks of all groups; collectives are simulated one after the other.
 */
#include "sim/step/step_groups.h"

#include "base/assert.h"
#include "collective/sched.h"
#include "collective/topo.h"
#include "host/bench/perf_options.h"
#include "host/bench/verify/layout.h"
#include "model/predict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALL_BYTES                                                                                  \
    ((uint64_t)STEP_MAX_MIB << 20) /* total of all ranks' larger buffers, if each consists of
                                      parts */
#define VECTOR_BYTES                                                                               \
    ((uint64_t)STEP_MAX_MIB << 20) /* vector of a rank with few ranks; with many a quarter of it */
#define FEW_RANKS 16u

/* ---- one collective by one method ---- */

static double step_measure_longer(double a, double b)
{
    return a > b ? a : b;
}

static uint64_t max_bytes(const struct step_collective *u)
{
    bool parts = u->coll == COLL_ALLTOALL;

    if (parts)
        return ALL_BYTES / u->ranks;
    return u->ranks <= FEW_RANKS ? VECTOR_BYTES : VECTOR_BYTES / 4;
}

/* The bound of the simulated part; arguments round its bytes down. */
static double bound_alone(const struct step_measurement *ms, const struct step_collective *u,
                          const struct coll_args *a, enum step_method method)
{
    uint64_t bytes = a->count * layout_blocks(u->coll, u->ranks, 0) * 2;

    return step_measure_longer(step_bound(&ms->levels, u, u->ranks, bytes, method, true),
                               step_groups_load(ms, u, a->algo, bytes));
}

/* Seconds a byte that the links of the simulated groups take at least. */
static double bound_slope(const struct step_measurement *ms, const struct step_collective *u,
                          enum step_method method, enum coll_algo algo, uint64_t bytes)
{
    return step_measure_longer(step_bound(&ms->levels, u, u->ranks, bytes, method, true),
                               step_groups_load(ms, u, algo, bytes)) /
           (double)bytes;
}

/* From half and whole size simulated, by the line through both, but no flatter than the bound. */
static void extrapolate_bytes(const struct step_measurement *ms, const struct step_collective *u,
                              enum step_method method, double half_s, struct step_timing *t)
{
    double more = (double)(u->bytes - t->bytes), slope = (t->s - half_s) / ((double)t->bytes / 2),
           least = bound_slope(ms, u, method, t->algo, t->bytes);

    t->high_s = t->s * (double)u->bytes / (double)t->bytes;
    t->s += more * (slope > least ? slope : least);
    t->high_s = t->high_s > t->s ? t->high_s : t->s;
    t->extrapolated_bytes = true;
}

/* Frames of at least so many bytes each beside their payload: preamble, gap, Ethernet, IPv4, UDP, BTH,
 * ICRC and FCS. */
#define FRAME_BYTES 82.0

/* No flow is faster than its links carry its frames. */
static void floor_by_bound(const struct step_measurement *ms, const struct step_collective *u,
                           enum step_method method, struct step_timing *t)
{
    double wire;

    t->bound_s = step_measure_longer(step_bound(&ms->levels, u, u->degree, u->bytes, method, false),
                                     step_groups_bound(ms, u, t->algo));
    wire = t->bound_s * (1 + FRAME_BYTES / ms->f->mtu);
    t->shared = u->groups > 1 || wire > t->s;
    t->s = wire > t->s ? wire : t->s;
    t->high_s = t->high_s > t->s ? t->high_s : t->s;
}

/* A warm-up makes connections; then half and whole size are timed, for the line. As long as it is
 * flatter than the links allow, they are not saturated yet: twice the size. */
static int time_sizes(const struct step_measurement *ms, const struct step_collective *u,
                      enum step_method method, struct step_jobs *jobs, struct step_timing *t,
                      double *half_s, char *err)
{
    uint64_t most = max_bytes(u), bytes = u->bytes < most ? u->bytes : most;
    struct coll_args half = step_args(u, u->ranks, bytes / 2), a;
    int rc;

    half.algo = t->algo;
    rc = step_jobs_time(ms, jobs, &half, half_s, err);
    if (!rc && u->bytes > most)
        rc = step_jobs_time(ms, jobs, &half, half_s, err);
    for (;;) {
        a = step_args(u, u->ranks, bytes);
        a.algo = t->algo;
        if (!rc)
            rc = step_jobs_time(ms, jobs, &a, &t->s, err);
        t->bytes = bytes;
        T_ASSERT(rc || t->s >= bound_alone(ms, u, &a, method), "data moved faster than its links");
        if (rc || 2 * bytes > u->bytes || 2 * bytes > most * STEP_SATURATED ||
            (t->s - *half_s) / ((double)bytes / 2) >= bound_slope(ms, u, method, t->algo, bytes))
            return rc;
        *half_s = t->s;
        bytes *= 2;
    }
}

/* Groups at the same time may be more than switches have room for: the others run by a ring. */
static void note_refusals(const struct step_jobs *jobs, struct step_timing *t)
{
    t->fell_back = 0;
    for (unsigned k = 0; k < jobs->n; k++) {
        const char *why = comm_fell_back(job_comm(jobs->j[k], 0));

        if (why && !t->fell_back++)
            snprintf(t->why, sizeof(t->why), "%s", why);
    }
}

/* With paths by hash, numbers of queue pairs choose them. A world of its own gives a collective those
 * that it has where nothing ran before, as in a job. */
static int renew_world(struct step_measurement *ms, char *err)
{
    int rc;

    if (ms->f->ecmp != FAB_ECMP_HASH || !ms->group)
        return 0;
    world_destroy(ms->w);
    ms->w = NULL;
    rc = world_create(&ms->w, &ms->wc);
    if (rc)
        snprintf(err, COMM_TEXT, "cannot make the fabric anew: %s", strerror(-rc));
    return rc;
}

static int time_collective(struct step_measurement *ms, const struct step_collective *u,
                           enum step_method method, struct step_timing *t, char *err)
{
    uint64_t most = max_bytes(u) * STEP_SATURATED;
    struct step_jobs jobs = {0};
    double half_s = 0;
    int rc = renew_world(ms, err);

    if (!rc)
        rc = step_jobs_open(ms, u, t->algo, u->bytes < most ? u->bytes : most, &jobs, err);
    if (!rc)
        rc = time_sizes(ms, u, method, &jobs, t, &half_s, err);
    if (!rc)
        note_refusals(&jobs, t);
    if (step_jobs_close(&jobs) && !rc) {
        snprintf(err, COMM_TEXT, "not every rank could leave");
        rc = -ETIME;
    }
    t->high_s = t->s;
    if (!rc && u->bytes > t->bytes)
        extrapolate_bytes(ms, u, method, half_s, t);
    return rc;
}

/* A group beyond the fabric: scales by the bytes on a member's link, (N - 1) / N of the vector. */
static void extrapolate_beyond_fabric(const struct step_collective *u, struct step_timing *t)
{
    double n = u->degree, k = u->ranks;

    t->s *= (n - 1) / n / ((k - 1) / k);
    t->high_s *= (n - 1) / n / ((k - 1) / k);
    t->extrapolated_ranks = true;
}

/* Scales by the model: predicted time of the whole group relative to the simulated part. */
static int extrapolate_ranks(const struct step_measurement *ms, const struct step_collective *u,
                             struct step_timing *t, char *err)
{
    struct coll_prediction few, all;
    struct coll_args a = step_args(u, u->ranks, u->bytes), b = step_args(u, u->degree, u->bytes);
    uint16_t *host = malloc(u->degree * sizeof(*host)), tree[COLL_TREES];
    unsigned n_trees;
    int rc = host ? 0 : -ENOMEM;

    a.algo = b.algo = t->algo;
    for (unsigned r = 0; host && r < u->degree; r++)
        host[r] = (uint16_t)(u->first[0] + r * u->stride);
    n_trees = host ? trees_choose(ms->f, u->degree, host, tree) : 0;
    if (!rc)
        rc = coll_predict_trees(ms->f, &b, u->degree, host, tree, n_trees, 0, &all);
    if (!rc)
        rc = coll_predict_trees(ms->f, &a, u->ranks, host, tree, n_trees, 0, &few);
    if (rc)
        snprintf(err, COMM_TEXT, "no prediction for %u ranks: %s", u->degree, strerror(-rc));
    else if (few.time_ps > 0) {
        t->s *= (double)all.time_ps / (double)few.time_ps;
        t->high_s *= (double)all.time_ps / (double)few.time_ps;
    }
    t->extrapolated_ranks = true;
    free(host);
    return rc;
}

/* Leaves have no part in what stays within a GPU node. */
static bool in_node(const struct step_measurement *ms, const struct step_collective *u)
{
    const struct cost_level *l = &ms->levels.lv[0];

    return ms->levels.n && l->role == FAB_ROLE_NVSWITCH && u->ranks * u->stride <= l->hosts;
}

/* Whether the algorithm that the workload names is the method's. */
static bool is_named(const struct step_collective *u, enum step_method method)
{
    bool switches = u->named != ALGO_AUTO && 1u << u->named & STEP_SWITCH_ALGOS;

    if (u->named == ALGO_AUTO || switches != (method != STEP_HOSTS))
        return false;
    return method != STEP_NVSWITCHES || u->named == ALGO_NVLS;
}

/* Which of the algorithms of a method may run: the one that the workload names, if it is one of
 * them. */
static unsigned allowed(const struct step_measurement *ms, const struct step_collective *u,
                        enum step_method method)
{
    if (is_named(u, method))
        return 1u << u->named;
    if (method == STEP_HOSTS)
        return step_host_algos(u);
    return method == STEP_NVSWITCHES || in_node(ms, u) ? 1u << ALGO_NVLS : STEP_SWITCH_ALGOS;
}

static int refuse_algorithm(const struct step_measurement *ms, const struct step_collective *u,
                            int rc, char *err)
{
    if (u->named == ALGO_AUTO || rc != -ENOTSUP) {
        snprintf(err, COMM_TEXT, "no algorithm for %s of %u ranks: %s", coll_name(u->coll),
                 u->ranks, strerror(-rc));
        return rc;
    }
    snprintf(err, COMM_TEXT,
             "algorithm: found %s for %s parallel groups of %u GPUs that are %llu apart, expected "
             "one that these can run on %s",
             sched_algo_name(u->named), roof_kind_name(u->kind), u->ranks,
             (unsigned long long)u->stride, ms->f->name);
    return -EINVAL;
}

/* Chooses the fastest algorithms by the model; a method without a faster one of its own takes that
 * of the method before it. */
static int step_measure_choose(const struct step_measurement *ms, const struct step_group *g,
                               struct step_collective *u, char *err)
{
    struct coll_args a = step_args(u, u->ranks, u->bytes);
    struct coll_prediction p[STEP_METHODS];
    char why[COLL_WHY];
    int rc;

    for (unsigned w = 0; w < STEP_METHODS; w++) {
        rc = coll_auto(ms->f, &a, u->ranks, g->host_of_rank, g->tree, g->n_trees, 0,
                       allowed(ms, u, w), &u->timing[w].algo, &p[w], why);
        if (rc && (rc != -ENOTSUP || w == STEP_HOSTS || is_named(u, w)))
            return refuse_algorithm(ms, u, rc, err);
        if (w && (rc || (p[w].time_ps >= p[w - 1].time_ps && !is_named(u, w)))) {
            u->timing[w].algo = u->timing[w - 1].algo;
            p[w] = p[w - 1];
        }
    }
    return 0;
}

/* The model that chooses knows one group: where several share links, a ring, which sends each byte
 * over a leaf's cables once, may be faster. */
static int time_best(struct step_measurement *ms, const struct step_group *g,
                     const struct step_collective *u, enum step_method method,
                     struct step_timing *t, char *err)
{
    struct coll_args a = step_args(u, u->ranks, u->bytes);
    struct step_timing ring = {0};
    struct coll_prediction p;
    char why[COLL_WHY];
    int rc = time_collective(ms, u, method, t, err);

    if (rc || method != STEP_HOSTS || u->groups == 1 || t->algo == ALGO_RING ||
        u->named != ALGO_AUTO ||
        coll_auto(ms->f, &a, u->ranks, g->host_of_rank, g->tree, g->n_trees, 0, 1u << ALGO_RING,
                  &ring.algo, &p, why))
        return rc;
    rc = time_collective(ms, u, method, &ring, err);
    if (!rc && ring.s < t->s)
        *t = ring;
    return rc;
}

static int measure_collective(struct step_measurement *ms, const struct step_group *g,
                              struct step_collective *u, char *err)
{
    int rc = step_measure_choose(ms, g, u, err);

    for (unsigned w = 0; !rc && w < STEP_METHODS; w++) {
        struct step_timing *t = &u->timing[w];

        if (w && !(1u << t->algo & STEP_SWITCH_ALGOS)) /* none of its own */
            t->algo = u->timing[w - 1].algo;
        if (w && t->algo == u->timing[w - 1].algo) {
            *t = u->timing[w - 1];
            continue;
        }
        rc = time_best(ms, g, u, (enum step_method)w, t, err);
        if (!rc && u->ranks < u->degree &&
            u->first[0] + (u->degree - 1) * u->stride >= ms->f->n_hosts)
            extrapolate_beyond_fabric(u, t);
        else if (!rc && u->ranks < u->degree)
            rc = extrapolate_ranks(ms, u, t, err);
        if (!rc)
            floor_by_bound(ms, u, (enum step_method)w, t);
        if (!rc && w && u->groups > 1 && t->s > u->timing[w - 1].s && !is_named(u, w))
            /* as step_measure_choose(), measured */
            *t = u->timing[w - 1];
    }
    /* Where the bound stands for groups that are not simulated, its time is a ring's: each leaf sends
     * once. Direct exchange, the fastest alone, sends from each member. */
    for (unsigned w = 0; !rc && w < STEP_METHODS; w++)
        if (u->groups == 1 && u->timing[w].shared && u->timing[w].algo == ALGO_DIRECT &&
            u->named == ALGO_AUTO && u->coll != COLL_ALLTOALL && u->coll != COLL_SENDRECV)
            u->timing[w].algo = ALGO_RING;
    return rc;
}

/* ---- the world ---- */

unsigned step_frames(void)
{
    return 65536;
}

int step_measure(const struct fabric *f, struct step_collective *u, unsigned n,
                 struct rte_mempool *pool, uint64_t seed, const volatile int *stop, char *err)
{
    struct step_measurement ms = {.f = f, .stop = stop, .seed = seed};
    struct step_group g;
    int rc;

    *err = '\0';
    cost_levels(f, &ms.levels);
    rc = step_groups_choose(&ms, u, n);
    ms.wc = (struct world_cfg){.fab = f,
                               .nranks = ms.ranks,
                               .host_of_rank = ms.host,
                               .pool = pool,
                               .seed = seed,
                               .an_mbufs = pool->size,
                               .trace_lengths = true};
    if (!rc && n)
        rc = world_create(&ms.w, &ms.wc);
    if (rc)
        snprintf(err, COMM_TEXT, "cannot make the fabric with %u ranks: %s", ms.ranks,
                 strerror(-rc));
    for (unsigned i = 0; !rc && i < n; i++) {
        step_group_of(&ms, &u[i], 0, &g);
        rc = measure_collective(&ms, &g, &u[i], err);
    }
    world_destroy(ms.w);
    free(ms.host);
    return rc;
}
