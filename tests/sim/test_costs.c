/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Costs of endpoints and links (fabric `costs`, `efficiency`): exact to the picosecond for packets,
 * and equal in the model.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>

#include "model/predict.h"
#include "sim/job/sim_job.h"
#include "tests/support/eal.h"

static const uint16_t hosts[] = {0, 1, 2, 3, 4, 5, 6, 7}, far[] = {0, 4};
static struct rte_mempool *pool;

#define FABRIC                                                                                     \
    "name = \"costs\"; ecmp = \"balanced\";\n"                                                     \
    "single_switch = { hosts = %u; host_link = { rate = \"400Gb/s\"; latency = \"300ns\"; "        \
    "efficiency = %s; }; };\n"                                                                     \
    "reduce = { groups = 4; slots = 4096; window = 256; };\n%s\n"

/* Time and prediction of one operation, in ps. */
struct timed {
    int64_t ps, model_ps;
};

static struct timed run_on(const char *text, const uint16_t *at, unsigned n, struct job_op op)
{
    char err[COMM_TEXT];
    struct coll_prediction p;
    struct job_result res;
    struct world *w;
    struct job *j;
    struct fabric *f;
    struct world_cfg wc = {.nranks = n, .host_of_rank = at, .pool = pool, .seed = 1};
    struct job_cfg jc = {.nranks = n,
                         .host_of_rank = at,
                         .group = 1,
                         .key = 7,
                         .algos = 1u << op.algo,
                         .limit_ps = PS_PER_S};
    struct coll_args a = {.kind = op.kind,
                          .algo = op.algo,
                          .count = op.count,
                          .type = op.type,
                          .op = op.op,
                          .mm_self = op.mm_self};

    f = fabric_load_string(text, "costs.conf", NULL);
    assert_non_null(f);
    wc.fab = jc.fab = f;
    assert_int_equal(world_create(&w, &wc), 0);
    jc.w = w;
    if (job_create(&j, &jc, err))
        fail_msg("%s", err);
    /* The first operation makes the connections. */
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(job_run(j, &op, &res), 0);
        assert_int_equal(res.wrong, 0);
        assert_int_equal(res.failed_ranks, 0);
    }
    assert_int_equal(coll_predict(f, &a, n, at, 0, 0, &p), 0);
    assert_int_equal(job_destroy(j), 0);
    world_destroy(w);
    fabric_free(f);
    return (struct timed){res.time_ps, p.time_ps};
}

static struct timed run(unsigned n, const char *efficiency, const char *costs, struct job_op op)
{
    char text[1024];

    snprintf(text, sizeof(text), FABRIC, n, efficiency, costs);
    return run_on(text, hosts, n, op);
}

/* Ranks of two GPU nodes of four; two NVSwitches in each, and a NIC for each GPU. */
static struct timed run_gpus(const uint16_t *at, unsigned n, const char *costs, struct job_op op)
{
    char text[1024];

    snprintf(text, sizeof(text),
             "name = \"gpus\"; ecmp = \"balanced\";\n"
             "gpu_nodes = { nodes = 2; gpus = 4; planes = ( 4, 4 );\n"
             "  nvlink = { rate = \"25GB/s\"; latency = \"300ns\"; };\n"
             "  nic = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };\n"
             "rails = { leaves = 1; };\nreduce = { };\ncosts = { gpu = \"5us\"; %s };\n",
             costs);
    return run_on(text, at, n, op);
}

static void each_cost_is_paid_once_by_a_message(void **state)
{
    static const struct {
        const char *costs;
        int64_t ps;
    } rows[] = {
        {"costs = { gpu = \"5us\"; };", 5000000},
        {"costs = { gpu = \"5us\"; hca = \"100ns\"; };", 5100000},
        {"costs = { gpu = \"5us\"; hca = \"100ns\"; switch = \"77ns\"; };", 5177000},
    };
    struct job_op op = {.kind = COLL_SENDRECV, .algo = ALGO_DIRECT, .type = DT_FP32, .count = 2};
    /* That of the message alone: with a program that sees it late its end is what counts, without
     * it the end of the ACK. */
    int64_t alone = run(2, "1.0", rows[0].costs, op).ps - rows[0].ps;

    (void)state;
    assert_in_range(alone, 600000, 620000);
    for (unsigned i = 1; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct timed t = run(2, "1.0", rows[i].costs, op);

        assert_int_equal(t.ps, alone + rows[i].ps);
        assert_true((double)t.ps > 0.99 * (double)t.model_ps &&
                    (double)t.ps < 1.01 * (double)t.model_ps);
    }
}

