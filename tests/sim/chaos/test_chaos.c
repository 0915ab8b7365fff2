/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The safety net: cases from seeds in virtual time (sim/chaos/chaos.h). SEEDS (environment, default
 * 600) from 1 on; `make chaos` runs more of them, `trib sim --chaos N` one again. What seeds once
 * found is in tests/chaos/cases (test_cases.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/chaos/chaos_priv.h"
#include "tests/support/eal.h"

static struct rte_mempool *pool;
static uint64_t seeds = 600;

static bool run(uint64_t seed, struct chaos_report *rep)
{
    struct chaos_cfg cfg = {.seed = seed, .conf_dir = "conf", .pool = pool};

    chaos_run(&cfg, rep);
    if (!rep->ok)
        print_message("seed %lu: %s\n  %s\n  replay: trib sim --chaos %lu\n", seed, rep->what,
                      rep->verdict, seed);
    return rep->ok;
}

static void every_seed_ends_as_it_may_and_leaves_nothing(void **state)
{
    unsigned failed = 0, errors = 0, fell = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= seeds && failed < 10; seed++) {
        struct chaos_report rep;

        failed += !run(seed, &rep);
        errors += rep.failed;
        fell += rep.fell_back;
    }
    print_message("%lu seeds: %u ended with named errors, %u without aggregation nodes\n", seeds,
                  errors, fell);
    assert_int_equal(failed, 0);
    assert_true(seeds < 100 || (errors > seeds / 20 && errors < seeds / 3 && fell));
}

static void one_seed_twice_gives_identical_traces(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= seeds; seed += 1 + seeds / 12) {
        struct chaos_report a, b;

        run(seed, &a);
        run(seed, &b);
        assert_true(a.frames > 0);
        assert_true(a.trace_hash == b.trace_hash);
        assert_true(a.fabric_ps == b.fabric_ps && a.frames == b.frames);
        assert_string_equal(a.verdict, b.verdict);
    }
}

/* A rank has died between two operations, and all ranks were notified, before the next operation is
 * drawn: the communicator supports none any more, and each rank reports why. */
static void an_operation_of_a_failed_communicator_is_drawn_and_refused(void **state)
{
    static const enum coll_algo sharp[] = {ALGO_SHARP};
    struct fabric *f = fabric_load("conf/rail-2x8.conf", NULL);
    uint16_t hosts[2] = {0, 1};
    struct world_cfg wc = {.fab = f, .nranks = 2, .host_of_rank = hosts, .pool = pool, .seed = 1};
    struct job_cfg jc = {.fab = f,
                         .nranks = 2,
                         .host_of_rank = hosts,
                         .group = 1,
                         .n_trees = 1,
                         .algos = 1u << ALGO_SHARP | 1u << ALGO_RING,
                         .policy = sharp,
                         .n_policy = 1,
                         .buffer_bytes = CHAOS_BUFFER + 64,
                         .limit_ps = PS_PER_S};
    static const struct chaos_cfg drawn;
    struct chaos_case k = {
        .cfg = &drawn, .fab = f, .job = {{.nranks = 2, .algos = jc.algos, .bytes = CHAOS_BUFFER}}};
    struct job_result res;
    char err[COMM_TEXT];
    struct job *j;

    (void)state;
    assert_non_null(f);
    assert_int_equal(world_create(&jc.w, &wc), 0);
    if (job_create(&j, &jc, err))
        fail_msg("%s", err);
    world_kill(jc.w, 1);
    job_notify_death(j, 1);
    for (unsigned i = 0; i < 10; i++) {
        struct job_op op = {0};

        chaos_draw_op(&k, k.job, job_comm(j, 0), &op);
        assert_true(k.job[0].algos >> op.algo & 1);
        assert_int_equal(job_run(j, &op, &res), 0);
        assert_int_equal(res.failed_ranks, 1);
        assert_non_null(strstr(res.text, "rank 1 (n0g1) has died"));
    }
    job_destroy(j);
    world_destroy(jc.w);
    fabric_free(f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_seed_ends_as_it_may_and_leaves_nothing),
        cmocka_unit_test(one_seed_twice_gives_identical_traces),
        cmocka_unit_test(an_operation_of_a_failed_communicator_is_drawn_and_refused),
    };

    if (getenv("SEEDS"))
        seeds = strtoull(getenv("SEEDS"), NULL, 0);
    test_eal_init();
    pool = test_pool(CHAOS_FRAMES);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
