/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums of 2, 4, 8 and 16 inputs on Zen 5 (two loads of 64 bytes a cycle and a store; four vector
 * operations, but two shifts or masks). Part of arith.c, behind the rows that it leaves the rest
 * to.
 *
 * Sums are made one after the other, each stored before the next one's inputs are loaded, where the
 * loops for other CPUs load some vectors of an input and then of the next one. Here that is a tenth
 * faster (measured: docs/benchmarks.md), if the compiler is kept from mixing them again (IN_ORDER).
 *
 * All sums are stored as they are; what was seen of them on the way is looked at once, at the end
 * of the call, and if one of them may be no number, all are gone over again.
 *
 * bfloat16 is rounded by the CPU's conversion, which keeps NaNs, but takes denormals for zero. The
 * comparison that looks for NaNs meets those as well and, like every operation on floats, raises
 * the flag for denormal operands: to look for them costs one look at the flags, where a mask for
 * each vector cost a fifth. What was lost is made again from the inputs, by the row that looks
 * before it rounds; it also has the calls whose output is an input. The flag may have been there
 * before: then it is cleared, and one call made twice for nothing.
 */
#ifndef TRIB_AGGREGATION_ARITH_ZEN5_H
#define TRIB_AGGREGATION_ARITH_ZEN5_H

#define ROW(name)  v512bf_##name
#define ROW_BYTES  64
#define ROW_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))

#define ZEN5_BLOCK 512 /* bytes of the output */
#define IN_ORDER   __asm__ volatile("" ::: "memory")

/*
 * What was seen of a call's sums: the lanes that were numbers so far, in four masks by turns, since
 * each waits for the one before it. Beside the conversions of halves there is no time for masks:
 * there multiples by zero are added up, which is NaN if one of them was NaN (or infinite).
 */
struct zen5_seen {
    __mmask16 numbers[4];
    ROW(f32) zero[4];
};

/* Two of the block's sums, of which one is its i-th. */
#define SEE_NOTHING(i, a, b)
#define SEE_F32(i, a, b)                                                                           \
    seen.numbers[(i) / 2 % 4] = _mm512_mask_cmp_ps_mask(seen.numbers[(i) / 2 % 4], a, b, _CMP_ORD_Q)
#define SEE_F64(i, a, b)                                                                           \
    seen.numbers[(i) / 2 % 4] =                                                                    \
        _mm512_mask_cmp_pd_mask((__mmask8)seen.numbers[(i) / 2 % 4], a, b, _CMP_ORD_Q)
#define SEE_F16(i, a, b)                                                                           \
    (seen.zero[(i) / 2 % 2] = _mm512_fmadd_ps(a, _mm512_setzero_ps(), seen.zero[(i) / 2 % 2]),     \
     seen.zero[2 + (i) / 2 % 2] =                                                                  \
         _mm512_fmadd_ps(b, _mm512_setzero_ps(), seen.zero[2 + (i) / 2 % 2]))

/* Whether all of them were numbers (and none lost), the call's loop done. */
#define ALL_NUMBERS (seen.numbers[0] & seen.numbers[1] & seen.numbers[2] & seen.numbers[3])
#define WELL_ALWAYS true
#define WELL_F32    (ALL_NUMBERS == 0xffff)
#define WELL_F64    ((__mmask8)ALL_NUMBERS == 0xff)
#define WELL_F16                                                                                   \
    (!_mm512_cmp_ps_mask(seen.zero[0] + seen.zero[1], seen.zero[2] + seen.zero[3], _CMP_UNORD_Q))
#define WELL_BF16 (WELL_F32 && !zen5_denormal())

/* Whether an operand was denormal since this said so the last time. */
static inline bool zen5_denormal(void)
{
    const unsigned flag = _MM_EXCEPT_DENORM;

    if (__builtin_expect(!(_mm_getcsr() & flag), 1))
        return false;
    _mm_setcsr(_mm_getcsr() & ~flag);
    return true;
}

static inline bool zen5_in_place(const void *out, const void *const *in, unsigned n)
{
    for (unsigned k = 0; k < n; k++)
        if (in[k] == out)
            return true;
    return false;
}

/* Accumulators i, or i and i + 1, as they are. */
#define Z_STORE(V, p, i, a)    (V_AT(V, p, i) = a[i])
#define Z_STORE_BF(V, p, i, a) (V_AT(u16, p, (i) / 2) = (ROW(u16))ROW_BF16_ROUND(a[i], a[(i) + 1]))
#define Z_STORE_HF(V, p, i, a) HF_STORE_ANY(V, p, i, a[i], a[(i) + 1])

