/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arithmetic of reduction: conversions, the table of kernels and the choice among its rows. arith.h says
 * what "exact" means; the scalar row (arith_scalar.h) is that definition as code, and tests hold the vector
 * rows (arith_isa.h lists them) to its bits.
 *
 * All rows keep one accumulator per element and walk the inputs in order, so that every input is
 * read once and the order of operations never depends on the row. Inputs come from frames at any
 * byte offset: every access goes through a type of alignment 1.
 *
 * Rejected: target_clones. Its resolvers hide all rows but the best one from the tests, and clang
 * and the sanitizers treat them differently; a table of rows chosen by arith_kernel() costs one
 * load per pass.
 */
#include "aggregation/arith.h"

#include "base/assert.h"
#include "aggregation/narrow.h"

#include <stdbool.h>
#include <string.h>

#define F32_NAN  0x7fc00000u
#define F64_NAN  0x7ff8000000000000ull
#define F16_NAN  0x7e00u
#define BF16_NAN 0x7fc0u
#define F32_INF  0x7f800000u
#define F64_INF  0x7ff0000000000000ull
#define F16_INF  0x7c00u
#define BF16_INF 0x7f80u

/* Element types as a frame has them: unaligned. */
#define UNALIGNED __attribute__((aligned(1), may_alias))
typedef int8_t e_int8 UNALIGNED;
typedef uint8_t e_uint8 UNALIGNED;
typedef int16_t e_int16 UNALIGNED;
typedef uint16_t e_uint16 UNALIGNED;
typedef int32_t e_int32 UNALIGNED;
typedef uint32_t e_uint32 UNALIGNED;
typedef int64_t e_int64 UNALIGNED;
typedef uint64_t e_uint64 UNALIGNED;

static float f32_of(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof(f));
    return f;
}

static uint32_t f32_bits(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof(u));
    return u;
}

static double f64_of(uint64_t u)
{
    double f;

    memcpy(&f, &u, sizeof(f));
    return f;
}

static uint64_t f64_bits(double f)
{
    uint64_t u;

    memcpy(&u, &f, sizeof(u));
    return u;
}

/* ---- conversions (IEEE 754 binary16; bfloat16 is the upper half of binary32) ---- */

float fp16_to_fp32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exp = (h >> 10) & 0x1f, man = h & 0x3ff;

    if (exp == 0x1f)
        return f32_of(sign | 0x7f800000u | (man ? 0x400000u | man << 13 : 0));
    if (exp)
        return f32_of(sign | (exp + 112) << 23 | man << 13);
    /* Zero and denormals: man * 2^-24 is exact in fp32. */
    return f32_of(sign | f32_bits((float)man * 0x1p-24f));
}

uint16_t fp32_to_fp16(float f)
{
    uint32_t u = f32_bits(f), sign = u >> 16 & 0x8000, mag = u & 0x7fffffffu, rest, half;
    unsigned shift;

    if (mag > 0x7f800000u)
        return F16_NAN;
    if (mag >=
        0x477ff000u) /* 65520, halfway between the largest half and 65536: ties to even go up */
        return (uint16_t)(sign | 0x7c00);
    if (mag >= 0x38800000u) /* 2^-14, the smallest normal half */
        return (uint16_t)(sign | (mag - 0x38000000u + 0xfff + (mag >> 13 & 1)) >> 13);
    if (mag <= 0x33000000u) /* 2^-25, halfway to the smallest denormal: ties to even go to zero */
        return (uint16_t)sign;
    shift = 126 - (mag >> 23); /* 14..24: mantissa with its hidden bit, in units of 2^-24 */
    rest = (mag & 0x7fffffu) | 0x800000u;
    half = 1u << (shift - 1);
    return (uint16_t)(sign | (rest + half - 1 + (rest >> shift & 1)) >> shift);
}

float bf16_to_fp32(uint16_t h)
{
    return f32_of((uint32_t)h << 16);
}

