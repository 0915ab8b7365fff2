/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectors of a case are of the ranges that make sums exact, and a result is right in every element or the
 * first that is wrong is named. */
#include "protocols/check/values.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define N     1000u /* two blocks */
#define RANKS 5u

static double at_most;

static double bound_of(const int64_t *key, enum trib_type type, enum trib_sum op, uint32_t nranks,
                       double most)
{
    (void)key, (void)type, (void)op;
    assert_int_equal(nranks, RANKS);
    assert_true(most > 0 && most <= 16);
    return at_most;
}

static const struct trib_protocol plain, bounded = {.bound = bound_of};

static struct check_case case_of(const struct trib_protocol *p, enum trib_type type,
                                 enum trib_sum op)
{
    struct check_case c = {.protocol = p, .seed = 7, .n_jobs = 1};

    c.job[0] = (struct case_job){.nranks = RANKS, .n_ops = 1};
    c.job[0].op[0] = (struct case_op){.count = N, .type = type, .op = op};
    return c;
}

static double sum_of(enum trib_sum op, double a, double b)
{
    return op == TRIB_SUM    ? a + b
           : op == TRIB_PROD ? a * b
           : op == TRIB_MIN  ? fmin(a, b)
                             : fmax(a, b);
}

/* The right result of doubles. */
static void right(const struct check_case *c, double *result)
{
    static double in[N];

    for (unsigned r = 0; r < RANKS; r++) {
        values_fill(c, 0, 0, r, in);
        for (unsigned i = 0; i < N; i++)
            result[i] = r ? sum_of(c->job[0].op[0].op, result[i], in[i]) : in[i];
    }
}

static void a_wrong_element_is_named(void **state)
{
    static const unsigned places[] = {0, 1, 511, 512, 999};
    static double result[N];
    char why[200], want[200];

    (void)state;
    for (unsigned op = TRIB_SUM; op <= TRIB_MAX; op++) {
        struct check_case c = case_of(&plain, TRIB_FLOAT64, op);

        right(&c, result);
        assert_true(values_check(&c, 0, 0, result, why, sizeof(why)));
        for (unsigned k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
            double was = result[places[k]];

            result[places[k]] = was + 0.25;
            assert_false(values_check(&c, 0, 0, result, why, sizeof(why)));
            snprintf(want, sizeof(want), "element %u of 1000 is %.17g, expected %.17g", places[k],
                     was + 0.25, was);
            assert_string_equal(why, want);
            result[places[k]] = was;
        }
    }
}

static void integers_wrap_and_are_shown_as_such(void **state)
{
    static uint8_t u8[N], in8[N];
    static int32_t s32[N], in32[N];
    struct check_case c = case_of(&plain, TRIB_UINT8, TRIB_SUM);
    char why[200], want[200];

    (void)state;
    for (unsigned r = 0; r < RANKS; r++) {
        values_fill(&c, 0, 0, r, in8);
        for (unsigned i = 0; i < N; i++)
            u8[i] = (uint8_t)(u8[i] + in8[i]);
    }
    assert_true(values_check(&c, 0, 0, u8, why, sizeof(why)));
    u8[700]++;
    assert_false(values_check(&c, 0, 0, u8, why, sizeof(why)));
    snprintf(want, sizeof(want), "element 700 of 1000 is %u, expected %u", u8[700],
             (uint8_t)(u8[700] - 1));
    assert_string_equal(why, want);
    c = case_of(&plain, TRIB_INT32, TRIB_SUM);
    for (unsigned r = 0; r < RANKS; r++) {
        values_fill(&c, 0, 0, r, in32);
        for (unsigned i = 0; i < N; i++)
            s32[i] = (int32_t)((uint32_t)s32[i] + (uint32_t)in32[i]);
    }
    assert_true(values_check(&c, 0, 0, s32, why, sizeof(why)));
    s32[3] ^= 1;
    assert_false(values_check(&c, 0, 0, s32, why, sizeof(why)));
    snprintf(want, sizeof(want), "element 3 of 1000 is %d, expected %d", s32[3], s32[3] ^ 1);
    assert_string_equal(why, want);
}

/* Exactly the bound is within it. */
static void an_error_up_to_the_bound_is_none(void **state)
{
    struct check_case c = case_of(&bounded, TRIB_FLOAT64, TRIB_SUM);
    static double result[N];
    char why[200];

    (void)state;
    right(&c, result);
    at_most = 0;
    assert_true(values_check(&c, 0, 0, result, why, sizeof(why)));
    at_most = 0.5;
    for (unsigned i = 0; i < N; i++)
        result[i] = floor(result[i]);
    at_most = 1;
    assert_true(values_check(&c, 0, 0, result, why, sizeof(why)));
    right(&c, result);
    at_most = 0.5;
    result[600] += 0.75;
    assert_false(values_check(&c, 0, 0, result, why, sizeof(why)));
    assert_memory_equal(why, "element 600 of 1000 is ", 23);
    assert_non_null(strstr(why, ", an error of 0.75; the stated bound is 0.5"));
    result[600] = NAN;
    assert_false(values_check(&c, 0, 0, result, why, sizeof(why)));
}

static void vectors_have_their_ranges(void **state)
{
    static const struct {
        const struct trib_protocol *p;
        enum trib_sum op;
        bool whole;
    } rows[] = {{&plain, TRIB_SUM, true},
                {&plain, TRIB_PROD, true},
                {&bounded, TRIB_SUM, false},
                {&bounded, TRIB_PROD, true}};
    static double in[RANKS][N], again[N];

    (void)state;
    for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        struct check_case c = case_of(rows[k].p, TRIB_FLOAT64, rows[k].op);
        double least = 0, most = 0;
        unsigned differ = 0;

        for (unsigned r = 0; r < RANKS; r++) {
            values_fill(&c, 0, 0, r, in[r]);
            values_fill(&c, 0, 0, r, again);
            assert_memory_equal(in[r], again, sizeof(again));
            for (unsigned i = 0; i < N; i++) {
                double x = in[r][i], a = fabs(x);

                least = x < least ? x : least;
                most = x > most ? x : most;
                differ += r && x != in[r - 1][i];
                if (rows[k].whole && rows[k].op == TRIB_PROD)
                    assert_true(a == 1 || (a == 2 && r < 4));
                else if (rows[k].whole)
                    assert_true(x == floor(x));
            }
        }
        assert_true(differ > N);
        if (!rows[k].whole) /* 1/16 to 16, drawn for each operation */
            assert_true(most > 0 && most <= 16 && least < 0 && least >= -16);
        else if (rows[k].op == TRIB_SUM)
            assert_true(least == -8 && most == 8);
        else
            assert_true(least == -2 && most == 2);
        c.seed++;
        values_fill(&c, 0, 0, 0, again);
        assert_memory_not_equal(in[0], again, sizeof(again));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_element_is_named),
        cmocka_unit_test(integers_wrap_and_are_shown_as_such),
        cmocka_unit_test(an_error_up_to_the_bound_is_none),
        cmocka_unit_test(vectors_have_their_ranges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
