/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic: the scalar row against a reference that shares no code with it, the vector rows
 * against the scalar row. */
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

/* ---- inputs ---- */

#define MAX_COUNT 700
#define AREA      (MAX_COUNT * 8 + 64)

struct arrays {
    uint8_t mem[ARITH_MAX_INPUTS][AREA];
    const void *in[ARITH_MAX_INPUTS];
};

static void arrays_fill(struct arrays *a, enum dtype t, unsigned n, size_t count)
{
    for (unsigned k = 0; k < n; k++) {
        uint8_t *p = a->mem[k] + rnd() % 33; /* payloads start anywhere in a frame */

        ref_fill(t, p, count, &rng_state);
        a->in[k] = p;
    }
}

static void scalar_row_is_the_rule(void **state)
{
    static struct arrays a;
    static const unsigned ns[] = {1, 2, 3, 4, 5, 8, 16, 64};
    uint8_t out[AREA];

    (void)state;
    for (int t = 0; t < DT_COUNT; t++)
        for (int op = 0; op < OP_COUNT; op++)
            for (unsigned c = 0; c < LEN(ns) && arith_valid(op, t); c++) {
                arrays_fill(&a, t, ns[c], MAX_COUNT);
                arith_scalar(op, t)(out + 1, a.in, ns[c], MAX_COUNT);
                for (size_t i = 0; i < MAX_COUNT; i++) {
                    uint64_t want = ref_element(op, t, a.in, ns[c], i), got = 0;

                    memcpy(&got, out + 1 + i * dtype_size(t), dtype_size(t));
                    if (got != want)
                        fail_msg("%s %s of %u at %zu: %llx, by the rule %llx", dtype_name(t),
                                 redop_name(op), ns[c], i, (unsigned long long)got,
                                 (unsigned long long)want);
                }
            }
}

static void check_row(enum arith_row row, enum redop op, enum dtype t, struct arrays *a, unsigned n,
                      size_t count)
{
    uint8_t want[AREA], area[AREA + 64];
    uint8_t *got = area + (rnd() % 2 ? rnd() % 65 : rnd() % 9 * 8); /* whole elements to a vector */
    size_t bytes = count * dtype_size(t);
    unsigned alias = (unsigned)(rnd() % (n + 1)); /* n: none */

    memset(area, 0xa5, sizeof(area));
    arith_scalar(op, t)(want, a->in, n, count);
    arith_kernel_of(row, op, t)(got, a->in, n, count);
    if (memcmp(want, got, bytes))
        fail_msg("row %d, %s %s of %u x %zu differs", row, dtype_name(t), redop_name(op), n, count);
    for (uint8_t *p = area; p < area + sizeof(area); p++)
        if (p < got || p >= got + bytes)
            assert_int_equal(*p, 0xa5); /* nothing written beyond it */
    if (alias == n)
        return;
    arith_kernel_of(row, op, t)((void *)(uintptr_t)a->in[alias], a->in, n, count);
    if (memcmp(want, a->in[alias], bytes))
        fail_msg("row %d, %s %s of %u x %zu in place of input %u differs", row, dtype_name(t),
                 redop_name(op), n, count, alias);
}

static void every_row_has_the_scalar_rows_bits(void **state)
{
    static struct arrays a;
    unsigned checked = 0;

    (void)state;
    for (int row = ARITH_V128; row < ARITH_ROWS; row++) {
        if (!arith_row_usable(row))
            continue;
        for (int t = 0; t < DT_COUNT; t++)
            for (int op = 0; op < OP_COUNT; op++)
                for (unsigned r = 0; r < 60 && arith_valid(op, t); r++) {
                    unsigned n = r < 20 ? r + 1 : r == 20 ? 64 : 1 + (unsigned)(rnd() % 16);
                    size_t count = r % 3 ? rnd() % MAX_COUNT : rnd() % 70;

                    arrays_fill(&a, t, n, count);
                    check_row(row, op, t, &a, n, count);
                    checked++;
                }
    }
    assert_true(checked >= 3000);
}

