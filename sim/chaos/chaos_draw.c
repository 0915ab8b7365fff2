/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws of a seed besides the fabric: ranks, operations, faults. */
#include "sim/chaos/chaos_priv.h"

#include "collective/sched.h"
#include "host/bench/perf_options.h"
#include "model/predict.h"

#include <errno.h>
#include <stdio.h>

/* ---- ranks ---- */

/* Whether the model predicts a time for any collective by the algorithm. */
bool chaos_can(const struct chaos_case *k, const struct chaos_job *j, enum coll_algo algo)
{
    uint16_t tree[COLL_TREES];

    for (unsigned t = 0; t < j->n_trees; t++)
        tree[t] = (uint16_t)(j->tree + t);
    for (int kind = 0; kind < COLL_KINDS; kind++) {
        struct coll_args a = {.kind = (enum coll_kind)kind,
                              .algo = algo,
                              .count = kind == COLL_BARRIER ? 0 : 64,
                              .type = DT_FP32};
        struct coll_prediction p;

        a.send = &a;
        a.recv = &p;
        if (!coll_predict_trees(k->fab, &a, j->nranks, j->host_of_rank, tree, j->n_trees, j->window,
                                &p))
            return true;
    }
    return false;
}

bool chaos_wants(const struct chaos_case *k, enum coll_algo algo)
{
    return k->cfg->algo ? algo == (enum coll_algo)k->cfg->algo : !coll_is_protocol(algo);
}

/* Sets the policy of a job that runs a protocol: in half of the cases it may fall back to the ring.
 */
void chaos_protocol_policy(struct chaos_case *k, struct chaos_job *j, enum chaos_stream of)
{
    if (!k->cfg->algo)
        return;
    j->policy[0] = (enum coll_algo)k->cfg->algo;
    j->policy[1] = ALGO_RING;
    j->goes_on = below(k, of, 2);
    j->n_policy = j->goes_on ? 2 : 1;
}

static unsigned scale_out_trees(const struct fabric *f)
{
    unsigned n = 0;

    while (n < f->n_trees && f->trees[n].domain == FAB_NONE)
        n++;
    return n ? n : f->n_trees;
}

/* Chooses the trees of a job in a fabric whose trees differ: in most cases more than two. */
static void choose_uneven(struct chaos_case *k, struct chaos_job *j, unsigned trees)
{
    unsigned most = trees < COLL_TREES ? trees : COLL_TREES;

    j->n_trees = most - (unsigned)below(k, DRAW_UNEVEN, below(k, DRAW_UNEVEN, 2) ? most : 1);
    j->tree = (uint16_t)below(k, DRAW_UNEVEN, trees - j->n_trees + 1);
}

static void place_ranks(struct chaos_case *k, struct chaos_job *j)
{
    unsigned hosts = k->fab->n_hosts < CHAOS_RANKS ? k->fab->n_hosts : CHAOS_RANKS;
    unsigned per_host = below(k, DRAW_RANKS, 5) || k->fab->slots_per_host < 2 ? 1 : 2, used;
    bool gaps = !below(k, DRAW_RANKS, 4);

    used = below(k, DRAW_RANKS, 2) ? hosts : 1 + (unsigned)below(k, DRAW_RANKS, hosts);
    if (used < 2 && per_host < 2)
        used = 2;
    if (used * per_host > CHAOS_RANKS)
        per_host = 1;
    for (unsigned h = 0, left = used; h < k->fab->n_hosts && left; h++) {
        unsigned spare = k->fab->n_hosts - h - left;

        if (gaps && spare && !below(k, DRAW_RANKS, 3))
            continue;
        left--;
        T_ASSERT(j->nranks + per_host <= CHAOS_RANKS, "more ranks are placed than a case has");
        for (unsigned i = 0; i < per_host; i++)
            j->host_of_rank[j->nranks++] = (uint16_t)h;
    }
}

/* Half of all cases have the default policy. The others have the switches' algorithms in some order
 * and then the ring, or only SHARP. */
