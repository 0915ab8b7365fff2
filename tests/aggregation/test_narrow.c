/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounding: to nearest compared with the kernels, the other modes with their definitions. */
#include "aggregation/narrow.h"
#include "tests/support/reduce_ref.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    enum dtype t;
    const struct narrow *n;
} shapes[] = {{DT_FP16, &narrow_f16},
              {DT_BF16, &narrow_bf16},
              {DT_FP8_E4M3, &narrow_e4m3},
              {DT_FP8_E5M2, &narrow_e5m2}};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static float f32(uint32_t u)
{
    float f;

    memcpy(&f, &u, 4);
    return f;
}

/* Floats of every size, and the neighbourhood of every small float and of the midpoints. */
static float some_float(unsigned s, unsigned i, uint64_t *seed)
{
    uint32_t u;
    float f;

    if (i & 1)
        return f32((uint32_t)random_next(seed));
    f = (float)ref_float(shapes[s].t, (unsigned)random_next(seed) & 0xffff);
    memcpy(&u, &f, 4);
    u += (uint32_t)(random_next(seed) % 5) - 2;
    if (i & 2)
        u += 1u << (22 - shapes[s].n->man_bits);
    return f32(u);
}

static void nearest_is_the_references(void **state)
{
    uint64_t seed = 1;

    (void)state;
    for (unsigned s = 0; s < SHAPES; s++)
        for (unsigned i = 0; i < 400000; i++) {
            float f = some_float(s, i, &seed);
            unsigned got = narrow(shapes[s].n, f, ROUND_NEAREST, 0);
            unsigned want = ref_round(shapes[s].t, (double)f);

            if (isinf(f) && shapes[s].t == DT_FP8_E4M3)
                want = 0x7f;
            if (got != want)
                fail_msg("%s: %a: %x, want %x", dtype_name(shapes[s].t), (double)f, got, want);
        }
}

static double value(unsigned s, unsigned code)
{
    return ref_float(shapes[s].t, code);
}

static void directed_modes_stay_on_their_side_and_next_to_the_number(void **state)
{
    uint64_t seed = 2;

    (void)state;
    for (unsigned s = 0; s < SHAPES; s++)
        for (unsigned i = 0; i < 200000; i++) {
            float f = some_float(s, i, &seed);
            double max = value(s, shapes[s].n->max), up, down, zero;

            if (isnan(f) || fabs((double)f) > max)
                continue;
            up = value(s, narrow(shapes[s].n, f, ROUND_UP, 0));
            down = value(s, narrow(shapes[s].n, f, ROUND_DOWN, 0));
            zero = value(s, narrow(shapes[s].n, f, ROUND_ZERO, 0));
            assert_true(down <= (double)f && (double)f <= up);
            assert_true(zero == (f < 0 ? up : down));
            if (down == up) {
                assert_true(down == (double)f);
            } else { /* nothing lies between the two */
                double mid = (down + up) / 2, near = value(s, ref_round(shapes[s].t, mid));

                assert_true(near == down || near == up);
            }
        }
}

static void beyond_the_largest_the_mode_decides(void **state)
{
    (void)state;
    for (unsigned s = 0; s < SHAPES; s++) {
        const struct narrow *n = shapes[s].n;
        uint32_t sign = 1u << (n->exp_bits + n->man_bits);
        uint32_t minus = n->over == n->nan ? n->nan : sign | n->over;
        float big = 3.4e38f;

        if (shapes[s].t == DT_BF16)
            big = f32(0x7f7fffff);
        assert_int_equal(narrow(n, big, ROUND_NEAREST, 0), n->over);
        assert_int_equal(narrow(n, big, ROUND_ZERO, 0), n->max);
        assert_int_equal(narrow(n, -big, ROUND_ZERO, 0), sign | n->max);
        assert_int_equal(narrow(n, big, ROUND_UP, 0), n->over);
        assert_int_equal(narrow(n, -big, ROUND_UP, 0), sign | n->max);
        assert_int_equal(narrow(n, -big, ROUND_DOWN, 0), minus);
        assert_int_equal(narrow(n, NAN, ROUND_ZERO, 0), n->nan);
    }
}

/* A value a quarter of the way up is rounded up in a quarter of the draws. */
static void stochastic_rounding_is_right_in_the_mean_and_repeats(void **state)
{
    static uint16_t in[40000], one[40000], two[40000], again[40000];
    static uint16_t other[40000];
    const void *both[2] = {in, other};
    double sum = 0;

    (void)state;
    for (unsigned i = 0; i < 40000; i++) {
        in[i] = fp32_to_bf16(256.0f);
        other[i] = fp32_to_bf16(0.5f); /* the last place of 256 is 2 */
    }
    arith_rounded(ROUND_STOCHASTIC, 7, 0, OP_SUM, DT_BF16, one, both, 2, 40000);
    arith_rounded(ROUND_STOCHASTIC, 8, 0, OP_SUM, DT_BF16, two, both, 2, 40000);
    assert_memory_not_equal(one, two, sizeof(one));
    /* Rounded in pieces, as packets arrive: the draws are the same. */
    for (unsigned at = 0; at < 40000; at += 1234) {
        unsigned n = 40000 - at < 1234 ? 40000 - at : 1234;
        const void *part[2] = {in + at, other + at};

        arith_rounded(ROUND_STOCHASTIC, 7, at, OP_SUM, DT_BF16, again + at, part, 2, n);
    }
    assert_memory_equal(one, again, sizeof(one));
    for (unsigned i = 0; i < 40000; i++)
        sum += (double)bf16_to_fp32(one[i]);
    sum = sum / 40000 - 256;
    if (fabs(sum - 0.5) > 0.03)
        fail_msg("the mean is 256 + %f, expected 256.5", sum);
}

static void nearest_and_exact_types_take_the_kernels_bits(void **state)
{
    uint64_t seed = 3;
    uint8_t mem[3][800], got[800], want[800];
    const void *in[3] = {mem[0], mem[1], mem[2]};

    (void)state;
    for (int t = 0; t < DT_COUNT; t++)
        for (int op = 0; op < OP_COUNT; op++) {
            bool narrowed = dtype_is_float(t) && t != DT_FP32 && t != DT_FP64;

            if (!arith_valid(op, t))
                continue;
            for (unsigned k = 0; k < 3; k++)
                ref_fill(t, mem[k], 100, &seed);
            arith_kernel(op, t)(want, in, 3, 100);
            arith_rounded(narrowed ? ROUND_NEAREST : ROUND_UP, 1, 0, op, t, got, in, 3, 100);
            assert_memory_equal(got, want, 100 * dtype_size(t));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_is_the_references),
        cmocka_unit_test(directed_modes_stay_on_their_side_and_next_to_the_number),
        cmocka_unit_test(beyond_the_largest_the_mode_decides),
        cmocka_unit_test(stochastic_rounding_is_right_in_the_mean_and_repeats),
        cmocka_unit_test(nearest_and_exact_types_take_the_kernels_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
