/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The predicted time of a collective. No parameter is fitted: it follows from link rates and
 * latencies of the conf, the schedules that are executed, and the time that a frame occupies a
 * link.
 *
 * For long vectors it agrees with the closed forms (cost.h) but for headers (F20, F21, F25).
 *
 * Long vectors are extrapolated. So are many ranks, if an algorithm's steps grow with them. Both
 * reach a steady state: time and bytes grow linearly with the slices of a block, and with the ranks
 * at blocks of one size. Extrapolation misses links that are the bottleneck only with more ranks
 * (those to spines, of units that the few ranks did not fill). So the bytes that the schedules of
 * all ranks send over each link are counted as well, and the longer time is taken.
 */
#include "model/cost_model.h"
#include "base/assert.h"
#include "collective/file/sched_file.h"
#include "collective/quota.h"
#include "model/cost_bound.h"
#include "model/cost_protocol.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIMULATED_RANKS 64u /* most ranks to simulate, if steps grow with them */
/* Limits of work_of(): to simulate all ranks; to simulate nodes; to count what links carry. */
#define WORK_WHOLE (96ull << 10)
#define WORK_NODES (2ull << 20)
#define WORK_COUNT (16ull << 20)
#define WORK_LANE  4u /* cost of a lane, in steps */
#define BLOCK_MANY_RANKS                                                                           \
    (1ULL << 20) /* block size of a rank beyond which times are linear, with many ranks */
#define BLOCK_FEW_RANKS (4ULL << 20) /* the same with few ranks */
#define BLOCK_CUT_AGAIN                                                                            \
    (8ULL << 20) /* the same if blocks are cut again, over planes or in
                                        pieces */

/* A result of the model, for comparison and extrapolation. */
struct model_result {
    double time, busiest;
    uint32_t dirlink;
    unsigned handoffs;
    unsigned from_ranks; /* as in coll_prediction */
    bool guessed;
};

/* Runs the model. Reports the busiest link, or the link of `like` if given. */
static int simulate(struct model *m, unsigned nranks, uint64_t count,
                    const struct model_result *like, struct model_result *o)
{
    unsigned root = m->in.root, sparse = m->in.sparse;
    int64_t least = -1;
    int rc;

    m->in.nranks = nranks;
    m->in.count = count;
    m->in.root = root < nranks ? root : 0;
    if (sparse > nranks / 2) /* keep the same fraction of ranks, else the same number */
        m->in.sparse =
            (unsigned)(((uint64_t)sparse * nranks + m->topo.nranks - 1) / m->topo.nranks);
    rc = model_run(m);
    m->in.root = root;
    m->in.sparse = sparse;
    if (rc)
        return rc;
    *o = (struct model_result){.handoffs = m->handoffs, .from_ranks = 0};
    for (uint32_t d = 0; d < 2u * m->fab->n_links; d++) {
        int64_t t = model_link_ps(m, d, m->bytes[d]);

        if (t > least) {
            least = t;
            o->dirlink = d;
            o->busiest = (double)m->bytes[d];
        }
    }
    o->time = (double)(m->end > least ? m->end : least);
    if (like) {
        o->dirlink = like->dirlink;
        o->busiest = (double)m->bytes[o->dirlink];
    }
    return 0;
}

static bool shares_vector(const struct model *m)
{
    return m->in.kind == COLL_ALLREDUCE || m->in.kind == COLL_REDUCE ||
           m->in.kind == COLL_BROADCAST;
}

/* Does the number of steps grow with the ranks, and not with their logarithm or not at all? */
static bool steps_grow_with_ranks(const struct model *m)
{
    switch (m->in.algo) {
    case ALGO_SHARP:
        return m->in.kind == COLL_ALLGATHER || m->in.kind == COLL_REDUCE_SCATTER;
    case ALGO_TREE:
    case ALGO_HALVING:
    case ALGO_NVLS:
    case ALGO_SCHEDULE: /* its number of ranks is fixed */
        return false;
    default:
        return m->in.kind != COLL_BARRIER && m->in.kind != COLL_SENDRECV;
    }
}

