/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * float32 as integers, whose sums have the same bits in any order: x becomes the integer nearest to x times
 * `one`, ties to even. Vectors of floats need no alignment. All functions are inline. Build a protocol that
 * uses them with -ffp-contract=off: a fused multiplication would change the sums.
 */
#ifndef TRIBUTARY_FIXED_H
#define TRIBUTARY_FIXED_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/*
 * Converts n floats to integers. limit: the largest integer allowed, at most 2^31 - 1; 0: the caller knows
 * that all fit. False: a float is beyond the limit, infinite or no number; it becomes 0.
 */
static inline bool trib_to_fixed(int32_t *to, const void *from, uint32_t n, double one,
                                 double limit)
{
    const double round = 0x1.8p52; /* no bits for a fraction: rounds to nearest, ties to even */
    bool fits = true;

    for (uint32_t i = 0; i < n; i++) {
        double q;
        float x;

        memcpy(&x, (const char *)from + i * 4ull, 4);
        q = x * one;
        if (limit != 0) {
            fits &= fabs(q) <= limit;
            q = fabs(q) <= limit ? q : 0;
        }
        to[i] = (int32_t)((q + round) - round);
    }
    return fits;
}

/* Converts n integers, or sums of them, to floats. */
static inline void trib_from_fixed(void *to, const void *from, uint32_t n, double one)
{
    for (uint32_t i = 0; i < n; i++) {
        int32_t q;
        float x;

        memcpy(&q, (const char *)from + i * 4ull, 4);
        x = (float)(q / one);
        memcpy((char *)to + i * 4ull, &x, 4);
    }
}

/* Adds n floats to sums in double precision: for floats that trib_to_fixed() does not accept. */
static inline void trib_add_floats(double *sums, const void *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        float x;

        memcpy(&x, (const char *)from + i * 4ull, 4);
        sums[i] += x;
    }
}

/* Adds these sums to the sums of integers, and writes floats in place of the integers. */
static inline void trib_join_floats(int32_t *fixed, const double *sums, uint32_t n, double one)
{
    for (uint32_t i = 0; i < n; i++) {
        float x = (float)(sums[i] + fixed[i] / one);

        memcpy(&fixed[i], &x, 4);
    }
}

/*
 * The largest error of a sum of nranks floats whose absolute values are at most max_abs. unit = 1 / one: each
 * integer is off by half of a unit, and by a thousandth of one for the rounding of the product; their sum is
 * exact, and then rounded to a float.
 */
static inline double trib_fixed_bound(uint32_t nranks, double unit, double max_abs)
{
    return nranks * 0.501 * unit + nranks * (max_abs + unit) * 0x1p-24 + 0x1p-150;
}

#endif
