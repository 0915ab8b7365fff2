/* SPDX-License-Identifier: BSD-3-Clause */
/* DCQCN's reaction point at its bounds: the least rate, the line, the estimate's largest value, and the moments at
 * which its periods end. */
#include "roce/cc/dcqcn.h"

#include "base/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define LINE 400000000000ull

static const struct dcqcn_cfg usual = {.on = true,
                                       .line_bps = LINE,
                                       .cnp_gap_ps = 4 * PS_PER_US,
                                       .cut_gap_ps = 4 * PS_PER_US,
                                       .alpha_ps = PS_PER_US,
                                       .g = 1019,
                                       .time_reset_ps = 300 * PS_PER_US,
                                       .byte_reset = 32767 * 64,
                                       .threshold = 1,
                                       .ai_bps = 5000000,
                                       .hai_bps = 50000000};

/* The estimate is renewed at the moment that its period ends, and stays below one. */
static void the_estimate_of_congestion_is_renewed_when_its_period_is_over(void **s)
{
    struct dcqcn before = {0}, at = {0}, busy = {0};
    uint32_t first;

    (void)s;
    dcqcn_notified(&before, &usual, 0);
    first = before.alpha;
    dcqcn_notified(&before, &usual, PS_PER_US - 1);
    assert_int_equal(before.alpha, first);
    dcqcn_notified(&at, &usual, 0);
    dcqcn_notified(&at, &usual, PS_PER_US);
    assert_int_equal(at.alpha, (uint64_t)first * 1019 / 1024);
    dcqcn_notified(&busy, &usual, 0);
    for (int i = 1; i < 100; i++)
        dcqcn_notified(&busy, &usual, i * PS_PER_US / 2);
    assert_int_equal(busy.alpha, first); /* 1023 of 1024 */
}

static void a_cut_starts_the_count_of_bytes_again(void **s)
{
    struct dcqcn_cfg c = usual;
    struct dcqcn d = {0};

    (void)s;
    c.byte_reset = 1000;
    dcqcn_notified(&d, &c, 0);
    dcqcn_sent(&d, &c, 999, 1);
    dcqcn_notified(&d, &c, 4 * PS_PER_US);
    assert_int_equal(d.cuts, 2);
    dcqcn_sent(&d, &c, 999, 5 * PS_PER_US);
    assert_int_equal(d.byte_steps, 0);
    dcqcn_sent(&d, &c, 1, 5 * PS_PER_US);
    assert_int_equal(d.byte_steps, 1);
    dcqcn_sent(&d, &c, 999, 5 * PS_PER_US); /* and so does a step */
    assert_int_equal(d.byte_steps, 1);
    dcqcn_sent(&d, &c, 1, 5 * PS_PER_US);
    assert_int_equal(d.byte_steps, 2);
}

static void cuts_end_at_the_least_rate(void **s)
{
    struct dcqcn d = {0};

    (void)s;
    for (int i = 0; i < 200; i++) /* with one every half a microsecond the estimate stays high */
        dcqcn_notified(&d, &usual, i * PS_PER_US / 2);
    assert_int_equal(d.rate_bps, 1000000);
    assert_int_equal(d.cuts, 25);
}

/* However large a step is, the rate comes half of the way at a time. */
static void the_target_is_the_line_at_most(void **s)
{
    struct dcqcn_cfg c = usual;
    struct dcqcn d = {0};

    (void)s;
    c.ai_bps = c.hai_bps = LINE;
    dcqcn_notified(&d, &c, 0);
    dcqcn_ready(&d, &c, 3 * c.time_reset_ps);
    assert_int_equal(d.time_steps, 3);
    assert_int_equal(d.target_bps, LINE);
    assert_true(d.limited);
    assert_in_range(d.rate_bps, LINE / 1000 * 937, LINE / 1000 * 938); /* 15 of 16 */
}

/* The rate that it is cut from is the one before the step. */
static void a_cut_comes_before_a_step_of_the_same_moment(void **s)
{
    struct dcqcn_cfg c = usual;
    struct dcqcn d = {0};

    (void)s;
    c.cut_gap_ps = c.time_reset_ps;
    dcqcn_notified(&d, &c, 0);
    dcqcn_notified(&d, &c, PS_PER_US);
    dcqcn_ready(&d, &c, c.time_reset_ps);
    assert_int_equal(d.cuts, 2);
    assert_int_equal(d.time_steps, 0);
    assert_int_equal(d.target_bps, LINE);
    assert_int_equal(d.step_ps, 2 * c.time_reset_ps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_estimate_of_congestion_is_renewed_when_its_period_is_over),
        cmocka_unit_test(a_cut_starts_the_count_of_bytes_again),
        cmocka_unit_test(a_cut_comes_before_a_step_of_the_same_moment),
        cmocka_unit_test(cuts_end_at_the_least_rate),
        cmocka_unit_test(the_target_is_the_line_at_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