/* Between neighbours in a node, and GPUs of two nodes. */
static void a_path_has_a_step_and_a_launch_of_its_own(void **state)
{
    static const struct {
        const uint16_t *at;
        const char *costs;
        int64_t ps;
    } rows[] = {
        {hosts, "nvlink = { step = \"3.4us\"; };", 3400000},
        {hosts, "nvlink = { launch = \"20us\"; };", 20000000},
        {hosts, "nvlink = { launch = \"20us\"; step = \"3.4us\"; };", 23400000},
        {hosts, "network = { launch = \"30us\"; step = \"14us\"; };", 0},
        {hosts, "multimem = { launch = \"70us\"; load = 0.5; store = 0.5; };", 0},
        {far, "network = { launch = \"30us\"; step = \"14us\"; };", 44000000},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct job_op op = {
            .kind = COLL_SENDRECV, .algo = ALGO_DIRECT, .type = DT_FP32, .count = 2};
        struct timed without = run_gpus(rows[i].at, 2, "", op);
        struct timed with = run_gpus(rows[i].at, 2, rows[i].costs, op);

        assert_int_equal(with.ps - without.ps, rows[i].ps);
        assert_int_equal(with.model_ps - without.model_ps, rows[i].ps);
    }
}

static void a_short_message_takes_the_fastest_protocol(void **state)
{
    static const char ll[] =
        "nvlink = { step = \"9us\"; ll = { step = \"2us\"; rate = \"2Gb/s\"; };"
        " ll128 = { step = \"4us\"; rate = \"16Gb/s\"; }; };";
    static const struct {
        unsigned count;
        int64_t ps;
    } rows[] = {
        {2, 2000000 + 32000 - 40},      /* a plane has half: 4 bytes at 1 Gb/s, and at 800 Gb/s */
        {256, 4000000 + 512000 - 5120}, /* 512 bytes at 8 Gb/s; at 1 Gb/s 4.096 us */
        {65536, 9000000},               /* slices of more than 5 KB */
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct job_op op = {
            .kind = COLL_SENDRECV, .algo = ALGO_DIRECT, .type = DT_FP32, .count = rows[i].count};
        struct timed without = run_gpus(hosts, 2, "", op), with = run_gpus(hosts, 2, ll, op);

        print_message("%u bytes: %.3f us more\n", 4 * rows[i].count,
                      (double)(with.ps - without.ps) / 1e6);
        assert_int_equal(with.ps - without.ps, rows[i].ps);
        assert_int_equal(with.model_ps - without.model_ps, rows[i].ps);
    }
}

/* A ring of 4: six steps, each after the one before. A long operation has no short pieces. */
static void steps_of_a_ring_show_at_any_size(void **state)
{
    static const char
        step[] = "nvlink = { step = \"10us\"; };",
        ll[] = "nvlink = { step = \"10us\"; ll = { step = \"1us\"; rate = \"80Gb/s\"; }; };",
        none[] = "nvlink = { step = \"1ps\"; };";
    struct job_op op = {.algo = ALGO_RING, .type = DT_FP32, .op = OP_SUM};

    (void)state;
    for (op.count = 1u << 18; op.count <= 1u << 24; op.count *= 8) {
        struct timed with = run_gpus(hosts, 4, step, op), without = run_gpus(hosts, 4, none, op);
        double steps = (double)(with.ps - without.ps) / 10e6;

        print_message("%zu bytes: %.3f steps\n", 4 * op.count, steps);
        assert_true(steps > 5.9 && steps < 6.1);
        assert_true(with.ps > 0.98 * with.model_ps && with.ps < 1.02 * with.model_ps);
        assert_true(run_gpus(hosts, 4, ll, op).ps == with.ps);
    }
    op.count = 4096; /* blocks of 4 KiB at 10 GB/s instead of 200 */
    assert_in_range(run_gpus(hosts, 4, ll, op).ps - run_gpus(hosts, 4, none, op).ps,
                    6 * 1389200 - 1000, 6 * 1389200 + 1000);
}