static void choose_policy(struct chaos_case *k, struct chaos_job *j)
{
    static const enum coll_algo by_switches[] = {ALGO_SHARP, ALGO_NVLS, ALGO_HIER_SHARP,
                                                 ALGO_NVLS_SHARP};

    j->goes_on = true;
    if (below(k, DRAW_RANKS, 2))
        return;
    if (j->n_trees && below(k, DRAW_RANKS, 2)) {
        j->policy[j->n_policy++] = ALGO_SHARP;
        j->goes_on = false;
        return;
    }
    for (unsigned i = 0, first = (unsigned)below(k, DRAW_RANKS, 4); i < 4; i++)
        if (j->algos >> by_switches[(first + i) % 4] & 1)
            j->policy[j->n_policy++] = by_switches[(first + i) % 4];
    T_ASSERT(j->n_policy < CHAOS_ALGOS, "a policy has more algorithms than there are");
    j->policy[j->n_policy++] = ALGO_RING;
}

int chaos_draw_ranks(struct chaos_case *k)
{
    struct chaos_job *j = &k->job[k->n_jobs++];
    unsigned trees = scale_out_trees(k->fab);

    place_ranks(k, j);
    if (trees) {
        j->tree = (uint16_t)below(k, DRAW_RANKS, trees);
        j->n_trees = 1 + (unsigned)below(k, DRAW_RANKS, trees - j->tree < 2 ? 1 : 2);
        if (k->uneven)
            choose_uneven(k, j, trees);
    }
    j->window = below(k, DRAW_RANKS, 3) ? 0 : 8u << below(k, DRAW_RANKS, 6);
    for (int a = 0; a < CHAOS_ALGOS; a++)
        if ((a != ALGO_SHARP || j->n_trees) && chaos_wants(k, (enum coll_algo)a) &&
            chaos_can(k, j, (enum coll_algo)a))
            j->algos |= 1u << a;
    choose_policy(k, j);
    chaos_protocol_policy(k, j, DRAW_RANKS);
    j->group = 1 + (uint32_t)below(k, DRAW_RANKS, 1000);
    j->key = random_next(&k->rng[DRAW_RANKS]);
    j->ops = 1 + (unsigned)below(k, DRAW_OPS, 3);
    return !j->algos ? -ENOTSUP : chaos_place(k, j) ? 0 : -ENOSPC;
}

/* ---- operations ---- */

#define LONG_RANKS 4u

void chaos_draw_bytes(struct chaos_case *k)
{
    struct chaos_job *first = &k->job[0];

    for (unsigned i = 0; i < k->n_jobs; i++)
        k->job[i].bytes = CHAOS_OTHERS;
    first->bytes = k->plan.n ? CHAOS_FAULTY : CHAOS_BUFFER;
    if (first->algos >> ALGO_NVLS & 1 && first->nranks <= LONG_RANKS && !below(k, DRAW_OPS, 5))
        first->bytes = CHAOS_LONG;
}

static enum chaos_stream stream_of(const struct chaos_case *k, const struct chaos_job *j)
{
    return j == k->job ? DRAW_OPS : DRAW_JOBS;
}

static bool chaos_draw_has(const struct chaos_job *j, struct comm *c, enum coll_kind kind,
                           enum coll_algo algo)
{
    struct coll_args a = {
        .kind = kind, .algo = algo, .count = kind == COLL_BARRIER ? 0 : 1, .type = DT_FP32};

    return j->algos >> algo & 1 && comm_supports(c, &a);
}

/* Whether the communicator supports any operation; a failed one does not. */
static bool has_any(const struct chaos_job *j, struct comm *c)
{
    for (int kind = 0; kind < COLL_KINDS; kind++)
        for (int algo = 0; algo < CHAOS_ALGOS; algo++)
            if (chaos_draw_has(j, c, (enum coll_kind)kind, (enum coll_algo)algo))
                return true;
    return false;
}

/* Chooses kind and algorithm: half of all are all-reduces, and algorithms are equally likely. If
 * the communicator supports none, takes any algorithm of the job: every rank must refuse it with a
 * reason. */
static void choose_kind(struct chaos_case *k, const struct chaos_job *j, struct comm *c,
                        struct job_op *op)
{
    enum chaos_stream s = stream_of(k, j);
    bool any = has_any(j, c);

    if (k->cfg->algo) {
        op->kind = COLL_ALLREDUCE;
        op->algo = (enum coll_algo)k->cfg->algo;
        return;
    }
    if (j->bytes == CHAOS_LONG && chaos_draw_has(j, c, COLL_ALLREDUCE, ALGO_NVLS)) {
        op->kind = COLL_ALLREDUCE;
        op->algo = ALGO_NVLS;
        return;
    }
    do {
        op->kind = below(k, s, 2) ? COLL_ALLREDUCE : (enum coll_kind)below(k, s, COLL_KINDS);
        op->algo = (enum coll_algo)below(k, s, ALGO_USUAL);
    } while (any ? !chaos_draw_has(j, c, op->kind, op->algo) : !(j->algos >> op->algo & 1));
}

