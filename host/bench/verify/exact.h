/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How far a floating-point sum is from the exact one, in units in the last place (ULP) of its type
 * at the exact sum. Ranks contribute random numbers whose exponents are spread over a wide range;
 * summands have the same sign, because with cancellation the error depends more on the data than on
 * the algorithm. The exact sum is computed in 113 bits, which hold it without any rounding.
 */
#ifndef TRIB_HOST_BENCH_VERIFY_EXACT_H
#define TRIB_HOST_BENCH_VERIFY_EXACT_H

#include "host/bench/verify/layout.h"

#include <stddef.h>

#define EXACT_PERIOD 8191u /* element i depends on i % EXACT_PERIOD */

/* Errors over `n` elements; 0 if n is 0. */
struct ulp {
    double max, sum;
    uint64_t n;
};

/* Elements [first, first + n) of a rank's stream. t is a float type, 1 <= nranks. */
void exact_fill(void *buf, enum dtype t, unsigned nranks, unsigned rank, uint64_t first,
                uint64_t n);
/* Adds the error of n elements of the sum (avg: the mean) of all streams from `first`. 0 or
 * -ENOMEM. A result that is not a number counts as an error without end. */
int exact_error(struct ulp *u, const void *buf, enum dtype t, bool avg, unsigned nranks,
                uint64_t first, uint64_t n);
#endif