static bool in_switches(const struct model *m)
{
    return m->in.algo == ALGO_HIER_SHARP || m->in.algo == ALGO_NVLS_SHARP;
}

#define SHORT_MOST (64ULL << 20) /* if blocks of this size use short protocols, all blocks do */

/* Block size below which every step shows the time until programs notice messages, or uses short
 * protocols. */
static uint64_t latency_bound_bytes(const struct model *m)
{
    const struct fab_node *h = &m->fab->nodes[m->fab->hosts[m->host_of_rank[0]]];
    unsigned __int128 rate = 0;
    uint64_t bytes;

    for (unsigned p = 0; p < h->n_ports; p++)
        rate += h->ports[p].rate_bps;
    bytes =
        (uint64_t)(4 * rate * (uint64_t)fabric_longest_notice_ps(m->fab) / (8 * 1000000000000ull));
    for (unsigned p = 0; p < h->n_ports; p++) {
        struct fab_notice n = fabric_notice(m->fab, h, p);

        while ((n.ll.rate_bps || n.ll128.rate_bps) && bytes < SHORT_MOST &&
               !fab_notice_is_long(&n, bytes / 2))
            bytes *= 2;
    }
    return bytes;
}

/* Number of elements beyond which time grows linearly. */
static uint64_t linear_beyond(const struct model *m, unsigned n)
{
    uint64_t block = n > 16 ? BLOCK_MANY_RANKS : BLOCK_FEW_RANKS;
    bool cut_again = m->in.algo == ALGO_NVLS || m->in.algo == ALGO_HIER ||
                     m->in.algo == ALGO_RINGS || in_switches(m);

    if (m->in.algo == ALGO_HALVING && n <= 16)
        block = BLOCK_CUT_AGAIN; /* so that the last exchange, of 1 / n, has many slices, too */
    if (cut_again)
        block = shares_vector(m) || m->in.algo == ALGO_NVLS ? BLOCK_CUT_AGAIN : 4 * BLOCK_CUT_AGAIN;
    block = block > latency_bound_bytes(m) ? block : latency_bound_bytes(m);
    if (m->in.algo == ALGO_SCHEDULE && m->in.file)
        return block * m->in.file->chunks / dtype_size(m->in.type);
    return block * (shares_vector(m) ? n : 1) / dtype_size(m->in.type);
}

static void extrapolate(struct model_result *to, const struct model_result *few,
                        const struct model_result *many, double factor)
{
    double t = many->time + factor * (many->time - few->time);
    double b = many->busiest + factor * (many->busiest - few->busiest);

    *to = *many;
    to->time = t;
    to->busiest = b;
    to->handoffs = (unsigned)(many->handoffs + factor * ((double)many->handoffs - few->handoffs));
}

/* Number of slices that switches read from members for a schedule's loads. */
static uint64_t reads_of(const struct model *m, const struct sched *s)
{
    uint64_t slices = 0;

    for (unsigned i = 0; i < s->n_lanes; i++)
        for (uint32_t k = 0; s->lane[i].kind == LANE_MM && k < s->lane[i].n; k++)
            slices += lane_step(&s->lane[i], k)->len / MM_SLICE + 1;
    return slices * m->topo.most;
}

/* Estimates the work of n ranks: steps and lanes of the first rank, times n. 0: there is no such
 * schedule. */
static uint64_t work_of(struct model *m, unsigned n, uint64_t count)
{
    uint64_t most = linear_beyond(m, n);
    struct sched s;
    uint64_t work;

    m->in.nranks = n;
    m->in.count = count < most ? count : most;
    m->in.rank = 0;
    if (sched_init(&s, &m->in))
        return 0;
    work = (s.n_steps + WORK_LANE * s.n_lanes + reads_of(m, &s) + 1) * n;
    sched_free(&s);
    return work;
}

/* The smallest number of elements from which longer vectors can be extrapolated, for cases with too
 * many steps otherwise. */
static uint64_t shortest(const struct model *m, unsigned n, uint64_t count)
{
    uint64_t least = linear_beyond(m, n) / 256;

    return count < least || !least ? count : least;
}

