/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loops of the vector rows, as macros from which arith_rows.h makes functions for each row: the general
 * loop for any number of inputs, loops for sums of a fixed number of inputs, and the choice among them. Part
 * of arith.c.
 *
 * A block is some vectors of accumulators, which stay in registers while all inputs go by: each
 * input is loaded once and each output stored once.
 */
#ifndef TRIB_AGGREGATION_ARITH_LOOPS_H
#define TRIB_AGGREGATION_ARITH_LOOPS_H

#define UNROLL _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline)) ROW_TARGET

/* a where the mask is set, else b; masks are all ones or all zeros per lane. */
#define PICK(V, mask, a, b)                                                                        \
    ((V)(((mask) & (__typeof__(mask))(a)) | (~(mask) & (__typeof__(mask))(b))))

/* Reduces `count` elements from byte `at` on with another kernel. */
static __attribute__((noinline)) void arith_part(arith_fn fn, void *out, const void *const *in,
                                                 unsigned n, size_t at, size_t count)
{
    const void *from[ARITH_MAX_INPUTS];

    for (unsigned k = 0; k < n; k++)
        from[k] = (const uint8_t *)in[k] + at;
    fn((uint8_t *)out + at, from, n, count);
}

/* Bytes before the first aligned vector of the output, if they are whole elements; otherwise 0.
 */
static size_t arith_unaligned(const void *out, size_t vector, size_t elem, size_t bytes)
{
    size_t n = -(uintptr_t)out % vector;

    return n % elem || n > bytes ? 0 : n;
}

/* A sum with loops for fixed numbers of inputs. A loop takes bytes `at` to `end`: whole blocks that begin at
 * an aligned vector of the output. */
#define ARITH_KNOWN 16
struct arith_sum {
    void (*known[ARITH_KNOWN + 1])(void *out, const void *const *in, size_t at, size_t end);
    arith_fn any, rest; /* any: of the same row; rest: of the next narrower one */
    size_t elem, vector, block;
};

static __attribute__((noinline)) void arith_sum_parts(const struct arith_sum *s, void *out,
                                                      const void *const *in, unsigned n,
                                                      size_t count)
{
    size_t bytes = count * s->elem, at = arith_unaligned(out, s->vector, s->elem, bytes);
    size_t end = bytes - (bytes - at) % s->block;

    if (n > ARITH_KNOWN || !s->known[n] || at == end) {
        s->any(out, in, n, count);
        return;
    }
    if (at)
        arith_part(s->rest, out, in, n, 0, at / s->elem);
    s->known[n](out, in, at, end);
    if (end < bytes)
        arith_part(s->any, out, in, n, end, (bytes - end) / s->elem);
}

/* Usually all is whole blocks: then it runs nothing but the loop (70 cycles for 4 KiB). */
static inline void arith_sum(const struct arith_sum *s, void *out, const void *const *in,
                             unsigned n, size_t count)
{
    size_t bytes = count * s->elem;

    if (n <= ARITH_KNOWN && s->known[n] && (uintptr_t)out % s->vector == 0 && bytes % s->block == 0)
        s->known[n](out, in, 0, bytes);
    else
        arith_sum_parts(s, out, in, n, count);
}

/* ---- loads and stores of accumulator i of a block; V: its type, as in ROW(V) ---- */

#define V_AT(V, p, i)            (*(ROW(V##_mem) *)((p) + (i)*ROW_BYTES))
#define V_LOAD(V, p, i)          (*(const ROW(V##_mem) *)((p) + (i)*ROW_BYTES))
#define V_STORE(V, p, i, a, b)   (V_AT(V, p, i) = (a), V_AT(V, p, (i) + 1) = (b))
#define V_STORE_F(V, p, i, a, b) (ROW(V##_no_nan)(&(a), &(b)), V_STORE(V, p, i, a, b))
/* Truth as 1 and 0: a comparison gives all ones or zeros, of which one bit is kept at the end. */
#define L_LOAD(V, p, i)        ((ROW(V))(V_LOAD(V, p, i) != 0))
#define L_STORE(V, p, i, a, b) V_STORE(V, p, i, (a)&1, (b)&1)
#define V_SUM(V, a, b)         ((a) + (b))
#define V_PROD(V, a, b)        ((a) * (b))
#define V_BAND(V, a, b)        ((a) & (b))
#define V_BOR(V, a, b)         ((a) | (b))
#define V_BXOR(V, a, b)        ((a) ^ (b))
#define V_MIN(V, a, b)         ROW(V##_min)(a, b)
#define V_MAX(V, a, b)         ROW(V##_max)(a, b)
#define BF_LOAD(V, p, i)                                                                           \
    ((i) % 2 ? ROW(bf16_second)((p) + (i) / 2 * ROW_BYTES)                                         \
             : ROW(bf16_first)((p) + (i) / 2 * ROW_BYTES))
