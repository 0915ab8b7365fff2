/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that come, close and come again under the same number are watched as what they are now. */
#include "machine/watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#define MANY 300

static void says_which_are_ready(void **state)
{
    int pipes[MANY][2];
    struct watch w;

    (void)state;
    assert_int_equal(watch_create(&w, MANY), 0);
    assert_int_equal(watch_look(&w, MANY), 0);
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(pipe(pipes[i]), 0);
        watch_set(&w, i, pipes[i][0]);
    }
    assert_int_equal(watch_look(&w, MANY), 0);
    assert_int_equal(write(pipes[7][1], "x", 1), 1);
    assert_int_equal(watch_look(&w, MANY), 1);
    assert_true(w.ready[7] && !w.ready[6]);
    assert_int_equal(watch_look(&w, MANY), 1); /* it still is */
    for (unsigned i = 0; i < MANY; i++)
        close(pipes[i][1]); /* all have an end to tell */
    assert_int_equal(watch_look(&w, MANY), MANY);
    for (unsigned i = 0; i < MANY; i++)
        close(pipes[i][0]);
    assert_int_equal(watch_look(&w, MANY), 0);
    watch_destroy(&w);
}

static void knows_a_number_that_is_used_again(void **state)
{
    int a[2], b[2];
    struct watch w;

    (void)state;
    assert_int_equal(watch_create(&w, 2), 0);
    assert_int_equal(pipe(a), 0);
    watch_set(&w, 0, a[0]);
    close(a[0]);
    assert_int_equal(pipe(b), 0);
    assert_int_equal(b[0], a[0]); /* the lowest number that is free */
    watch_set(&w, 1, b[0]);
    assert_int_equal(write(b[1], "x", 1), 1);
    assert_int_equal(watch_look(&w, 2), 1);
    assert_true(w.ready[1] && !w.ready[0]);
    watch_set(&w, 1, b[0]); /* no change */
    assert_int_equal(watch_look(&w, 2), 1);
    close(b[0]);
    assert_int_equal(pipe(b), 0);
    watch_set(&w, 1, b[0]); /* another one by the number of before */
    assert_int_equal(watch_look(&w, 2), 0);
    watch_set(&w, 1, -1);
    close(b[0]);
    close(a[1]);
    watch_destroy(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_which_are_ready),
        cmocka_unit_test(knows_a_number_that_is_used_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
