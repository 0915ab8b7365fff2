#include "sim/scenario.h"

#include "host/coll/sched.h"
#include "sim/job.h"
#include "sim/oracle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scenario {
    uint64_t rng;
    char conf[4096];
    char shape[96];
    unsigned hosts, nranks, ops;
    uint16_t host_of_rank[64];
    bool faults;
    struct egress_faults f;
    uint32_t window;
};

static uint64_t below(struct scenario *s, uint64_t n)
{
    return oracle_random(&s->rng) % n;
}

/* Two pods of leaves under two spines each, and a core on top: aggregation trees of depth 3. */
static int three_tiers(struct scenario *s, char *p, size_t room, unsigned hosts_per_leaf)
{
    int n = snprintf(p, room, "nodes = (");
    unsigned h = 0;

    for (unsigned l = 0; l < 4; l++)
        for (unsigned i = 0; i < hosts_per_leaf; i++)
            n += snprintf(p + n, room - n, "{ name = \"h%u\"; kind = \"host\"; }, ", h++);
    for (unsigned l = 0; l < 4; l++)
        n += snprintf(p + n, room - n,
                      "{ name = \"leaf%u\"; kind = \"switch\"; role = \"leaf\"; }, ", l);
    n += snprintf(p + n, room - n,
                  "{ name = \"spine0\"; kind = \"switch\"; role = \"spine\"; }, "
                  "{ name = \"spine1\"; kind = \"switch\"; role = \"spine\"; }, "
                  "{ name = \"core0\"; kind = \"switch\"; role = \"core\"; });\nlinks = (");
    for (unsigned i = 0; i < h; i++)
        n += snprintf(p + n, room - n,
                      "{ a = \"h%u\"; b = \"leaf%u\"; rate = \"400Gb/s\"; latency = \"300ns\"; }, ",
                      i, i / hosts_per_leaf);
    for (unsigned l = 0; l < 4; l++)
        n += snprintf(
            p + n, room - n,
            "{ a = \"leaf%u\"; b = \"spine%u\"; rate = \"400Gb/s\"; latency = \"300ns\"; }, ", l,
            l / 2);
    n +=
        snprintf(p + n, room - n,
                 "{ a = \"spine0\"; b = \"core0\"; rate = \"400Gb/s\"; latency = \"500ns\"; }, "
                 "{ a = \"spine1\"; b = \"core0\"; rate = \"400Gb/s\"; latency = \"500ns\"; });\n");
    s->hosts = h;
    return n;
}

static void choose_topology(struct scenario *s)
{
    static const unsigned mtus[] = {256, 512, 1024, 2048, 4096};
    unsigned mtu = mtus[below(s, 5)];
    char *p = s->conf;
    size_t room = sizeof(s->conf);
    int n = snprintf(p, room,
                     "name = \"scenario\"; mtu = %u; dilation = 1; ecmp = \"%s\";\n"
                     "reduce = { groups = 4; slots = 4096; window = 256; };\n",
                     mtu, below(s, 2) ? "hash" : "balanced");

    switch (below(s, 3)) {
    case 0:
        s->hosts = 2 + below(s, 15);
        snprintf(s->shape, sizeof(s->shape), "one switch, %u hosts, mtu %u", s->hosts, mtu);
        snprintf(p + n, room - n,
                 "single_switch = { hosts = %u; host_link = { rate = \"400Gb/s\"; latency = "
                 "\"300ns\"; }; };\n",
                 s->hosts);
        break;
    case 1: {
        unsigned leaves = 2 + below(s, 3), spines = 1 + below(s, 3), each = 1 + below(s, 4);

        s->hosts = leaves * each;
        snprintf(s->shape, sizeof(s->shape), "%u leaves, %u spines, %u hosts a leaf, mtu %u",
                 leaves, spines, each, mtu);
        snprintf(p + n, room - n,
                 "leaf_spine = { leaves = %u; spines = %u; hosts_per_leaf = %u; "
                 "host_link = { rate = \"400Gb/s\"; latency = \"300ns\"; }; "
                 "spine_link = { rate = \"400Gb/s\"; latency = \"%uns\"; }; };\n",
                 leaves, spines, each, 100 + (unsigned)below(s, 900));
        break;
    }
    default: {
        unsigned each = 1 + below(s, 3);

        n += three_tiers(s, p + n, room - n, each);
        snprintf(s->shape, sizeof(s->shape), "three tiers, %u hosts, mtu %u", s->hosts, mtu);
    }
    }
}

