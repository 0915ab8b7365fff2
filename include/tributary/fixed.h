/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * float32 as integers, which sum up to the same bits in any order: x as the integer nearest to
 * x times `one`, ties to even. Vectors of floats need no alignment. All functions are inline; a
 * protocol that uses them is built with -ffp-contract=off, as sums differ by a fused multiplication.
 */
#ifndef TRIBUTARY_FIXED_H
#define TRIBUTARY_FIXED_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/*
 * n floats to integers. limit: the largest that an integer may be, at most 2^31 - 1; 0 where the
 * caller knows that all fit. False: one is beyond it, infinite or no number, and stands as 0.
 */
static inline bool trib_to_fixed(int32_t *to, const void *from, uint32_t n, double one,
                                 double limit)
{
    const double round = 0x1.8p52; /* has no room for fractions: rounds to nearest, ties to even */
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

/* n integers, or sums of them, to floats. */
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

/* Adds n floats to sums in double precision: for what does not fit into integers. */
static inline void trib_add_floats(double *sums, const void *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        float x;

        memcpy(&x, (const char *)from + i * 4ull, 4);
        sums[i] += x;
    }
}

/* Such sums and those of integers together, as floats in place of the integers. */
static inline void trib_join_floats(int32_t *fixed, const double *sums, uint32_t n, double one)
{
    for (uint32_t i = 0; i < n; i++) {
        float x = (float)(sums[i] + fixed[i] / one);

        memcpy(&fixed[i], &x, 4);
    }
}

/*
 * The largest error of a sum of nranks floats whose absolute values are at most max_abs, with
 * unit = 1 / one: each is off by half of a unit, and by a thousandth for the product's own rounding;
 * the sum of integers is exact; it is rounded to a float.
 */
static inline double trib_fixed_bound(uint32_t nranks, double unit, double max_abs)
{
    return nranks * 0.501 * unit + nranks * (max_abs + unit) * 0x1p-24 + 0x1p-150;
}

#endif
