/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of 16 bits: to 32 exactly, from 32 rounded to the nearest even; names of types. */
#include "aggregation/arith.h"
#include "tests/support/reduce_ref.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static uint64_t rng_state = 1;

static uint64_t rnd(void)
{
    return random_next(&rng_state);
}

static float f32(uint32_t u)
{
    float f;

    memcpy(&f, &u, 4);
    return f;
}

static uint32_t u32(float f)
{
    uint32_t u;

    memcpy(&u, &f, 4);
    return u;
}

static uint64_t u64(double f)
{
    uint64_t u;

    memcpy(&u, &f, 8);
    return u;
}

static void fp16_to_fp32_is_exact_for_all_65536(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 65536; h++) {
        double want = ref_value(h, 5, 10);
        float got = fp16_to_fp32((uint16_t)h);

        if (isnan(want))
            assert_true(isnan(got));
        else
            assert_int_equal(u64(got), u64(want));
    }
}

static void bf16_to_fp32_is_exact_for_all_65536(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 65536; h++) {
        double want = ref_value(h, 8, 7);
        float got = bf16_to_fp32((uint16_t)h);

        if (isnan(want))
            assert_true(isnan(got));
        else
            assert_int_equal(u64(got), u64(want));
    }
}

static void check_narrowing(uint32_t u)
{
    float f = f32(u);
    unsigned h = ref_nearest((double)f, 5, 10), b = ref_nearest((double)f, 8, 7);

    if (fp32_to_fp16(f) != h || fp32_to_bf16(f) != b)
        fail_msg("%08x: half %04x want %04x, bfloat16 %04x want %04x", u, fp32_to_fp16(f), h,
                 fp32_to_bf16(f), b);
}

static void narrowing_rounds_to_nearest_even(void **state)
{
    (void)state;
    /* Around every half, every bfloat16 and every midpoint between two of them. */
    for (unsigned h = 0; h < 65536; h++)
        for (int d = -2; d <= 2; d++) {
            uint32_t u = u32((float)ref_value(h, 5, 10));

            check_narrowing(u + (uint32_t)d);
            check_narrowing(u + 0x1000 + (uint32_t)d);
            check_narrowing((h << 16) + (uint32_t)d);
            check_narrowing((h << 16) + 0x8000 + (uint32_t)d);
        }
    /* Half denormals: midpoints are odd multiples of 2^-25. */
    for (unsigned m = 0; m < 2100; m++)
        for (int d = -2; d <= 2; d++)
            check_narrowing(u32(ldexpf((float)m, -25)) + (uint32_t)d);
    for (unsigned i = 0; i < 1000000; i++)
        check_narrowing((uint32_t)rnd());
}

static void names_and_aliases_lead_back_to_the_type(void **state)
{
    static const struct {
        const char *name;
        int t;
    } rows[] = {
        {"int8", DT_INT8},      {"uint8", DT_UINT8}, {"int32", DT_INT32}, {"uint32", DT_UINT32},
        {"int64", DT_INT64},    {"half", DT_FP16},   {"fp16", DT_FP16},   {"float", DT_FP32},
        {"fp32", DT_FP32},      {"double", DT_FP64}, {"fp64", DT_FP64},   {"bfloat16", DT_BF16},
        {"bf16", DT_BF16},      {"fp8", -EINVAL},    {"", -EINVAL},       {"f8e4m3", DT_FP8_E4M3},
        {"2int", DT_INT32_LOC}, {"int16", DT_INT16}, {"u16", DT_UINT16}};

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++)
        assert_int_equal(dtype_by_name(rows[i].name), rows[i].t);
    for (int t = 0; t < DT_COUNT; t++)
        assert_int_equal(dtype_by_name(dtype_name(t)), t);
    for (int o = 0; o < OP_COUNT; o++)
        assert_int_equal(redop_by_name(redop_name(o)), o);
    assert_int_equal(redop_by_name("xor"), -EINVAL);
    assert_int_equal(dtype_size(DT_COUNT), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fp16_to_fp32_is_exact_for_all_65536),
        cmocka_unit_test(bf16_to_fp32_is_exact_for_all_65536),
        cmocka_unit_test(narrowing_rounds_to_nearest_even),
        cmocka_unit_test(names_and_aliases_lead_back_to_the_type),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
