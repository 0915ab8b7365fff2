/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/reduce_ref.h"

#include <math.h>
#include <string.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

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

/* Value of a small float of the given shape; NAN and INFINITY as they are. */
double ref_value(unsigned bits, unsigned exp_bits, unsigned man_bits)
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
unsigned ref_nearest(double v, unsigned exp_bits, unsigned man_bits)
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

/* One element by the rule of arith.h, in the widest type, rounding where the rule requires it. */
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
    if (op == OP_BAND || op == OP_BOR || op == OP_BXOR)
        return op == OP_BAND ? (a & b) : op == OP_BOR ? (a | b) : (a ^ b);
    if (op == OP_LAND || op == OP_LOR || op == OP_LXOR) {
        unsigned true_ones = (a ? 1 : 0) + (b ? 1 : 0);

        return op == OP_LAND ? true_ones == 2 : op == OP_LOR ? true_ones > 0 : true_ones == 1;
    }
    return (op == OP_MIN) == less ? a : b;
}

/* OFP8 E4M3: as a small float whose highest exponent is like any other, but for its last code. */
static double e4m3_value(unsigned bits)
{
    double v =
        ldexp((bits & 7) + (bits >> 3 & 15 ? 8 : 0), (bits >> 3 & 15 ? bits >> 3 & 15 : 1) - 10);

    if ((bits & 0x7f) == 0x7f)
        return NAN;
    return bits & 0x80 ? -v : v;
}

/* By search: the nearest of all finite codes, of two the even one; beyond halfway to 480 there is
 * nothing. */
static unsigned e4m3_nearest(double v)
{
    unsigned best = 0, sign = signbit(v) ? 0x80 : 0;

    v = fabs(v);
    if (!(v < 464.0)) /* 464: between 448 and 480, ties to even would go up */
        return v == 464.0 ? sign | 0x7e : 0x7f;
    for (unsigned c = 1; c < 0x7f; c++) {
        double d = fabs(e4m3_value(c) - v), b = fabs(e4m3_value(best) - v);

        if (d < b || (d == b && !(c & 1)))
            best = c;
    }
    return sign | best;
}

double ref_float(enum dtype t, unsigned bits)
{
    switch (t) {
    case DT_FP8_E4M3:
        return e4m3_value(bits);
    case DT_FP8_E5M2:
        return ref_value(bits, 5, 2);
    case DT_FP16:
        return ref_value(bits, 5, 10);
    case DT_BF16:
        return ref_value(bits, 8, 7);
    default:
        return ref_value(bits, 8, 23);
    }
}

unsigned ref_round(enum dtype t, double v)
{
    switch (t) {
    case DT_FP8_E4M3:
        return e4m3_nearest(v);
    case DT_FP8_E5M2:
        return ref_nearest(v, 5, 2);
    case DT_FP16:
        return ref_nearest(v, 5, 10);
    case DT_BF16:
        return ref_nearest(v, 8, 7);
    default:
        return ref_nearest(v, 8, 23);
    }
}

/* Which of two pairs stays: by value, then by index. */
static uint64_t pair_op(enum redop op, enum dtype t, uint64_t a, uint64_t b)
{
    double x = t == DT_FP32_LOC ? ref_value((uint32_t)a, 8, 23) : (double)(int32_t)a;
    double y = t == DT_FP32_LOC ? ref_value((uint32_t)b, 8, 23) : (double)(int32_t)b;
    int order = isnan(x) || isnan(y) ? (isnan(y) ? 1 : 0) - (isnan(x) ? 1 : 0)
                : x != y             ? ((op == OP_MINLOC) == (y < x) ? 1 : -1)
                : signbit(x) == signbit(y) || t == DT_INT32_LOC ? 0
                : (op == OP_MINLOC) == !!signbit(y)             ? 1
                                                                : -1;

    return order > 0 || (order == 0 && (int32_t)(b >> 32) < (int32_t)(a >> 32)) ? b : a;
}

static uint64_t load(enum dtype t, const void *p, size_t i)
{
    uint64_t v = 0;
    unsigned size = dtype_size(t);

    memcpy(&v, (const uint8_t *)p + i * size, size); /* little endian */
    if (t == DT_INT8 || t == DT_INT16 || t == DT_INT32)
        v = (uint64_t)((int64_t)(v << (64 - 8 * size)) >> (64 - 8 * size));
    return v;
}

