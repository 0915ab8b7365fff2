/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vector rows of arith.c's table: arith_rows.h for each instruction set, narrowest first, since
 * each leaves what is less than a block to the one before; and Zen 5's own (arith_zen5.h). Part of
 * arith.c.
 */
#include "aggregation/arith_late.h"
#include "aggregation/arith_loops.h"

#ifdef __x86_64__
#include <immintrin.h>
#define ROW_NAN32(a, b)   _mm_movemask_ps(_mm_cmpunord_ps(a, b))
#define ROW_NAN64(a, b)   _mm_movemask_pd(_mm_cmpunord_pd(a, b))
#define ROW_AVERAGE(a, b) _mm_avg_epu16((__m128i)(a), (__m128i)(b))
#endif
#define ROW(name)    v128_##name
#define ROW_BYTES    16
#define ROW_REST(fn) scalar_##fn
#define ROW_TARGET
#include "aggregation/arith_rows.h"

#ifdef __x86_64__
#define ROW(name)         v256_##name
#define ROW_BYTES         32
#define ROW_REST(fn)      v128_##fn
#define ROW_TARGET        __attribute__((target("avx2,f16c")))
#define ROW_NAN32(a, b)   _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q))
#define ROW_NAN64(a, b)   _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_UNORD_Q))
#define ROW_AVERAGE(a, b) _mm256_avg_epu16((__m256i)(a), (__m256i)(b))
#define ROW_F16_LOAD(p)   _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p)))
/* Of this type, or gcc makes two instructions of it and Intel's CPUs need a shuffle more. */
#define ROW_F16_STORE(p, a)                                                                        \
    (*(v128_u16_mem *)(p) = (v128_u16)_mm256_cvtps_ph((a), _MM_FROUND_TO_NEAREST_INT))
#include "aggregation/arith_rows.h"

#define SWAP_HALVES     _mm512_set4_epi32(0x0d0c0f0e, 0x09080b0a, 0x05040706, 0x01000302)
#define ROW(name)       v512_##name
#define ROW_BYTES       64
#define ROW_REST(fn)    v256_##fn
#define ROW_TARGET      __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define ROW_NAN32(a, b) _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q)
#define ROW_NAN64(a, b) _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q)
/* gcc would take both masks out of their registers first. */
#define ROW_EITHER32(m, n) (!_kortestz_mask16_u8(m, n))
#define ROW_EITHER64(m, n) (!_kortestz_mask8_u8(m, n))
#define ROW_AVERAGE(a, b)  _mm512_avg_epu16((__m512i)(a), (__m512i)(b))
#define ROW_UPPERS(a, b)                                                                           \
    _mm512_mask_shuffle_epi8((__m512i)(b), 0x3333333333333333, (__m512i)(a), SWAP_HALVES)
#define ROW_LOWERS(a, b)                                                                           \
    _mm512_mask_shuffle_epi8((__m512i)(a), 0xcccccccccccccccc, (__m512i)(b), SWAP_HALVES)
#define ROW_F16_LOAD(p) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p)))
#define ROW_F16_STORE(p, a)                                                                        \
    _mm256_storeu_si256((__m256i *)(p), _mm512_cvtps_ph((a), _MM_FROUND_TO_NEAREST_INT))
#include "aggregation/arith_rows.h"

/* The row before but for bfloat16, all that is used of it: the CPU's conversion rounds as the rule
 * says, but takes denormals for zero and keeps NaNs, so only vectors with neither are left to it.
 */
#define NAN_OR_DENORMAL 0xa1
#define BF16_BY_CPU(a, b)                                                                          \
    _mm512_permutexvar_epi64(_mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0),                             \
                             (__m512i)_mm512_cvtne2ps_pbh(b, a))
#define ROW(name)          v512bf_##name
#define ROW_BYTES          64
#define ROW_REST(fn)       v256_##fn
#define ROW_TARGET         __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define ROW_NAN32(a, b)    _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q)
#define ROW_NAN64(a, b)    _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q)
#define ROW_AVERAGE(a, b)  _mm512_avg_epu16((__m512i)(a), (__m512i)(b))
#define ROW_BF16_FIRST(v)  _mm512_unpacklo_epi16(_mm512_setzero_si512(), (__m512i)(v))
#define ROW_BF16_SECOND(v) _mm512_unpackhi_epi16(_mm512_setzero_si512(), (__m512i)(v))
#define ROW_UPPERS(a, b)   _mm512_packus_epi32((__m512i)((a) >> 16), (__m512i)((b) >> 16))
#define ROW_LOWERS(a, b)   _mm512_packus_epi32((__m512i)((a)&0xffff), (__m512i)((b)&0xffff))
#define ROW_BF16_PLAIN(a, b)                                                                       \
    _kortestz_mask16_u8(_mm512_fpclass_ps_mask(a, NAN_OR_DENORMAL),                                \
                        _mm512_fpclass_ps_mask(b, NAN_OR_DENORMAL))
#define ROW_BF16_ROUND(a, b) BF16_BY_CPU(a, b)
#include "aggregation/arith_rows.h"

/* For bfloat16 a multiplication of 16-bit halves that adds into 32 bits rounds:
 * (0x7fff, last bit) x (1, 1). */