bool chaos_op_runs(const struct chaos_job *j, struct comm *c, const struct job_op *op)
{
    return chaos_draw_has(j, c, op->kind, op->algo) || !has_any(j, c);
}

void chaos_draw_op(struct chaos_case *k, const struct chaos_job *j, struct comm *c,
                   struct job_op *op)
{
    static const size_t counts[] = {0, 1, 2, 3, 7, 64, 997, 1024, 4093, 8192, 30011};
    enum chaos_stream s = stream_of(k, j);
    size_t limit = j->bytes;

    choose_kind(k, j, c, op);
    do {
        op->type = (enum dtype)below(k, s, DT_COUNT);
        op->op = (enum redop)below(k, s, OP_COUNT);
    } while (!arith_valid(op->op, op->type) ||
             (k->cfg->algo && !coll_protocol_does(coll_protocol(op->algo), op->type, op->op)));
    op->root = (unsigned)below(k, s, j->nranks);
    op->count = below(k, s, 2) ? counts[below(k, s, 11)] : below(k, s, 20000);
    if (op->kind != COLL_ALLREDUCE)
        limit /= j->nranks;
    if (op->count * dtype_size(op->type) > limit || (op->algo == ALGO_NVLS && limit == CHAOS_LONG))
        op->count = limit / dtype_size(op->type) - below(k, s, 100);
    if (op->kind == COLL_BARRIER)
        op->count = 0;
    if (op->kind == COLL_ALLTOALL && !below(k, s, 3))
        op->sparse = 1 + (unsigned)below(k, s, j->nranks);
    op->in_place = below(k, s, 2);
    op->mm_self = below(k, s, 2);
    op->skew_ps = below(k, s, 2) ? (int64_t)below(k, s, 50) * PS_PER_US : 0;
    op->seed = random_next(&k->rng[s]);
}

const char *chaos_op_text(const struct job_op *op, char *buf, size_t size)
{
    snprintf(buf, size, "%s by %s %s %s x%zu root %u%s", coll_name(op->kind),
             sched_algo_name(op->algo), dtype_name(op->type), redop_name(op->op), op->count,
             op->root, op->in_place ? " in place" : "");
    return buf;
}

/* ---- faults ---- */

static uint64_t case_draw_below(struct chaos_case *k, uint64_t n)
{
    return below(k, DRAW_FAULTS, n);
}

/* A time from nanoseconds to milliseconds, uniform in the exponent. The draws are in two
 * statements, as their order within one expression is unspecified. */
static int64_t moment(struct chaos_case *k)
{
    int64_t ns = 1 + (int64_t)case_draw_below(k, 1000);

    return ns * PS_PER_NS << case_draw_below(k, 13);
}

static int chaos_draw_add(struct chaos_case *k, struct fault_event e)
{
    return fault_plan_add(&k->plan, &e);
}

/* Up to 5 % each of loss, duplication and reordering, and up to 0.4 % of corruption, per hop. */
static int noise(struct chaos_case *k, uint16_t link, int64_t at)
{
    struct fault_event e = fault_event(FAULT_LINK, link, at);

    e.loss = case_draw_below(k, 2) ? (double)case_draw_below(k, 51) / 1000 : 0;
    e.dup = case_draw_below(k, 2) ? (double)case_draw_below(k, 51) / 1000 : 0;
    e.reorder = case_draw_below(k, 2) ? (double)case_draw_below(k, 51) / 1000 : 0;
    e.corrupt = case_draw_below(k, 2) ? (double)case_draw_below(k, 5) / 1000 : 0;
    e.jitter_ps = case_draw_below(k, 2) ? (int64_t)case_draw_below(k, 2000) * PS_PER_NS : 0;
    e.seed = (int64_t)case_draw_below(k, 1u << 31);
    return chaos_draw_add(k, e);
}

/* Delays frames, some by more than a frame's sending time, and keeps their order. */
static int jitter(struct chaos_case *k)
{
    struct fault_event e = fault_event(FAULT_LINK, FAULT_ALL, FAULT_ALWAYS);

    e.jitter_ps = (int64_t)(1 + case_draw_below(k, 4000)) * PS_PER_NS;
    e.seed = (int64_t)case_draw_below(k, 1u << 31);
    return chaos_draw_add(k, e);
}

