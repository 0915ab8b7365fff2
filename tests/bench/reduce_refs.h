/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Baseline of the reduction kernels: sums of N plain arrays of 4 KiB, aligned to their cache lines,
 * one pass, N known where the code is compiled. For each type several candidates, of which the
 * fastest counts: the loop that anybody would write, as the compiler makes it, and AVX-512 by hand,
 * over one, two or four vectors at a time. They have no care for NaNs, and the hardware's
 * conversion to bfloat16 takes denormals for zero, which the kernels may not.
 *
 * fp16 and bf16 are summed in fp32 and rounded once.
 */
#ifndef TRIB_TESTS_BENCH_REDUCE_REFS_H
#define TRIB_TESTS_BENCH_REDUCE_REFS_H

#include "aggregation/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BYTES   4096u
#define ALIGNED 64

typedef void (*ref_fn)(void *out, const void *const *in);

struct ref {
    const char *name;
    enum dtype type;
    enum { ANY_CPU, AVX512, AVX512_BF16, AVX512_VNNI, AVX512_FP16 } needs;
    ref_fn sum[4]; /* of 2, 4, 8, 16; NULL: not done this way */
};

/* ---- what the compiler makes ---- */

/* For every vector unit that the kernels have rows for. */
#define CLONES                                                                                     \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), optimize("O3")))

#define AS_IS(x) (x)
#define HALF(x)  ((float)(x))

static inline __attribute__((always_inline)) float of_bf16(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;

    memcpy(&f, &u, sizeof(f));
    return f;
}

static inline __attribute__((always_inline)) uint16_t to_bf16(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof(u));
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

#define SUM2(IN, i) IN(a[0][i]) + IN(a[1][i])
#define SUM4(IN, i) SUM2(IN, i) + IN(a[2][i]) + IN(a[3][i])
#define SUM8(IN, i) SUM4(IN, i) + IN(a[4][i]) + IN(a[5][i]) + IN(a[6][i]) + IN(a[7][i])
#define SUM16(IN, i)                                                                               \
    SUM8(IN, i) + IN(a[8][i]) + IN(a[9][i]) + IN(a[10][i]) + IN(a[11][i]) + IN(a[12][i]) +         \
        IN(a[13][i]) + IN(a[14][i]) + IN(a[15][i])
