/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One vector row of arith.c's table: a template, included once for each instruction set with
 *   ROW(name)        the row's names
 *   ROW_BYTES        width of its vectors
 *   ROW_TARGET       function attribute that enables the instruction set
 *   ROW_REST(fn)     the kernel that takes what is less than a block: of the next narrower row
 *   ROW_F16_LOAD(p), ROW_F16_STORE(p, a)   conversions of halves; without them fp16 is left to
 *   ROW_F16_REST(fn)   the kernel of another row, if not of the next narrower one
 *   ROW_F16_ADD(a, b), ROW_F16_NAN(a, b)   halves: the CPU's sum; any NaN in two vectors
 *   ROW_NAN32(a, b), ROW_NAN64(a, b)   whether any lane of two vectors of floats (doubles) is NaN
 *   ROW_EITHER32(m, n), ROW_EITHER64(m, n), ROW_EITHER16(m, n)   one of two is yes
 *   ROW_BF16_FIRST(v), ROW_BF16_SECOND(v)   a vector of bfloat16 as two of floats, in any order
 *   ROW_UPPERS(a, b), ROW_LOWERS(a, b)   upper (lower) 16 bits of two such, in bfloat16's order
 *   ROW_BF16_PLAIN(a, b)   whether the CPU rounds two such as the rule says: ROW_BF16_ROUND(a, b)
 *   ROW_BF16_UP(a)   a float's bits + 0x7fff + the last bit of its upper half
 *   ROW_BF16_NAN(a, b)   whether any lane of two vectors of bfloat16 may be NaN
 *   ROW_AVERAGE(a, b)   of 16-bit lanes, rounded up
 *   ROW_F16_KNOWN   set where sums of halves are faster with a known number of inputs
 *   ROW_ORDERED32(m, a, b), ROW_ORDERED64(m, a, b)   mask m less the lanes where a or b is NaN
 *   ROW_MASK32, ROW_MASK64   its type, a bit for each lane; sums look at a call's masks at its end
 * where those from ROW_F16_REST on may be left out.
 * No guard: it is meant to be included again.
 *
 * Vectors are the compiler's generic ones; where intrinsics are used they were measured to matter:
 * conversions of halves (ten operations a vector without), and NaNs looked for before they are
 * replaced, since there are none as a rule.
 */
#ifdef ROW_NAN32
#define FLOAT_SUMS SUMS
#else
#define ROW_NAN32(a, b)                             1
#define ROW_NAN64(a, b)                             1
#define FLOAT_SUMS(fn, V, EB, VB, LOAD, STORE, PUT) VECTOR(fn, V, EB, VB, LOAD, V_SUM, STORE)
#endif
#ifndef ROW_EITHER32
#define ROW_EITHER32(m, n) ((m) | (n))
#define ROW_EITHER64(m, n) ((m) | (n))
#endif
#ifndef ROW_UPPERS
#define ROW_UPPERS(a, b) ((a) >> 16 | ((b)&0xffff0000u))
#define ROW_LOWERS(a, b) (((a)&0xffff) | (b) << 16)
#endif
#ifndef ROW_BF16_FIRST
#define ROW_BF16_FIRST(v)  ((v) << 16)
#define ROW_BF16_SECOND(v) ((v)&0xffff0000u)
#endif
#ifndef ROW_AVERAGE
#define ROW_AVERAGE(a, b) (((a) >> 1) + ((b) >> 1) + (((a) | (b)) & 1))
#endif
#ifndef ROW_F16_REST
#define ROW_F16_REST(fn) ROW_REST(fn)
#endif

#include "aggregation/arith_ops.h"

