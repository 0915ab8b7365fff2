/* Arithmetic: the conversions and the scalar row against references that share no code with them,
 * the vector rows against the scalar row. */
#include "switch/reduce/arith.h"

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
    uint64_t z = rng_state += 0x9e3779b97f4a7c15ull;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
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

static double f64(uint64_t u)
{
    double f;

    memcpy(&f, &u, 8);
    return f;
}

static uint64_t u64(double f)
{
    uint64_t u;

    memcpy(&u, &f, 8);
    return u;
}

/* ---- references, by arithmetic on values rather than on bits
 * ----------------------------------------- */

/* Value of a small float of the given shape; NAN and INFINITY as they are. */
static double value_of(unsigned bits, unsigned exp_bits, unsigned man_bits)
{
    int bias = (1 << (exp_bits - 1)) - 1, exp = bits >> man_bits & ((1 << exp_bits) - 1);
    double man = bits & ((1u << man_bits) - 1), v;

    if (exp == (1 << exp_bits) - 1)
        v = man ? NAN : INFINITY;
    else if (exp)
        v = ldexp(man + (1 << man_bits), exp - bias - (int)man_bits);
    else
        v = ldexp(man, 1 - bias - (int)man_bits);
    return bits >> (exp_bits + man_bits) ? -v : v;
}

/* Nearest small float, ties to even: scale to units of the last place and let rint() (ties to even)
 * decide. */
static unsigned nearest(double v, unsigned exp_bits, unsigned man_bits)
{
    int bias = (1 << (exp_bits - 1)) - 1, e;
    unsigned sign = signbit(v) ? 1u << (exp_bits + man_bits) : 0;
    unsigned inf = ((1u << exp_bits) - 1) << man_bits;
    double ulps;

    if (isnan(v))
        return inf | 1u << (man_bits - 1);
    v = fabs(v);
    if (isinf(v))
        return sign | inf;
    frexp(v, &e);
    e = e - 1 < 1 - bias ? 1 - bias : e - 1;
    ulps = rint(ldexp(v, (int)man_bits - e)); /* includes the hidden bit when normal */
    if (ulps < (double)(1 << man_bits))
        return sign | (unsigned)ulps;
    unsigned r = ((unsigned)(e + bias) << man_bits) + (unsigned)(ulps - (1 << man_bits));
    return sign | (r > inf ? inf : r);
}