#define PLAIN(name, type, IN, OUT, n)                                                              \
    CLONES static void name##n(void *out, const void *const *in)                                   \
    {                                                                                              \
        type *restrict o = __builtin_assume_aligned(out, ALIGNED);                                 \
        const type *a[n];                                                                          \
                                                                                                   \
        for (unsigned k = 0; k < n; k++)                                                           \
            a[k] = __builtin_assume_aligned(in[k], ALIGNED);                                       \
        for (size_t i = 0; i < BYTES / sizeof(type); i++)                                          \
            o[i] = OUT(SUM##n(IN, i));                                                             \
    }
#define PLAINS(name, type, IN, OUT)                                                                \
    PLAIN(name, type, IN, OUT, 2)                                                                  \
    PLAIN(name, type, IN, OUT, 4) PLAIN(name, type, IN, OUT, 8) PLAIN(name, type, IN, OUT, 16)
PLAINS(plain_f32_, float, AS_IS, AS_IS)
PLAINS(plain_i32_, uint32_t, AS_IS, AS_IS)
PLAINS(plain_f16_, _Float16, HALF, (_Float16))
PLAINS(plain_bf16_, uint16_t, of_bf16, to_bf16)

/* ---- AVX-512 by hand ---- */

#ifdef __x86_64__
#include <immintrin.h>

#if !defined(__clang__) && __GNUC__ >= 12
#define KNOWS_FP16
#define WITH_FP16 ",avx512fp16"
#else
#define WITH_FP16
#endif
#define BY_HAND                                                                                    \
    __attribute__((target("f16c,avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,"               \
                          "avx512vnni" WITH_FP16)))
#define INLINE_HAND static inline __attribute__((always_inline)) BY_HAND
#define UNROLL      _Pragma("GCC unroll 16")

/* b vectors of V at a time, each of `step` elements of E. */
#define HAND(name, E, V, step, LOAD, ADD, STORE)                                                   \
    HAND_ANY(name, E, V, step, LOAD, ADD, STORE)                                                   \
    HAND_N(name, 2) HAND_N(name, 4) HAND_N(name, 8) HAND_N(name, 16)
#define HAND_ANY(name, E, V, step, LOAD, ADD, STORE)                                               \
    INLINE_HAND void name##_any(E *o, const void *const *in, const unsigned n, const unsigned b)   \
    {                                                                                              \
        const E *p[16];                                                                            \
        V a[4];                                                                                    \
                                                                                                   \
        UNROLL for (unsigned k = 0; k < n; k++) p[k] = in[k];                                      \
        for (size_t i = 0; i < BYTES / sizeof(E); i += (step)*b) {                                 \
            UNROLL for (unsigned j = 0; j < b; j++) a[j] = LOAD(p[0] + i + (step)*j);              \
            UNROLL for (unsigned k = 1; k < n; k++) UNROLL for (unsigned j = 0; j < b; j++) a[j] = \
                ADD(a[j], LOAD(p[k] + i + (step)*j));                                              \
            UNROLL for (unsigned j = 0; j < b; j++) STORE(o + i + (step)*j, a[j]);                 \
        }                                                                                          \
    }
#define HAND_N(name, n) HAND_NB(name, n, 1) HAND_NB(name, n, 2) HAND_NB(name, n, 4)
#define HAND_NB(name, n, b)                                                                        \
    BY_HAND static void name##n##_##b(void *out, const void *const *in)                            \
    {                                                                                              \
        name##_any(out, in, n, b);                                                                 \
    }

#define I_LOAD(p)     _mm512_load_si512(p)
#define I_STORE(p, a) _mm512_store_si512(p, a)
HAND(f32_, float, __m512, 16, _mm512_load_ps, _mm512_add_ps, _mm512_store_ps)
HAND(i32_, uint32_t, __m512i, 16, I_LOAD, _mm512_add_epi32, I_STORE)

#define H16_LOAD(p)     _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)(p)))
#define H16_STORE(p, a) _mm256_store_si256((__m256i *)(p), _mm512_cvtps_ph(a, 0))
HAND(f16_, uint16_t, __m512, 16, H16_LOAD, _mm512_add_ps, H16_STORE)
/* Of 256 bits two are converted in a cycle, of 512 one. */
#define H8_LOAD(p)     _mm256_cvtph_ps(_mm_load_si128((const __m128i *)(p)))
#define H8_STORE(p, a) _mm_store_si128((__m128i *)(p), _mm256_cvtps_ph(a, 0))
HAND(f16_ymm_, uint16_t, __m256, 8, H8_LOAD, _mm256_add_ps, H8_STORE)

/* bfloat16: even elements of a vector are shifted up, odd ones masked, and a conversion of two
 * vectors and a permutation put the results back. */
struct bf {
    __m512 even, odd;
};
INLINE_HAND struct bf bf_load(const uint16_t *p)
{
    __m512i v = _mm512_load_si512(p), upper = _mm512_set1_epi32((int)0xffff0000);

    return (struct bf){_mm512_castsi512_ps(_mm512_slli_epi32(v, 16)),
                       _mm512_castsi512_ps(_mm512_and_si512(v, upper))};
}
INLINE_HAND struct bf bf_add(struct bf a, struct bf b)
{
    return (struct bf){_mm512_add_ps(a.even, b.even), _mm512_add_ps(a.odd, b.odd)};
}
INLINE_HAND void bf_store(uint16_t *p, struct bf a)
{
    const __m512i weave =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);

    _mm512_store_si512(
        p, _mm512_permutexvar_epi16(weave, (__m512i)_mm512_cvtne2ps_pbh(a.odd, a.even)));
}
HAND(bf16_, uint16_t, struct bf, 32, bf_load, bf_add, bf_store)
/* The same with each element zero-extended on the way in. */
#define BX_LOAD(p)                                                                                 \
    _mm512_castsi512_ps(                                                                           \
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_load_si256((const __m256i *)(p))), 16))
#define BX_STORE(p, a) _mm256_store_si256((__m256i *)(p), (__m256i)_mm512_cvtneps_pbh(a))
HAND(bf16_extend_, uint16_t, __m512, 16, BX_LOAD, _mm512_add_ps, BX_STORE)

