/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short operations take in packets what the model says, to the picosecond: every collective by every algorithm, on fabrics
 * that store and that cut through, with hosts that ranks share, with costs, with GPU nodes. Where messages meet, the order in
 * which frames of the same instant leave decides; there, and in longer operations, the two are some frames apart.
 */
#include "collective/sched.h"
#include "model/predict.h"
#include "sim/job/sim_job.h"
#include "tests/support/eal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#define SOME_FRAMES_PS 300000
#define FRAME_PS       7000 /* without data */

#define SWITCH                                                                                     \
    "single_switch = { hosts = 4; host_link = { rate = \"100Gb/s\"; latency = \"300ns\"; }; };"
#define LEAVES                                                                                     \
    "ecmp = \"balanced\"; leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 2; host_link = " \
    "{ rate = \"100Gb/s\"; latency = \"300ns\"; }; spine_link = { rate = \"200Gb/s\"; latency = "  \
    "\"700ns\"; }; };"
#define NODES                                                                                      \
    "ecmp = \"balanced\"; gpu_nodes = { nodes = 2; gpus = 2; planes = ( 2, 1 ); nvlink = { rate "  \
    "= \"25GB/s\"; latency = \"300ns\"; }; nic = { rate = \"200Gb/s\"; latency = \"300ns\"; }; };" \
    "rails = { leaves = 2; spines = 1; spine_link = { rate = \"200Gb/s\"; latency = \"300ns\"; "   \
    "}; };"

static const struct place {
    const char *name, *conf;
    unsigned per_host;
    uint64_t most; /* elements */
} places[] = {
    {"shared hosts", "mtu = 1024;" SWITCH, 2, 5000},
    {"leaves", "mtu = 1024;" LEAVES, 1, 5000},
    {"leaves that cut through", "mtu = 4096; forwarding = \"cut-through\";" LEAVES, 1, 5000},
    {"costs",
     "mtu = 1024; costs = { gpu = \"2us\"; hca = \"300ns\"; switch = \"100ns\"; network = { "
     "launch = \"4us\"; step = \"1us\"; }; };" SWITCH,
     1, 300},
    {"a short protocol",
     "mtu = 1024; costs = { gpu = \"2us\"; hca = \"300ns\"; network = { launch = \"4us\"; step = "
     "\"1us\"; ll = { step = \"200ns\"; rate = \"5GB/s\"; }; }; };" SWITCH,
     1, 300},
    {"a slow aggregation node",
     "mtu = 1024; costs = { aggregate = { time = \"100ns\"; bytes = 1024; }; };" SWITCH, 1, 300},
    {"GPU nodes", "mtu = 4096;" NODES, 1, 5000},
};

#define RANKS 4u

static struct rte_mempool *pool;

struct fixture {
    struct job *j;
    struct coll_args op;
};

static void args(void *ctx, unsigned rank, struct coll_args *a)
{
    struct fixture *b = ctx;

    *a = b->op;
    a->send = job_buffer(b->j, rank, 0);
    a->recv = job_buffer(b->j, rank, 1);
}

static int64_t run(struct fixture *b)
{
    struct job_loop l = {.n = 1, .args = args, .ctx = b, .limit_ps = PS_PER_S};

    if (job_loop_run(b->j, &l))
        fail_msg("%s", l.text);
    return l.time_ps;
}

/* The second operation, which needs no new connections. */
static int64_t packets(const struct fabric *f, const struct coll_args *a, const uint16_t *hosts)
{
    struct world_cfg wc = {
        .fab = f, .nranks = RANKS, .host_of_rank = hosts, .pool = pool, .seed = 1};
    struct job_cfg jc = {.fab = f,
                         .nranks = RANKS,
                         .host_of_rank = hosts,
                         .group = 1,
                         .key = 7,
                         .algos = 1u << a->algo,
                         .lengths = true,
                         .limit_ps = PS_PER_S};
    struct fixture b = {.op = *a};
    char err[COMM_TEXT] = "";
    int64_t time_ps;

    assert_int_equal(world_create(&jc.w, &wc), 0);
    if (job_create(&b.j, &jc, err))
        fail_msg("%s", err);
    assert_int_equal(job_buffers(b.j, (a->count * 4 + 64) * RANKS), 0);
    run(&b);
    time_ps = run(&b);
    assert_int_equal(job_destroy(b.j), 0);
    world_destroy(jc.w);
    return time_ps;
}

/* By how much the two may differ. */
static int64_t within(const struct coll_args *a)
{
    bool blocks_up_and_down =
        a->algo == ALGO_SHARP && (a->kind == COLL_ALLGATHER || a->kind == COLL_REDUCE_SCATTER);

    if (a->count > 300 || blocks_up_and_down || a->algo == ALGO_NVLS_SHARP)
        return SOME_FRAMES_PS;
    if (a->algo == ALGO_RING || a->algo == ALGO_RINGS || a->algo == ALGO_TREE)
        return a->count > 1 ? SOME_FRAMES_PS : 0;
    return a->kind == COLL_BARRIER ? FRAME_PS : 0;
}

static unsigned compare(const struct fabric *f, const struct place *w, const struct coll_args *a)
{
    uint16_t hosts[RANKS];
    struct coll_prediction p;
    int64_t off;

    for (unsigned r = 0; r < RANKS; r++)
        hosts[r] = (uint16_t)(r / w->per_host);
    if (coll_predict(f, a, RANKS, hosts, 0, 0, &p))
        return 0;
    if (a->algo == ALGO_NVLS_SHARP && a->count == 1) /* less than an element for each GPU */
        return 0;
    off = packets(f, a, hosts) - p.time_ps;
    if (llabs(off) > within(a))
        fail_msg("%s: %s by %s, %zu elements: %ld ps of the model, %ld more of packets", w->name,
                 coll_name(a->kind), sched_algo_name(a->algo), a->count, p.time_ps, off);
    return 1;
}

static void short_operations_take_what_the_model_says(void **state)
{
    static const uint64_t counts[] = {1, 300, 5000};

    (void)state;
    for (const struct place *w = places; w < places + sizeof(places) / sizeof(places[0]); w++) {
        char text[1000];
        struct fabric *f;
        unsigned n = 0;

        snprintf(text, sizeof(text),
                 "name = \"exact\"; %s reduce = { groups = 64; slots = 16384; "
                 "window = 256; };",
                 w->conf);
        f = fabric_load_string(text, "exact.conf", NULL);
        assert_non_null(f);
        for (enum coll_kind k = 0; k < COLL_KINDS; k++)
            for (enum coll_algo a = 0; a < ALGO_SCHEDULE; a++)
                for (unsigned c = 0; c < 3 && counts[c] <= w->most; c++) {
                    const struct coll_args op = {.kind = k,
                                                 .algo = a,
                                                 .type = DT_FP32,
                                                 .count = k == COLL_BARRIER ? 0 : counts[c]};

                    if (!coll_is_protocol(a) && (op.count || !c))
                        n += compare(f, w, &op);
                }
        assert_true(n > 50);
        fabric_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(short_operations_take_what_the_model_says)};

    test_eal_init();
    pool = test_pool(100000);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