uint64_t ref_element(enum redop op, enum dtype t, const void *const *in, unsigned n, size_t i)
{
    uint64_t v = load(t, in[0], i),
             mask = dtype_size(t) == 8 ? UINT64_MAX : (1ull << 8 * dtype_size(t)) - 1;
    bool is_signed = t == DT_INT8 || t == DT_INT16 || t == DT_INT32 || t == DT_INT64;
    unsigned k;

    if (t == DT_FP64) {
        volatile double a = f64(v);

        for (k = 1; k < n; k++)
            a = float_op(op, a, f64(load(t, in[k], i)));
        return isnan(a) ? 0x7ff8000000000000ull : u64(a);
    }
    if (t == DT_FP32_LOC || t == DT_INT32_LOC) {
        for (k = 1; k < n; k++)
            v = pair_op(op, t, v, load(t, in[k], i));
        if (t == DT_FP32_LOC && isnan(ref_value((uint32_t)v, 8, 23)))
            v = (v >> 32 << 32) | 0x7fc00000u;
        return v;
    }
    if (dtype_is_float(t)) {
        /* Sum and product of two floats in double, rounded to float once more, are the float
         * operations: 53 >= 2 * 24 + 2. */
        volatile float a = (float)ref_float(t, (unsigned)v);

        for (k = 1; k < n; k++)
            a = (float)float_op(op, a, ref_float(t, (unsigned)load(t, in[k], i)));
        return ref_round(t, a);
    }
    if (op == OP_LAND || op == OP_LOR || op == OP_LXOR)
        v = v ? 1 : 0;
    for (k = 1; k < n; k++)
        v = int_op(op, is_signed, v, load(t, in[k], i));
    return v & mask;
}

void ref_reduce(enum redop op, enum dtype t, const void *const *in, unsigned n, size_t count,
                void *out)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t v = ref_element(op, t, in, n, i);

        memcpy((uint8_t *)out + i * dtype_size(t), &v, dtype_size(t));
    }
}

/* ---- inputs ---- */

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
const uint16_t ref_special_halves[] = {
    0,      0x8000, 1,      0x8001, 0x03ff, 0x0400, 0x8400, 0x3c00, 0xbc00, 0x7bff,
    0xfbff, 0x7c00, 0xfc00, 0x7c01, 0xfe00, 0x7fff, 0xffff, 0x1400, 0x3c01, 0x3f80,
    0xbf80, 0x7f80, 0xff80, 0x7f81, 0xffc0, 0x7f7f, 0xff7f, 0x0080, 0x007f, 0x8080,
    0x3f81, 0x3b80, 0x4000, 0x5555, 0xaaaa, 0x6800, 0x1234, 0x8fff, 0x0200, 0x2e66,
};

const unsigned ref_n_special_halves = LEN(ref_special_halves);

/* One random element: a third special, a third of moderate size (so that sums and products round),
 * a third any bits. */
static uint64_t element(enum dtype t, uint64_t *seed)
{
    uint64_t r = random_next(seed);
    unsigned kind = (unsigned)(random_next(seed) % 3);

    if (t == DT_FP32)
        return kind == 0   ? f32_special[r % LEN(f32_special)]
               : kind == 1 ? u32((float)((int64_t)(r % 20001) - 10000) / 777.0f)
                           : r;
    if (t == DT_FP64)
        return kind == 0   ? f64_special[r % LEN(f64_special)]
               : kind == 1 ? u64((double)((int64_t)(r % 20001) - 10000) / 777.0)
                           : r;
    if (t == DT_FP16)
        return kind == 0   ? ref_special_halves[r % LEN(ref_special_halves)]
               : kind == 1 ? 0x2c00 + r % 0x2000 + (r >> 40 & 0x8000)
                           : r;
    if (t == DT_BF16)
        return kind == 0   ? ref_special_halves[r % LEN(ref_special_halves)]
               : kind == 1 ? 0x3d00 + r % 0x0300 + (r >> 40 & 0x8000)
                           : r;
    if (t == DT_FP32_LOC) /* few values and few indexes: ties */
        return (kind < 2 ? f32_special[r % LEN(f32_special)] : (uint32_t)r) | (r >> 40 & 7) << 32;
    if (t == DT_INT32_LOC)
        return (kind < 2 ? (uint32_t)(r % 5) - 2u : (uint32_t)r) | (r >> 40 & 7) << 32;
    return kind == 0 ? (uint64_t)(int64_t)(r % 5) - 2 : kind == 1 ? r % 7 : r;
}

void ref_fill(enum dtype t, void *p, size_t count, uint64_t *seed)
{
    unsigned size = dtype_size(t);

    for (size_t i = 0; i < count; i++) {
        uint64_t v = element(t, seed);

        memcpy((uint8_t *)p + i * size, &v, size);
    }
}
