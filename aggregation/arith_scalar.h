/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scalar row of arith.c's table: arith.h's definition of "exact" as code, one element at a
 * time. Part of arith.c.
 */
#ifndef TRIB_AGGREGATION_ARITH_SCALAR_H
#define TRIB_AGGREGATION_ARITH_SCALAR_H

static float f32_min(float a, float b)
{
    if (a != a || b != b)
        return f32_of(F32_NAN);
    if (a == b) /* equal bits, or zeros of two signs */
        return f32_of(f32_bits(a) | f32_bits(b));
    return a < b ? a : b;
}

static float f32_max(float a, float b)
{
    if (a != a || b != b)
        return f32_of(F32_NAN);
    if (a == b)
        return f32_of(f32_bits(a) & f32_bits(b));
    return a > b ? a : b;
}

static double f64_min(double a, double b)
{
    if (a != a || b != b)
        return f64_of(F64_NAN);
    if (a == b)
        return f64_of(f64_bits(a) | f64_bits(b));
    return a < b ? a : b;
}

static double f64_max(double a, double b)
{
    if (a != a || b != b)
        return f64_of(F64_NAN);
    if (a == b)
        return f64_of(f64_bits(a) & f64_bits(b));
    return a > b ? a : b;
}

/* Elements are moved as integers: a signalling NaN must not pass through a floating-point register
 * on the way in. */
#define AS_IS(x)      (x)
#define NOT_ZERO(x)   ((x) != 0)
#define OUT_F32(a)    ((a) != (a) ? F32_NAN : f32_bits(a))
#define OUT_F64(a)    ((a) != (a) ? F64_NAN : f64_bits(a))
#define DO_SUM(a, b)  ((a) + (b))
#define DO_PROD(a, b) ((a) * (b))
#define DO_MIN(a, b)  ((b) < (a) ? (b) : (a))
#define DO_MAX(a, b)  ((b) > (a) ? (b) : (a))
#define DO_BAND(a, b) ((a) & (b))
#define DO_BOR(a, b)  ((a) | (b))
#define DO_BXOR(a, b) ((a) ^ (b))

#define SCALAR(fn, E, ACC, IN, DO, OUT)                                                            \
    static void scalar_##fn(void *out, const void *const *in, unsigned n, size_t count)            \
    {                                                                                              \
        for (size_t i = 0; i < count; i++) {                                                       \
            ACC a = IN(((const E *)in[0])[i]);                                                     \
            for (unsigned k = 1; k < n; k++) {                                                     \
                ACC b = IN(((const E *)in[k])[i]);                                                 \
                a = (ACC)DO(a, b);                                                                 \
            }                                                                                      \
            ((E *)out)[i] = (E)OUT(a);                                                             \
        }                                                                                          \
    }

/* Wrapping integers are computed unsigned: the bits of two's complement without undefined overflow.
 */
