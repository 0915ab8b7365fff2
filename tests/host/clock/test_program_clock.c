/* SPDX-License-Identifier: BSD-3-Clause */
/* The system's clocks as fabric time: what programs read, and how long they wait for it. */
#include "host/clock/program_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#define SECOND 1000000000LL

static struct clock_page page;
static struct shared view;

static int fresh(void **state)
{
    (void)state;
    memset(&page, 0, sizeof(page));
    clock_set_dilation(&page, 1000);
    view.clock = &page;
    return 0;
}

static int64_t real_ns(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return ns_of_timespec(&ts);
}

static void ids_belong_to_one_of_two_clocks_or_stay(void **state)
{
    static const struct {
        clockid_t id;
        int clock;
    } rows[] = {
        {CLOCK_REALTIME, PROGRAM_REALTIME},
        {CLOCK_MONOTONIC, PROGRAM_MONOTONIC},
        {CLOCK_MONOTONIC_RAW, PROGRAM_MONOTONIC},
        {CLOCK_REALTIME_COARSE, PROGRAM_REALTIME},
        {CLOCK_MONOTONIC_COARSE, PROGRAM_MONOTONIC},
        {CLOCK_BOOTTIME, PROGRAM_MONOTONIC},
        {CLOCK_PROCESS_CPUTIME_ID, -1},
        {CLOCK_THREAD_CPUTIME_ID, -1},
        {-6, -1}, /* of another process, of a device */
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(program_clock_of(rows[i].id), rows[i].clock);
}

static void clocks_start_at_the_systems_and_run_dilated(void **state)
{
    int64_t mono = real_ns(CLOCK_MONOTONIC), real = real_ns(CLOCK_REALTIME), a[2], b[2];
    int64_t before, after, took;

    (void)state;
    assert_in_range(mono - program_clock_ns(&view, PROGRAM_MONOTONIC) + SECOND, SECOND, 2 * SECOND);
    assert_in_range(real - program_clock_ns(&view, PROGRAM_REALTIME) + SECOND, SECOND, 2 * SECOND);
    before = real_ns(CLOCK_MONOTONIC); /* others may have the CPU between any two lines */
    for (int c = 0; c < PROGRAM_CLOCKS; c++)
        a[c] = program_clock_ns(&view, (enum program_clock)c);
    after = real_ns(CLOCK_MONOTONIC);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    took = real_ns(CLOCK_MONOTONIC) - after;
    for (int c = 0; c < PROGRAM_CLOCKS; c++) {
        b[c] = program_clock_ns(&view, (enum program_clock)c);
        assert_true(b[c] - a[c] >= took / 1000 - 1);
        assert_true(b[c] - a[c] <= (real_ns(CLOCK_MONOTONIC) - before) / 1000 + 1);
    }
}

/* Up and down by much, while they are read. */
static void *change_dilation(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 400; i++)
        clock_set_dilation(&page, i % 3 == 0 ? 20000 : i % 3);
    return NULL;
}

static void clocks_never_go_back_or_jump_when_the_dilation_changes(void **state)
{
    int64_t last[PROGRAM_CLOCKS], read_ns[PROGRAM_CLOCKS], offset, now, before;
    pthread_t t;

    (void)state;
    for (int c = 0; c < PROGRAM_CLOCKS; c++) {
        read_ns[c] = real_ns(CLOCK_MONOTONIC);
        last[c] = program_clock_ns(&view, (enum program_clock)c);
    }
    offset = page.start_real_ns - page.start_ns;
    assert_int_equal(pthread_create(&t, NULL, change_dilation, NULL), 0);
    while (pthread_tryjoin_np(t, NULL)) {
        for (int c = 0; c < PROGRAM_CLOCKS; c++) {
            before = real_ns(CLOCK_MONOTONIC);
            now = program_clock_ns(&view, (enum program_clock)c);
            assert_true(now >= last[c]);
            /* never faster than wall time, but for the ps by which a change is rounded up */
            assert_true(now - last[c] <= real_ns(CLOCK_MONOTONIC) - read_ns[c] + 2);
            last[c] = now;
            read_ns[c] = before;
        }
    }
    /* the two tick alike, whatever happens */
    assert_in_range(last[PROGRAM_REALTIME] - last[PROGRAM_MONOTONIC] - offset + 1000, 0,
                    2000 + SECOND);
    assert_true(program_clock_ns(&view, PROGRAM_MONOTONIC) <= real_ns(CLOCK_MONOTONIC) + 3000);
}