static void every_row_agrees_on_all_halves_beside_special_ones(void **state)
{
    static uint16_t all[65536], other[65536], want[65536], got[65536];
    const void *in[2] = {all, other};

    (void)state;
    for (unsigned i = 0; i < 65536; i++)
        all[i] = (uint16_t)i;
    for (int t = 0; t < DT_COUNT; t++) {
        if (t != DT_FP16 && t != DT_BF16)
            continue;
        for (int op = 0; op < OP_AVG; op++)
            for (unsigned s = 0; s < ref_n_special_halves; s++) {
                for (unsigned i = 0; i < 65536; i++)
                    other[i] = ref_special_halves[s];
                arith_scalar(op, t)(want, in, 2, 65536);
                for (unsigned i = s; i < 65536; i += ref_n_special_halves)
                    assert_int_equal(want[i], ref_element(op, t, in, 2, i));
                for (int row = ARITH_V128; row < ARITH_ROWS; row++) {
                    if (!arith_row_usable(row))
                        continue;
                    arith_kernel_of(row, op, t)(got, in, 2, 65536);
                    assert_memory_equal(got, want, sizeof(want));
                }
            }
    }
}

/* Random elements: for floats, sign and exponent bits as in the type. */
static uint64_t exponent_bits(enum dtype t)
{
    return t == DT_FP16   ? 0x7c00
           : t == DT_BF16 ? 0x7f80
           : t == DT_FP32 ? 0x7f800000
           : t == DT_FP64 ? 0x7ff0000000000000
                          : 0;
}

/* Numbers: of all sizes, or of such that no sum of them is infinite. */
static void fill_numbers(enum dtype t, void *p, size_t count, bool small)
{
    unsigned size = dtype_size(t);
    uint64_t exponent = exponent_bits(t), top = exponent & ~(exponent >> 1);

    ref_fill(t, p, count, &rng_state);
    for (size_t i = 0; i < count && exponent; i++) {
        uint64_t v = 0;

        memcpy(&v, (uint8_t *)p + i * size, size);
        if (small || (v & exponent) == exponent)
            v &= ~top;
        memcpy((uint8_t *)p + i * size, &v, size);
    }
}

#define PAYLOAD 4096

/* Inputs 0 to 16 and an output. */
static uint8_t payload[18][PAYLOAD] __attribute__((aligned(64)));

/* Every row's sum of the first n, also in place of one of them. */
static void check_payloads(enum dtype t, unsigned n)
{
    static uint8_t want[PAYLOAD], saved[PAYLOAD];
    size_t count = PAYLOAD / dtype_size(t);
    unsigned alias = (unsigned)(rnd() % n);
    const void *in[17];

    for (unsigned k = 0; k < n; k++)
        in[k] = payload[k];
    arith_scalar(OP_SUM, t)(want, in, n, count);
    for (int row = ARITH_V128; row < ARITH_ROWS; row++) {
        if (!arith_row_usable(row))
            continue;
        memset(payload[17], 0xa5, PAYLOAD);
        arith_kernel_of(row, OP_SUM, t)(payload[17], in, n, count);
        if (memcmp(want, payload[17], PAYLOAD))
            fail_msg("row %d, %s sum of %u differs", row, dtype_name(t), n);
        memcpy(saved, payload[alias], PAYLOAD);
        arith_kernel_of(row, OP_SUM, t)(payload[alias], in, n, count);
        if (memcmp(want, payload[alias], PAYLOAD))
            fail_msg("row %d, %s sum of %u in place of input %u differs", row, dtype_name(t), n,
                     alias);
        memcpy(payload[alias], saved, PAYLOAD);
    }
}

static const unsigned payload_ns[] = {1, 2, 3, 4, 7, 8, 9, 15, 16, 17};

