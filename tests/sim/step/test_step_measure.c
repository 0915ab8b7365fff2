/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a workload to measured times: the collectives of a step by hand, the groups that are simulated, bounds
 * of what they share, and how times of longer vectors and larger groups follow from simulated ones.
 */
#include "sim/step/step_groups.h"
#include "tests/sim/step/step_bed.h"

#include <errno.h>
#include <stdlib.h>

#define MIB (1ull << 20)

static void near(const char *what, double is, double expected)
{
    if (fabs(is - expected) > 1e-6 * fabs(expected))
        fail_msg("%s: found %.12g, expected %.12g", what, is, expected);
}

/* ---- the collectives of a workload ---- */

static void collectives_by_hand(void **state)
{
    /* 256 tokens of 256 in two bytes; 2,871,910.4 parameters of the dense part on 4 GPUs, 3,148,185.6 of
     * experts on 4. */
    static const struct {
        enum roof_kind kind;
        bool experts;
        enum coll_kind coll;
        unsigned stride;
        uint64_t bytes;
        double times;
    } rows[] = {{ROOF_TP, false, COLL_ALLREDUCE, 1, 131072, 16},
                {ROOF_EP, false, COLL_ALLTOALL, 1, 131072, 16},
                {ROOF_DP, false, COLL_REDUCE_SCATTER, 2, 1435955, 1},
                {ROOF_DP, false, COLL_ALLGATHER, 2, 1435955, 1},
                {ROOF_DP, true, COLL_REDUCE_SCATTER, 2, 1574092, 1},
                {ROOF_DP, true, COLL_ALLGATHER, 2, 1574092, 1},
                {ROOF_PP, false, COLL_SENDRECV, 4, 65536, 4}};
    struct bed b;

    (void)state;
    open_bed(&b, "");
    with_experts(&b);
    assert_int_equal(step_collectives(&b.w, b.u), LEN(rows));
    for (unsigned i = 0; i < LEN(rows); i++) {
        const struct step_collective *u = &b.u[i];

        assert_true(u->kind == rows[i].kind && u->experts == rows[i].experts &&
                    u->coll == rows[i].coll && u->stride == rows[i].stride && u->degree == 2);
        assert_int_equal(u->bytes, rows[i].bytes);
        near("times", u->times, rows[i].times);
        assert_int_equal(u->gpus, 8);
    }
    close_bed(&b);
}

/* A token is sent once to each GPU with one of its experts, or to each of its nodes where those are fewer and
 * the group leaves the node. */
static void tokens_are_copied(void **state)
{
    static const struct {
        unsigned tp, ep, top_k, nodes, copies;
    } rows[] = {{1, 16, 6, 0, 6}, {1, 16, 6, 4, 4}, {1, 16, 6, 7, 6}, {1, 16, 20, 0, 16},
                {1, 8, 6, 4, 6},  {1, 9, 6, 4, 4},  {1, 4, 6, 3, 4},  {2, 8, 6, 4, 6}};
    struct bed b;

    (void)state;
    open_bed(&b, "");
    with_experts(&b);
    b.w.experts = 32;
    b.w.dp = 16;
    b.w.pp = 1;
    b.w.batch_tokens = 8192;
    for (unsigned i = 0; i < LEN(rows); i++) {
        unsigned n;

        b.w.tp = rows[i].tp, b.w.ep = rows[i].ep;
        b.w.top_k = rows[i].top_k, b.w.token_nodes = rows[i].nodes;
        n = step_collectives(&b.w, b.u);
        for (unsigned k = 0; k < n; k++)
            if (b.u[k].kind == ROOF_EP && b.u[k].bytes != 131072 / rows[i].tp * rows[i].copies)
                fail_msg("row %u: %lu bytes", i, (unsigned long)b.u[k].bytes);
    }
    close_bed(&b);
}