static void choose_ranks(struct scenario *s)
{
    unsigned per_host = below(s, 4) ? 1 : 2, used = 1 + below(s, s->hosts);

    if (used < 2 && per_host < 2)
        used = 2;
    if (used * per_host > 16)
        per_host = 1;
    for (unsigned h = 0; h < used; h++)
        for (unsigned i = 0; i < per_host; i++)
            s->host_of_rank[s->nranks++] = h;
}

/* Up to 5 % each of loss, duplication and reordering, on every link of the way. */
static void choose_faults(struct scenario *s)
{
    s->faults = below(s, 4) != 0;
    if (!s->faults)
        return;
    s->f.loss = below(s, 2) ? below(s, 51) / 1000.0 : 0;
    s->f.dup = below(s, 2) ? below(s, 51) / 1000.0 : 0;
    s->f.reorder = below(s, 2) ? below(s, 51) / 1000.0 : 0;
    s->f.corrupt = below(s, 2) ? below(s, 5) / 1000.0 : 0;
    s->f.jitter_ps = below(s, 2) ? (int64_t)below(s, 2000) * PS_PER_NS : 0;
}

/* Half are all-reduces, by ring and SHARP mostly. */
static void choose_kind(struct scenario *s, struct comm *c, struct job_op *op)
{
    struct coll_args a = {.count = 1, .type = DT_FP32};

    op->algo = below(s, 3) ? ALGO_SHARP : ALGO_RING;
    if (below(s, 2))
        return;
    do {
        a.kind = op->kind = (enum coll_kind)below(s, COLL_KINDS);
        a.algo = op->algo = (enum coll_algo)below(s, ALGO_COUNT);
    } while (!comm_supports(c, &a));
}

static void choose_op(struct scenario *s, struct comm *c, struct job_op *op, char *text,
                      size_t room)
{
    static const size_t counts[] = {0, 1, 2, 3, 7, 64, 997, 1024, 4093, 8192, 30011};
    size_t limit;

    choose_kind(s, c, op);
    do {
        op->type = below(s, DT_COUNT);
        op->op = below(s, OP_COUNT);
    } while (!arith_valid(op->op, op->type));
    op->root = below(s, s->nranks);
    op->count = below(s, 2) ? counts[below(s, 11)] : below(s, 20000);
    limit = (s->faults ? 65536 : 262144) / (op->kind == COLL_ALLREDUCE ? 1 : s->nranks);
    if (op->count * dtype_size(op->type) > limit)
        op->count = limit / dtype_size(op->type) - below(s, 100);
    op->in_place = below(s, 2);
    op->skew_ps = below(s, 2) ? (int64_t)below(s, 50) * PS_PER_US : 0;
    op->seed = oracle_random(&s->rng);
    snprintf(text, room, "collective %u by %s %s %s x%zu%s", op->kind, sched_algo_name(op->algo),
             dtype_name(op->type), redop_name(op->op), op->count, op->in_place ? " in place" : "");
}

static void apply_faults(struct scenario *s, const struct fabric *f, struct net *net)
{
    for (unsigned i = 0; s->faults && i < f->n_links; i++) {
        struct egress_faults a = s->f, b = s->f;

        a.seed = oracle_random(&s->rng);
        b.seed = oracle_random(&s->rng);
        egress_set_faults(net_egress(net, f->links[i].a, f->links[i].a_port), &a);
        egress_set_faults(net_egress(net, f->links[i].b, f->links[i].b_port), &b);
    }
}

static bool clean_port(struct hca *hca, unsigned r, struct scenario_report *rep)
{
    const struct roce_counters *c = rnic_counters(hca_rnic(hca));

    if (!c->retransmits && !c->rnr_naks_received && !c->timeouts)
        return true;
    snprintf(rep->why, sizeof(rep->why),
             "rank %u without faults: %lu retransmits, %lu RNR NAKs, %lu timeouts", r,
             (unsigned long)c->retransmits, (unsigned long)c->rnr_naks_received,
             (unsigned long)c->timeouts);
    return false;
}

/* In a run without faults nothing is sent twice, refused or dropped. */
static bool clean(struct world *w, const struct fabric *f, unsigned nranks,
                  struct scenario_report *rep)
{
    for (unsigned r = 0; r < nranks; r++)
        for (unsigned p = 0; p < world_ports(w, r); p++)
            if (!clean_port(world_hca(w, r, p), r, rep))
                return false;
    for (unsigned i = 0; i < f->n_nodes; i++) {
        struct node *nd = net_node(world_net(w), i);

        for (unsigned p = 0; p < nd->n_ports; p++)
            for (unsigned d = 0; d < DROP_REASONS; d++)
                if (nd->cnt[p].drops[d]) {
                    snprintf(rep->why, sizeof(rep->why),
                             "%s port %u without faults: %lu drops (%s)", nd->name, p,
                             (unsigned long)nd->cnt[p].drops[d], drop_name(d));
                    return false;
                }
    }
    return true;
}