static int predict_count(struct model *m, unsigned n, uint64_t count,
                         const struct model_result *like, struct model_result *o)
{
    uint64_t many = linear_beyond(m, n);
    struct model_result a, b;
    int rc;

    while (n > MAX_SIMULATED_RANKS && many > shortest(m, n, count) &&
           work_of(m, n, count < many ? count : many) > WORK_NODES)
        many /= 2;
    if (count <= many)
        return simulate(m, n, count, like, o);
    rc = simulate(m, n, many, like, &b);
    if (!rc)
        rc = simulate(m, n, many / 2, &b, &a);
    if (!rc) {
        extrapolate(o, &a, &b, (double)(count - many) / (double)(many - many / 2));
        o->handoffs = b.handoffs;
    }
    return rc;
}

/* Number of complete GPU nodes among the first n ranks. */
static unsigned whole_nodes(const struct model *m, unsigned n)
{
    const uint16_t *d = m->topo.sched.domain;
    unsigned k = n;

    while (k > 2 && d[k - 1] == d[k])
        k--;
    return k > 2 ? k : n;
}

/* Number of ranks in the first `nodes` GPU nodes. */
static unsigned ranks_of_nodes(const struct model *m, unsigned nodes)
{
    const uint16_t *d = m->topo.sched.domain;
    unsigned k = 0;

    for (; nodes && k < m->topo.nranks; nodes--)
        for (k++; k < m->topo.nranks && d[k] == d[k - 1];)
            k++;
    return k;
}

/* Numbers of ranks to simulate instead of n: two samples, which both contain nodes and the links
 * between them. few 0: one sample will do, as the number of steps hardly grows. */
struct model_samples {
    unsigned few, many;
};

static uint64_t count_for(const struct model *m, unsigned some, unsigned n, uint64_t count)
{
    return m->in.kind == COLL_ALLREDUCE ? count * some / n : count; /* blocks are parts of it */
}

/* Number of links on the path along the first rank's rail to the last node of the first n ranks. */
static unsigned rail_links(const struct model *m, unsigned n)
{
    const uint16_t *d = m->topo.sched.domain;
    struct fab_channel ch;
    struct model_path p;
    unsigned k = n - 1;

    while (k && d[k - 1] == d[k])
        k--;
    if (!topo_channels(&m->topo, 0, k, &ch, 1))
        return 0;
    model_path(m, model_node(m, 0), ch.port_a, model_node(m, k), ch.port_b, &p);
    return p.n;
}

/* Chooses the samples. Algorithms that alternate between phases within and among large nodes do
 * nearly the same in two nodes as in many. */
static struct model_samples choose_samples(struct model *m, unsigned n, uint64_t count)
{
    unsigned node = ranks_of_nodes(m, 1), two = ranks_of_nodes(m, 2), many = ranks_of_nodes(m, 3);
    struct model_samples s;

    if (node > MAX_SIMULATED_RANKS / 2 && node < n) {
        bool turns = shares_vector(m) && (in_switches(m) || m->in.algo == ALGO_HIER);

        many = turns ? two : many;
        if (work_of(m, many, shortest(m, many, count_for(m, many, n, count))) <= WORK_NODES)
            return (struct model_samples){turns ? 0 : two, many};
    }
    s.many = whole_nodes(m, MAX_SIMULATED_RANKS);
    s.few = whole_nodes(m, s.many / 2);
    if ((in_switches(m) && shares_vector(m)) || (m->in.sparse && m->in.sparse <= s.many / 4))
        s.few = 0;
    /* Paths of rails that leave a unit are longer. This must not be extrapolated to more ranks,
     * because all messages leave at the same time. */
    if (s.few && m->in.algo == ALGO_PXN && rail_links(m, s.few) < rail_links(m, s.many))
        s.few = whole_nodes(m, s.many * 3 / 4);
    return s;
}

/* Raises the time to that of the busiest link. With very many ranks only the first ones count. */
static int raise_to_links(struct model *m, unsigned n, uint64_t work, uint64_t count,
                          struct model_result *o)
{
    uint64_t some = linear_beyond(m, n) / 16; /* still long enough for whole frames */
    unsigned senders = work > WORK_COUNT ? (unsigned)(n * WORK_COUNT / work) : n;
    double ps;
    int rc;