/* Seconds of one layer and direction, of a message, and of a pass. */
static void costs_by_hand(void **state)
{
    struct bed b;
    struct step_cost c;

    (void)state;
    open_bed(&b, "");
    with_experts(&b);
    b.n = step_collectives(&b.w, b.u);
    for (unsigned i = 0; i < b.n; i++)
        b.u[i].timing[STEP_SWITCHES].s = 1 + i;
    c = step_cost(&b.w, b.u, b.n, STEP_SWITCHES);
    assert_true(c.layers == 2 && c.stages == 2 && c.microbatches == 2 && c.zero == 1);
    near("tensor", c.comms[ROOF_TP], 1 * 16 / (2. * 2 * 2));
    near("experts", c.comms[ROOF_EP], 2 * 16 / (2. * 2 * 2));
    near("data", c.comms[ROOF_DP], (3 + 4 + 5 + 6) / 2. / 2);
    near("pipeline", c.comms[ROOF_PP], 7);
    near("forward", c.forward, 2 * workload_active_params(&b.w) / 4 / 2 * 256 / 990e12);
    near("backward", c.backward, 2 * c.forward);
    b.w.zero = 3;
    b.n = step_collectives(&b.w, b.u);
    near("gathered twice", b.u[3].times, 2);
    for (unsigned i = 0; i < b.n; i++)
        b.u[i].timing[STEP_HOSTS].s = 1;
    near("three passes", step_cost(&b.w, b.u, b.n, STEP_HOSTS).comms[ROOF_DP], 6 / 2. / 3);
    close_bed(&b);
}

/* ---- what is simulated ---- */

static void arguments_of_an_operation(void **state)
{
    static const struct {
        enum coll_kind coll;
        uint64_t bytes, count;
    } rows[] = {{COLL_ALLREDUCE, 1000, 500}, {COLL_ALLTOALL, 1000, 125},  {COLL_ALLGATHER, 17, 2},
                {COLL_SENDRECV, 1001, 500},  {COLL_REDUCE_SCATTER, 7, 1}, {COLL_ALLREDUCE, 1, 1}};
    const unsigned hosts = 1u << ALGO_RING | 1u << ALGO_TREE | 1u << ALGO_CHAIN |
                           1u << ALGO_HALVING | 1u << ALGO_PAIRWISE | 1u << ALGO_DIRECT |
                           1u << ALGO_HIER;
    struct step_collective u = {.named = ALGO_AUTO};

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct coll_args a;

        u.coll = rows[i].coll;
        a = step_args(&u, 4, rows[i].bytes);
        assert_int_equal(a.count, rows[i].count);
        assert_true(a.kind == rows[i].coll && a.type == DT_BF16 && a.op == OP_SUM);
    }
    assert_int_equal(step_host_algos(&u), hosts);
    u.named = ALGO_TREE;
    assert_int_equal(step_host_algos(&u), 1u << ALGO_TREE);
    u.named = ALGO_SHARP;
    assert_int_equal(step_host_algos(&u), hosts);
}

static struct fabric *leaves(unsigned n, unsigned spine_gbps)
{
    char text[512];

    snprintf(
        text, sizeof(text),
        "name = \"x\"; mtu = 4096; ecmp = \"balanced\"; leaf_spine = { leaves = %u; spines = 1; "
        "hosts_per_leaf = 4; host_link = { rate = \"400Gb/s\"; latency = \"300ns\"; }; "
        "spine_link = { rate = \"%uGb/s\"; latency = \"300ns\"; }; };",
        n, spine_gbps);
    return load_text(text);
}

