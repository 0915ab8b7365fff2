/* SPDX-License-Identifier: BSD-3-Clause */
/* Predictions of the cost model (model/cost_model.h) equal simulated times. */
#include "collective/sched.h"
#include "model/predict.h"
#include "sim/job/sim_job.h"
#include "tests/support/eal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

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

/* Seconds of the second operation, which needs no new connections. */
static double packets(const struct fabric *f, const struct coll_args *a, unsigned n,
                      const uint16_t *hosts)
{
    struct world_cfg wc = {.fab = f, .nranks = n, .host_of_rank = hosts, .pool = pool, .seed = 1};
    struct job_cfg jc = {.fab = f,
                         .nranks = n,
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
    assert_int_equal(job_buffers(b.j, a->count * 4 * n), 0);
    run(&b);
    time_ps = run(&b);
    assert_int_equal(job_destroy(b.j), 0);
    world_destroy(jc.w);
    return (double)time_ps * 1e-12;
}

static const struct row {
    const char *conf;
    enum coll_kind kind;
    enum coll_algo algo;
    unsigned n;
    uint64_t bytes; /* of the whole vector */
    double within;
} rows[] = {
    {"conf/leaf-spine-8.conf", COLL_ALLREDUCE, ALGO_RING, 8, 1 << 20, 0.01},
    {"conf/leaf-spine-8.conf", COLL_ALLREDUCE, ALGO_DIRECT, 8, 1 << 16, 0.025},
    {"conf/leaf-spine-8.conf", COLL_ALLREDUCE, ALGO_DIRECT, 8, 1 << 22, 0.01},
    {"conf/leaf-spine-8.conf", COLL_ALLGATHER, ALGO_DIRECT, 8, 1 << 20, 0.015},
    {"conf/leaf-spine-8.conf", COLL_ALLGATHER, ALGO_HALVING, 8, 1 << 20, 0.03},
    {"conf/leaf-spine-8.conf", COLL_ALLGATHER, ALGO_HALVING, 8, 1 << 22, 0.03},
    {"conf/leaf-spine-8.conf", COLL_REDUCE_SCATTER, ALGO_HALVING, 8, 1 << 20, 0.03},
    {"conf/h100-node.conf", COLL_ALLREDUCE, ALGO_DIRECT, 8, 1 << 18, 0.01},
    {"conf/h100-node.conf", COLL_ALLREDUCE, ALGO_DIRECT, 8, 1 << 24, 0.01},
    {"conf/h100-node.conf", COLL_ALLGATHER, ALGO_DIRECT, 8, 1 << 18, 0.01},
    {"conf/h100-node.conf", COLL_ALLGATHER, ALGO_DIRECT, 8, 1 << 22, 0.01},
    {"conf/h100-node.conf", COLL_REDUCE_SCATTER, ALGO_DIRECT, 8, 1 << 22, 0.01},
    {"conf/h100-node.conf", COLL_ALLGATHER, ALGO_HALVING, 8, 1 << 22,
     0.025}, /* four planes, two rates */
    {"conf/h100-node.conf", COLL_ALLREDUCE, ALGO_HALVING, 8, 1 << 24, 0.03},
    {"conf/npu-star-8.conf", COLL_ALLGATHER, ALGO_HALVING, 8, 1 << 22, 0.01},
    {"conf/rail-2x8.conf", COLL_ALLREDUCE, ALGO_HIER, 16, 1 << 22, 0.01},
};

static void the_model_is_what_packets_take(void **state)
{
    uint16_t hosts[16];
    unsigned bad = 0;

    (void)state;
    for (unsigned r = 0; r < 16; r++)
        hosts[r] = (uint16_t)r;
    for (const struct row *w = rows; w < rows + sizeof(rows) / sizeof(rows[0]); w++) {
        struct fabric *f = fabric_load(w->conf, NULL);
        struct coll_args a = {
            .kind = w->kind, .algo = w->algo, .type = DT_FP32, .count = w->bytes / 4};
        struct coll_prediction p;
        double got, ratio;

        assert_non_null(f);
        if (w->kind != COLL_ALLREDUCE)
            a.count /= w->n;
        assert_int_equal(coll_predict(f, &a, w->n, hosts, 0, 0, &p), 0);
        got = packets(f, &a, w->n, hosts);
        ratio = got / ((double)p.time_ps * 1e-12);
        print_message("%-24s %-14s %-8s %8llu bytes: %.2f us, of the model %.4f\n", w->conf,
                      coll_name(w->kind), sched_algo_name(w->algo), (unsigned long long)w->bytes,
                      got * 1e6, ratio);
        if (ratio < 1 - w->within || ratio > 1 + w->within) {
            print_error("not within %g %%\n", 100 * w->within);
            bad++;
        }
        fabric_free(f);
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_model_is_what_packets_take)};

    test_eal_init();
    pool = test_pool(100000);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