static void multimem_has_its_share_of_the_links(void **state)
{
    struct job_op op = {.algo = ALGO_NVLS, .type = DT_FP32, .op = OP_SUM, .count = 16u << 20};
    struct job_op gather = {
        .kind = COLL_ALLGATHER, .algo = ALGO_NVLS, .type = DT_FP32, .count = 4u << 20};
    double whole, both, load, store;

    (void)state;
    for (unsigned self = 0; self < 2; self++) {
        op.mm_self = self;
        whole = (double)run_gpus(hosts, 4, "", op).ps;
        both = (double)run_gpus(hosts, 4, "multimem = { load = 0.85; store = 0.85; };", op).ps;
        print_message("64 MiB NVLS: %.2f us, with 0.85 of the links %.2f us: %.4f\n", whole / 1e6,
                      both / 1e6, both / whole);
        assert_true(0.85 * both / whole > 0.99 && 0.85 * both / whole < 1.01);
    }
    /* An all-gather only stores: 48 MiB of others arrive at 200 GB/s, with 98 bytes a frame. */
    whole = (double)run_gpus(hosts, 4, "", gather).ps;
    load = (double)run_gpus(hosts, 4, "multimem = { load = 0.5; };", gather).ps;
    store = (double)run_gpus(hosts, 4, "multimem = { store = 0.5; };", gather).ps;
    print_message("all-gather: %.2f us, slow loads %.2f, slow stores %.2f\n", whole / 1e6,
                  load / 1e6, store / 1e6);
    assert_true(load == whole && store - whole > 256.5e6 && store - whole < 258.5e6);
    op.algo = ALGO_RING; /* plain transfers over the same links */
    assert_true(run_gpus(hosts, 4, "", op).ps ==
                run_gpus(hosts, 4, "multimem = { load = 0.5; store = 0.5; };", op).ps);
    op.algo = ALGO_NVLS, op.count = 1024;
    assert_int_equal(run_gpus(hosts, 4,
                              "multimem = { launch = \"70us\"; }; nvlink = { launch = \"20us\"; };",
                              op)
                             .ps -
                         run_gpus(hosts, 4, "", op).ps,
                     70000000);
}

/* Seven small messages from each rank, and maybe a credit, leave one every 2 us. */
static void a_port_begins_one_message_at_a_time(void **state)
{
    struct job_op op = {.kind = COLL_ALLTOALL, .algo = ALGO_DIRECT, .type = DT_FP32, .count = 1};
    int64_t free_ps = run(8, "1.0", "", op).ps;
    struct timed t = run(8, "1.0", "costs = { hca = \"2us\"; };", op);

    (void)state;
    assert_in_range(t.ps, 14000000, 16000000 + free_ps);
    assert_in_range(t.model_ps, 14000000, 14000000 + free_ps);
}

static void a_link_is_as_fast_as_its_efficiency_says(void **state)
{
    struct job_op op = {.algo = ALGO_RING, .type = DT_FP32, .op = OP_SUM, .count = 4u << 20};
    double whole = (double)run(4, "1.0", "", op).ps, less = (double)run(4, "0.8", "", op).ps;

    (void)state;
    print_message("16 MiB ring: %.2f us, at an efficiency of 0.8 %.2f us\n", whole / 1e6,
                  less / 1e6);
    assert_true(less / whole > 1.24 && less / whole < 1.25);
}

static void the_model_knows_the_costs(void **state)
{
    /* Credits are messages of the port too, which the model leaves out: a few of 100 ns each before
     * the first data of a direct exchange, hidden in the others. */
    static const struct {
        enum coll_algo algo;
        size_t count;
        double within;
    } rows[] = {{ALGO_RING, 1024, 0.012},     {ALGO_RING, 1 << 18, 0.012},
                {ALGO_RING, 8 << 20, 0.012},  {ALGO_SHARP, 1024, 0.012},
                {ALGO_SHARP, 1 << 18, 0.012}, {ALGO_SHARP, 8 << 20, 0.012},
                {ALGO_DIRECT, 1 << 16, 0.04}};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct job_op op = {
            .algo = rows[i].algo, .type = DT_FP32, .op = OP_SUM, .count = rows[i].count};
        struct timed t =
            run(4, "0.9", "costs = { gpu = \"3us\"; hca = \"100ns\"; switch = \"50ns\"; };", op);
        double ratio = (double)t.ps / (double)t.model_ps;

        print_message("algorithm %d, %zu elements: %.2f us, of the model %.4f\n", rows[i].algo,
                      rows[i].count, (double)t.ps / 1e6, ratio);
        assert_true(ratio > 1 - rows[i].within && ratio < 1 + rows[i].within);
    }
}

/* Completions that are due while a port sends are seen then, and not when it has nothing to send. */
static void a_busy_port_sees_what_arrives(void **state)
{
    struct job_op ring = {.algo = ALGO_RING, .type = DT_FP32, .op = OP_SUM, .count = 4u << 20};
    struct job_op tree = {.algo = ALGO_TREE, .type = DT_FP32, .op = OP_SUM, .count = 4u << 20};
    struct timed r = run(2, "1.0", "costs = { gpu = \"5us\"; };", ring);
    struct timed t = run(8, "1.0", "costs = { gpu = \"5us\"; };", tree);

    (void)state;
    print_message("ring %.4f, tree %.4f of the model\n", (double)r.ps / (double)r.model_ps,
                  (double)t.ps / (double)t.model_ps);
    assert_in_range(r.ps, r.model_ps * 999 / 1000, r.model_ps * 1001 / 1000);
    assert_in_range(t.ps, t.model_ps * 98 / 100, t.model_ps * 102 / 100);
}

