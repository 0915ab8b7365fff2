/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole cases as seeds draw them, and how some of them end (tests/sim/chaos/expected/). Where draws are
 * meant to change, EXPECTED=write makes the files anew.
 */
#include "sim/chaos/case.h"
#include "tests/sim/chaos/draws.h"
#include "tests/support/eal.h"
#include "tests/support/expected.h"

#include <inttypes.h>

#define DRAWN 60u

static struct rte_mempool *pool;

/* In the order of a run. */
static void print_drawn(const struct chaos_cfg *cfg, uint64_t seed, FILE *out)
{
    struct chaos_report rep = {.ok = true};
    struct chaos_case k = {.cfg = cfg, .rep = &rep, .seed = seed};
    int rc;

    draws_of(&k, seed);
    rc = chaos_draw_fabric(&k, rep.verdict);
    rc = rc ? rc : chaos_draw_ranks(&k);
    if (!rc) {
        chaos_draw_jobs(&k);
        rc = chaos_draw_faults(&k);
        chaos_draw_bytes(&k);
    }
    fprintf(out, "## %" PRIu64 ": %d\n", seed, rc);
    if (!rc)
        case_print(&k, out, "drawn");
    fault_plan_free(&k.plan);
    fabric_free(k.own);
    free(k.conf_text);
}

static void cases_are_drawn_as_they_were(void **state)
{
    const struct chaos_cfg cfg = {.conf_dir = "conf", .pool = pool},
                           asked = {.conf_dir = "conf", .pool = pool, .algo = ALGO_PROTOCOL};
    struct expected e;

    (void)state;
    expected_begin(&e);
    for (uint64_t seed = 1; seed <= DRAWN; seed++)
        print_drawn(seed % 10 ? &cfg : &asked, seed, e.out);
    expected_same(&e, "tests/sim/chaos/expected/drawn");
}

static void seeds_end_as_they_did(void **state)
{
    struct expected e;

    (void)state;
    expected_begin(&e);
    for (uint64_t seed = 1; seed <= 6; seed++) {
        const struct chaos_cfg cfg = {.conf_dir = "conf", .pool = pool, .seed = seed};
        struct chaos_report r;

        chaos_run(&cfg, &r);
        fprintf(e.out, "%s\n  %s%s, %" PRIu64 " frames, %" PRId64 " ps%s%s\n", r.what,
                r.ok ? "" : "WRONG ", r.verdict, r.frames, r.fabric_ps,
                r.fell_back ? ", fell back" : "", r.failed ? ", failed" : "");
        assert_true(r.ok);
    }
    expected_same(&e, "tests/sim/chaos/expected/ended");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_are_drawn_as_they_were),
        cmocka_unit_test(seeds_end_as_they_did),
    };

    test_eal_init();
    pool = test_pool(CHAOS_FRAMES);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
