/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors in ULP: zero for exact results, half a unit for one rounding, and more the more often a
 * sum is rounded. */
#include "host/bench/verify/exact.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 20000u
#define RANKS 8u

static const enum dtype floats[] = {DT_FP16, DT_BF16, DT_FP32, DT_FP64, DT_FP8_E4M3, DT_FP8_E5M2};
#define FLOATS (sizeof(floats) / sizeof(floats[0]))

static void add(enum dtype t, uint8_t *acc, const void *const *in, unsigned n)
{
    arith_scalar(OP_SUM, t)(acc, in, n, COUNT);
}

static void fill_all(enum dtype t, uint8_t **part)
{
    for (unsigned r = 0; r < RANKS; r++) {
        part[r] = calloc(COUNT, 8);
        exact_fill(part[r], t, RANKS, r, 0, COUNT);
    }
}

static void drop_all(uint8_t **part)
{
    for (unsigned r = 0; r < RANKS; r++)
        free(part[r]);
}

/* As a ring adds: one to the next. */
static struct ulp error_of_ring(enum dtype t, bool avg)
{
    uint8_t *part[RANKS];
    struct ulp u = {0};

    fill_all(t, part);
    for (unsigned r = 1; r < RANKS; r++)
        add(t, part[0], (const void *const[]){part[0], part[r]}, 2);
    if (avg)
        arith_divide(part[0], t, RANKS, COUNT);
    assert_int_equal(exact_error(&u, part[0], t, avg, RANKS, 0, COUNT), 0);
    drop_all(part);
    return u;
}

/* As two leaves and a spine add: four at a time, then the two sums. */
static struct ulp error_of_switches(enum dtype t)
{
    uint8_t *part[RANKS];
    struct ulp u = {0};

    fill_all(t, part);
    add(t, part[0], (const void *const *)part, RANKS / 2);
    add(t, part[4], (const void *const *)(part + 4), RANKS / 2);
    add(t, part[0], (const void *const[]){part[0], part[4]}, 2);
    assert_int_equal(exact_error(&u, part[0], t, false, RANKS, 0, COUNT), 0);
    drop_all(part);
    return u;
}

static void a_single_contribution_has_no_error(void **state)
{
    uint8_t *buf = malloc(COUNT * 8);

    (void)state;
    for (size_t i = 0; i < FLOATS; i++) {
        struct ulp u = {0};
        exact_fill(buf, floats[i], 1, 0, 5, COUNT);
        assert_int_equal(exact_error(&u, buf, floats[i], false, 1, 5, COUNT), 0);
        assert_int_equal(u.n, COUNT);
        assert_true(u.max == 0 && u.sum == 0);
    }
    free(buf);
}

/* Two numbers added and rounded once to nearest: never more than half a unit, and sometimes
 * that. */
static void one_rounding_is_at_most_half_a_unit(void **state)
{
    uint8_t *a = malloc(COUNT * 8), *b = malloc(COUNT * 8);

    (void)state;
    for (size_t i = 0; i < FLOATS; i++) {
        struct ulp u = {0};
        exact_fill(a, floats[i], 2, 0, 0, COUNT);
        exact_fill(b, floats[i], 2, 1, 0, COUNT);
        add(floats[i], a, (const void *const[]){a, b}, 2);
        assert_int_equal(exact_error(&u, a, floats[i], false, 2, 0, COUNT), 0);
        if (!(u.max <= 0.5 && u.max > 0.45))
            fail_msg("%s: %f", dtype_name(floats[i]), u.max);
    }
    free(a);
    free(b);
}

static void one_bit_is_one_unit(void **state)
{
    uint16_t *buf = malloc(COUNT * 2);
    struct ulp u = {0};

    (void)state;
    exact_fill(buf, DT_BF16, 1, 0, 0, COUNT);
    for (unsigned i = 0; i < COUNT; i += 2)
        buf[i]++;
    assert_int_equal(exact_error(&u, buf, DT_BF16, false, 1, 0, COUNT), 0);
    assert_float_equal(u.max, 1, 1e-9);
    assert_float_equal(u.sum, COUNT / 2, 1e-6);
    free(buf);
}

static void a_result_that_is_no_number_is_an_error_without_end(void **state)
{
    float f = NAN;
    struct ulp u = {0};

    (void)state;
    assert_int_equal(exact_error(&u, &f, DT_FP32, false, 2, 0, 1), 0);
    assert_true(isinf(u.max) && u.n == 1);
}

static void rings_round_more_often_than_switches(void **state)
{
    (void)state;
    for (size_t i = 0; i < FLOATS; i++) {
        struct ulp ring = error_of_ring(floats[i], false), sw = error_of_switches(floats[i]);
        assert_true(ring.max < RANKS && isfinite(ring.max));
        if (!(ring.sum > 1.05 * sw.sum))
            fail_msg("%s: ring %f, switches %f ULP", dtype_name(floats[i]), ring.sum / COUNT,
                     sw.sum / COUNT);
    }
}

static void means_are_measured_against_the_exact_mean(void **state)
{
    struct ulp sum = error_of_ring(DT_FP32, false), avg = error_of_ring(DT_FP32, true);

    (void)state; /* a division by 8 is exact */
    assert_float_equal(sum.sum, avg.sum, 1e-6);
}

/* Parts of a vector are those of the whole. */
static void streams_start_anywhere(void **state)
{
    uint16_t *all = malloc(COUNT * 2), *part = malloc(COUNT * 2);
    static const uint64_t at[] = {0, 1, EXACT_PERIOD - 1, EXACT_PERIOD + 5};

    (void)state;
    exact_fill(all, DT_FP16, RANKS, 3, 0, COUNT);
    for (size_t i = 0; i < 4; i++) {
        exact_fill(part, DT_FP16, RANKS, 3, at[i], COUNT / 2);
        assert_memory_equal(part, all + at[i], COUNT / 2 * 2);
    }
    free(all);
    free(part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_single_contribution_has_no_error),
        cmocka_unit_test(one_rounding_is_at_most_half_a_unit),
        cmocka_unit_test(one_bit_is_one_unit),
        cmocka_unit_test(a_result_that_is_no_number_is_an_error_without_end),
        cmocka_unit_test(rings_round_more_often_than_switches),
        cmocka_unit_test(means_are_measured_against_the_exact_mean),
        cmocka_unit_test(streams_start_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
