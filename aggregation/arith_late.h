/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums of a known number of floats that look for NaNs once a call, for CPUs where a branch for each
 * block costs more than a mask of the lanes that were numbers so far: no loop is left, and if a sum
 * was none, those of the call are looked at again where they lie (a NaN is still one there). Macros
 * as those of arith_loops.h, for rows with ROW_ORDERED32. Part of arith.c.
 */
#ifndef TRIB_AGGREGATION_ARITH_LATE_H
#define TRIB_AGGREGATION_ARITH_LATE_H

/* Two masks, since each waits for the one before it. STORE stores NaNs as they are. */
#define KNOWN_LATE(fn, bits, V, VB, LOAD, STORE, n)                                                \
    static __attribute__((unused)) ROW_TARGET void ROW(fn##_of_##n)(                               \
        void *out, const void *const *in, size_t at, size_t end)                                   \
    {                                                                                              \
        const uint8_t *p[n];                                                                       \
        const size_t begin = at;                                                                   \
        ROW_MASK##bits numbers[] = {(ROW_MASK##bits) ~0, (ROW_MASK##bits) ~0};                     \
                                                                                                   \
        UNROLL for (unsigned k = 0; k < (n); k++) p[k] = in[k];                                    \
        for (; at < end; at += 4 * (VB)) {                                                         \
            BLOCK(V, LOAD, V_SUM, n, 4)                                                            \
            UNROLL for (unsigned i = 0; i < 4; i += 2)                                             \
            {                                                                                      \
                numbers[i / 2] = ROW_ORDERED##bits(numbers[i / 2], a[i], a[i + 1]);                \
                STORE(V, (uint8_t *)out + at, i, a[i], a[i + 1]);                                  \
            }                                                                                      \
        }                                                                                          \
        if (__builtin_expect((ROW_MASK##bits)(numbers[0] & numbers[1]) != (ROW_MASK##bits) ~0, 0)) \
            ROW(fn##_canonical)((uint8_t *)out + begin, end - begin);                              \
    }
/* CAREFUL stores canonical NaNs; U is the unsigned type of an element. */
#define SUMS_LATE(fn, bits, V, U, EB, VB, LOAD, CAREFUL, STORE, inf, nan)                          \
    static __attribute__((unused, noinline)) ROW_TARGET void ROW(fn##_canonical)(uint8_t * p,      \
                                                                                 size_t bytes)     \
    {                                                                                              \
        for (size_t at = 0; at < bytes; at += ROW_BYTES) {                                         \
            ROW(U) a = V_AT(U, p + at, 0);                                                         \
                                                                                                   \
            V_AT(U, p + at, 0) = PICK(ROW(U), a << 1 >> 1 > (inf), (ROW(U)){} + (nan), a);         \
        }                                                                                          \
    }                                                                                              \
    VECTOR_OF(fn##_any, fn, V, EB, VB, LOAD, V_SUM, CAREFUL)                                       \
    KNOWN_LATE(fn, bits, V, VB, LOAD, STORE, 2)                                                    \
    KNOWN_LATE(fn, bits, V, VB, LOAD, STORE, 4)                                                    \
    KNOWN_LATE(fn, bits, V, VB, LOAD, STORE, 8)                                                    \
    SUM(fn, EB, VB, [2] = ROW(fn##_of_2), [4] = ROW(fn##_of_4), [8] = ROW(fn##_of_8))

#endif