static void a_deadline_is_as_far_in_wall_time_or_multiplied(void **state)
{
    (void)state;
    for (int c = 0; c < PROGRAM_CLOCKS; c++) {
        enum program_clock clock = (enum program_clock)c;
        int64_t deadline = program_clock_ns(&view, clock) + SECOND, wait;

        wait = program_wait_ns(&view, clock, deadline, false);
        assert_true(wait <= SECOND && wait > SECOND - SECOND / 100);
        wait = program_wait_ns(&view, clock, deadline, true);
        assert_true(wait <= 1000 * SECOND && wait > 1000 * SECOND - 10 * SECOND);
        /* one that has passed is no wait, however long ago */
        assert_true(program_wait_ns(&view, clock, deadline - 2 * SECOND, false) <= 0);
        assert_true(program_wait_ns(&view, clock, deadline - 2 * SECOND, true) <= 0);
        assert_true(program_wait_ns(&view, clock, 0, true) <= 0);
        assert_true(program_wait_ns(&view, clock, -INT64_MAX, false) < 0);
        /* for ever */
        assert_true(program_wait_ns(&view, clock, INT64_MAX, false) > INT64_MAX / 2);
        assert_true(program_wait_ns(&view, clock, INT64_MAX, true) == INT64_MAX);
    }
}

/* Until the program's clock says so: not a moment earlier. */
static void a_multiplied_wait_ends_when_the_clock_is_there(void **state)
{
    int64_t deadline = program_clock_ns(&view, PROGRAM_REALTIME) + 20000, wait;

    (void)state;
    while ((wait = program_wait_ns(&view, PROGRAM_REALTIME, deadline, true)) > 0) {
        assert_true(program_clock_ns(&view, PROGRAM_REALTIME) < deadline || wait < 1000000);
        nanosleep(&(struct timespec){.tv_nsec = wait}, NULL);
        assert_true(program_clock_ns(&view, PROGRAM_REALTIME) >= deadline);
    }
    assert_true(program_clock_ns(&view, PROGRAM_REALTIME) >= deadline);
}

static void a_deadline_without_a_clock_is_of_the_nearer_one(void **state)
{
    int64_t mono = program_clock_ns(&view, PROGRAM_MONOTONIC),
            real = program_clock_ns(&view, PROGRAM_REALTIME);

    (void)state;
    for (int64_t far = -3600 * SECOND; far <= 3600 * SECOND; far += 600 * SECOND) {
        assert_int_equal(program_clock_guess(&view, mono + far), PROGRAM_MONOTONIC);
        assert_int_equal(program_clock_guess(&view, real + far), PROGRAM_REALTIME);
    }
    assert_int_equal(program_clock_guess(&view, 0), PROGRAM_MONOTONIC);
    assert_int_equal(program_clock_guess(&view, -INT64_MAX), PROGRAM_MONOTONIC);
    assert_int_equal(program_clock_guess(&view, INT64_MAX), PROGRAM_REALTIME);
}

static void relative_waits_are_multiplied_and_divided(void **state)
{
    (void)state;
    assert_true(program_stretch_ns(&view, 0) == 0);
    assert_true(program_stretch_ns(&view, 7) == 7000);
    assert_true(program_stretch_ns(&view, INT64_MAX / 2) == INT64_MAX);
    assert_true(program_shrink_ns(&view, 0) == 0);
    assert_true(program_shrink_ns(&view, 1) == 1); /* what is set is not off */
    assert_true(program_shrink_ns(&view, 7000) == 7);
    assert_true(program_shrink_ns(&view, 7001) == 8);
}

static void units_are_exact_or_the_most_that_fits(void **state)
{
    static const int64_t ns[] = {0, 1, 999999999, SECOND, -1, -SECOND, INT64_MAX, -INT64_MAX};
    struct timespec ts;
    struct timeval tv;

    (void)state;
    for (unsigned i = 0; i < sizeof(ns) / sizeof(ns[0]); i++) {
        ts = timespec_of_ns(ns[i]);
        assert_in_range(ts.tv_nsec, 0, SECOND - 1);
        assert_true(ns_of_timespec(&ts) == ns[i]);
    }
    ts = (struct timespec){.tv_sec = INT64_MAX, .tv_nsec = 5};
    assert_true(ns_of_timespec(&ts) == INT64_MAX);
    tv = timeval_of_ns(1);
    assert_true(tv.tv_sec == 0 && tv.tv_usec == 1);
    tv = timeval_of_ns(SECOND - 1);
    assert_true(tv.tv_sec == 1 && tv.tv_usec == 0);
    assert_true(ns_sum(INT64_MAX, 1) == INT64_MAX);
    assert_true(ns_sum(-INT64_MAX, -INT64_MAX) == -INT64_MAX);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(ids_belong_to_one_of_two_clocks_or_stay, fresh),
        cmocka_unit_test_setup(clocks_start_at_the_systems_and_run_dilated, fresh),
        cmocka_unit_test_setup(clocks_never_go_back_or_jump_when_the_dilation_changes, fresh),
        cmocka_unit_test_setup(a_deadline_is_as_far_in_wall_time_or_multiplied, fresh),
        cmocka_unit_test_setup(a_multiplied_wait_ends_when_the_clock_is_there, fresh),
        cmocka_unit_test_setup(a_deadline_without_a_clock_is_of_the_nearer_one, fresh),
        cmocka_unit_test_setup(relative_waits_are_multiplied_and_divided, fresh),
        cmocka_unit_test_setup(units_are_exact_or_the_most_that_fits, fresh),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