static void whole_payloads_with_at_most_one_nan_have_the_scalar_rows_bits(void **state)
{
    (void)state;
    for (int t = 0; t < DT_COUNT; t++)
        for (unsigned r = 0; r < LEN(payload_ns) * 16 && arith_valid(OP_SUM, t); r++) {
            unsigned n = payload_ns[r / 16], size = dtype_size(t);
            size_t count = PAYLOAD / size;
            uint64_t exponent = exponent_bits(t);
            uint64_t mantissa = (exponent & -exponent) - 1, nan = exponent | (rnd() & mantissa) | 1;

            for (unsigned k = 0; k < n; k++)
                fill_numbers(t, payload[k], count, r % 4 < 2);
            nan |= rnd() % 2 << (8 * size - 1);
            if (r % 2 && exponent)
                memcpy(payload[rnd() % n] + rnd() % count * size, &nan, size);
            check_payloads(t, n);
        }
}

/* Numbers in every type, no sum of which is infinite. */
static void fill_ordinary(unsigned n)
{
    for (unsigned k = 0; k < n; k++)
        for (unsigned i = 0; i < PAYLOAD; i++)
            payload[k][i] = (uint8_t)(i % 2 ? 0x3c : rnd());
}

static void one_nan_is_found_at_every_place_of_a_block(void **state)
{
    enum { BLOCK = 512 }; /* no row has longer ones */

    (void)state;
    for (int t = 0; t < DT_COUNT; t++)
        for (unsigned n = 2; n <= 16 && exponent_bits(t); n *= 2) {
            uint64_t exponent = exponent_bits(t), nan = exponent | exponent >> 1 | 1, number = 0;
            unsigned size = dtype_size(t);

            fill_ordinary(n);
            for (size_t at = 0; at < BLOCK; at += size) {
                uint8_t *p = payload[at / size % n] + at;

                memcpy(&number, p, size);
                memcpy(p, &nan, size);
                check_payloads(t, n);
                memcpy(p, &number, size);
            }
        }
}

/* 1.5 of the smallest normal number less one of it: a CPU may flush such a sum to zero. */
static void one_denormal_sum_of_normal_numbers_is_kept(void **state)
{
    (void)state;
    for (int t = 0; t < DT_COUNT; t++)
        for (unsigned r = 0; r < LEN(payload_ns) * 16; r++) {
            unsigned n = payload_ns[r / 16], size = dtype_size(t), first = (unsigned)(rnd() % n);
            uint64_t exponent = exponent_bits(t), least = exponent & -exponent, zero = 0;
            uint64_t more = least | least >> 1, less = least | 1ull << (8 * size - 1);
            size_t at;

            if (!exponent || n < 2)
                continue;
            at = rnd() % (PAYLOAD / size) * size;
            fill_ordinary(n);
            for (unsigned k = 0; k < n; k++)
                memcpy(payload[k] + at, &zero, size);
            memcpy(payload[first] + at, &more, size);
            memcpy(payload[(first + 1) % n] + at, &less, size);
            check_payloads(t, n);
        }
}

/* One call per block, so that a NaN in one block does not select the slow path for all. */
static void every_row_adds_two_halves_alike(void **state)
{
    enum { BLOCK = 256 };
    static uint16_t all[65536] __attribute__((aligned(64))), other[BLOCK], want[BLOCK];
    static uint16_t got[BLOCK] __attribute__((aligned(64)));
    static const enum dtype types[] = {DT_FP16, DT_BF16};

    (void)state;
    for (unsigned i = 0; i < 65536; i++)
        all[i] = (uint16_t)i;
    for (unsigned o = 0; o < ref_n_special_halves + 65536 / 509; o++) {
        for (unsigned i = 0; i < BLOCK; i++)
            other[i] = o < ref_n_special_halves ? ref_special_halves[o]
                                                : (uint16_t)((o - ref_n_special_halves) * 509);
        for (unsigned at = 0; at < 65536; at += BLOCK)
            for (unsigned t = 0; t < LEN(types); t++) {
                const void *in[2] = {all + at, other};

                arith_scalar(OP_SUM, types[t])(want, in, 2, BLOCK);
                for (int row = ARITH_V128; row < ARITH_ROWS; row++) {
                    if (!arith_row_usable(row))
                        continue;
                    arith_kernel_of(row, OP_SUM, types[t])(got, in, 2, BLOCK);
                    if (memcmp(got, want, sizeof(want)))
                        fail_msg("row %d, %s: %04x on + %04x differ", row, dtype_name(types[t]), at,
                                 other[0]);
                }
            }
    }
}

