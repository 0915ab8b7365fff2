/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of operations from when they ended, and their statistics. */
#include "host/bench/op_times.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define US 1000000ll

static void statistics_are_those_of_known_series(void **state)
{
    static const struct {
        unsigned n;
        int64_t ends[5];
        double min, median, p99, stddev;
    } rows[] = {
        {1, {7 * US}, 7, 7, 7, 0},
        {2, {1 * US, 4 * US}, 1, 2, 3, 1.4142135623730951},
        {4, {4 * US, 6 * US, 14 * US, 20 * US}, 2, 5, 8, 2.581988897471611},
        {5, {3 * US, 3 * US, 4 * US, 14 * US, 20 * US}, 0, 3, 10, 4.06201920231798},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct op_times t = {0};

        assert_int_equal(op_times_set(&t, rows[i].ends, rows[i].n), 0);
        assert_float_equal(t.min_us, rows[i].min, 1e-9);
        assert_float_equal(t.median_us, rows[i].median, 1e-9);
        assert_float_equal(t.p99_us, rows[i].p99, 1e-9);
        assert_float_equal(t.stddev_us, rows[i].stddev, 1e-9);
        op_times_free(&t);
    }
}

static void p99_leaves_out_at_most_one_of_a_hundred(void **state)
{
    int64_t ends[200], at = 0;
    struct op_times t = {0};

    (void)state;
    for (int i = 0; i < 200; i++)
        ends[i] = at += (200 - i) * US; /* 200, 199, ..., 1 us */
    assert_int_equal(op_times_set(&t, ends, 100), 0);
    assert_float_equal(t.p99_us, 199, 1e-9);
    assert_int_equal(op_times_set(&t, ends, 101), 0);
    assert_float_equal(t.p99_us, 199, 1e-9);
    assert_int_equal(op_times_set(&t, ends, 200), 0);
    assert_float_equal(t.p99_us, 198, 1e-9);
    assert_float_equal(t.us[0], 200, 1e-9);
    assert_float_equal(t.us[199], 1, 1e-9);
    op_times_free(&t);
}

static void many_times_are_not_kept(void **state)
{
    unsigned n = OP_TIMES_KEPT + 1;
    int64_t *ends = calloc(n, sizeof(*ends));
    struct op_times t = {0};
    json_t *row = json_object();

    (void)state;
    assert_non_null(ends);
    for (unsigned i = 0; i < n; i++)
        ends[i] = (i + 1) * US;
    assert_int_equal(op_times_set(&t, ends, OP_TIMES_KEPT), 0);
    assert_non_null(t.us);
    assert_int_equal(op_times_set(&t, ends, n), 0);
    assert_null(t.us);
    op_times_json(&t, row);
    assert_true(json_is_null(json_object_get(row, "times_us")));
    assert_float_equal(json_real_value(json_object_get(row, "median_us")), 1, 1e-9);
    op_times_free(&t);
    op_times_json(&t, row);
    assert_true(json_is_null(json_object_get(row, "median_us")));
    json_decref(row);
    free(ends);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_are_those_of_known_series),
        cmocka_unit_test(p99_leaves_out_at_most_one_of_a_hundred),
        cmocka_unit_test(many_times_are_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