#define BF_STORE(V, p, i, a, b) ROW(bf16_store)((p) + (i) / 2 * ROW_BYTES, a, b)
#define HF_LOAD(V, p, i)        ROW_F16_LOAD((p) + (i) * (ROW_BYTES / 2))
/* The conversion keeps a NaN's top bits and sign, so a canonical NaN stays canonical. */
#define HF_STORE(V, p, i, a, b)                                                                    \
    (ROW(f32_no_nan)(&(a), &(b)), ROW_F16_STORE((p) + (i) * (ROW_BYTES / 2), a),                   \
     ROW_F16_STORE((p) + ((i) + 1) * (ROW_BYTES / 2), b))

/* ---- any number of inputs ---- */

/*
 * V: type of an accumulator; EB: bytes of an element in a frame; VB: bytes in a frame for V's elements. LOAD
 * gives accumulator i of a block, STORE writes accumulators i and i + 1. The loop takes blocks of eight
 * accumulators while there are any, then of two; the narrower row takes what is before the first aligned
 * vector of the output and behind the last block.
 */
#define VECTOR(fn, V, EB, VB, LOAD, DO, STORE) VECTOR_OF(fn, fn, V, EB, VB, LOAD, DO, STORE)
#define VECTOR_OF(name, fn, V, EB, VB, LOAD, DO, STORE)                                            \
    static __attribute__((unused)) ROW_TARGET void ROW(name)(void *out, const void *const *in,     \
                                                             unsigned n, size_t count)             \
    {                                                                                              \
        const size_t bytes = count * (EB);                                                         \
        size_t at = arith_unaligned(out, ROW_BYTES, EB, bytes);                                    \
                                                                                                   \
        if (at)                                                                                    \
            arith_part(ROW_REST(fn), out, in, n, 0, at / (EB));                                    \
        for (; at + 8 * (VB) <= bytes; at += 8 * (VB)) {                                           \
            const uint8_t *p = (const uint8_t *)in[0] + at;                                        \
            uint8_t *q = (uint8_t *)out + at;                                                      \
            ROW(V) a0 = LOAD(V, p, 0), a1 = LOAD(V, p, 1), a2 = LOAD(V, p, 2), a3 = LOAD(V, p, 3); \
            ROW(V) a4 = LOAD(V, p, 4), a5 = LOAD(V, p, 5), a6 = LOAD(V, p, 6), a7 = LOAD(V, p, 7); \
                                                                                                   \
            for (unsigned k = 1; k < n; k++) {                                                     \
                p = (const uint8_t *)in[k] + at;                                                   \
                a0 = DO(V, a0, LOAD(V, p, 0)), a1 = DO(V, a1, LOAD(V, p, 1));                      \
                a2 = DO(V, a2, LOAD(V, p, 2)), a3 = DO(V, a3, LOAD(V, p, 3));                      \
                a4 = DO(V, a4, LOAD(V, p, 4)), a5 = DO(V, a5, LOAD(V, p, 5));                      \
                a6 = DO(V, a6, LOAD(V, p, 6)), a7 = DO(V, a7, LOAD(V, p, 7));                      \
            }                                                                                      \
            STORE(V, q, 0, a0, a1);                                                                \
            STORE(V, q, 2, a2, a3);                                                                \
            STORE(V, q, 4, a4, a5);                                                                \
            STORE(V, q, 6, a6, a7);                                                                \
        }                                                                                          \
        for (; at + 2 * (VB) <= bytes; at += 2 * (VB)) {                                           \
            const uint8_t *p = (const uint8_t *)in[0] + at;                                        \
            ROW(V) a0 = LOAD(V, p, 0), a1 = LOAD(V, p, 1);                                         \
                                                                                                   \
            for (unsigned k = 1; k < n; k++) {                                                     \
                p = (const uint8_t *)in[k] + at;                                                   \
                a0 = DO(V, a0, LOAD(V, p, 0)), a1 = DO(V, a1, LOAD(V, p, 1));                      \
            }                                                                                      \
            STORE(V, (uint8_t *)out + at, 0, a0, a1);                                              \
        }                                                                                          \
        if (at < bytes)                                                                            \
            arith_part(ROW_REST(fn), out, in, n, at, count - at / (EB));                           \
    }

