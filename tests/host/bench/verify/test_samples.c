/* SPDX-License-Identifier: BSD-3-Clause */
/* Where samples are, and what they contribute. */
#include "host/bench/verify/samples.h"

#include "aggregation/proto.h"
#include "host/bench/verify/rule.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MTU 4096u

static bool has(const struct samples *s, uint64_t at)
{
    unsigned i = samples_from(s, at);

    return i < s->n && s->at[i] == at;
}

static void choose(struct samples *s, enum coll_kind kind, unsigned nranks, uint64_t count)
{
    struct layout l = {.kind = kind, .nranks = nranks, .count = count};

    samples_choose(s, &l, DT_FP32, MTU);
}

static void few_elements_are_all_sampled(void **state)
{
    static const uint64_t counts[] = {1, 2, 250, SAMPLES_MAX};
    struct samples s;

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        choose(&s, COLL_ALLREDUCE, 8, counts[i]);
        assert_int_equal(s.n, counts[i]);
        for (uint64_t k = 0; k < counts[i]; k++)
            assert_int_equal(s.at[k], k);
    }
    choose(&s, COLL_REDUCE_SCATTER, 8, 100);
    assert_int_equal(s.n, 800);
}

static void ends_and_borders_are_sampled(void **state)
{
    const uint64_t n = 262149;
    struct samples s;

    (void)state;
    choose(&s, COLL_ALLREDUCE, 8, n);
    assert_in_range(s.n, SAMPLES_MAX * 3 / 4, SAMPLES_MAX);
    for (unsigned i = 1; i < s.n; i++)
        assert_true(s.at[i] > s.at[i - 1] && s.at[i] < n);
    for (uint64_t i = 0; i < 64; i++)
        assert_true(has(&s, i) && has(&s, n - 1 - i));
    for (uint64_t k = 1; k < 8; k++) { /* of ranks' blocks: the first five are one element longer */
        uint64_t at = k * (n / 8) + (k < n % 8 ? k : n % 8);

        assert_true(has(&s, at - 1) && has(&s, at) && has(&s, at + 1));
    }
    choose(&s, COLL_ALLREDUCE, 8, 65537); /* of all packets and messages */
    for (uint64_t at = MTU / 4; at < 65537; at += MTU / 4) {
        assert_true(has(&s, at - 1) && has(&s, at));
        assert_true(has(&s, at - AGG_HDR_BYTES / 4 - 1) && has(&s, at - AGG_HDR_BYTES / 4));
    }
    for (uint64_t at = AGG_MSG_BYTES(MTU) / 4; at < 65537; at += AGG_MSG_BYTES(MTU) / 4)
        assert_true(has(&s, at - 1) && has(&s, at));
}

static void the_middle_is_sampled_evenly(void **state)
{
    const uint64_t n = 1 << 24, part = n / 64;
    struct samples s;

    (void)state;
    choose(&s, COLL_ALLREDUCE, 8, n);
    for (uint64_t i = 0; i < 64; i++)
        assert_true(samples_from(&s, (i + 1) * part) - samples_from(&s, i * part) >= 20);
}

/* Sums of what ranks contribute have every property that a wrong rounding could show in. */
static void floats_show_roundings(void **state)
{
    unsigned nans = 0, infs = 0, low = 0, minus_zero = 0, inexact = 0, halfway = 0;

    (void)state;
    for (uint64_t at = 0; at < SAMPLES_MAX; at++) {
        float x[4], sum = 0;
        double exact = 0;

        for (unsigned r = 0; r < 4; r++) {
            uint64_t u = samples_value(DT_FP32, OP_SUM, 4, r, at);

            memcpy(&x[r], &u, sizeof(x[r]));
            sum = r ? sum + x[r] : x[r];
            exact += (double)x[r];
        }
        nans += isnan(sum) != 0;
        infs += isinf(sum) != 0;
        low += fpclassify(sum) == FP_SUBNORMAL;
        minus_zero += sum == 0 && signbit(sum);
        inexact += isfinite(sum) && (double)sum != exact;
        halfway += isfinite(sum) &&
                   fabs((double)sum - exact) * 2 == (double)fabsf(nextafterf(sum, INFINITY) - sum);
    }
    assert_in_range(nans, 100, SAMPLES_MAX / 8);
    assert_in_range(infs, 20, SAMPLES_MAX / 8);
    assert_in_range(low, 100, SAMPLES_MAX / 4);
    assert_in_range(minus_zero, 20, SAMPLES_MAX / 8);
    assert_in_range(inexact, SAMPLES_MAX / 4, SAMPLES_MAX);
    assert_in_range(halfway, 50, SAMPLES_MAX);
}

