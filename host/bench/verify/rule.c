/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/verify/rule.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static const struct rule_shape shapes[DT_COUNT] = {
    [DT_FP16] = {5, 10, 0x7bff},  [DT_BF16] = {8, 7, 0x7f7f},   [DT_FP32] = {8, 23, 0x7f7fffff},
    [DT_FP8_E4M3] = {4, 3, 0x7e}, [DT_FP8_E5M2] = {5, 2, 0x7b}, [DT_FP32_LOC] = {8, 23, 0x7f7fffff},
};

const struct rule_shape *rule_shape(enum dtype t)
{
    return shapes[t].exp_bits ? &shapes[t] : NULL;
}

static uint64_t bits_of(double f)
{
    uint64_t u;

    memcpy(&u, &f, sizeof(u));
    return u;
}

static double double_of(uint64_t u)
{
    double f;

    memcpy(&f, &u, sizeof(f));
    return f;
}

static double power_of_two(int e)
{
    return double_of((uint64_t)(e + 1023) << 52);
}

/* Codes beyond `max` are infinity, where the type has it, and NaNs. */
static double value_of(const struct rule_shape *s, uint32_t code)
{
    uint32_t mag = code & ((1u << (s->exp_bits + s->man_bits)) - 1), e = mag >> s->man_bits;
    uint32_t man = mag & ((1u << s->man_bits) - 1), hidden = e ? 1u << s->man_bits : 0;
    int bias = (1 << (s->exp_bits - 1)) - 1;
    double v = (double)(hidden + man) * power_of_two((int)(e ? e : 1) - bias - s->man_bits);

    if (mag > s->max)
        v = mag == s->max + 1 && man == 0 ? (double)INFINITY : (double)NAN;
    return code >> (s->exp_bits + s->man_bits) ? -v : v;
}

/* The nearest code, of two the even one; beyond the largest number infinity, or NaN where there is
 * none. */
static uint32_t code_of(const struct rule_shape *s, double v)
{
    uint32_t sign = signbit(v) ? 1u << (s->exp_bits + s->man_bits) : 0, code;
    uint32_t top = ((1u << s->exp_bits) - 1) << s->man_bits;
    bool has_inf = s->max < top;
    int least = 2 - (1 << (s->exp_bits - 1)), e = (int)(bits_of(v) >> 52 & 0x7ff) - 1023;

    if (v != v || (isinf(v) && !has_inf))
        return has_inf ? top | 1u << (s->man_bits - 1) : s->max + 1;
    if (isinf(v))
        return sign | top;
    e = e < least ? least : e;
    v = fabs(v) * power_of_two(s->man_bits - e); /* exact: in units of the last place */
    code = (uint32_t)v;
    v -= code;
    code += v > 0.5 || (v == 0.5 && code & 1);
    code += (uint32_t)(e - least) << s->man_bits; /* a carry goes on into the exponent */
    if (code <= s->max)
        return sign | code;
    return has_inf ? sign | top : s->max + 1;
}

static double float_op(enum redop op, double a, double b)
{
    if (op == OP_PROD)
        return a * b;
    if (op != OP_MIN && op != OP_MAX)
        return a + b;
    if (a != a || b != b)
        return (double)NAN;
    if (a == b) /* zeros of two signs */
        return (op == OP_MIN) == !!signbit(a) ? a : b;
    return (op == OP_MIN) == (a < b) ? a : b;
}

static uint64_t int_op(enum redop op, bool is_signed, uint64_t a, uint64_t b)
{
    bool less = is_signed ? (int64_t)a < (int64_t)b : a < b;

    switch (op) {
    case OP_PROD:
        return a * b;
    case OP_MIN:
        return less ? a : b;
    case OP_MAX:
        return less ? b : a;
    case OP_BAND:
        return a & b;
    case OP_BOR:
        return a | b;
    case OP_BXOR:
        return a ^ b;
    case OP_LAND:
        return a && b;
    case OP_LOR:
        return a || b;
    case OP_LXOR:
        return !a != !b;
    default:
        return a + b;
    }
}

/* Little-endian; signed integers are extended. */
static uint64_t rule_load(enum dtype t, const void *p, size_t i)
{
    unsigned size = dtype_size(t);
    uint64_t v = 0;

    memcpy(&v, (const uint8_t *)p + i * size, size);
    if (t == DT_INT8 || t == DT_INT16 || t == DT_INT32)
        v = (uint64_t)((int64_t)(v << (64 - 8 * size)) >> (64 - 8 * size));
    return v;
}

