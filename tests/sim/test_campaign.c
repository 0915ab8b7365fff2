/*
 * The safety net: random scenarios in virtual time. With arguments it replays:
 *   test_campaign                 SEEDS seeds (environment, default 1,000) from 1, a few of them
 * twice test_campaign --seed N        one seed, with what it was test_campaign --seeds A B seeds
 * A..B
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario.h"
#include "tests/support/eal.h"

static struct rte_mempool *pool;
static uint64_t first = 1, last;

static void report(uint64_t seed, const struct scenario_report *rep)
{
    print_message("seed %lu: %s\n  %s\n  %lu frames, %.3f ms of fabric time, trace %016lx\n", seed,
                  rep->what, rep->ok ? "ok" : rep->why, (unsigned long)rep->frames,
                  rep->fabric_ps / 1e9, (unsigned long)rep->trace_hash);
    if (!rep->ok)
        print_message("  replay: build/tests/sim/test_campaign --seed %lu\n", seed);
}

static void every_seed_gives_exact_results_and_leaks_nothing(void **state)
{
    unsigned failed = 0;

    (void)state;
    for (uint64_t seed = first; seed <= last; seed++) {
        struct scenario_report rep;

        scenario_run(seed, pool, &rep);
        if (!rep.ok || first == last) {
            report(seed, &rep);
            failed += !rep.ok;
        }
        assert_true(failed < 10);
    }
    assert_int_equal(failed, 0);
}

static void one_seed_twice_gives_identical_traces(void **state)
{
    (void)state;
    for (uint64_t seed = first; seed <= last; seed += 1 + (last - first) / 6) {
        struct scenario_report a, b;

        scenario_run(seed, pool, &a);
        scenario_run(seed, pool, &b);
        assert_true(a.frames > 0);
        assert_true(a.trace_hash == b.trace_hash);
        assert_true(a.fabric_ps == b.fabric_ps && a.frames == b.frames);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_seed_gives_exact_results_and_leaks_nothing),
        cmocka_unit_test(one_seed_twice_gives_identical_traces),
    };
    const char *env = getenv("SEEDS");

    last = env ? strtoull(env, NULL, 0) : 1000;
    if (argc == 3 && !strcmp(argv[1], "--seed"))
        first = last = strtoull(argv[2], NULL, 0);
    else if (argc == 4 && !strcmp(argv[1], "--seeds"))
        first = strtoull(argv[2], NULL, 0), last = strtoull(argv[3], NULL, 0);
    test_eal_init();
    pool = test_pool(60000);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