    some = !some || count < some ? count : some;
    rc = count_links(m, n, senders < n ? whole_nodes(m, senders) : n, some, &ps);
    ps *= some ? (double)count / (double)some : 0;
    if (!rc && ps > o->time)
        o->time = ps;
    return rc;
}

static int predict_samples(struct model *m, unsigned n, struct model_samples s, uint64_t count,
                           struct model_result *o)
{
    struct model_result a, b;
    int rc;

    if (!s.few)
        return predict_count(m, s.many, count, NULL, o);
    rc = predict_count(m, s.many, count_for(m, s.many, n, count), NULL, &b);
    if (!rc)
        rc = predict_count(m, s.few, count_for(m, s.few, n, count), &b, &a);
    if (!rc)
        extrapolate(o, &a, &b, (double)(n - s.many) / (double)(s.many - s.few));
    return rc;
}

static int predict_ranks(struct model *m, unsigned n, uint64_t count, struct model_result *o)
{
    struct model_samples s = {n, n};
    uint64_t work = 0;
    int rc;

    if (n > MAX_SIMULATED_RANKS && steps_grow_with_ranks(m)) {
        work = work_of(m, n, shortest(m, n, count));
        if (!work)
            return -ENOTSUP;
        if (work > WORK_WHOLE || work_of(m, n, count) > WORK_WHOLE)
            s = choose_samples(m, n, count);
    }
    if (s.many >= n)
        return predict_count(m, n, count, NULL, o);
    rc = predict_samples(m, n, s, count, o);
    if (rc == -ENOTSUP && work <= WORK_NODES) /* only all ranks fill whole nodes */
        return predict_count(m, n, count, NULL, o);
    if (rc == -ENOTSUP) { /* too many ranks for that: only the bound is left */
        *o = (struct model_result){.dirlink = UINT32_MAX, .guessed = true};
        return 0;
    }
    if (!rc)
        rc = raise_to_links(m, n, work, count, o);
    o->from_ranks = s.many;
    return rc;
}

static int args_check(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
                      const uint16_t *host_of_rank)
{
    if (!nranks || nranks > FAB_MAX_MEMBERS || (unsigned)a->kind >= COLL_KINDS ||
        (unsigned)a->algo >= ALGO_COUNT || (unsigned)a->type >= DT_COUNT || a->root >= nranks)
        return -EINVAL;
    for (unsigned r = 0; r < nranks; r++)
        if (host_of_rank[r] >= fab->n_hosts)
            return -EINVAL;
    return 0;
}

static void use_trees(struct model *m)
{
    struct fab_members members;
    bool known =
        m->n_trees > 1 && topo_members(m->fab, m->topo.nranks, m->host_of_rank, &members, NULL);

    topo_use_trees(&m->topo, m->tree, m->n_trees, known ? &members : NULL);
}

static int model_begin(struct model *m, const struct coll_args *a, unsigned nranks)
{
    int rc = topo_init(&m->topo, m->fab, 0, nranks, m->host_of_rank, m->n_trees);

    if (rc)
        return rc;
    m->in = (struct sched_in){.kind = a->kind,
                              .algo = a->algo,
                              .root = a->root,
                              .type = a->type,
                              .op = a->op,
                              .sparse = a->sparse,
                              .mm_self = a->mm_self,
                              .mtu = m->fab->mtu,
                              .topo = &m->topo.sched,
                              .file = a->file};
    m->topo.sched.rail_trees = m->n_trees > 0;
    use_trees(m);
    m->n_dir = 2u * m->fab->n_links + m->fab->n_hosts;
    m->free_ps = calloc(m->n_dir + 1, sizeof(*m->free_ps));
    m->fetch_ps = calloc(m->n_dir + 1, sizeof(*m->fetch_ps));
    m->engine_ps = calloc(m->fab->n_nodes + 1u, sizeof(*m->engine_ps));
    m->bytes = calloc(m->n_dir + 1, sizeof(*m->bytes));
    return m->free_ps && m->fetch_ps && m->engine_ps && m->bytes ? 0 : -ENOMEM;
}

