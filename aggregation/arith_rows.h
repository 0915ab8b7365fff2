/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One vector row of arith.c's table: a template, included once for each instruction set with
 *   ROW(name)        the row's names
 *   ROW_BYTES        width of its vectors
 *   ROW_TARGET       function attribute that enables the instruction set
 *   ROW_REST(fn)     the kernel for a rest of less than a block: that of the next narrower row
 *   ROW_F16_LOAD(p), ROW_F16_STORE(p, a)   conversions of halves; without them ROW_REST takes fp16
 *   ROW_NAN32(a, b), ROW_NAN64(a, b)   whether any lane of two vectors of floats (doubles) is NaN
 *   ROW_EITHER32(m, n), ROW_EITHER64(m, n)   whether one of two such answers is yes
 *   ROW_UPPERS(a, b), ROW_LOWERS(a, b)   upper (lower) 16 bits of each lane of two vectors
 *   of floats, in bfloat16's order
 *   ROW_AVERAGE(a, b)   average of 16-bit lanes, rounded up
 * A row may leave out those from ROW_F16_LOAD on.
 * No guard: it is meant to be included again.
 *
 * Vectors are the compiler's generic ones. Intrinsics are used where measurements showed that they matter:
 * conversions of halves (ten operations a vector without), and looking for NaNs before they are
 * replaced, since usually there are none.
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
#ifndef ROW_AVERAGE
#define ROW_AVERAGE(a, b) (((a) >> 1) + ((b) >> 1) + (((a) | (b)) & 1))
#endif

#include "aggregation/arith_ops.h"

#define WRAPPING(V, bits)                                                                          \
    SUMS(sum_##bits, V, bits / 8, ROW_BYTES, V_LOAD, V_STORE, ROW(V##_put))                        \
    VECTOR(prod_##bits, V, bits / 8, ROW_BYTES, V_LOAD, V_PROD, V_STORE)                           \
    VECTOR(band_##bits, V, bits / 8, ROW_BYTES, V_LOAD, V_BAND, V_STORE)                           \
    VECTOR(bor_##bits, V, bits / 8, ROW_BYTES, V_LOAD, V_BOR, V_STORE)                             \
    VECTOR(bxor_##bits, V, bits / 8, ROW_BYTES, V_LOAD, V_BXOR, V_STORE)                           \
    VECTOR(land_##bits, V, bits / 8, ROW_BYTES, L_LOAD, V_BAND, L_STORE)                           \
    VECTOR(lor_##bits, V, bits / 8, ROW_BYTES, L_LOAD, V_BOR, L_STORE)                             \
    VECTOR(lxor_##bits, V, bits / 8, ROW_BYTES, L_LOAD, V_BXOR, L_STORE)
#define ORDERED(V, bits)                                                                           \
    VECTOR(min_##V, V, bits / 8, ROW_BYTES, V_LOAD, V_MIN, V_STORE)                                \
    VECTOR(max_##V, V, bits / 8, ROW_BYTES, V_LOAD, V_MAX, V_STORE)
#define FLOATING(name, V, EB, VB, LOAD, STORE)                                                     \
    VECTOR(prod_##name, V, EB, VB, LOAD, V_PROD, STORE)                                            \
    VECTOR(min_##name, V, EB, VB, LOAD, V_MIN, STORE)                                              \
    VECTOR(max_##name, V, EB, VB, LOAD, V_MAX, STORE)

WRAPPING(u8, 8)
WRAPPING(u16, 16)
WRAPPING(u32, 32)
WRAPPING(u64, 64)
ORDERED(i8, 8)
ORDERED(u8, 8)
ORDERED(i16, 16)
ORDERED(u16, 16)
ORDERED(i32, 32)
ORDERED(u32, 32)
ORDERED(i64, 64)
ORDERED(u64, 64)
/* cppcheck-suppress-begin invalidPointerCast */
FLOAT_SUMS(sum_f32, f32, 4, ROW_BYTES, V_LOAD, V_STORE_F, ROW(f32_put))
FLOATING(f32, f32, 4, ROW_BYTES, V_LOAD, V_STORE_F)
FLOAT_SUMS(sum_f64, f64, 8, ROW_BYTES, V_LOAD, V_STORE_F, ROW(f64_put))
FLOATING(f64, f64, 8, ROW_BYTES, V_LOAD, V_STORE_F)
/* cppcheck-suppress-end invalidPointerCast */
VECTOR(sum_bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, V_SUM, BF_STORE)
FLOATING(bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, BF_STORE)
#ifdef ROW_F16_LOAD
VECTOR(sum_f16, f32, 2, ROW_BYTES / 2, HF_LOAD, V_SUM, HF_STORE)
FLOATING(f16, f32, 2, ROW_BYTES / 2, HF_LOAD, HF_STORE)
#else
#define PLAIN(name, fn)                                                                            \
    static __attribute__((unused)) void ROW(name)(void *out, const void *const *in, unsigned n,    \
                                                  size_t count)                                    \
    {                                                                                              \
        ROW_REST(fn)(out, in, n, count);                                                           \
    }
PLAIN(sum_f16, sum_f16)
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
#undef FLOAT_SUMS
#undef WRAPPING
#undef ORDERED
#undef FLOATING
