/* The arithmetic of dilation: what is chosen, tried next, learnt and believed. */
#include "host/perf/pace.h"

#include <math.h>
#include <rte_common.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void fidelity_is_two_percent_of_the_prediction(void **state)
{
    struct coll_prediction p = {.time_ps = 1000000000,
                                .handoffs = 10}; /* 1 ms: 20 us, 2 us a hand-off */

    (void)state;
    assert_true(pace_judge(&p, 199000, 0, 100).ok); /* 1.99 us */
    assert_false(pace_judge(&p, 201000, 0, 100).ok);
    assert_int_equal(pace_judge(&p, 400000, 0, 100).needed, 200);
    /* In time, but warm-ups showed that the machine's own work needs more. */
    assert_true(pace_judge(&p, 199000, 100, 100).ok);
    assert_false(pace_judge(&p, 199000, 101, 100).ok);
    assert_int_equal(pace_judge(&p, 199000, 300, 100).needed, 300);
    assert_int_equal(pace_judge(&p, 400000, 150, 100).needed, 200);
}

static void dilation_covers_lag_and_rate(void **state)
{
    struct coll_prediction small = {
        .time_ps = 10000000, .handoffs = 20, .busiest_link_bytes = 4096};
    struct coll_prediction large = {
        .time_ps = 1000000000, .handoffs = 1, .busiest_link_bytes = 50000000};
    struct pace p;

    (void)state;
    pace_init(&p, true, 2);
    uint32_t d = pace_dilation(&p, &small, 8);
    assert_true(pace_judge(&small, (int64_t)p.lag_ns, 0, d).ok);
    /* 400 MB in a millisecond of fabric time at the assumed rate */
    assert_in_range(pace_dilation(&p, &large, 8), (uintmax_t)(0.4 / p.rate_Bps * 1e9 * 1e3) - 1,
                    PACE_MAX_DILATION);
    p.lag_ns = 1e12;
    p.max_wall = 1e9;
    assert_int_equal(pace_dilation(&p, &small, 8), PACE_MAX_DILATION);
    struct coll_prediction nothing = {.time_ps = 1000000000000};
    assert_int_equal(pace_dilation(&p, &nothing, 1), 1);
}

static void failures_slow_the_next_run_down(void **state)
{
    struct coll_prediction large = {
        .time_ps = 1000000000, .handoffs = 1, .busiest_link_bytes = 50000000};
    struct coll_prediction small = {
        .time_ps = 10000000, .handoffs = 20, .busiest_link_bytes = 4096};
    struct pace p;

    (void)state;
    pace_init(&p, true, 2);
    uint32_t d = pace_dilation(&p, &large, 8);
    pace_learn(&p, &large, 8, 100000000, d, false);
    assert_true(pace_dilation(&p, &large, 8) >= 2 * d - 2);
    pace_init(&p, true, 2);
    d = pace_dilation(&p, &small, 8);
    pace_learn(&p, &small, 8, 1000000, d, false);
    assert_true(pace_dilation(&p, &small, 8) > d);
}

static void a_retry_is_slower_within_bounds(void **state)
{
    struct coll_prediction ms = {.time_ps = 1000000000};
    struct pace p;

    (void)state;
    pace_init(&p, true, 2); /* at most 6,000 for 1 ms */
    assert_int_equal(pace_retry(&p, &ms, 100, 50), 150);
    assert_int_equal(pace_retry(&p, &ms, 100, 300), 390);
    assert_int_equal(pace_retry(&p, &ms, 100, 100000), 800);
    assert_int_equal(pace_retry(&p, &ms, 4000, 9000), 6000);
    assert_int_equal(pace_retry(&p, &ms, 7000, 9000), 7000);
}

/*
 * Machines: lateness is `wake` at any dilation, and more the nearer d comes to what can be moved;
 * what ranks copy at the beginning lasts `copy` / d of the operation's 1 us.
 */
struct machine {
    double wake, rate, copy;
};

static uint32_t late(const struct machine *m, uint32_t d)
{
    return (uint32_t)(d > m->rate ? m->wake / (1 - m->rate / d) : 8.0 * d);
}

static double us(const struct machine *m, uint32_t d)
{
    return 1 + m->copy / d;
}

static bool holds(const struct machine *m, uint32_t d)
{
    return late(m, d) <= d && us(m, d) <= 1 + PACE_TOLERANCE;
}

/* From a guess far too high or too low, in six warm-ups, to within 1.5 of the least that holds. */
static void warm_ups_settle_on_what_holds(void **state)
{
    static const struct machine machine[] = {{500, 1, 0},     {20000, 100, 0}, {3000, 2500, 0},
                                             {50, 900, 0},    {1, 1, 0},       {500, 1, 200},
                                             {2000, 700, 60}, {10, 1, 1000}};
    static const double off[] = {0.1, 0.5, 1, 1.3, 3, 20};
    struct coll_prediction one_us = {.time_ps = 1000000};
    struct pace p;

    (void)state;
    pace_init(&p, true, 2);
    for (unsigned k = 0; k < RTE_DIM(machine) * RTE_DIM(off); k++) {
        const struct machine *m = &machine[k / RTE_DIM(off)];
        struct pace_tries t = {0};
        uint32_t least = 1, d = 0, next;

        while (!holds(m, least))
            least++;
        next = (uint32_t)fmax(1, least * off[k % RTE_DIM(off)]);
        for (unsigned n = 0; n < 6 && next != d; n++) {
            d = next;
            next = pace_settle(&p, &t, &one_us, d, late(m, d), us(m, d));
        }
        assert_in_range(next, least, 1 + 3 * least / 2);
    }
}

static void no_operation_is_slowed_beyond_the_wall_time(void **state)
{
    struct coll_prediction ms = {.time_ps = 1000000000, .handoffs = 100};
    struct pace p;

    (void)state;
    pace_init(&p, true, 2);
    p.lag_ns = 2e6;
    assert_int_equal(pace_dilation(&p, &ms, 8), 6000);
}

static void iterations_keep_the_wall_time_but_never_below_two(void **state)
{
    struct coll_prediction p = {.time_ps = 1000000000}; /* 1 ms */
    struct pace pace;

    (void)state;
    pace_init(&pace, true, 2);
    assert_int_equal(pace_iters(&pace, 20, &p, 10), 20); /* 0.2 s */
    assert_int_equal(pace_iters(&pace, 20, &p, 400), 5); /* 5 x 0.4 s */
    assert_int_equal(pace_iters(&pace, 20, &p, 1000000), 2);
    assert_int_equal(pace_iters(&pace, 1, &p, 1000000), 1);
    assert_int_equal(pace_iters(&pace, 0, &p, 1000000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fidelity_is_two_percent_of_the_prediction),
        cmocka_unit_test(dilation_covers_lag_and_rate),
        cmocka_unit_test(failures_slow_the_next_run_down),
        cmocka_unit_test(a_retry_is_slower_within_bounds),
        cmocka_unit_test(warm_ups_settle_on_what_holds),
        cmocka_unit_test(no_operation_is_slowed_beyond_the_wall_time),
        cmocka_unit_test(iterations_keep_the_wall_time_but_never_below_two),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
