/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vector rows of arith.c's table: arith_rows.h for each instruction set, narrowest first, since each
 * leaves a rest of less than a block to the one before. Part of arith.c.
 */
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
/* This type, because gcc would need two instructions for another, and Intel's CPUs one more shuffle. */
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
/* Without this intrinsic gcc would move both masks out of their registers first. */
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
#endif