SCALAR(sum_8, e_uint8, uint32_t, AS_IS, DO_SUM, AS_IS)
SCALAR(sum_16, e_uint16, uint32_t, AS_IS, DO_SUM, AS_IS)
SCALAR(sum_32, e_uint32, uint32_t, AS_IS, DO_SUM, AS_IS)
SCALAR(sum_64, e_uint64, uint64_t, AS_IS, DO_SUM, AS_IS)
SCALAR(prod_8, e_uint8, uint32_t, AS_IS, DO_PROD, AS_IS)
SCALAR(prod_16, e_uint16, uint32_t, AS_IS, DO_PROD, AS_IS)
SCALAR(prod_32, e_uint32, uint32_t, AS_IS, DO_PROD, AS_IS)
SCALAR(prod_64, e_uint64, uint64_t, AS_IS, DO_PROD, AS_IS)
SCALAR(min_i8, e_int8, int8_t, AS_IS, DO_MIN, AS_IS)
SCALAR(min_u8, e_uint8, uint8_t, AS_IS, DO_MIN, AS_IS)
SCALAR(min_i16, e_int16, int16_t, AS_IS, DO_MIN, AS_IS)
SCALAR(min_u16, e_uint16, uint16_t, AS_IS, DO_MIN, AS_IS)
SCALAR(min_i32, e_int32, int32_t, AS_IS, DO_MIN, AS_IS)
SCALAR(min_u32, e_uint32, uint32_t, AS_IS, DO_MIN, AS_IS)
SCALAR(min_i64, e_int64, int64_t, AS_IS, DO_MIN, AS_IS)
SCALAR(min_u64, e_uint64, uint64_t, AS_IS, DO_MIN, AS_IS)
SCALAR(max_i8, e_int8, int8_t, AS_IS, DO_MAX, AS_IS)
SCALAR(max_u8, e_uint8, uint8_t, AS_IS, DO_MAX, AS_IS)
SCALAR(max_i16, e_int16, int16_t, AS_IS, DO_MAX, AS_IS)
SCALAR(max_u16, e_uint16, uint16_t, AS_IS, DO_MAX, AS_IS)
SCALAR(max_i32, e_int32, int32_t, AS_IS, DO_MAX, AS_IS)
SCALAR(max_u32, e_uint32, uint32_t, AS_IS, DO_MAX, AS_IS)
SCALAR(max_i64, e_int64, int64_t, AS_IS, DO_MAX, AS_IS)
SCALAR(max_u64, e_uint64, uint64_t, AS_IS, DO_MAX, AS_IS)
SCALAR(sum_f32, e_uint32, float, f32_of, DO_SUM, OUT_F32)
SCALAR(prod_f32, e_uint32, float, f32_of, DO_PROD, OUT_F32)
SCALAR(min_f32, e_uint32, float, f32_of, f32_min, OUT_F32)
SCALAR(max_f32, e_uint32, float, f32_of, f32_max, OUT_F32)
SCALAR(sum_f64, e_uint64, double, f64_of, DO_SUM, OUT_F64)
SCALAR(prod_f64, e_uint64, double, f64_of, DO_PROD, OUT_F64)
SCALAR(min_f64, e_uint64, double, f64_of, f64_min, OUT_F64)
SCALAR(max_f64, e_uint64, double, f64_of, f64_max, OUT_F64)
SCALAR(sum_f16, e_uint16, float, fp16_to_fp32, DO_SUM, fp32_to_fp16)
SCALAR(prod_f16, e_uint16, float, fp16_to_fp32, DO_PROD, fp32_to_fp16)
SCALAR(min_f16, e_uint16, float, fp16_to_fp32, f32_min, fp32_to_fp16)
SCALAR(max_f16, e_uint16, float, fp16_to_fp32, f32_max, fp32_to_fp16)
SCALAR(sum_bf16, e_uint16, float, bf16_to_fp32, DO_SUM, fp32_to_bf16)
SCALAR(prod_bf16, e_uint16, float, bf16_to_fp32, DO_PROD, fp32_to_bf16)
SCALAR(min_bf16, e_uint16, float, bf16_to_fp32, f32_min, fp32_to_bf16)
SCALAR(max_bf16, e_uint16, float, bf16_to_fp32, f32_max, fp32_to_bf16)