/* And with a multiplication that adds to round: + 0x7fff x 1 + the upper half's last bit x 1. */
INLINE_HAND __m512i bd_round(__m512 a)
{
    __m512i bias = _mm512_ternarylogic_epi32((__m512i)a, _mm512_set1_epi32(0x10000),
                                             _mm512_set1_epi32(0x7fff), 0xea); /* a & b | c */

    return _mm512_dpwssd_epi32((__m512i)a, bias, _mm512_set1_epi16(1));
}
INLINE_HAND void bd_store(uint16_t *p, struct bf a)
{
    const __m512i down = _mm512_set4_epi32(0x0d0c0f0e, 0x09080b0a, 0x05040706, 0x01000302);
    __m512i odd = bd_round(a.odd), even = bd_round(a.even);

    _mm512_store_si512(p, _mm512_mask_shuffle_epi8(odd, 0x3333333333333333, even, down));
}
HAND(bf16_dot_, uint16_t, struct bf, 32, bf_load, bf_add, bd_store)

/* Two halves without conversion: rounded once, like the sum in fp32 that has twice their bits. */
#ifdef KNOWS_FP16
HAND_ANY(f16_two_, uint16_t, __m512h, 32, _mm512_load_ph, _mm512_add_ph, _mm512_store_ph)
HAND_N(f16_two_, 2)
#endif

#define HAND_REF(name, type, needs, b)                                                             \
    {                                                                                              \
#name #b, type, needs,                                                                     \
        {                                                                                          \
            name##2_##b, name##4_##b, name##8_##b, name##16_##b                                    \
        }                                                                                          \
    }
#define HAND_REFS(name, type, needs)                                                               \
    HAND_REF(name, type, needs, 1), HAND_REF(name, type, needs, 2), HAND_REF(name, type, needs, 4)
#endif

#define PLAIN_REF(name, type)                                                                      \
    {                                                                                              \
#name, type, ANY_CPU,                                                                      \
        {                                                                                          \
            name##2, name##4, name##8, name##16                                                    \
        }                                                                                          \
    }

static const struct ref refs[] = {
    PLAIN_REF(plain_f32_, DT_FP32),
    PLAIN_REF(plain_i32_, DT_INT32),
    PLAIN_REF(plain_f16_, DT_FP16),
    PLAIN_REF(plain_bf16_, DT_BF16),
#ifdef __x86_64__
    HAND_REFS(f32_, DT_FP32, AVX512),
    HAND_REFS(i32_, DT_INT32, AVX512),
    HAND_REFS(f16_, DT_FP16, AVX512),
    HAND_REFS(f16_ymm_, DT_FP16, AVX512),
    HAND_REFS(bf16_, DT_BF16, AVX512_BF16),
    HAND_REFS(bf16_extend_, DT_BF16, AVX512_BF16),
    HAND_REFS(bf16_dot_, DT_BF16, AVX512_VNNI),
#endif
#ifdef KNOWS_FP16
    {"f16_two_1", DT_FP16, AVX512_FP16, {f16_two_2_1}},
    {"f16_two_2", DT_FP16, AVX512_FP16, {f16_two_2_2}},
    {"f16_two_4", DT_FP16, AVX512_FP16, {f16_two_2_4}},
#endif
};

static inline bool ref_usable(const struct ref *r)
{
#ifdef __x86_64__
    if (r->needs == AVX512_BF16 && !__builtin_cpu_supports("avx512bf16"))
        return false;
    if (r->needs == AVX512_VNNI && !__builtin_cpu_supports("avx512vnni"))
        return false;
#ifdef KNOWS_FP16
    if (r->needs == AVX512_FP16 && !__builtin_cpu_supports("avx512fp16"))
        return false;
#endif
    return r->needs == ANY_CPU ||
           (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"));
#else
    return r->needs == ANY_CPU;
#endif
}

#endif