static void ranks_and_hosts_of_groups(void **state)
{
    struct fabric *f = leaves(32, 1600);
    struct step_collective u[] = {
        {.coll = COLL_ALLREDUCE, .stride = 1, .degree = 65, .bytes = MIB, .gpus = 128},
        {.coll = COLL_ALLREDUCE, .stride = 40, .degree = 8, .bytes = MIB, .gpus = 128},
        {.coll = COLL_ALLREDUCE, .stride = 2, .degree = 64, .bytes = MIB, .gpus = 8},
        {.coll = COLL_SENDRECV, .stride = 1, .degree = 9, .bytes = MIB, .gpus = 128}};
    static const unsigned ranks[] = {64, 4, 4, 2};
    struct step_measurement ms = {.f = f};

    (void)state;
    cost_levels(f, &ms.levels);
    assert_int_equal(step_groups_choose(&ms, u, LEN(u)), 0);
    for (unsigned i = 0; i < LEN(u); i++) {
        struct step_group g;

        assert_int_equal(u[i].ranks, ranks[i]);
        step_group_of(&ms, &u[i], 0, &g);
        assert_int_equal(g.nranks, ranks[i]);
        for (unsigned r = 0; r < g.nranks; r++) {
            assert_int_equal(g.host_of_rank[r], u[i].first[0] + r * u[i].stride);
            assert_int_equal(ms.host[g.world_rank[r]], g.host_of_rank[r]);
        }
    }
    for (unsigned r = 1; r < ms.ranks; r++) /* in order, each once */
        assert_true(ms.host[r] > ms.host[r - 1]);
    free(ms.host);
    fabric_free(f);
}

/* Eight leaves of four hosts under a spine by a quarter of their rate, groups of one host of each leaf. */
static void bounds_of_all_groups_and_of_some(void **state)
{
    struct fabric *f = leaves(8, 400);
    struct step_collective u = {
        .coll = COLL_ALLTOALL, .stride = 4, .degree = 8, .bytes = 8000000, .gpus = 32};
    struct step_measurement ms = {.f = f};

    (void)state;
    cost_levels(f, &ms.levels);
    assert_int_equal(step_groups_choose(&ms, &u, 1), 0);
    assert_int_equal(u.groups, 4);
    near("all, direct", step_groups_bound(&ms, &u, ALGO_DIRECT), 4 * 7e6 / 50e9);
    near("all, by a ring", step_groups_bound(&ms, &u, ALGO_RING), 4 * 7e6 / 50e9);
    assert_true(step_groups_bound(&ms, &u, ALGO_TREE) == 0);
    near("chosen", step_groups_load(&ms, &u, ALGO_DIRECT, 16000000), 4 * 14e6 / 50e9);
    u.groups = 1;
    near("one", step_groups_load(&ms, &u, ALGO_DIRECT, 8000000), 7e6 / 50e9);
    u.gpus = 16; /* groups reach as far as the GPUs do */
    near("half", step_groups_bound(&ms, &u, ALGO_DIRECT), 4 * 3 / 4. * 8e6 / 50e9);
    free(ms.host);
    ms.host = NULL;
    ms.ranks = 0;
    u = (struct step_collective){
        .coll = COLL_SENDRECV, .stride = 2, .degree = 16, .bytes = 1000000, .gpus = 32};
    assert_int_equal(step_groups_choose(&ms, &u, 1), 0);
    /* of each two stages that cross, both ways */
    near("pairs", step_groups_bound(&ms, &u, ALGO_DIRECT), 4 * 1e6 / 50e9);
    free(ms.host);
    fabric_free(f);
}

/* ---- times ---- */

static void measured(const struct fabric *f, struct step_collective *u)
{
    char err[COMM_TEXT];

    if (step_measure(f, u, 1, pool, SEED, &go_on, err))
        fail_msg("%s", err);
}

/* Twice as much beyond what is simulated takes as much more as the line through the last two sizes says, and
 * in proportion at most. */
static void longer_vectors_are_on_a_line(void **state)
{
    struct fabric *f = leaves(2, 1600);
    double s[3], high[3];

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct step_collective u = {.kind = ROOF_DP,
                                    .coll = COLL_ALLGATHER,
                                    .stride = 1,
                                    .degree = 2,
                                    .bytes = (100 + 50 * i) * MIB,
                                    .times = 1,
                                    .gpus = 2};
        const struct step_timing *t = &u.timing[STEP_HOSTS];

        measured(f, &u);
        assert_true(t->extrapolated_bytes && !t->extrapolated_ranks && !t->fell_back);
        assert_int_equal(t->bytes, 64 * MIB);
        s[i] = t->s;
        high[i] = t->high_s;
        assert_true(high[i] > s[i]);
        near("bound", t->bound_s, (double)u.bytes / 2 / 50e9);
    }
    near("line", s[2] - s[1], s[1] - s[0]);
    assert_true(s[1] - s[0] >= 50. * MIB / 2 / 50e9);
    near("proportion", high[1] / high[0], 1.5);
    near("proportion", high[2] / high[0], 2);
    fabric_free(f);
}