/* 128 KiB blocks to three peers: short enough for LL each, too long together. */
static void an_exchange_with_all_takes_the_protocol_of_all_its_bytes(void **state)
{
    static const char step[] = "nvlink = { step = \"3.4us\"; };",
                      ll[] = "nvlink = { step = \"3.4us\"; ll = { step = \"600ns\"; rate = "
                             "\"60GB/s\"; }; };";
    struct job_op op = {
        .kind = COLL_ALLTOALL, .algo = ALGO_DIRECT, .type = DT_FP32, .count = 32768};

    (void)state;
    assert_int_equal(run_gpus(hosts, 4, ll, op).ps, run_gpus(hosts, 4, step, op).ps);
    op.count = 1024;
    assert_true(run_gpus(hosts, 4, ll, op).ps < run_gpus(hosts, 4, step, op).ps - 2000000);
}

/* More members than 8 have fewer slices in flight, and still keep their links busy. */
static void a_rack_by_multimem_keeps_its_links_busy(void **state)
{
    struct job_op op = {.algo = ALGO_NVLS, .type = DT_FP32, .op = OP_SUM, .count = 1u << 20};
    uint16_t at[32];
    struct timed t;
    double busy;

    (void)state;
    for (uint16_t i = 0; i < 32; i++)
        at[i] = i;
    t = run_on("name = \"rack\"; ecmp = \"balanced\";\n"
               "gpu_nodes = { gpus = 32; planes = ( 1 );\n"
               "  nvlink = { rate = \"50GB/s\"; latency = \"300ns\"; };\n"
               "  nic = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };\n"
               "rails = { leaves = 1; };\nreduce = { };\n",
               at, 32, op);
    busy = 4096 * 1024 / 50e9 * PS_PER_S / (double)t.ps; /* F26, without headers */
    print_message("4 MiB on 32 GPUs: %.2f us, %.3f of the links, %.3f of the model\n",
                  (double)t.ps / 1e6, busy, (double)t.ps / (double)t.model_ps);
    assert_true(busy > 0.88);
    assert_in_range(t.ps, t.model_ps * 9 / 10, t.model_ps * 11 / 10);
}

/* On one switch a piece after the other; on two levels at the leaf and at the spine. */
static void an_aggregation_node_takes_time_for_each_piece(void **state)
{
    static const char two[] =
        "name = \"two\"; ecmp = \"balanced\";\n"
        "leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 2;\n"
        "  host_link = { rate = \"400Gb/s\"; latency = \"300ns\"; };\n"
        "  spine_link = { rate = \"400Gb/s\"; latency = \"300ns\"; cables = 1; }; };\n"
        "reduce = { groups = 4; slots = 4096; window = 256; };\n",
                      cost[] = "costs = { aggregate = { time = \"10us\"; bytes = 256; }; };\n";
    static const struct {
        unsigned count;
        int64_t ps;
    } rows[] = {{2, 10000000}, {64, 10000000}, {65, 20000000}, {512, 80000000}, {4096, 650000000}};
    char text[1024];
    struct job_op op = {.algo = ALGO_SHARP, .type = DT_FP32, .op = OP_SUM};
    struct timed without, with;

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        op.count = rows[i].count;
        without = run(4, "1.0", "", op);
        with = run(4, "1.0", cost, op);
        /* Links are hardly busy then, so the rest takes no longer than alone. */
        assert_in_range(with.ps - without.ps, rows[i].ps - 500000, rows[i].ps);
        assert_in_range(with.ps, with.model_ps - 5000, with.model_ps + 5000);
    }
    snprintf(text, sizeof(text), "%s%s", two, cost);
    op.count = 2;
    without = run_on(two, hosts, 4, op);
    with = run_on(text, hosts, 4, op);
    assert_in_range(with.ps - without.ps, 19900000, 20000000);
    assert_in_range(with.ps, with.model_ps - 5000, with.model_ps + 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_cost_is_paid_once_by_a_message),
        cmocka_unit_test(a_path_has_a_step_and_a_launch_of_its_own),
        cmocka_unit_test(a_short_message_takes_the_fastest_protocol),
        cmocka_unit_test(steps_of_a_ring_show_at_any_size),
        cmocka_unit_test(multimem_has_its_share_of_the_links),
        cmocka_unit_test(a_port_begins_one_message_at_a_time),
        cmocka_unit_test(a_link_is_as_fast_as_its_efficiency_says),
        cmocka_unit_test(the_model_knows_the_costs),
        cmocka_unit_test(a_busy_port_sees_what_arrives),
        cmocka_unit_test(an_exchange_with_all_takes_the_protocol_of_all_its_bytes),
        cmocka_unit_test(a_rack_by_multimem_keeps_its_links_busy),
        cmocka_unit_test(an_aggregation_node_takes_time_for_each_piece),
    };

    test_eal_init();
    pool = test_pool(60000);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
