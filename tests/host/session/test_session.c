/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process has without a fabric: messages, registered memory, and refusals. */
#include "host/session/session.h"

#include <tributary/time.h>

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint8_t memory[1000];

static void ranges_hold_what_is_within_them(void **state)
{
    static const struct {
        size_t at, bytes;
        int range; /* 0: [100, 200), 1: [500, 1000); -1: none */
    } rows[] = {
        {100, 100, 0}, {100, 0, 0},   {199, 1, 0},  {200, 0, 0},    {100, 101, -1},
        {99, 1, -1},   {99, 2, -1},   {199, 2, -1}, {200, 1, -1},   {150, 50, 0},
        {150, 51, -1}, {500, 500, 1}, {999, 1, 1},  {501, 500, -1}, {300, 10, -1},
    };
    const size_t base[2] = {100, 500}, size[2] = {100, 500};

    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(trib_register(memory + base[i], size[i]), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t whole = 0;
        void *at = NULL;
        bool in = session_range_of(memory + rows[i].at, rows[i].bytes, &at, &whole);

        assert_int_equal(in, rows[i].range >= 0);
        if (in) {
            assert_ptr_equal(at, memory + base[rows[i].range]);
            assert_int_equal(whole, size[rows[i].range]);
        }
    }
    assert_int_equal(trib_deregister(memory), -ENOENT);
    assert_int_equal(trib_deregister(memory + 101), -ENOENT);
    assert_int_equal(trib_deregister(memory + 100), 0);
    assert_int_equal(trib_deregister(memory + 100), -ENOENT);
    void *at;
    size_t whole;
    assert_false(session_range_of(memory + 100, 1, &at, &whole));
    assert_true(session_range_of(memory + 500, 1, &at, &whole));
    assert_int_equal(trib_deregister(memory + 500), 0);
}

static void ranges_are_there_and_do_not_wrap(void **state)
{
    void *last = (void *)(UINTPTR_MAX - 7);

    (void)state;
    assert_int_equal(trib_register(NULL, 1), -EINVAL);
    assert_int_equal(trib_register(memory, 0), -EINVAL);
    assert_int_equal(trib_register(last, 8), -EINVAL);
    assert_int_equal(trib_register(last, 7), 0);
    assert_int_equal(trib_deregister(last), 0);
}

static void messages_are_optional(void **state)
{
    char err[TRIB_TEXT];

    (void)state;
    assert_int_equal(session_say(NULL, -5, "%s", "x"), -5);
    assert_int_equal(session_say(err, -5, "%s %d", "x", 7), -5);
    assert_string_equal(err, "x 7");
}

static void without_a_fabric_there_is_no_session(void **state)
{
    static const char missing[] = "found no TRIB_RUN and TRIB_HOST, expected a program that is run "
                                  "by trib exec CONF HOST -- PROGRAM";
    char err[TRIB_TEXT];

    (void)state;
    for (unsigned i = 0; i < 4; i++) { /* neither, one, or empty ones */
        unsetenv("TRIB_RUN"), unsetenv("TRIB_HOST");
        if (i == 1)
            setenv("TRIB_RUN", "/nonexistent", 1);
        if (i == 2)
            setenv("TRIB_HOST", "h0", 1);
        if (i == 3)
            setenv("TRIB_RUN", "", 1), setenv("TRIB_HOST", "h0", 1);
        *err = '\0';
        assert_null(session_get(err));
        assert_string_equal(err, missing);
        assert_true(trib_time_ps() == 0);
    }
    setenv("TRIB_RUN", "/nonexistent", 1);
    assert_null(session_get(err));
    assert_string_equal(err, "cannot open the run directory /nonexistent: is the fabric up?");
    unsetenv("TRIB_RUN");
    assert_int_equal(trib_coll_version(), TRIB_COLL_VERSION);
}

static void computation_needs_a_fabric_and_a_time(void **state)
{
    static const double wrong[] = {-1e-9, -1, 1.0000001e12, NAN, INFINITY};

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_true(trib_compute(wrong[i]) == -EINVAL);
    assert_true(trib_compute(0) == -ENODEV);
    assert_true(trib_compute(1e12) == -ENODEV);
    assert_int_equal(trib_compute_begin(), -ENODEV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_hold_what_is_within_them),
        cmocka_unit_test(ranges_are_there_and_do_not_wrap),
        cmocka_unit_test(messages_are_optional),
        cmocka_unit_test(without_a_fabric_there_is_no_session),
        cmocka_unit_test(computation_needs_a_fabric_and_a_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
