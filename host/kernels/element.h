/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arithmetic of reductions on one element: one source, compiled for the GPU by nvcc
 * (reduce_*.cu) and as C for the CPU twins (kernels.c). The rules are those of aggregation/arith.h,
 * whose scalar row is the definition. This is an independent implementation, so that tests compare
 * the two.
 *
 * A line of REDUCTIONS_*(X) is X(name, E, ACC, IN, DO, OUT): E is the type in memory, IN converts
 * an element to an accumulator, DO combines two accumulators, OUT converts one to an element. AVG
 * divides the result of OUT, converted by IN and OUT once more.
 */
#ifndef TRIB_HOST_KERNELS_ELEMENT_H
#define TRIB_HOST_KERNELS_ELEMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define EL_FN static __device__ __forceinline__
#else
#define EL_FN static inline __attribute__((unused))
#endif

#define EL_F32_NAN  0x7fc00000u
#define EL_F64_NAN  0x7ff8000000000000ull
#define EL_F16_NAN  0x7e00u
#define EL_BF16_NAN 0x7fc0u

EL_FN float el_f32(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof(f));
    return f;
}

EL_FN uint32_t el_u32(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof(u));
    return u;
}

EL_FN double el_f64(uint64_t u)
{
    double f;

    memcpy(&f, &u, sizeof(f));
    return f;
}

EL_FN uint64_t el_u64(double f)
{
    uint64_t u;

    memcpy(&u, &f, sizeof(u));
    return u;
}

EL_FN uint32_t el_out_f32(float f)
{
    return f != f ? EL_F32_NAN : el_u32(f);
}

EL_FN uint64_t el_out_f64(double f)
{
    return f != f ? EL_F64_NAN : el_u64(f);
}

/* ---- narrow floats ---- */

/*
 * Rounds to nearest, ties to even. For a number below the smallest normal one, adding 2^(23 - man)
 * units in the last place leaves the code in the low bits, and the addition rounds it. over: result
 * for numbers above max; a NaN there has no sign.
 */
EL_FN uint32_t el_narrow(float f, int exp_bits, int man_bits, uint32_t max, uint32_t over,
                         uint32_t nan)
{
    uint32_t u = el_u32(f), mag = u & 0x7fffffffu, code;
    int drop = 23 - man_bits, least = 2 - (1 << (exp_bits - 1)); /* exponent of the smallest */
    uint32_t unit = (uint32_t)(least - man_bits + 23 + 127) << 23;

    if (mag > 0x7f800000u)
        return nan;
    if (mag >= (uint32_t)(least + 127) << 23) {
        code = mag - ((uint32_t)(least + 126) << 23);
        code = (code + (1u << (drop - 1)) - 1 + (code >> drop & 1)) >> drop;
    } else {
        code = el_u32(el_f32(mag) + el_f32(unit)) - unit;
    }
    if (code > max)
        code = over;
    return code == nan ? nan : (u >> 31) << (exp_bits + man_bits) | code;
}

/* A GPU uses its own instructions, which give the same bits. */
EL_FN float el_in_f16(uint16_t h)
{
#ifdef __CUDACC__
    float f;

    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
#else
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, mag = h & 0x7fff;

    if (mag >= 0x7c00)
        return el_f32(sign | 0x7f800000u | mag << 13);
    return el_f32(sign | el_u32(el_f32(mag << 13) * 0x1p112f));
#endif
}

EL_FN uint16_t el_out_f16(float f)
{
#ifdef __CUDACC__
    uint16_t h;

    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return f != f ? (uint16_t)EL_F16_NAN : h;
#else
    return (uint16_t)el_narrow(f, 5, 10, 0x7bff, 0x7c00, EL_F16_NAN);
#endif
}

EL_FN float el_in_bf16(uint16_t h)
{
    return el_f32((uint32_t)h << 16);
}