/* What is done if not all is well: NaNs made canonical where they lie, or all sums made again. */
#define NO_MATTER
#define CANONICAL(row, fn) row##_##fn##_canonical((uint8_t *)out + begin, end - begin)
#define FROM_INPUTS(row, fn)                                                                       \
    arith_part(row##_##fn, out, in, n, begin, (end - begin) / sizeof(uint16_t))

/* `width` sums, one or two, are stored at a time. */
#define ZEN5_OF(inputs, fn, V, VB, LOAD, STORE, width, SEE, WELL, AGAIN)                           \
    static ROW_TARGET void v512z5_##fn##_of_##inputs(void *out, const void *const *in, size_t at,  \
                                                     size_t end)                                   \
    {                                                                                              \
        struct zen5_seen seen = {.numbers = {0xffff, 0xffff, 0xffff, 0xffff}};                     \
        const uint8_t *p[inputs];                                                                  \
        const unsigned n = (inputs);                                                               \
        const size_t begin = at;                                                                   \
                                                                                                   \
        (void)begin, (void)seen;                                                                   \
        UNROLL for (unsigned k = 0; k < n; k++) p[k] = in[k];                                      \
        for (; at < end; at += ZEN5_BLOCK) {                                                       \
            ROW(V) a[ZEN5_BLOCK / (VB)];                                                           \
                                                                                                   \
            UNROLL for (unsigned i = 0; i < ZEN5_BLOCK / (VB); i += (width))                       \
            {                                                                                      \
                const unsigned last = i + (width)-1;                                               \
                                                                                                   \
                UNROLL for (unsigned j = i; j <= last; j++) a[j] = LOAD(V, p[0] + at, j);          \
                UNROLL for (unsigned k = 1; k < n; k++)                                            \
                {                                                                                  \
                    UNROLL for (unsigned j = i; j <= last; j++) a[j] += LOAD(V, p[k] + at, j);     \
                }                                                                                  \
                STORE(V, (uint8_t *)out + at, i, a);                                               \
                if (last % 2) {                                                                    \
                    SEE(last, a[last - 1], a[last]);                                               \
                }                                                                                  \
                IN_ORDER;                                                                          \
            }                                                                                      \
        }                                                                                          \
        if (__builtin_expect(!(WELL), 0)) {                                                        \
            AGAIN;                                                                                 \
        }                                                                                          \
    }
/* The kernel; `rest`'s has calls of other numbers of inputs, what is behind the last block, and all
 * if UNLESS. */
#define ZEN5_SUM(fn, EB, rest, UNLESS, ...)                                                        \
    static const struct arith_sum v512z5_##fn##_loops = {                                          \
        {__VA_ARGS__}, rest##_##fn, v256_##fn, EB, ROW_BYTES, ZEN5_BLOCK};                         \
    static void v512z5_##fn(void *out, const void *const *in, unsigned n, size_t count)            \
    {                                                                                              \
        if (UNLESS)                                                                                \
            rest##_##fn(out, in, n, count);                                                        \
        else                                                                                       \
            arith_sum(&v512z5_##fn##_loops, out, in, n, count);                                    \
    }
#define ZEN5_TWO(fn, EB, rest, UNLESS, ...)                                                        \
    ZEN5_OF(2, fn, __VA_ARGS__)                                                                    \
    ZEN5_OF(4, fn, __VA_ARGS__)                                                                    \
    ZEN5_SUM(fn, EB, rest, UNLESS, [2] = v512z5_##fn##_of_2, [4] = v512z5_##fn##_of_4)
#define ZEN5_FOUR(fn, EB, rest, UNLESS, ...)                                                       \
    ZEN5_OF(2, fn, __VA_ARGS__)                                                                    \
    ZEN5_OF(4, fn, __VA_ARGS__)                                                                    \
    ZEN5_OF(8, fn, __VA_ARGS__)                                                                    \
    ZEN5_OF(16, fn, __VA_ARGS__)                                                                   \
    ZEN5_SUM(fn, EB, rest, UNLESS, [2] = v512z5_##fn##_of_2, [4] = v512z5_##fn##_of_4,             \
             [8] = v512z5_##fn##_of_8, [16] = v512z5_##fn##_of_16)

#define ROW_BF16_ROUND(a, b) BF16_BY_CPU(a, b)
#define ROW_F16_LOAD(p)      _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p)))
#define ROW_F16_STORE(p, a)                                                                        \
    _mm256_storeu_si256((__m256i *)(p), _mm512_cvtps_ph((a), _MM_FROUND_TO_NEAREST_INT))

#define ZEN5_INT(bits)                                                                             \
    ZEN5_FOUR(sum_##bits, bits / 8, v512, false, u##bits, ROW_BYTES, V_LOAD, Z_STORE, 1,           \
              SEE_NOTHING, WELL_ALWAYS, NO_MATTER)
ZEN5_INT(8)
ZEN5_INT(32)
ZEN5_INT(64)
/* Floats; a NaN is still one where it lies, also after rounding. */
ZEN5_FOUR(sum_f32, 4, v512, false, f32, ROW_BYTES, V_LOAD, Z_STORE, 1, SEE_F32, WELL_F32,
          CANONICAL(v512z, sum_f32))
ZEN5_FOUR(sum_f64, 8, v512, false, f64, ROW_BYTES, V_LOAD, Z_STORE, 1, SEE_F64, WELL_F64,
          CANONICAL(v512z, sum_f64))
/* Of 8 and 16 halves the general loop is as fast. */
ZEN5_TWO(sum_f16, 2, v512, false, f32, ROW_BYTES / 2, HF_LOAD, Z_STORE_HF, 2, SEE_F16, WELL_F16,
         CANONICAL(v256z, sum_f16))
ZEN5_FOUR(sum_bf16, 2, v512bf, zen5_in_place(out, in, n), f32, ROW_BYTES / 2, BF_LOAD, Z_STORE_BF,
          2, SEE_F32, WELL_BF16, FROM_INPUTS(v512bf, sum_bf16))

#undef ROW
#undef ROW_BYTES
#undef ROW_TARGET
#undef ROW_BF16_ROUND
#undef ROW_F16_LOAD
#undef ROW_F16_STORE

#endif