#define AND_OR 0xea /* of a ternary operation: (a & b) | c */
#define UP_BY_VNNI(a)                                                                              \
    _mm512_dpwssd_epi32((__m512i)(a),                                                              \
                        _mm512_ternarylogic_epi32((__m512i)(a), _mm512_set1_epi32(0x10000),        \
                                                  _mm512_set1_epi32(0x7fff), AND_OR),              \
                        _mm512_set1_epi16(1))

/* Sums of floats on Zen 4, which has AVX-512 as two halves: a branch that waits for a mask is dear
 * there, and halves are converted eight at a time. */
#define ROW(name)              v512z_##name
#define ROW_BYTES              64
#define ROW_REST(fn)           v256_##fn
#define ROW_TARGET             __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define ROW_NAN32(a, b)        _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q)
#define ROW_NAN64(a, b)        _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q)
#define ROW_MASK32             __mmask16
#define ROW_MASK64             __mmask8
#define ROW_ORDERED32(m, a, b) _mm512_mask_cmp_ps_mask(m, a, b, _CMP_ORD_Q)
#define ROW_ORDERED64(m, a, b) _mm512_mask_cmp_pd_mask(m, a, b, _CMP_ORD_Q)
#define ROW_UPPERS(a, b)                                                                           \
    _mm512_mask_shuffle_epi8((__m512i)(b), 0x3333333333333333, (__m512i)(a), SWAP_HALVES)
#define ROW_BF16_UP(a) UP_BY_VNNI(a)
#include "aggregation/arith_rows.h"

#define ROW(name)              v256z_##name
#define ROW_BYTES              32
#define ROW_REST(fn)           v128_##fn
#define ROW_TARGET             __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,f16c")))
#define ROW_NAN32(a, b)        _mm256_cmp_ps_mask(a, b, _CMP_UNORD_Q)
#define ROW_NAN64(a, b)        _mm256_cmp_pd_mask(a, b, _CMP_UNORD_Q)
#define ROW_MASK32             __mmask8
#define ROW_ORDERED32(m, a, b) _mm256_mask_cmp_ps_mask(m, a, b, _CMP_ORD_Q)
#define ROW_F16_LOAD(p)        _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p)))
#define ROW_F16_STORE(p, a)                                                                        \
    (*(v128_u16_mem *)(p) = (v128_u16)_mm256_cvtps_ph((a), _MM_FROUND_TO_NEAREST_INT))
#include "aggregation/arith_rows.h"

#include "aggregation/arith_zen5.h"

#ifdef ARITH_FP16
/* For halves on Intel's CPUs: conversions of eight at a time, NaNs looked for by the vector unit
 * that conversions leave alone. */
#define ROW(name)          v256k_##name
#define ROW_BYTES          32
#define ROW_REST(fn)       v128_##fn
#define ROW_TARGET         __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,f16c")))
#define ROW_NAN32(a, b)    _mm256_cmp_ps_mask(a, b, _CMP_UNORD_Q)
#define ROW_NAN64(a, b)    _mm256_cmp_pd_mask(a, b, _CMP_UNORD_Q)
#define ROW_EITHER32(m, n) (!_kortestz_mask8_u8(m, n))
#define ROW_EITHER64(m, n) (!_kortestz_mask8_u8(m, n))
#define ROW_F16_KNOWN
#define ROW_F16_LOAD(p) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p)))
#define ROW_F16_STORE(p, a)                                                                        \
    (*(v128_u16_mem *)(p) = (v128_u16)_mm256_cvtps_ph((a), _MM_FROUND_TO_NEAREST_INT))
#include "aggregation/arith_rows.h"

/* For 16-bit floats where the CPU has sums of halves; what is NaN as bfloat16 is NaN as halves as
 * well (like infinities and numbers from 2^121 on). */
#define ROW(name)    v512h_##name
#define ROW_BYTES    64
#define ROW_REST(fn) v256_##fn
#define ROW_TARGET                                                                                 \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512fp16")))
#define ROW_NAN32(a, b)    _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q)
#define ROW_NAN64(a, b)    _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q)
#define ROW_EITHER32(m, n) (!_kortestz_mask16_u8(m, n))
#define ROW_EITHER64(m, n) (!_kortestz_mask8_u8(m, n))
#define ROW_EITHER16(m, n) (!_kortestz_mask32_u8(m, n))
#define ROW_UPPERS(a, b)                                                                           \
    _mm512_mask_shuffle_epi8((__m512i)(b), 0x3333333333333333, (__m512i)(a), SWAP_HALVES)
#define ROW_BF16_UP(a)     UP_BY_VNNI(a)
#define ROW_BF16_NAN(a, b) _mm512_cmp_ph_mask((__m512h)(a), (__m512h)(b), _CMP_UNORD_Q)
#define ROW_F16_REST(fn)   v256k_##fn
#define ROW_F16_ADD(a, b)  _mm512_add_ph((__m512h)(a), (__m512h)(b))
#define ROW_F16_NAN(a, b)  ROW_BF16_NAN(a, b)
#include "aggregation/arith_rows.h"
#endif
#endif