EL_FN uint16_t el_out_bf16(float f)
{
    uint32_t u = el_u32(f);

    return f != f ? (uint16_t)EL_BF16_NAN : (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* An E5M2 is the upper half of a half. */
EL_FN float el_in_e5m2(uint8_t b)
{
    return el_in_f16((uint16_t)(b << 8));
}

EL_FN uint8_t el_out_e5m2(float f)
{
    return (uint8_t)el_narrow(f, 5, 2, 0x7b, 0x7c, 0x7e);
}

EL_FN float el_in_e4m3(uint8_t b)
{
    uint32_t mag = b & 0x7f, sign = (uint32_t)(b & 0x80) << 24;

    if (mag == 0x7f)
        return el_f32(EL_F32_NAN);
    return el_f32(sign | el_u32(el_f32(mag << 20) * 0x1p120f));
}

EL_FN uint8_t el_out_e4m3(float f)
{
    return (uint8_t)el_narrow(f, 4, 3, 0x7e, 0x7f, 0x7f);
}

/* ---- min and max: NaN wins, -0 is less than +0 ---- */

EL_FN float el_min_f32(float a, float b)
{
    if (a != a || b != b)
        return el_f32(EL_F32_NAN);
    if (a == b)
        return el_f32(el_u32(a) | el_u32(b));
    return a < b ? a : b;
}

EL_FN float el_max_f32(float a, float b)
{
    if (a != a || b != b)
        return el_f32(EL_F32_NAN);
    if (a == b)
        return el_f32(el_u32(a) & el_u32(b));
    return a > b ? a : b;
}

EL_FN double el_min_f64(double a, double b)
{
    if (a != a || b != b)
        return el_f64(EL_F64_NAN);
    if (a == b)
        return el_f64(el_u64(a) | el_u64(b));
    return a < b ? a : b;
}

EL_FN double el_max_f64(double a, double b)
{
    if (a != a || b != b)
        return el_f64(EL_F64_NAN);
    if (a == b)
        return el_f64(el_u64(a) & el_u64(b));
    return a > b ? a : b;
}

/* ---- pairs of a value and an index ---- */

struct el_pair {
    uint32_t value, index;
};

EL_FN bool el_is_nan(uint32_t u)
{
    return (u & 0x7fffffffu) > 0x7f800000u;
}

/* Floats are ordered like signed integers once the lower bits of negative ones are inverted: -0
 * before +0. A NaN is beyond all of them, on the requested side. */
EL_FN int64_t el_key_f32(uint32_t u, int nan_side)
{
    int32_t i = (int32_t)(u ^ (u >> 31 ? 0x7fffffffu : 0));

    return el_is_nan(u) ? nan_side * ((int64_t)1 << 40) : i;
}

EL_FN struct el_pair el_first(struct el_pair a, struct el_pair b, int64_t ka, int64_t kb)
{
    if (ka == kb)
        return (int32_t)b.index < (int32_t)a.index ? b : a;
    return kb < ka ? b : a;
}

EL_FN struct el_pair el_minloc_f32(struct el_pair a, struct el_pair b)
{
    return el_first(a, b, el_key_f32(a.value, -1), el_key_f32(b.value, -1));
}

EL_FN struct el_pair el_maxloc_f32(struct el_pair a, struct el_pair b)
{
    return el_first(a, b, -el_key_f32(a.value, 1), -el_key_f32(b.value, 1));
}

EL_FN struct el_pair el_minloc_i32(struct el_pair a, struct el_pair b)
{
    return el_first(a, b, (int32_t)a.value, (int32_t)b.value);
}

EL_FN struct el_pair el_maxloc_i32(struct el_pair a, struct el_pair b)
{
    return el_first(a, b, -(int64_t)(int32_t)a.value, -(int64_t)(int32_t)b.value);
}

EL_FN struct el_pair el_out_pair_f32(struct el_pair a)
{
    if (el_is_nan(a.value))
        a.value = EL_F32_NAN;
    return a;
}

/* ---- the reductions ---- */

#define EL_AS_IS(x)    (x)
#define EL_NOT_ZERO(x) ((x) != 0)
#define EL_SUM(a, b)   ((a) + (b))
#define EL_PROD(a, b)  ((a) * (b))
#define EL_MIN(a, b)   ((b) < (a) ? (b) : (a))
#define EL_MAX(a, b)   ((b) > (a) ? (b) : (a))
#define EL_BAND(a, b)  ((a) & (b))
#define EL_BOR(a, b)   ((a) | (b))
#define EL_BXOR(a, b)  ((a) ^ (b))

/* Integers wrap: they are added and multiplied unsigned. */
#define REDUCTIONS_INT(X)                                                                          \
    X(sum_8, uint8_t, uint32_t, EL_AS_IS, EL_SUM, EL_AS_IS)                                        \
    X(sum_16, uint16_t, uint32_t, EL_AS_IS, EL_SUM, EL_AS_IS)                                      \
    X(sum_32, uint32_t, uint32_t, EL_AS_IS, EL_SUM, EL_AS_IS)                                      \
    X(sum_64, uint64_t, uint64_t, EL_AS_IS, EL_SUM, EL_AS_IS)                                      \
    X(prod_8, uint8_t, uint32_t, EL_AS_IS, EL_PROD, EL_AS_IS)                                      \
    X(prod_16, uint16_t, uint32_t, EL_AS_IS, EL_PROD, EL_AS_IS)                                    \
    X(prod_32, uint32_t, uint32_t, EL_AS_IS, EL_PROD, EL_AS_IS)                                    \
    X(prod_64, uint64_t, uint64_t, EL_AS_IS, EL_PROD, EL_AS_IS)                                    \
    X(min_i8, int8_t, int32_t, EL_AS_IS, EL_MIN, EL_AS_IS)                                         \
    X(min_u8, uint8_t, uint32_t, EL_AS_IS, EL_MIN, EL_AS_IS)                                       \
    X(min_i16, int16_t, int32_t, EL_AS_IS, EL_MIN, EL_AS_IS)                                       \
    X(min_u16, uint16_t, uint32_t, EL_AS_IS, EL_MIN, EL_AS_IS)                                     \
    X(min_i32, int32_t, int32_t, EL_AS_IS, EL_MIN, EL_AS_IS)                                       \
    X(min_u32, uint32_t, uint32_t, EL_AS_IS, EL_MIN, EL_AS_IS)                                     \
    X(min_i64, int64_t, int64_t, EL_AS_IS, EL_MIN, EL_AS_IS)                                       \
    X(min_u64, uint64_t, uint64_t, EL_AS_IS, EL_MIN, EL_AS_IS)                                     \
    X(max_i8, int8_t, int32_t, EL_AS_IS, EL_MAX, EL_AS_IS)                                         \
    X(max_u8, uint8_t, uint32_t, EL_AS_IS, EL_MAX, EL_AS_IS)                                       \
    X(max_i16, int16_t, int32_t, EL_AS_IS, EL_MAX, EL_AS_IS)                                       \
    X(max_u16, uint16_t, uint32_t, EL_AS_IS, EL_MAX, EL_AS_IS)                                     \
    X(max_i32, int32_t, int32_t, EL_AS_IS, EL_MAX, EL_AS_IS)                                       \
    X(max_u32, uint32_t, uint32_t, EL_AS_IS, EL_MAX, EL_AS_IS)                                     \
    X(max_i64, int64_t, int64_t, EL_AS_IS, EL_MAX, EL_AS_IS)                                       \
    X(max_u64, uint64_t, uint64_t, EL_AS_IS, EL_MAX, EL_AS_IS)                                     \
    X(band_8, uint8_t, uint32_t, EL_AS_IS, EL_BAND, EL_AS_IS)                                      \
    X(band_16, uint16_t, uint32_t, EL_AS_IS, EL_BAND, EL_AS_IS)                                    \
    X(band_32, uint32_t, uint32_t, EL_AS_IS, EL_BAND, EL_AS_IS)                                    \
    X(band_64, uint64_t, uint64_t, EL_AS_IS, EL_BAND, EL_AS_IS)                                    \
    X(bor_8, uint8_t, uint32_t, EL_AS_IS, EL_BOR, EL_AS_IS)                                        \
    X(bor_16, uint16_t, uint32_t, EL_AS_IS, EL_BOR, EL_AS_IS)                                      \
    X(bor_32, uint32_t, uint32_t, EL_AS_IS, EL_BOR, EL_AS_IS)                                      \
    X(bor_64, uint64_t, uint64_t, EL_AS_IS, EL_BOR, EL_AS_IS)                                      \
    X(bxor_8, uint8_t, uint32_t, EL_AS_IS, EL_BXOR, EL_AS_IS)                                      \
    X(bxor_16, uint16_t, uint32_t, EL_AS_IS, EL_BXOR, EL_AS_IS)                                    \
    X(bxor_32, uint32_t, uint32_t, EL_AS_IS, EL_BXOR, EL_AS_IS)                                    \
    X(bxor_64, uint64_t, uint64_t, EL_AS_IS, EL_BXOR, EL_AS_IS)                                    \
    X(land_8, uint8_t, uint32_t, EL_NOT_ZERO, EL_BAND, EL_AS_IS)                                   \
    X(land_16, uint16_t, uint32_t, EL_NOT_ZERO, EL_BAND, EL_AS_IS)                                 \
    X(land_32, uint32_t, uint32_t, EL_NOT_ZERO, EL_BAND, EL_AS_IS)                                 \
    X(land_64, uint64_t, uint32_t, EL_NOT_ZERO, EL_BAND, EL_AS_IS)                                 \
    X(lor_8, uint8_t, uint32_t, EL_NOT_ZERO, EL_BOR, EL_AS_IS)                                     \
    X(lor_16, uint16_t, uint32_t, EL_NOT_ZERO, EL_BOR, EL_AS_IS)                                   \
    X(lor_32, uint32_t, uint32_t, EL_NOT_ZERO, EL_BOR, EL_AS_IS)                                   \
    X(lor_64, uint64_t, uint32_t, EL_NOT_ZERO, EL_BOR, EL_AS_IS)                                   \
    X(lxor_8, uint8_t, uint32_t, EL_NOT_ZERO, EL_BXOR, EL_AS_IS)                                   \
    X(lxor_16, uint16_t, uint32_t, EL_NOT_ZERO, EL_BXOR, EL_AS_IS)                                 \
    X(lxor_32, uint32_t, uint32_t, EL_NOT_ZERO, EL_BXOR, EL_AS_IS)                                 \
    X(lxor_64, uint64_t, uint32_t, EL_NOT_ZERO, EL_BXOR, EL_AS_IS)                                 \
    X(minloc_i32, struct el_pair, struct el_pair, EL_AS_IS, el_minloc_i32, EL_AS_IS)               \
    X(maxloc_i32, struct el_pair, struct el_pair, EL_AS_IS, el_maxloc_i32, EL_AS_IS)

#define REDUCTIONS_FLOAT(X)                                                                        \
    X(sum_f32, uint32_t, float, el_f32, EL_SUM, el_out_f32)                                        \
    X(prod_f32, uint32_t, float, el_f32, EL_PROD, el_out_f32)                                      \
    X(min_f32, uint32_t, float, el_f32, el_min_f32, el_out_f32)                                    \
    X(max_f32, uint32_t, float, el_f32, el_max_f32, el_out_f32)                                    \
    X(sum_f64, uint64_t, double, el_f64, EL_SUM, el_out_f64)                                       \
    X(prod_f64, uint64_t, double, el_f64, EL_PROD, el_out_f64)                                     \
    X(min_f64, uint64_t, double, el_f64, el_min_f64, el_out_f64)                                   \
    X(max_f64, uint64_t, double, el_f64, el_max_f64, el_out_f64)                                   \
    X(minloc_f32, struct el_pair, struct el_pair, EL_AS_IS, el_minloc_f32, el_out_pair_f32)        \
    X(maxloc_f32, struct el_pair, struct el_pair, EL_AS_IS, el_maxloc_f32, el_out_pair_f32)

#define REDUCTIONS_SMALL(X)                                                                        \
    X(sum_f16, uint16_t, float, el_in_f16, EL_SUM, el_out_f16)                                     \
    X(prod_f16, uint16_t, float, el_in_f16, EL_PROD, el_out_f16)                                   \
    X(min_f16, uint16_t, float, el_in_f16, el_min_f32, el_out_f16)                                 \
    X(max_f16, uint16_t, float, el_in_f16, el_max_f32, el_out_f16)                                 \
    X(sum_bf16, uint16_t, float, el_in_bf16, EL_SUM, el_out_bf16)                                  \
    X(prod_bf16, uint16_t, float, el_in_bf16, EL_PROD, el_out_bf16)                                \
    X(min_bf16, uint16_t, float, el_in_bf16, el_min_f32, el_out_bf16)                              \
    X(max_bf16, uint16_t, float, el_in_bf16, el_max_f32, el_out_bf16)                              \
    X(sum_e4m3, uint8_t, float, el_in_e4m3, EL_SUM, el_out_e4m3)                                   \
    X(prod_e4m3, uint8_t, float, el_in_e4m3, EL_PROD, el_out_e4m3)                                 \
    X(min_e4m3, uint8_t, float, el_in_e4m3, el_min_f32, el_out_e4m3)                               \
    X(max_e4m3, uint8_t, float, el_in_e4m3, el_max_f32, el_out_e4m3)                               \
    X(sum_e5m2, uint8_t, float, el_in_e5m2, EL_SUM, el_out_e5m2)                                   \
    X(prod_e5m2, uint8_t, float, el_in_e5m2, EL_PROD, el_out_e5m2)                                 \
    X(min_e5m2, uint8_t, float, el_in_e5m2, el_min_f32, el_out_e5m2)                               \
    X(max_e5m2, uint8_t, float, el_in_e5m2, el_max_f32, el_out_e5m2)

/* X(name, E, ACC, IN, DIV, OUT): the sum as above, one rounding, then the division. The sum of
 * integers wraps before the division, because the division is done in type E. */
#define AVERAGES(X)                                                                                \
    X(avg_i8, int8_t, int64_t, EL_AS_IS, EL_DIV_I, EL_AS_IS)                                       \
    X(avg_u8, uint8_t, uint64_t, EL_AS_IS, EL_DIV_U, EL_AS_IS)                                     \
    X(avg_i16, int16_t, int64_t, EL_AS_IS, EL_DIV_I, EL_AS_IS)                                     \
    X(avg_u16, uint16_t, uint64_t, EL_AS_IS, EL_DIV_U, EL_AS_IS)                                   \
    X(avg_i32, int32_t, int64_t, EL_AS_IS, EL_DIV_I, EL_AS_IS)                                     \
    X(avg_u32, uint32_t, uint64_t, EL_AS_IS, EL_DIV_U, EL_AS_IS)                                   \
    X(avg_i64, int64_t, uint64_t, EL_AS_IS, EL_DIV_I, EL_AS_IS)                                    \
    X(avg_u64, uint64_t, uint64_t, EL_AS_IS, EL_DIV_U, EL_AS_IS)                                   \
    X(avg_f16, uint16_t, float, el_in_f16, EL_DIV_F, el_out_f16)                                   \
    X(avg_f32, uint32_t, float, el_f32, EL_DIV_F, el_out_f32)                                      \
    X(avg_f64, uint64_t, double, el_f64, EL_DIV_F, el_out_f64)                                     \
    X(avg_bf16, uint16_t, float, el_in_bf16, EL_DIV_F, el_out_bf16)                                \
    X(avg_e4m3, uint8_t, float, el_in_e4m3, EL_DIV_F, el_out_e4m3)                                 \
    X(avg_e5m2, uint8_t, float, el_in_e5m2, EL_DIV_F, el_out_e5m2)

#endif
