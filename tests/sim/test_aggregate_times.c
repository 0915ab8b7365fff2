/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time that aggregation nodes take for a piece (`costs.aggregate`), from far below to far above
 * the time of a frame on a link, on trees of one to three levels: an operation's time never falls
 * when the piece's grows, and is the model's. Pieces fall due when frames arrive: neither puts off
 * the other. STEP=1: every nanosecond; without it a few, and those about the time of a frame.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/predict.h"
#include "sim/job/sim_job.h"
#include "tests/support/eal.h"

#define LINK "{ rate = \"400Gb/s\"; latency = \"300ns\"; }"
enum { FRAME_NS = 84, RANKS = 6 };

static const uint16_t hosts[RANKS] = {0, 1, 2, 3, 4, 5};
static const char *const trees[] = {
    "single_switch = { hosts = 6; host_link = " LINK "; };",
    "leaf_spine = { leaves = 2; spines = 1; hosts_per_leaf = 3; host_link = " LINK
    "; spine_link = " LINK "; };",
    "gpu_nodes = { nodes = 3; gpus = 2; planes = ( 1 ); nvlink = " LINK "; nic = " LINK "; };\n"
    "rails = { unit = 1; leaves = 1; spines = 3; pods = 3; cores = 1; spine_link = " LINK
    "; core_link = " LINK "; };",
};
static struct rte_mempool *pool;
static struct job *job;

static void args(void *ctx, unsigned rank, struct coll_args *a)
{
    *a = *(struct coll_args *)ctx;
    a->send = job_buffer(job, rank, 0);
    a->recv = job_buffer(job, rank, 1);
}

/* Time of the second operation, which needs no new connections. */
static int64_t simulated_ps(const struct fabric *f, struct coll_args *a)
{
    struct world_cfg wc = {
        .fab = f, .nranks = RANKS, .host_of_rank = hosts, .pool = pool, .seed = 1};
    struct job_cfg jc = {.fab = f,
                         .nranks = RANKS,
                         .host_of_rank = hosts,
                         .group = 1,
                         .key = 7,
                         .algos = 1u << ALGO_SHARP,
                         .lengths = true,
                         .limit_ps = PS_PER_S};
    struct job_loop l = {.n = 1, .args = args, .ctx = a, .limit_ps = PS_PER_S};
    char err[COMM_TEXT] = "";

    assert_int_equal(world_create(&jc.w, &wc), 0);
    if (job_create(&job, &jc, err))
        fail_msg("%s", err);
    assert_int_equal(job_buffers(job, a->count * 4), 0);
    for (unsigned i = 0; i < 2; i++)
        if (job_loop_run(job, &l))
            fail_msg("%s", l.text);
    assert_int_equal(job_destroy(job), 0);
    world_destroy(jc.w);
    return l.time_ps;
}

static void times_grow_with_that_of_a_piece(void **state)
{
    const char *env = getenv("STEP");
    unsigned step = env ? (unsigned)atoi(env) : 0, rows = 0;
    struct coll_args op = {
        .kind = COLL_ALLREDUCE, .algo = ALGO_SHARP, .type = DT_FP32, .op = OP_SUM, .count = 65536};

    (void)state;
    for (unsigned t = 0; t < sizeof(trees) / sizeof(trees[0]); t++) {
        int64_t before = 0;
        double low = 2, high = 0;

        for (unsigned ns = 10; ns <= 1000;) {
            char text[1024];
            struct coll_prediction p;
            struct fabric *f;
            int64_t ps;

            snprintf(text, sizeof(text),
                     "name = \"tree\"; ecmp = \"balanced\";\n%s\n"
                     "reduce = { groups = 4; slots = 4096; window = 1024; };\n"
                     "costs = { aggregate = { time = \"%uns\"; bytes = 4096; }; };\n",
                     trees[t], ns);
            f = fabric_load_string(text, "tree.conf", NULL);
            assert_non_null(f);
            ps = simulated_ps(f, &op);
            assert_int_equal(coll_predict(f, &op, RANKS, hosts, 0, 0, &p), 0);
            fabric_free(f);
            low = RTE_MIN(low, (double)ps / (double)p.time_ps);
            high = RTE_MAX(high, (double)ps / (double)p.time_ps);
            if (ps < before || low < 0.99 || high > 1.01)
                fail_msg("%u levels, %u ns: %.3f us after %.3f, of the model %.4f", t + 1, ns,
                         (double)ps / 1e6, (double)before / 1e6, (double)ps / (double)p.time_ps);
            before = ps;
            rows++;
            ns += step                                      ? step
                  : ns + 4 >= FRAME_NS && ns < FRAME_NS + 4 ? 1
                  : ns < FRAME_NS                           ? 14
                                                            : 151;
        }
        print_message("%u levels: %.4f to %.4f of the model\n", t + 1, low, high);
    }
    print_message("%u times\n", rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_grow_with_that_of_a_piece),
    };

    test_eal_init();
    pool = test_pool(30000);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
