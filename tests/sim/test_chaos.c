/*
 * The safety net: cases from seeds in virtual time (sim/chaos.h). SEEDS (environment, default 600)
 * from 1 on; `make chaos` runs more of them, `trib sim --chaos N` one again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/chaos.h"
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

/* Seeds that have failed once. */
static void what_was_found_stays_mended(void **state)
{
    static const struct {
        uint64_t seed;
        const char *was;
    } found[] = {
        {38, "NVLS of two ranks on a GPU: a plane each for one of them, four for the others"},
        {740, "the same beside a lossy link"},
        {141, "a host's link down, a rank that only waits: no end"},
        {341, "the same, between leaf and core"},
        {371, "a rank below a link that is down waits for the answer to what it falls back to"},
        {427, "a leaf cut off in a tree"},
        {477, "a leaf down"},
        {504, "a link down under a job that fell back before"},
        {577, "half of the fabric cut off, while falling back"},
        {669, "a plane that is down and up, then one link of it down"},
        {755, "a host that dies and nobody tells"},
        {932, "a ring over a slow host and a link that is down"},
        {201838, "hier_sharp without its rails goes on by trees that have failed before"},
        {203672, "a barrier by what has none: refused by who had not heard of a failure, no end"},
        {200854, "what a NIC says of a process that ended is lost on its link: a group for ever"},
        {203691, "the same under three switches"},
        {202454, "a packet lost eight times on six lossy links is no fault of ours"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
        struct chaos_report rep;

        if (!run(found[i].seed, &rep))
            fail_msg("seed %lu was: %s", found[i].seed, found[i].was);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_seed_ends_as_it_may_and_leaves_nothing),
        cmocka_unit_test(one_seed_twice_gives_identical_traces),
        cmocka_unit_test(what_was_found_stays_mended),
    };

    if (getenv("SEEDS"))
        seeds = strtoull(getenv("SEEDS"), NULL, 0);
    test_eal_init();
    pool = test_pool(CHAOS_FRAMES);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