static void run_ops(struct scenario *s, struct job *j, struct scenario_report *rep)
{
    for (unsigned k = 0; k < s->ops && !rep->why[0]; k++) {
        struct job_op op = {0};
        struct job_result res;
        char text[128];
        size_t at = strlen(rep->what);
        int rc;

        choose_op(s, job_comm(j, 0), &op, text, sizeof(text));
        snprintf(rep->what + at, sizeof(rep->what) - at, "; %s", text);
        rc = job_run(j, &op, &res);
        if (rc || res.wrong || res.failed_ranks)
            snprintf(rep->why, sizeof(rep->why), "%s: %s, %lu wrong, %d ranks failed: %.300s", text,
                     rc ? strerror(-rc) : "ended", (unsigned long)res.wrong, res.failed_ranks,
                     res.text);
    }
}

static void run_world(struct scenario *s, const struct fabric *f, struct rte_mempool *pool,
                      uint64_t seed, struct scenario_report *rep)
{
    struct world_cfg wc = {
        .fab = f, .nranks = s->nranks, .host_of_rank = s->host_of_rank, .pool = pool, .seed = seed};
    struct world *w;
    struct job *j = NULL;
    struct job_cfg jc = {.fab = f,
                         .nranks = s->nranks,
                         .host_of_rank = s->host_of_rank,
                         .group = 1 + below(s, 1000),
                         .key = oracle_random(&s->rng),
                         .tree = below(s, f->n_trees),
                         .window = s->window,
                         .algos = 1 << ALGO_RING | 1 << ALGO_SHARP | 1 << ALGO_TREE |
                                  1 << ALGO_CHAIN | 1 << ALGO_HALVING | 1 << ALGO_PAIRWISE |
                                  1 << ALGO_DIRECT,
                         .buffer_bytes = 262144 + 64,
                         .limit_ps = 600 * PS_PER_S};
    char err[COMM_TEXT];
    int rc = world_create(&w, &wc);

    if (rc) {
        snprintf(rep->why, sizeof(rep->why), "world: %s", strerror(-rc));
        return;
    }
    jc.w = w;
    apply_faults(s, f, world_net(w));
    rc = job_create(&j, &jc, err);
    if (rc)
        snprintf(rep->why, sizeof(rep->why), "set-up: %s: %s", strerror(-rc), err);
    else
        run_ops(s, j, rep);
    rc = j ? job_destroy(j) : 0;
    if (rc && !rep->why[0])
        snprintf(rep->why, sizeof(rep->why), "close: %s", strerror(-rc));
    if (!rep->why[0] && world_busy_ans(w))
        snprintf(rep->why, sizeof(rep->why), "%u aggregation nodes still hold something",
                 world_busy_ans(w));
    if (!rep->why[0] && !s->faults)
        clean(w, f, s->nranks, rep);
    rep->trace_hash = world_trace_hash(w);
    rep->frames = world_frames(w);
    rep->fabric_ps = world_now(w);
    world_destroy(w);
}

void scenario_run(uint64_t seed, struct rte_mempool *pool, struct scenario_report *rep)
{
    struct scenario s = {.rng = seed * 0x2545f4914f6cdd1dull + 1};
    struct fab_errors errs = {0};
    unsigned before = rte_mempool_avail_count(pool);
    struct fabric *f;

    memset(rep, 0, sizeof(*rep));
    choose_topology(&s);
    choose_ranks(&s);
    choose_faults(&s);
    s.ops = 1 + below(&s, 3);
    s.window = below(&s, 3) ? 0 : 8 << below(&s, 6);
    snprintf(
        rep->what, sizeof(rep->what),
        "%s; %u ranks; loss %.1f%% dup %.1f%% reorder %.1f%% corrupt %.1f%% a hop, jitter %ld ns",
        s.shape, s.nranks, s.f.loss * 100, s.f.dup * 100, s.f.reorder * 100, s.f.corrupt * 100,
        (long)(s.f.jitter_ps / PS_PER_NS));
    f = fabric_load_string(s.conf, "scenario", &errs);
    if (!f) {
        snprintf(rep->why, sizeof(rep->why), "conf line %d: %s", errs.e[0].line, errs.e[0].text);
        return;
    }
    run_world(&s, f, pool, seed, rep);
    fabric_free(f);
    if (!rep->why[0] && rte_mempool_avail_count(pool) != before)
        snprintf(rep->why, sizeof(rep->why), "%d frames leaked",
                 (int)before - (int)rte_mempool_avail_count(pool));
    rep->ok = !rep->why[0];
}
