/* SPDX-License-Identifier: BSD-3-Clause */
/* A row of which a rank's answer is of no use ends with that command, whichever it is. */
#include "tests/host/launch/far_row.h"

#include <errno.h>
#include <string.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static const char *const lines[] = {
    "prepare all_reduce ring float sum root 0 4 sampled 1 in 0 self 0 bound 0\n", "run 1\n",
    "run 20\n", "check again 0 late 0 after 0 ways 1\n", "error\n"};

/* The first so many commands. */
static const char *log_of(unsigned n)
{
    static char text[512];

    *text = 0;
    for (unsigned i = 0; i < n; i++)
        strcat(text, lines[i]);
    return text;
}

static void a_row_ends_with_the_command_that_failed(void **state)
{
    static const struct {
        unsigned fails_at;
        bool timed, checked;
    } rows[] = {
        {1, false, false}, {2, false, false}, {3, false, false}, {4, true, false}, {5, true, true},
    };

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        struct fixture *b = set_up(1e-6);
        const struct run_result *run = &b->r.run[OUT_OF_PLACE];

        b->o.error = true;
        b->script.fails_at = rows[i].fails_at;
        if (place(b, OUT_OF_PLACE) >= 0)
            fail_msg("command %u has not failed", rows[i].fails_at);
        assert_string_equal(b->play.log, log_of(rows[i].fails_at));
        assert_non_null(strstr(b->j.cause, "rank 1 (h1, pid 1): unusable answer"));
        assert_int_equal(run->valid, rows[i].timed);
        assert_int_equal(run->checked, rows[i].checked);
        assert_string_equal(run->fell_back, "");
        assert_int_equal(b->s.unmeasured, 0);
        tear_down(b);
    }
}

/* Ranks have said already which algorithm would run instead. */
static void nothing_is_predicted_of_a_row_that_failed(void **state)
{
    struct fixture *b = set_up(1e-6);

    (void)state;
    b->script.instead = ALGO_SHARP;
    b->script.fails_at = 1;
    assert_true(place(b, OUT_OF_PLACE) < 0);
    assert_string_equal(b->play.log, log_of(1));
    assert_int_equal(b->s.tries_algo, ALGO_RING);
    tear_down(b);
}

/* The check of a barrier has a command for each rank. */
static void a_barriers_checks_end_with_the_one_that_failed(void **state)
{
    struct fixture *b = set_up(1e-3);

    (void)state;
    b->r.coll = COLL_BARRIER;
    b->r.algo = ALGO_DIRECT;
    b->r.count = b->r.bytes = 0;
    b->script.fails_at = 5;
    assert_true(place(b, OUT_OF_PLACE) < 0);
    assert_string_equal(strstr(b->play.log, "check"),
                        "check again 0 late 0 after 4000000 ways 0\n"
                        "check again 0 late 1 after 4000000 ways 0\n");
    assert_false(b->r.run[OUT_OF_PLACE].checked);
    tear_down(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_ends_with_the_command_that_failed),
        cmocka_unit_test(nothing_is_predicted_of_a_row_that_failed),
        cmocka_unit_test(a_barriers_checks_end_with_the_one_that_failed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