SCALAR(band_8, e_uint8, uint32_t, AS_IS, DO_BAND, AS_IS)
SCALAR(band_16, e_uint16, uint32_t, AS_IS, DO_BAND, AS_IS)
SCALAR(band_32, e_uint32, uint32_t, AS_IS, DO_BAND, AS_IS)
SCALAR(band_64, e_uint64, uint64_t, AS_IS, DO_BAND, AS_IS)
SCALAR(bor_8, e_uint8, uint32_t, AS_IS, DO_BOR, AS_IS)
SCALAR(bor_16, e_uint16, uint32_t, AS_IS, DO_BOR, AS_IS)
SCALAR(bor_32, e_uint32, uint32_t, AS_IS, DO_BOR, AS_IS)
SCALAR(bor_64, e_uint64, uint64_t, AS_IS, DO_BOR, AS_IS)
SCALAR(bxor_8, e_uint8, uint32_t, AS_IS, DO_BXOR, AS_IS)
SCALAR(bxor_16, e_uint16, uint32_t, AS_IS, DO_BXOR, AS_IS)
SCALAR(bxor_32, e_uint32, uint32_t, AS_IS, DO_BXOR, AS_IS)
SCALAR(bxor_64, e_uint64, uint64_t, AS_IS, DO_BXOR, AS_IS)
SCALAR(land_8, e_uint8, uint32_t, NOT_ZERO, DO_BAND, AS_IS)
SCALAR(land_16, e_uint16, uint32_t, NOT_ZERO, DO_BAND, AS_IS)
SCALAR(land_32, e_uint32, uint32_t, NOT_ZERO, DO_BAND, AS_IS)
SCALAR(land_64, e_uint64, uint32_t, NOT_ZERO, DO_BAND, AS_IS)
SCALAR(lor_8, e_uint8, uint32_t, NOT_ZERO, DO_BOR, AS_IS)
SCALAR(lor_16, e_uint16, uint32_t, NOT_ZERO, DO_BOR, AS_IS)
SCALAR(lor_32, e_uint32, uint32_t, NOT_ZERO, DO_BOR, AS_IS)
SCALAR(lor_64, e_uint64, uint32_t, NOT_ZERO, DO_BOR, AS_IS)
SCALAR(lxor_8, e_uint8, uint32_t, NOT_ZERO, DO_BXOR, AS_IS)
SCALAR(lxor_16, e_uint16, uint32_t, NOT_ZERO, DO_BXOR, AS_IS)
SCALAR(lxor_32, e_uint32, uint32_t, NOT_ZERO, DO_BXOR, AS_IS)
SCALAR(lxor_64, e_uint64, uint32_t, NOT_ZERO, DO_BXOR, AS_IS)
SCALAR(sum_e4m3, e_uint8, float, fp8_e4m3_to_fp32, DO_SUM, fp32_to_fp8_e4m3)
SCALAR(prod_e4m3, e_uint8, float, fp8_e4m3_to_fp32, DO_PROD, fp32_to_fp8_e4m3)
SCALAR(min_e4m3, e_uint8, float, fp8_e4m3_to_fp32, f32_min, fp32_to_fp8_e4m3)
SCALAR(max_e4m3, e_uint8, float, fp8_e4m3_to_fp32, f32_max, fp32_to_fp8_e4m3)
SCALAR(sum_e5m2, e_uint8, float, fp8_e5m2_to_fp32, DO_SUM, fp32_to_fp8_e5m2)
SCALAR(prod_e5m2, e_uint8, float, fp8_e5m2_to_fp32, DO_PROD, fp32_to_fp8_e5m2)
SCALAR(min_e5m2, e_uint8, float, fp8_e5m2_to_fp32, f32_min, fp32_to_fp8_e5m2)
SCALAR(max_e5m2, e_uint8, float, fp8_e5m2_to_fp32, f32_max, fp32_to_fp8_e5m2)

/* Pairs of a value and an index, as two words each. */
struct arith_pair {
    e_uint32 value, index;
};

static bool int_less(uint32_t a, uint32_t b)
{
    return (int32_t)a < (int32_t)b;
}

/* -0 before +0; NaNs are looked at before. */
static bool float_less(uint32_t a, uint32_t b)
{
    if (f32_of(a) == f32_of(b))
        return (a >> 31) > (b >> 31);
    return f32_of(a) < f32_of(b);
}

static bool is_nan(uint32_t a)
{
    return (a & 0x7fffffffu) > 0x7f800000u;
}

#define LOC(fn, FIRST, IS_NAN)                                                                     \
    static void scalar_##fn(void *out, const void *const *in, unsigned n, size_t count)            \
    {                                                                                              \
        for (size_t i = 0; i < count; i++) {                                                       \
            struct arith_pair a = ((const struct arith_pair *)in[0])[i];                           \
                                                                                                   \
            for (unsigned k = 0; k < n; k++) {                                                     \
                struct arith_pair b = ((const struct arith_pair *)in[k])[i];                       \
                bool na = IS_NAN(a.value), nb = IS_NAN(b.value), b_first, a_first;                 \
                                                                                                   \
                b_first = na || nb ? nb && !na : FIRST(b.value, a.value);                          \
                a_first = na || nb ? na && !nb : FIRST(a.value, b.value);                          \
                if (b_first || (!a_first && int_less(b.index, a.index)))                           \
                    a = b;                                                                         \
            }                                                                                      \
            if (IS_NAN(a.value))                                                                   \
                a.value = F32_NAN;                                                                 \
            ((struct arith_pair *)out)[i] = a;                                                     \
        }                                                                                          \
    }
#define INT_MORE(a, b)   int_less(b, a)
#define FLOAT_MORE(a, b) float_less(b, a)
#define NO_NAN(a)        ((void)(a), false)

LOC(minloc_i32, int_less, NO_NAN)
LOC(maxloc_i32, INT_MORE, NO_NAN)
LOC(minloc_f32, float_less, is_nan)
LOC(maxloc_f32, FLOAT_MORE, is_nan)

#endif