static void rule_store(enum dtype t, void *p, size_t i, uint64_t v)
{
    unsigned size = dtype_size(t);

    memcpy((uint8_t *)p + i * size, &v, size);
}

static bool is_signed(enum dtype t)
{
    return t == DT_INT8 || t == DT_INT16 || t == DT_INT32 || t == DT_INT64;
}

static double pair_value(enum dtype t, uint64_t pair)
{
    return t == DT_FP32_LOC ? value_of(&shapes[t], (uint32_t)pair) : (double)(int32_t)pair;
}

/* Whether pair b replaces pair a: by value (a NaN before any number, -0 less than +0), then by
 * index. */
static bool pair_replaces(enum redop op, enum dtype t, uint64_t a, uint64_t b)
{
    double x = pair_value(t, a), y = pair_value(t, b);
    int first = (y != y) - (x != x); /* 1: b's, -1: a's */

    if (!first && x == x && x != y)
        first = (y < x) == (op == OP_MINLOC) ? 1 : -1;
    else if (!first && x == x && !!signbit(x) != !!signbit(y))
        first = !!signbit(y) == (op == OP_MINLOC) ? 1 : -1;
    return first > 0 || (!first && (int32_t)(b >> 32) < (int32_t)(a >> 32));
}

static uint64_t reduce_pairs(enum redop op, enum dtype t, const void *const *in, unsigned n,
                             size_t i)
{
    uint64_t v = rule_load(t, in[0], i);

    for (unsigned k = 1; k < n; k++)
        if (pair_replaces(op, t, v, rule_load(t, in[k], i)))
            v = rule_load(t, in[k], i);
    if (t == DT_FP32_LOC && pair_value(t, v) != pair_value(t, v))
        v = (v >> 32 << 32) | 0x7fc00000u;
    return v;
}

/* Sum and product of two floats in double, rounded to float, are the float's: 53 >= 2 * 24 + 2. */
static uint64_t reduce_floats(enum redop op, enum dtype t, const void *const *in, unsigned n,
                              size_t i)
{
    const struct rule_shape *s = &shapes[t], *wide = &shapes[DT_FP32];
    double a = value_of(s, (uint32_t)rule_load(t, in[0], i));

    for (unsigned k = 1; k < n; k++) {
        a = float_op(op, a, value_of(s, (uint32_t)rule_load(t, in[k], i)));
        a = value_of(wide, code_of(wide, a));
    }
    return code_of(s, a);
}

static uint64_t reduce_doubles(enum redop op, const void *const *in, unsigned n, size_t i)
{
    double a = double_of(rule_load(DT_FP64, in[0], i));

    for (unsigned k = 1; k < n; k++)
        a = float_op(op, a, double_of(rule_load(DT_FP64, in[k], i)));
    return a != a ? 0x7ff8000000000000u : bits_of(a);
}

void rule_reduce(enum redop op, enum dtype t, void *out, const void *const *in, unsigned n,
                 size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t v;

        if (t == DT_FP32_LOC || t == DT_INT32_LOC) {
            v = reduce_pairs(op, t, in, n, i);
        } else if (t == DT_FP64) {
            v = reduce_doubles(op, in, n, i);
        } else if (shapes[t].exp_bits) {
            v = reduce_floats(op, t, in, n, i);
        } else {
            v = rule_load(t, in[0], i);
            if (op == OP_LAND || op == OP_LOR || op == OP_LXOR)
                v = v != 0;
            for (unsigned k = 1; k < n; k++)
                v = int_op(op, is_signed(t), v, rule_load(t, in[k], i));
        }
        rule_store(t, out, i, v);
    }
}

/* Integers toward zero. A quotient of two floats is rounded right in two steps, as a product is. */
void rule_divide(enum dtype t, void *out, const void *in, unsigned n, size_t count)
{
    const struct rule_shape *wide = &shapes[DT_FP32];

    for (size_t i = 0; i < count; i++) {
        uint64_t v = rule_load(t, in, i);

        if (t == DT_FP64) {
            double q = double_of(v) / n;
            v = q != q ? 0x7ff8000000000000u : bits_of(q);
        } else if (shapes[t].exp_bits) {
            v = code_of(wide, value_of(&shapes[t], (uint32_t)v) / n);
            v = code_of(&shapes[t], value_of(wide, (uint32_t)v));
        } else {
            v = is_signed(t) ? (uint64_t)((int64_t)v / (int64_t)n) : v / n;
        }
        rule_store(t, out, i, v);
    }
}