static void integers_wrap(void **state)
{
    unsigned wraps = 0;

    (void)state;
    for (uint64_t at = 0; at < SAMPLES_MAX; at++) {
        int32_t a = (int32_t)samples_value(DT_INT32, OP_SUM, 2, 0, at), sum;
        int32_t b = (int32_t)samples_value(DT_INT32, OP_SUM, 2, 1, at);

        wraps += __builtin_add_overflow(a, b, &sum);
    }
    assert_in_range(wraps, SAMPLES_MAX / 8, SAMPLES_MAX / 2);
}

static const unsigned many[] = {2, 8, 64};

/* However many ranks there are, a result has bits of both kinds: neither is what every wrong result has. */
static void bits_of_results_are_mixed(void **state)
{
    static const enum redop ops[] = {OP_BAND, OP_BOR, OP_BXOR};

    (void)state;
    for (unsigned o = 0; o < 3; o++)
        for (unsigned n = 0; n < 3; n++) {
            unsigned set = 0;

            for (uint64_t at = 0; at < 1000; at++) {
                uint64_t v = samples_value(DT_UINT64, ops[o], many[n], 0, at), r;

                for (unsigned k = 1; k < many[n]; k++) {
                    r = samples_value(DT_UINT64, ops[o], many[n], k, at);
                    v = ops[o] == OP_BAND ? v & r : ops[o] == OP_BOR ? v | r : v ^ r;
                }
                set += (unsigned)__builtin_popcountll(v);
            }
            assert_in_range(set, 64000 / 5, 64000 * 4 / 5);
        }
}

/* Truth values are mixed, too. Most true numbers are even, so that the lowest bit alone does not
 * tell that they are true. */
static void truths_of_results_are_mixed(void **state)
{
    static const enum redop ops[] = {OP_LAND, OP_LOR, OP_LXOR};

    (void)state;
    for (unsigned o = 0; o < 3; o++)
        for (unsigned n = 0; n < 3; n++) {
            unsigned result = 0, truths = 0, odd = 0;

            for (uint64_t at = 0; at < 1000; at++) {
                unsigned is = 0;

                for (unsigned k = 0; k < many[n]; k++) {
                    uint64_t v = samples_value(DT_UINT64, ops[o], many[n], k, at);

                    is += v != 0;
                    odd += v & 1;
                }
                truths += is;
                result += ops[o] == OP_LAND ? is == many[n] : ops[o] == OP_LOR ? is > 0 : is & 1;
            }
            assert_in_range(result, 300, 700);
            assert_in_range(odd, 1, truths / 8);
        }
}

/* Of pairs some are equal in value, or in both: at even positions values are few, and indexes everywhere. */
static void pairs_are_near_each_other(void **state)
{
    unsigned values = 0, indexes = 0, large = 0;

    (void)state;
    for (uint64_t at = 0; at < 2000; at++) {
        uint64_t v = samples_value(DT_INT32_LOC, OP_MINLOC, 4, 1, at);
        int32_t value = (int32_t)v;

        assert_in_range(v >> 32, 0, 15);
        indexes |= 1u << (v >> 32);
        if (at & 1) {
            large += value > 1000000 || value < -1000000;
            continue;
        }
        assert_true(value >= -3 && value <= 4);
        values |= 1u << (value + 3);
        assert_in_range(samples_value(DT_FP32_LOC, OP_MINLOC, 4, 1, at) >> 32, 0, 15);
    }
    assert_int_equal(values, 0xff);
    assert_int_equal(indexes, 0xffff);
    assert_in_range(large, 990, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_elements_are_all_sampled),
        cmocka_unit_test(ends_and_borders_are_sampled),
        cmocka_unit_test(the_middle_is_sampled_evenly),
        cmocka_unit_test(floats_show_roundings),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(bits_of_results_are_mixed),
        cmocka_unit_test(truths_of_results_are_mixed),
        cmocka_unit_test(pairs_are_near_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