static void fp16_to_fp32_is_exact_for_all_65536(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 65536; h++) {
        double want = value_of(h, 5, 10);
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
        double want = value_of(h, 8, 7);
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
    unsigned h = nearest((double)f, 5, 10), b = nearest((double)f, 8, 7);

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
            uint32_t u = u32((float)value_of(h, 5, 10));

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

/* One element by the rule of arith.h, in the widest type, rounding where the rule says. */
static double float_op(enum redop op, double a, double b)
{
    if (op == OP_SUM || op == OP_AVG)
        return a + b;
    if (op == OP_PROD)
        return a * b;
    if (isnan(a) || isnan(b))
        return NAN;
    if (a == b)
        return (op == OP_MIN) == !!signbit(a) ? a : b;
    return (op == OP_MIN) == (a < b) ? a : b;
}

static uint64_t int_op(enum redop op, bool is_signed, uint64_t a, uint64_t b)
{
    bool less = is_signed ? (int64_t)a < (int64_t)b : a < b;

    if (op == OP_SUM || op == OP_AVG)
        return a + b;
    if (op == OP_PROD)
        return a * b;
    return (op == OP_MIN) == less ? a : b;
}

static uint64_t load(enum dtype t, const void *p, size_t i)
{
    uint64_t v = 0;
    unsigned size = dtype_size(t);

    memcpy(&v, (const uint8_t *)p + i * size, size); /* little endian */
    if (t == DT_INT8 || t == DT_INT32)
        v = (uint64_t)((int64_t)(v << (64 - 8 * size)) >> (64 - 8 * size));
    return v;
}

static uint64_t reference(enum redop op, enum dtype t, const void *const *in, unsigned n, size_t i)
{
    uint64_t v = load(t, in[0], i),
             mask = dtype_size(t) == 8 ? UINT64_MAX : (1ull << 8 * dtype_size(t)) - 1;
    bool is_signed = t == DT_INT8 || t == DT_INT32 || t == DT_INT64;
    unsigned k;

    if (t == DT_FP64) {
        volatile double a = f64(v);

        for (k = 1; k < n; k++)
            a = float_op(op, a, f64(load(t, in[k], i)));
        return isnan(a) ? 0x7ff8000000000000ull : u64(a);
    }
    if (t == DT_FP32 || t == DT_FP16 || t == DT_BF16) {
        unsigned e = t == DT_FP16 ? 5 : 8, m = t == DT_FP32 ? 23 : t == DT_FP16 ? 10 : 7;
        /* Sum and product of two floats in double, rounded to float once more, are the float
         * operations: 53 >= 2 * 24 + 2. */
        volatile float a = (float)value_of((unsigned)v, e, m);

        for (k = 1; k < n; k++)
            a = (float)float_op(op, a, value_of((unsigned)load(t, in[k], i), e, m));
        return nearest(a, e, m);
    }
    for (k = 1; k < n; k++)
        v = int_op(op, is_signed, v, load(t, in[k], i));
    return v & mask;
}

/* ---- inputs
 * ------------------------------------------------------------------------------------------ */

static const uint32_t f32_special[] = {
    0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x00800000, 0x80800000,
    0x3f800000, 0xbf800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7f800001,
    0xffc00000, 0x7fffffff, 0xffffffff, 0x34000000, 0x33000000, 0x33800000, 0x477ff000,
    0x477fefff, 0x38800000, 0x387fffff, 0x00008000, 0x7f7f8000,
};
static const uint64_t f64_special[] = {
    0,
    1ull << 63,
    1,
    0x000fffffffffffffull,
    0x0010000000000000ull,
    0x3ff0000000000000ull,
    0x7fefffffffffffffull,
    0x7ff0000000000000ull,
    0xfff0000000000000ull,
    0x7ff0000000000001ull,
    0xfff8000000000000ull,
    0x3ca0000000000000ull,
};
static const uint16_t h_special[] = {
    0,      0x8000, 1,      0x8001, 0x03ff, 0x0400, 0x8400, 0x3c00, 0xbc00, 0x7bff,
    0xfbff, 0x7c00, 0xfc00, 0x7c01, 0xfe00, 0x7fff, 0xffff, 0x1400, 0x3c01, 0x3f80,
    0xbf80, 0x7f80, 0xff80, 0x7f81, 0xffc0, 0x7f7f, 0xff7f, 0x0080, 0x007f, 0x8080,
    0x3f81, 0x3b80, 0x4000, 0x5555, 0xaaaa, 0x6800, 0x1234, 0x8fff, 0x0200, 0x2e66,
};

/* One random element: a third special, a third of moderate size (so that sums and products round),
 * a third any bits. */
static uint64_t element(enum dtype t)
{
    uint64_t r = rnd();
    unsigned kind = (unsigned)(rnd() % 3);

    if (t == DT_FP32)
        return kind == 0   ? f32_special[r % LEN(f32_special)]
               : kind == 1 ? u32((float)((int64_t)(r % 20001) - 10000) / 777.0f)
                           : r;
    if (t == DT_FP64)
        return kind == 0   ? f64_special[r % LEN(f64_special)]
               : kind == 1 ? u64((double)((int64_t)(r % 20001) - 10000) / 777.0)
                           : r;
    if (t == DT_FP16)
        return kind == 0   ? h_special[r % LEN(h_special)]
               : kind == 1 ? 0x2c00 + r % 0x2000 + (r >> 40 & 0x8000)
                           : r;
    if (t == DT_BF16)
        return kind == 0   ? h_special[r % LEN(h_special)]
               : kind == 1 ? 0x3d00 + r % 0x0300 + (r >> 40 & 0x8000)
                           : r;
    return kind == 0 ? (uint64_t)(int64_t)(r % 5) - 2 : kind == 1 ? r % 7 : r;
}

static void fill(enum dtype t, uint8_t *p, size_t count)
{
    unsigned size = dtype_size(t);

    for (size_t i = 0; i < count; i++) {
        uint64_t v = element(t);

        memcpy(p + i * size, &v, size);
    }
}

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

        fill(t, p, count);
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
            for (unsigned c = 0; c < LEN(ns); c++) {
                arrays_fill(&a, t, ns[c], MAX_COUNT);
                arith_scalar(op, t)(out + 1, a.in, ns[c], MAX_COUNT);
                for (size_t i = 0; i < MAX_COUNT; i++) {
                    uint64_t want = reference(op, t, a.in, ns[c], i), got = 0;

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
    uint8_t want[AREA], got[AREA + 3];
    size_t bytes = count * dtype_size(t);
    unsigned alias = (unsigned)(rnd() % (n + 1)); /* n: none */

    memset(got, 0xa5, sizeof(got));
    arith_scalar(op, t)(want, a->in, n, count);
    arith_kernel_of(row, op, t)(got + 3, a->in, n, count);
    if (memcmp(want, got + 3, bytes))
        fail_msg("row %d, %s %s of %u x %zu differs", row, dtype_name(t), redop_name(op), n, count);
    for (size_t i = 3 + bytes; i < 3 + bytes + 16 && i < sizeof(got); i++)
        assert_int_equal(got[i], 0xa5); /* nothing written beyond the end */
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
                for (unsigned r = 0; r < 60; r++) {
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
            for (unsigned s = 0; s < LEN(h_special); s++) {
                for (unsigned i = 0; i < 65536; i++)
                    other[i] = h_special[s];
                arith_scalar(op, t)(want, in, 2, 65536);
                for (unsigned i = s; i < 65536; i += LEN(h_special))
                    assert_int_equal(want[i], reference(op, t, in, 2, i));
                for (int row = ARITH_V128; row < ARITH_ROWS; row++) {
                    if (!arith_row_usable(row))
                        continue;
                    arith_kernel_of(row, op, t)(got, in, 2, 65536);
                    assert_memory_equal(got, want, sizeof(want));
                }
            }
    }
}

static void chosen_kernel_is_of_the_widest_usable_row(void **state)
{
    int best = ARITH_SCALAR;

    (void)state;
    for (int row = 0; row < ARITH_ROWS; row++)
        if (arith_row_usable(row))
            best = row;
    assert_true(best > ARITH_SCALAR);
    for (int t = 0; t < DT_COUNT; t++)
        for (int op = 0; op < OP_COUNT; op++) {
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
    assert_int_equal(h, nearest((double)(10.0f / 3.0f), 5, 10));
    arith_divide(&b, DT_BF16, 3, 1);
    assert_int_equal(b, nearest((double)(10.0f / 3.0f), 8, 7));
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

static void names_and_aliases_lead_back_to_the_type(void **state)
{
    static const struct {
        const char *name;
        int t;
    } rows[] = {{"int8", DT_INT8},     {"uint8", DT_UINT8}, {"int32", DT_INT32},
                {"uint32", DT_UINT32}, {"int64", DT_INT64}, {"half", DT_FP16},
                {"fp16", DT_FP16},     {"float", DT_FP32},  {"fp32", DT_FP32},
                {"double", DT_FP64},   {"fp64", DT_FP64},   {"bfloat16", DT_BF16},
                {"bf16", DT_BF16},     {"fp8", -EINVAL},    {"", -EINVAL}};

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
        cmocka_unit_test(scalar_row_is_the_rule),
        cmocka_unit_test(every_row_has_the_scalar_rows_bits),
        cmocka_unit_test(every_row_agrees_on_all_halves_beside_special_ones),
        cmocka_unit_test(chosen_kernel_is_of_the_widest_usable_row),
        cmocka_unit_test(dividing_truncates_integers_and_rounds_halves_once),
        cmocka_unit_test(names_and_aliases_lead_back_to_the_type),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
