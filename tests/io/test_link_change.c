/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of `trib link`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "io/link_change.h"

static void words_set_what_they_name_and_leave_the_rest(void **state)
{
    static const struct {
        const char *words, *faults;
        int state;
    } rows[] = {
        {"", "loss=0.25 jitter=5ns", LINK_AS_IT_IS},
        {"down", "loss=0.25 jitter=5ns", LINK_DOWN},
        {"down,up", "loss=0.25 jitter=5ns", LINK_UP},
        {"loss=0.1%", "loss=0.001 jitter=5ns", LINK_AS_IT_IS},
        {"loss=0.001", "loss=0.001 jitter=5ns", LINK_AS_IT_IS},
        {"loss=1e-6", "loss=1e-06 jitter=5ns", LINK_AS_IT_IS},
        {"loss=0", "jitter=5ns", LINK_AS_IT_IS},
        {"loss=100%,dup=1,reorder=2%,corrupt=.5",
         "loss=1 dup=1 reorder=0.02 corrupt=0.5 jitter=5ns", LINK_AS_IT_IS},
        {"jitter=1.5us", "loss=0.25 jitter=1500ns", LINK_AS_IT_IS},
        {"jitter=1s", "loss=0.25 jitter=1s", LINK_AS_IT_IS},
        {"clear", "", LINK_AS_IT_IS},
        {"clear,up,dup=1%", "dup=0.01", LINK_UP},
    };
    const struct egress_faults before = {.loss = 0.25, .jitter_ps = 5000, .seed = 7};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct link_change c = {0};
        struct egress_faults f;
        char why[128] = "", text[128];

        assert_int_equal(link_change_parse(&c, rows[i].words, why, sizeof(why)), 0);
        f = link_change_apply(&c, &before, 3);
        link_faults_print(&f, text, sizeof(text));
        assert_string_equal(text, rows[i].faults);
        assert_int_equal(c.state, rows[i].state);
        assert_int_equal(f.seed, 7);
    }
}

static void rate_and_latency_are_set_kept_and_taken_back(void **state)
{
    static const struct {
        const char *words;
        uint64_t rate_bps;
        int64_t latency_ps;
    } rows[] = {
        {"", 7, 8},
        {"loss=1%", 7, 8},
        {"rate=100Gb/s", 100000000000, 8},
        {"latency=1.5us", 7, 1500000},
        {"rate=50GB/s,latency=0ns,down", 400000000000, 0},
        {"clear", 70, 80},
        {"rate=1Gb/s,clear,latency=9ps", 70, 9},
    };
    const struct link_terms now = {7, 8}, conf = {70, 80};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct link_change c = {0};
        struct link_terms t;
        char why[128] = "";

        assert_int_equal(link_change_parse(&c, rows[i].words, why, sizeof(why)), 0);
        t = link_change_terms(&c, &now, &conf);
        assert_int_equal(t.rate_bps, rows[i].rate_bps);
        assert_int_equal(t.latency_ps, rows[i].latency_ps);
    }
}

static void a_seed_gives_every_direction_draws_of_its_own(void **state)
{
    const struct egress_faults before = {.seed = 7};
    struct link_change c = {0};
    char why[128];

    (void)state;
    assert_int_equal(link_change_parse(&c, "seed=12", why, sizeof(why)), 0);
    assert_true(link_change_apply(&c, &before, 0).seed != link_change_apply(&c, &before, 1).seed);
    assert_true(link_change_apply(&c, &before, 0).seed == link_change_apply(&c, &before, 0).seed);
}

static void what_is_refused_says_what_was_found_and_expected(void **state)
{
    static const char *const rows[] = {
        "dwon",      "loss",       "loss=",    "loss=101%", "loss=1.01",  "loss=-1",   "loss=nan",
        "loss=0x1",  "loss=1e-3%", "loss=1%%", "lossy=1",   "los=1",      "=1",        "jitter=5",
        "jitter=2s", "jitter=",    "rate=100", "rate=",     "latency=2s", "latency=1", "seed=-1",
        "seed=",     "seed=1x",    "up=1",     "up,loss=2",
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct link_change c = {0};
        char why[128] = "";

        if (link_change_parse(&c, rows[i], why, sizeof(why)) != -EINVAL)
            fail_msg("%s was taken", rows[i]);
        assert_non_null(strstr(why, "found "));
        assert_non_null(strstr(why, "expected "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_set_what_they_name_and_leave_the_rest),
        cmocka_unit_test(rate_and_latency_are_set_kept_and_taken_back),
        cmocka_unit_test(a_seed_gives_every_direction_draws_of_its_own),
        cmocka_unit_test(what_is_refused_says_what_was_found_and_expected),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