uint16_t fp32_to_bf16(float f)
{
    uint32_t u = f32_bits(f);

    if ((u & 0x7fffffffu) > 0x7f800000u)
        return BF16_NAN;
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* OFP8: an E5M2 is the upper half of a half. */
float fp8_e5m2_to_fp32(uint8_t b)
{
    return fp16_to_fp32((uint16_t)(b << 8));
}

uint8_t fp32_to_fp8_e5m2(float f)
{
    return (uint8_t)narrow(&narrow_e5m2, f, ROUND_NEAREST, 0);
}

float fp8_e4m3_to_fp32(uint8_t b)
{
    uint32_t sign = (uint32_t)(b & 0x80) << 24, exp = b >> 3 & 15, man = b & 7;

    if ((b & 0x7f) == 0x7f)
        return f32_of(sign | F32_NAN);
    if (exp)
        return f32_of(sign | (exp + 120) << 23 | man << 20);
    return f32_of(sign | f32_bits((float)man * 0x1p-9f));
}

uint8_t fp32_to_fp8_e4m3(float f)
{
    return (uint8_t)narrow(&narrow_e4m3, f, ROUND_NEAREST, 0);
}

#include "aggregation/arith_scalar.h"
#include "aggregation/arith_isa.h"

/* ---- the table ---- */

#define BY_WIDTH(row, op)                                                                          \
    [DT_INT8] = row##_##op##_8, [DT_UINT8] = row##_##op##_8, [DT_INT16] = row##_##op##_16,         \
    [DT_UINT16] = row##_##op##_16, [DT_INT32] = row##_##op##_32, [DT_UINT32] = row##_##op##_32,    \
    [DT_INT64] = row##_##op##_64, [DT_UINT64] = row##_##op##_64
#define BY_TYPE(row, op)                                                                           \
    {                                                                                              \
        BY_WIDTH(row, op), [DT_FP16] = row##_##op##_f16, [DT_FP32] = row##_##op##_f32,             \
                           [DT_FP64] = row##_##op##_f64, [DT_BF16] = row##_##op##_bf16,            \
                           [DT_FP8_E4M3] = scalar_##op##_e4m3, [DT_FP8_E5M2] = scalar_##op##_e5m2  \
    }
#define BY_SIGN(row, op)                                                                           \
    {                                                                                              \
        [DT_INT8] = row##_##op##_i8, [DT_UINT8] = row##_##op##_u8, [DT_INT16] = row##_##op##_i16,  \
        [DT_UINT16] = row##_##op##_u16, [DT_INT32] = row##_##op##_i32,                             \
        [DT_UINT32] = row##_##op##_u32, [DT_INT64] = row##_##op##_i64,                             \
        [DT_UINT64] = row##_##op##_u64, [DT_FP16] = row##_##op##_f16,                              \
        [DT_FP32] = row##_##op##_f32, [DT_FP64] = row##_##op##_f64, [DT_BF16] = row##_##op##_bf16, \
        [DT_FP8_E4M3] = scalar_##op##_e4m3, [DT_FP8_E5M2] = scalar_##op##_e5m2                     \
    }
#define BY_BITS(row, op)                                                                           \
    {                                                                                              \
        BY_WIDTH(row, op)                                                                          \
    }
#define PAIRS(op)                                                                                  \
    {                                                                                              \
        [DT_FP32_LOC] = scalar_##op##_f32, [DT_INT32_LOC] = scalar_##op##_i32                      \
    }
#define ALL(row)                                                                                   \
    {                                                                                              \
        [OP_SUM] = BY_TYPE(row, sum), [OP_PROD] = BY_TYPE(row, prod),                              \
        [OP_MIN] = BY_SIGN(row, min), [OP_MAX] = BY_SIGN(row, max), [OP_AVG] = BY_TYPE(row, sum),  \
        [OP_BAND] = BY_BITS(row, band), [OP_BOR] = BY_BITS(row, bor),                              \
        [OP_BXOR] = BY_BITS(row, bxor), [OP_MINLOC] = PAIRS(minloc), [OP_MAXLOC] = PAIRS(maxloc),  \
        [OP_LAND] = BY_BITS(row, land), [OP_LOR] = BY_BITS(row, lor),                              \
        [OP_LXOR] = BY_BITS(row, lxor)                                                             \
    }

static const arith_fn kernels[ARITH_ROWS][OP_COUNT][DT_COUNT] = {
    [ARITH_SCALAR] = ALL(scalar),
    [ARITH_V128] = ALL(v128),
#ifdef __x86_64__
    [ARITH_V256] = ALL(v256),
    [ARITH_V512] = ALL(v512),
#endif
};

bool arith_row_usable(enum arith_row row)
{
    switch (row) {
    case ARITH_SCALAR:
    case ARITH_V128:
        return true;
#ifdef __x86_64__
    case ARITH_V256:
        return __builtin_cpu_supports("avx2"); /* every CPU with AVX2 has F16C */
    case ARITH_V512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
    default:
        return false;
    }
}

bool arith_valid(enum redop op, enum dtype t)
{
    return (unsigned)op < OP_COUNT && (unsigned)t < DT_COUNT && kernels[ARITH_SCALAR][op][t];
}

arith_fn arith_kernel_of(enum arith_row row, enum redop op, enum dtype t)
{
    T_ASSERT((unsigned)row < ARITH_ROWS && (unsigned)op < OP_COUNT && (unsigned)t < DT_COUNT,
             "no such row, operation or type");
    return kernels[row][op][t];
}

arith_fn arith_kernel(enum redop op, enum dtype t)
{
    enum arith_row widest = ARITH_ROWS - 1;

    T_ASSERT((unsigned)op < OP_COUNT && (unsigned)t < DT_COUNT, "no such operation or type");
    while (!arith_row_usable(widest))
        widest--;
    return kernels[widest][op][t];
}

arith_fn arith_scalar(enum redop op, enum dtype t)
{
    return kernels[ARITH_SCALAR][op][t];
}

/* ---- at the edge ---- */

#define DIVIDE(E, ACC, IN, D, OUT)                                                                 \
    do {                                                                                           \
        for (size_t i = 0; i < count; i++) {                                                       \
            ACC a = IN(((const E *)buf)[i]);                                                       \
            a = (ACC)(a / (D));                                                                    \
            ((E *)buf)[i] = (E)OUT(a);                                                             \
        }                                                                                          \
    } while (0)

void arith_divide(void *buf, enum dtype t, unsigned n, size_t count)
{
    T_ASSERT((unsigned)t < DT_COUNT, "no such type");
    if (n < 2 && !dtype_is_float(t))
        return; /* so it never divides an integer by zero */
    switch (t) {
    case DT_INT8:
        DIVIDE(e_int8, int64_t, AS_IS, (int64_t)n, AS_IS);
        break;
    case DT_UINT8:
        DIVIDE(e_uint8, uint64_t, AS_IS, n, AS_IS);
        break;
    case DT_INT16:
        DIVIDE(e_int16, int64_t, AS_IS, (int64_t)n, AS_IS);
        break;
    case DT_UINT16:
        DIVIDE(e_uint16, uint64_t, AS_IS, n, AS_IS);
        break;
    case DT_INT32:
        DIVIDE(e_int32, int64_t, AS_IS, (int64_t)n, AS_IS);
        break;
    case DT_UINT32:
        DIVIDE(e_uint32, uint64_t, AS_IS, n, AS_IS);
        break;
    case DT_INT64:
        DIVIDE(e_int64, int64_t, AS_IS, (int64_t)n, AS_IS);
        break;
    case DT_UINT64:
        DIVIDE(e_uint64, uint64_t, AS_IS, n, AS_IS);
        break;
    case DT_FP16:
        DIVIDE(e_uint16, float, fp16_to_fp32, (float)n, fp32_to_fp16);
        break;
    case DT_FP32:
        DIVIDE(e_uint32, float, f32_of, (float)n, OUT_F32);
        break;
    case DT_FP64:
        DIVIDE(e_uint64, double, f64_of, (double)n, OUT_F64);
        break;
    case DT_BF16:
        DIVIDE(e_uint16, float, bf16_to_fp32, (float)n, fp32_to_bf16);
        break;
    case DT_FP8_E4M3:
        DIVIDE(e_uint8, float, fp8_e4m3_to_fp32, (float)n, fp32_to_fp8_e4m3);
        break;
    case DT_FP8_E5M2:
        DIVIDE(e_uint8, float, fp8_e5m2_to_fp32, (float)n, fp32_to_fp8_e5m2);
        break;
    case DT_FP32_LOC:
    case DT_INT32_LOC:
    case DT_COUNT:
        break;
    }
}