/* ---- a known number ---- */

/*
 * Sums of 2, 4, 8 and 16 inputs. As the number is fixed, the address of each input stays in a register (of 16,
 * on the stack), and a call of whole blocks runs nothing but its loop. PUT stores a block's `width` sums, or
 * returns false if one may be a NaN: then the general loop, fn_any, takes the rest of the call. 16 inputs do
 * not all fit into the first-level cache, so the loop takes a little of each at a time: it fetches them more
 * evenly from the second level.
 */
#define BLOCK(V, LOAD, ADD, n, width)                                                              \
    ROW(V) a[width];                                                                               \
                                                                                                   \
    UNROLL for (unsigned i = 0; i < (width); i++) a[i] = LOAD(V, p[0] + at, i);                    \
    UNROLL for (unsigned k = 1; k < (n); k++) UNROLL for (unsigned i = 0; i < (width); i++) a[i] = \
        ADD(V, a[i], LOAD(V, p[k] + at, i));
#define KNOWN(fn, V, EB, VB, LOAD, ADD, PUT, n, width)                                             \
    static __attribute__((unused)) ROW_TARGET void ROW(fn##_of_##n)(                               \
        void *out, const void *const *in, size_t at, size_t end)                                   \
    {                                                                                              \
        const uint8_t *p[n];                                                                       \
                                                                                                   \
        UNROLL for (unsigned k = 0; k < (n); k++) p[k] = in[k];                                    \
        for (; at < end; at += (width) * (VB)) {                                                   \
            BLOCK(V, LOAD, ADD, n, width)                                                          \
            if (__builtin_expect(!PUT((uint8_t *)out + at, a, width), 0)) {                        \
                arith_part(ROW(fn##_any), out, in, n, at, (end - at) / (EB));                      \
                return;                                                                            \
            }                                                                                      \
        }                                                                                          \
    }
/* Makes the kernel that chooses among these loops. */
#define SUM(fn, EB, VB, ...)                                                                       \
    static const __attribute__((unused)) struct arith_sum ROW(fn##_loops) = {                      \
        {__VA_ARGS__}, ROW(fn##_any), ROW_REST(fn), EB, ROW_BYTES, 8 * (VB)};                      \
    static __attribute__((unused)) void ROW(fn)(void *out, const void *const *in, unsigned n,      \
                                                size_t count)                                      \
    {                                                                                              \
        arith_sum(&ROW(fn##_loops), out, in, n, count);                                            \
    }
#define SUMS(fn, V, EB, VB, LOAD, STORE, PUT)                                                      \
    VECTOR_OF(fn##_any, fn, V, EB, VB, LOAD, V_SUM, STORE)                                         \
    KNOWN(fn, V, EB, VB, LOAD, V_SUM, PUT, 2, 8)                                                   \
    KNOWN(fn, V, EB, VB, LOAD, V_SUM, PUT, 4, 4)                                                   \
    KNOWN(fn, V, EB, VB, LOAD, V_SUM, PUT, 8, 8)                                                   \
    KNOWN(fn, V, EB, VB, LOAD, V_SUM, PUT, 16, 2)                                                  \
    SUM(fn, EB, VB, [2] = ROW(fn##_of_2), [4] = ROW(fn##_of_4), [8] = ROW(fn##_of_8),              \
        [16] = ROW(fn##_of_16))

#endif