/* Groups that reach beyond the fabric: by what a member's link carries. */
static void larger_groups_scale(void **state)
{
    struct fabric *f = leaves(2, 1600);
    struct step_collective u = {.kind = ROOF_DP,
                                .coll = COLL_ALLGATHER,
                                .stride = 1,
                                .degree = 8,
                                .bytes = 4 * MIB,
                                .times = 1,
                                .gpus = 8};
    struct step_timing whole;

    (void)state;
    measured(f, &u);
    whole = u.timing[STEP_HOSTS];
    assert_true(!whole.extrapolated_ranks && !whole.extrapolated_bytes);
    assert_int_equal(whole.bytes, 4 * MIB);
    near("high", whole.high_s, whole.s);
    u.degree = 16, u.gpus = 16;
    measured(f, &u);
    assert_int_equal(u.ranks, 8);
    assert_true(u.timing[STEP_HOSTS].extrapolated_ranks);
    near("scaled", u.timing[STEP_HOSTS].s, whole.s * (15 / 16.) / (7 / 8.));
    near("scaled", u.timing[STEP_HOSTS].high_s, whole.s * (15 / 16.) / (7 / 8.));
    fabric_free(f);
}

/* An algorithm that a workload names runs by the first method that has it, and by those behind it;
 * other operations run by the fastest. */
static void named_algorithms_run(void **state)
{
    static const struct {
        enum coll_algo named;
        int by[STEP_METHODS]; /* -1: any of hosts */
    } rows[] = {{ALGO_TREE, {ALGO_TREE, -2, -2}},
                {ALGO_NVLS, {-1, ALGO_NVLS, ALGO_NVLS}},
                {ALGO_HIER, {ALGO_HIER, -2, -2}}};
    struct bed b;

    (void)state;
    open_bed(&b, "reduce = { };");
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct step_collective u = {.kind = ROOF_TP,
                                    .coll = COLL_ALLREDUCE,
                                    .stride = 1,
                                    .degree = 4,
                                    .bytes = MIB,
                                    .times = 1,
                                    .gpus = 8,
                                    .named = rows[i].named};
        char err[COMM_TEXT] = "";
        int rc = step_measure(b.f, &u, 1, pool, SEED, &go_on, err);

        if (rows[i].named == ALGO_HIER) { /* not within one node */
            assert_int_equal(rc, -EINVAL);
            assert_string_equal(err, "algorithm: found hier for tensor parallel groups of 4 GPUs "
                                     "that are 1 apart, expected one that these can run on small");
            continue;
        }
        assert_int_equal(rc, 0);
        for (unsigned m = 0; m < STEP_METHODS; m++) {
            int algo = (int)u.timing[m].algo;
            bool hosts = !(1u << algo & STEP_SWITCH_ALGOS);

            if (rows[i].by[m] >= 0)
                assert_int_equal(algo, rows[i].by[m]);
            else if (rows[i].by[m] == -1)
                assert_true(hosts);
            assert_true(u.timing[m].s >= u.timing[m].bound_s);
        }
    }
    close_bed(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_by_hand),
        cmocka_unit_test(tokens_are_copied),
        cmocka_unit_test(costs_by_hand),
        cmocka_unit_test(arguments_of_an_operation),
        cmocka_unit_test(ranks_and_hosts_of_groups),
        cmocka_unit_test(bounds_of_all_groups_and_of_some),
        cmocka_unit_test(longer_vectors_are_on_a_line),
        cmocka_unit_test(larger_groups_scale),
        cmocka_unit_test(named_algorithms_run),
    };

    test_eal_init();
    pool = test_pool(step_frames());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