/* Takes a link or node down, and in most cases up again. */
static int flap(struct chaos_case *k, enum fault_of of, uint16_t which)
{
    struct fault_event e = fault_event(of, which, moment(k));
    int rc;

    e.down = true;
    rc = chaos_draw_add(k, e);
    if (!rc && case_draw_below(k, 5)) {
        e.down = false;
        e.up = true;
        e.at_ps += moment(k);
        rc = chaos_draw_add(k, e);
    }
    return rc;
}

static uint16_t some_switch(struct chaos_case *k)
{
    return k->fab->switches[case_draw_below(k, k->fab->n_switches)];
}

static uint16_t some_host(struct chaos_case *k)
{
    return k->fab->hosts[k->job[0].host_of_rank[case_draw_below(k, k->job[0].nranks)]];
}

static int restart(struct chaos_case *k)
{
    struct fault_event e = fault_event(FAULT_NODE, some_switch(k), moment(k));

    e.restart_ps = moment(k);
    return chaos_draw_add(k, e);
}

static int slow(struct chaos_case *k)
{
    struct fault_event e =
        fault_event(FAULT_HOST, some_host(k), case_draw_below(k, 2) ? FAULT_ALWAYS : moment(k));
    int rc;

    e.slow = 2 + (uint32_t)case_draw_below(k, 30);
    rc = chaos_draw_add(k, e);
    if (!rc && case_draw_below(k, 2)) {
        e.slow = 1;
        e.at_ps = (e.at_ps < 0 ? 0 : e.at_ps) + moment(k);
        rc = chaos_draw_add(k, e);
    }
    return rc;
}

static int death(struct chaos_case *k)
{
    bool host = case_draw_below(k, 2);
    struct fault_event e = fault_event(
        host ? FAULT_HOST : FAULT_RANK,
        host ? some_host(k) : (uint16_t)case_draw_below(k, k->job[0].nranks), moment(k));

    e.die = true;
    if (case_draw_below(k, 2))
        e.told_ps = moment(k);
    return chaos_draw_add(k, e);
}

static int exhaustion(struct chaos_case *k)
{
    struct fault_event e =
        fault_event(FAULT_AN, some_switch(k), case_draw_below(k, 3) ? FAULT_ALWAYS : moment(k));
    const struct fab_node *n = &k->fab->nodes[e.which];

    e.mbufs = (int64_t)case_draw_below(k, 1000);
    return n->reduce.on || n->multimem ? chaos_draw_add(k, e) : 0;
}

/* Two failures in the switches' paths, at any moments: the second may come before, during or after
 * the failover that the first causes. */
static int faults_draw_two(struct chaos_case *k)
{
    int rc = 0;

    for (unsigned i = 0; !rc && i < 2; i++)
        rc = case_draw_below(k, 2)
                 ? restart(k)
                 : flap(k, FAULT_LINK, (uint16_t)case_draw_below(k, k->fab->n_links));
    return rc;
}

int chaos_draw_faults(struct chaos_case *k)
{
    bool switches = k->fab->n_switches > 0;
    int rc = 0;

    if (!case_draw_below(k, k->n_jobs > 1 ? 3 : 5))
        return 0; /* no faults */
    if (!case_draw_below(k, 12))
        return jitter(k);
    if (case_draw_below(k, 2))
        rc = noise(k, FAULT_ALL, FAULT_ALWAYS);
    if (!rc && !case_draw_below(k, 3))
        rc = noise(k, (uint16_t)case_draw_below(k, k->fab->n_links), moment(k));
    if (!rc && !case_draw_below(k, 4))
        rc = slow(k);
    if (!rc && !case_draw_below(k, 5))
        rc = flap(k, FAULT_LINK, (uint16_t)case_draw_below(k, k->fab->n_links));
    if (!rc && switches && !case_draw_below(k, 7))
        rc = exhaustion(k);
    if (!rc && switches && !case_draw_below(k, 10))
        rc = restart(k);
    if (!rc && !case_draw_below(k, 16))
        rc = flap(k, FAULT_NODE, switches ? some_switch(k) : some_host(k));
    if (!rc && !case_draw_below(k, 8))
        rc = death(k);
    if (!rc && switches && !case_draw_below(k, 6)) /* last, to leave the draws above unchanged */
        rc = faults_draw_two(k);
    fault_plan_sort(&k->plan);
    return rc;
}