static void chosen_kernel_is_of_the_widest_row(void **state)
{
    int best = ARITH_SCALAR;

    (void)state;
    for (int row = 0; row < ARITH_ROWS; row++)
        if (arith_row_usable(row))
            best = row;
    assert_true(best > ARITH_SCALAR);
    for (int t = 0; t < DT_COUNT; t++)
        for (int op = 0; op < OP_COUNT; op++) {
            if (arith_valid(op, t))
                assert_non_null(arith_kernel(op, t));
            assert_ptr_equal(arith_kernel(op, t), arith_kernel_of(best, op, t));
        }
}

static void dividing_truncates_integers_and_rounds_halves_once(void **state)
{
    int8_t i8[] = {-128, -7, -1, 7, 127};
    uint8_t u8[] = {255, 7};
    int32_t i32[] = {INT32_MIN, -7, 7};
    int64_t i64[] = {INT64_MIN, -9};
    uint64_t w64[] = {UINT64_MAX};
    uint16_t h = fp32_to_fp16(10.0f), b = fp32_to_bf16(10.0f), nan = 0xfe01;
    uint32_t f[] = {u32(1.0f), 0xff800001};
    double d = 10.0;

    (void)state;
    arith_divide(i8, DT_INT8, 2, 5);
    assert_int_equal(i8[0], -64);
    assert_int_equal(i8[1], -3);
    assert_int_equal(i8[2], 0);
    assert_int_equal(i8[3], 3);
    arith_divide(u8, DT_UINT8, 2, 2);
    assert_int_equal(u8[0], 127);
    arith_divide(i32, DT_INT32, 2, 3);
    assert_int_equal(i32[0], INT32_MIN / 2);
    assert_int_equal(i32[1], -3);
    arith_divide(i64, DT_INT64, 3, 2);
    assert_int_equal(i64[0], INT64_MIN / 3);
    assert_int_equal(i64[1], -3);
    arith_divide(w64, DT_UINT64, 3, 1);
    assert_int_equal(w64[0], UINT64_MAX / 3);
    arith_divide(&h, DT_FP16, 3, 1);
    assert_int_equal(h, ref_nearest((double)(10.0f / 3.0f), 5, 10));
    arith_divide(&b, DT_BF16, 3, 1);
    assert_int_equal(b, ref_nearest((double)(10.0f / 3.0f), 8, 7));
    arith_divide(&nan, DT_FP16, 3, 1);
    assert_int_equal(nan, 0x7e00);
    arith_divide(f, DT_FP32, 3, 2);
    assert_int_equal(f[0], u32(1.0f / 3.0f));
    assert_int_equal(f[1], 0x7fc00000);
    arith_divide(&d, DT_FP64, 3, 1);
    assert_int_equal(u64(d), u64(10.0 / 3.0));
    arith_divide(i32, DT_INT32, 1, 3);
    assert_int_equal(i32[1], -3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalar_row_is_the_rule),
        cmocka_unit_test(every_row_has_the_scalar_rows_bits),
        cmocka_unit_test(every_row_agrees_on_all_halves_beside_special_ones),
        cmocka_unit_test(whole_payloads_with_at_most_one_nan_have_the_scalar_rows_bits),
        cmocka_unit_test(one_nan_is_found_at_every_place_of_a_block),
        cmocka_unit_test(one_denormal_sum_of_normal_numbers_is_kept),
        cmocka_unit_test(every_row_adds_two_halves_alike),
        cmocka_unit_test(chosen_kernel_is_of_the_widest_row),
        cmocka_unit_test(dividing_truncates_integers_and_rounds_halves_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