/* Applies the trees and windows that the quotas leave a job without others; s->tree outlives m. */
static int quota_apply(struct model *m, struct quota_grant *s)
{
    const struct quota_request j = {.fab = m->fab,
                                    .nranks = m->topo.nranks,
                                    .host_of_rank = m->host_of_rank,
                                    .domain = m->topo.domain,
                                    .tree = m->tree,
                                    .n_trees = m->n_trees,
                                    .all = m->in.algo == ALGO_SHARP,
                                    .rails = in_switches(m),
                                    .asked = m->window};
    int rc = m->n_trees && (j.all || j.rails) ? quota_split(&j, s) : 0;

    if (rc || !m->n_trees || (!j.all && !j.rails))
        return rc;
    if (j.rails && s->rail >= AGG_MSG_PKTS)
        m->window = s->rail;
    for (unsigned i = 0; i < s->n; i++)
        if (s->window[i] >= AGG_MSG_PKTS && s->window[i] < m->window)
            m->window = s->window[i];
    if (s->n) {
        m->tree = s->tree;
        m->n_trees = s->n;
        use_trees(m);
    }
    return 0;
}

int coll_predict_trees(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
                       const uint16_t *host_of_rank, const uint16_t *tree, unsigned n_trees,
                       uint32_t window, struct coll_prediction *p)
{
    struct model m = {.fab = fab,
                      .host_of_rank = host_of_rank,
                      .tree = tree,
                      .n_trees = n_trees,
                      .window = agg_window(fab, window)};
    struct quota_grant s;
    struct model_result o;
    int64_t least;
    int rc = args_check(fab, a, nranks, host_of_rank);

    memset(p, 0, sizeof(*p));
    for (unsigned i = 0; i < n_trees; i++)
        if (tree[i] >= fab->n_trees)
            m.n_trees = 0; /* no such tree: algorithms that need one report it */
    if (rc || nranks == 1 || (!a->count && a->kind != COLL_BARRIER))
        return rc;
    if (coll_is_protocol(a->algo)) {
        rc = protocol_predict(fab, a, nranks, host_of_rank, tree, n_trees, p);
        least = rc ? 0 : bound_ps(fab, a, nranks, host_of_rank);
        if (!rc && least >= 0)
            p->time_ps = (p->time_ps > least ? p->time_ps : least) + fab->costs.network.launch_ps;
        p->next_ps += p->next_ps ? fab->costs.network.launch_ps : 0;
        return least < 0 ? (int)least : rc;
    }
    rc = model_begin(&m, a, nranks);
    if (!rc)
        rc = quota_apply(&m, &s);
    if (!rc)
        rc = predict_ranks(&m, nranks, a->count, &o);
    if (!rc)
        *p = (struct coll_prediction){.time_ps = (int64_t)o.time + m.launch_ps,
                                      .busiest_link_bytes = (uint64_t)(o.busiest + 0.5),
                                      .busiest_dirlink = o.dirlink,
                                      .handoffs = o.handoffs,
                                      .hashed = a->algo != ALGO_SHARP && a->algo != ALGO_NVLS &&
                                                !in_switches(&m) &&
                                                model_is_hashed(fab, nranks, host_of_rank),
                                      .from_ranks = o.from_ranks,
                                      .guessed = o.guessed};
    least = rc ? 0 : bound_ps(fab, a, nranks, host_of_rank);
    rc = least < 0 ? (int)least : rc;
    if (!rc && (o.guessed || (o.from_ranks && p->time_ps < least)))
        p->time_ps = least + m.launch_ps;
    T_ASSERT(rc || p->time_ps >= least,
             "a prediction is below the time that the payload takes on the links it has to cross");
    topo_free(&m.topo);
    queue_free(&m);
    free(m.free_ps);
    free(m.fetch_ps);
    free(m.engine_ps);
    free(m.bytes);
    return rc;
}

int coll_predict(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
                 const uint16_t *host_of_rank, uint16_t tree, uint32_t window,
                 struct coll_prediction *p)
{
    return coll_predict_trees(fab, a, nranks, host_of_rank, &tree, 1, window, p);
}
