/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times in virtual time against theory: F21 (ring), F25 (SHARP), and the model's
 * prediction.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>

#include "model/predict.h"
#include "tests/sim/one_job.h"
#include "tests/support/eal.h"

#define BYTES (16u << 20)
/* Payload per link byte of a full packet at MTU 4096: Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4,
 * link 24. */
#define PACKET_EFFICIENCY (4096.0 / (4096 + 82))

static const uint16_t hosts[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static struct rte_mempool *pool;

static void up(struct one_job *b, const char *conf, unsigned n)
{
    struct job_cfg jc = {.nranks = n,
                         .host_of_rank = hosts,
                         .algos = 1 << ALGO_RING | 1 << ALGO_SHARP,
                         .limit_ps = 10 * PS_PER_S};

    one_job_up(b, conf, pool, jc);
}

static double timed(struct one_job *b, unsigned n, enum coll_algo algo, bool in_place)
{
    struct job_op op = {
        .algo = algo, .type = DT_FP32, .op = OP_SUM, .count = BYTES / 4, .in_place = in_place};
    struct coll_args a = {
        .kind = COLL_ALLREDUCE, .algo = algo, .count = BYTES / 4, .type = DT_FP32, .op = OP_SUM};
    struct coll_prediction p;
    struct job_result res;

    op.seed = 3;
    assert_int_equal(job_run(b->j, &op, &res), 0);
    assert_int_equal(res.wrong, 0);
    assert_int_equal(res.failed_ranks, 0);
    assert_int_equal(coll_predict(b->f, &a, n, hosts, 0, 0, &p), 0);
    print_message("%s %u ranks 16 MiB%s: %.2f us, model %.2f us, ratio %.4f\n",
                  algo == ALGO_RING ? "ring" : "sharp", n, in_place ? " in place" : "",
                  (double)res.time_ps / 1e6, (double)p.time_ps / 1e6,
                  (double)res.time_ps / (double)p.time_ps);
    assert_true((double)res.time_ps > 0.995 * (double)p.time_ps);
    assert_true((double)res.time_ps < 1.005 * (double)p.time_ps);
    return (double)res.time_ps / 1e12;
}

static void check(const char *conf, unsigned n)
{
    struct one_job b;
    double ring, sharp, w = 50e9 * PACKET_EFFICIENCY, gain = 2.0 * (n - 1) / n;

    up(&b, conf, n);
    ring = timed(&b, n, ALGO_RING, false);
    sharp = timed(&b, n, ALGO_SHARP, false);
    /* F21: 2 B (N - 1) / (N W); F25: B / W. Latency and headers of messages are within 4 %. */
    assert_true(ring >= gain * BYTES / w && ring < 1.04 * gain * BYTES / w);
    assert_true(sharp >= BYTES / w && sharp < 1.04 * BYTES / w);
    print_message("SHARP over ring: %.3f, theory %.3f\n", ring / sharp, gain);
    assert_true(ring / sharp > 0.96 * gain);
    timed(&b, n, ALGO_RING, true);
    timed(&b, n, ALGO_SHARP, true);
    one_job_down(&b);
}

static void f21_f25_eight_hosts_on_two_leaves(void **state)
{
    (void)state;
    check("conf/leaf-spine-8.conf", 8);
}

static void f21_f25_four_hosts_on_one_switch(void **state)
{
    (void)state;
    check("conf/single-switch-4.conf", 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f21_f25_four_hosts_on_one_switch),
        cmocka_unit_test(f21_f25_eight_hosts_on_two_leaves),
    };

    test_eal_init();
    pool = test_pool(60000);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