#define WRAPPING(V, bits)                                                                          \
    SUMS(sum_##bits, V, bits / 8, ROW_BYTES, V_LOAD, V_STORE, ROW(V##_put))                        \
    VECTOR(prod_##bits, V, bits / 8, ROW_BYTES, V_LOAD, V_PROD, V_STORE)                           \
    VECTOR(band_##bits, V, bits / 8, ROW_BYTES, V_LOAD, V_BAND, V_STORE)                           \
    VECTOR(bor_##bits, V, bits / 8, ROW_BYTES, V_LOAD, V_BOR, V_STORE)                             \
    VECTOR(bxor_##bits, V, bits / 8, ROW_BYTES, V_LOAD, V_BXOR, V_STORE)
#define ORDERED(V, bits)                                                                           \
    VECTOR(min_##V, V, bits / 8, ROW_BYTES, V_LOAD, V_MIN, V_STORE)                                \
    VECTOR(max_##V, V, bits / 8, ROW_BYTES, V_LOAD, V_MAX, V_STORE)
#define FLOATING(name, V, EB, VB, LOAD, STORE)                                                     \
    VECTOR(prod_##name, V, EB, VB, LOAD, V_PROD, STORE)                                            \
    VECTOR(min_##name, V, EB, VB, LOAD, V_MIN, STORE)                                              \
    VECTOR(max_##name, V, EB, VB, LOAD, V_MAX, STORE)

WRAPPING(u8, 8)
WRAPPING(u32, 32)
WRAPPING(u64, 64)
ORDERED(i8, 8)
ORDERED(u8, 8)
ORDERED(i32, 32)
ORDERED(u32, 32)
ORDERED(i64, 64)
ORDERED(u64, 64)
/* cppcheck-suppress-begin invalidPointerCast */
#ifdef ROW_ORDERED32
SUMS_LATE(sum_f32, 32, f32, u32, 4, ROW_BYTES, V_LOAD, V_STORE_F, V_STORE, F32_INF, F32_NAN)
#else
FLOAT_SUMS(sum_f32, f32, 4, ROW_BYTES, V_LOAD, V_STORE_F, ROW(f32_put))
#endif
FLOATING(f32, f32, 4, ROW_BYTES, V_LOAD, V_STORE_F)
#ifdef ROW_ORDERED64
SUMS_LATE(sum_f64, 64, f64, u64, 8, ROW_BYTES, V_LOAD, V_STORE_F, V_STORE, F64_INF, F64_NAN)
#else
FLOAT_SUMS(sum_f64, f64, 8, ROW_BYTES, V_LOAD, V_STORE_F, ROW(f64_put))
#endif
FLOATING(f64, f64, 8, ROW_BYTES, V_LOAD, V_STORE_F)
/* cppcheck-suppress-end invalidPointerCast */
/* For which numbers of inputs a loop of their own is faster was measured. */
#if defined(ROW_ORDERED32)
SUMS_LATE(sum_bf16, 32, f32, u16, 2, ROW_BYTES / 2, BF_LOAD, BF_STORE, BF_STORE_ANY, BF16_INF,
          BF16_NAN)
#elif defined(ROW_BF16_NAN)
VECTOR_OF(sum_bf16_any, sum_bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, V_SUM, BF_STORE)
KNOWN(sum_bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, V_SUM, ROW(bf16_put), 2, 8)
KNOWN(sum_bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, V_SUM, ROW(bf16_put), 4, 8)
SUM(sum_bf16, 2, ROW_BYTES / 2, [2] = ROW(sum_bf16_of_2), [4] = ROW(sum_bf16_of_4))
#elif defined(ROW_BF16_ROUND)
VECTOR_OF(sum_bf16_any, sum_bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, V_SUM, BF_STORE)
KNOWN(sum_bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, V_SUM, ROW(bf16_put), 2, 4)
KNOWN(sum_bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, V_SUM, ROW(bf16_put), 4, 4)
KNOWN(sum_bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, V_SUM, ROW(bf16_put), 8, 4)
SUM(sum_bf16, 2,
    ROW_BYTES / 2, [2] = ROW(sum_bf16_of_2), [4] = ROW(sum_bf16_of_4), [8] = ROW(sum_bf16_of_8))
#else
VECTOR(sum_bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, V_SUM, BF_STORE)
#endif
FLOATING(bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, BF_STORE)
#ifdef ROW_F16_LOAD
#if defined(ROW_ORDERED32)
SUMS_LATE(sum_f16, 32, f32, u16, 2, ROW_BYTES / 2, HF_LOAD, HF_STORE, HF_STORE_ANY, F16_INF,
          F16_NAN)
#elif defined(ROW_F16_KNOWN)
VECTOR_OF(sum_f16_any, sum_f16, f32, 2, ROW_BYTES / 2, HF_LOAD, V_SUM, HF_STORE)
KNOWN(sum_f16, f32, 2, ROW_BYTES / 2, HF_LOAD, V_SUM, ROW(f16_put), 4, 8)
KNOWN(sum_f16, f32, 2, ROW_BYTES / 2, HF_LOAD, V_SUM, ROW(f16_put), 8, 4)
KNOWN(sum_f16, f32, 2, ROW_BYTES / 2, HF_LOAD, V_SUM, ROW(f16_put), 16, 2)
SUM(sum_f16, 2,
    ROW_BYTES / 2, [4] = ROW(sum_f16_of_4), [8] = ROW(sum_f16_of_8), [16] = ROW(sum_f16_of_16))
#else
VECTOR(sum_f16, f32, 2, ROW_BYTES / 2, HF_LOAD, V_SUM, HF_STORE)
#endif
FLOATING(f16, f32, 2, ROW_BYTES / 2, HF_LOAD, HF_STORE)
#else
#define PLAIN(name, fn)                                                                            \
    static __attribute__((unused)) void ROW(name)(void *out, const void *const *in, unsigned n,    \
                                                  size_t count)                                    \
    {                                                                                              \
        ROW_F16_REST(fn)(out, in, n, count);                                                       \
    }
#ifdef ROW_F16_ADD
PLAIN(sum_f16_any, sum_f16)
KNOWN(sum_f16, u16, 2, ROW_BYTES, V_LOAD, F16_ADD, ROW(f16_two), 2, 8)
SUM(sum_f16, 2, ROW_BYTES, [2] = ROW(sum_f16_of_2))
#else
PLAIN(sum_f16, sum_f16)
#endif
PLAIN(prod_f16, prod_f16)
PLAIN(min_f16, min_f16)
PLAIN(max_f16, max_f16)
#undef PLAIN
#endif

#undef ROW
#undef ROW_BYTES
#undef ROW_TARGET
#undef ROW_REST
#undef ROW_NAN32
#undef ROW_NAN64
#undef ROW_EITHER32
#undef ROW_EITHER64
#undef ROW_UPPERS
#undef ROW_LOWERS
#undef ROW_AVERAGE
#undef ROW_F16_LOAD
#undef ROW_F16_STORE
#undef ROW_BF16_FIRST
#undef ROW_BF16_SECOND
#undef ROW_BF16_PLAIN
#undef ROW_BF16_ROUND
#undef ROW_BF16_UP
#undef ROW_BF16_NAN
#undef ROW_F16_KNOWN
#undef ROW_F16_REST
#undef ROW_F16_ADD
#undef ROW_F16_NAN
#undef ROW_EITHER16
#undef ROW_ORDERED32
#undef ROW_ORDERED64
#undef ROW_MASK32
#undef ROW_MASK64
#undef FLOAT_SUMS
#undef WRAPPING
#undef ORDERED
#undef FLOATING
