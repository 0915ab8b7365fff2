/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packet sequence numbers: 24 bits, IBTA 9.7.2. `a` is before `b` if it is behind by less than half
 * of the number space.
 */
#ifndef TRIB_ROCE_PSN_H
#define TRIB_ROCE_PSN_H

#include <stdint.h>

#define PSN_MASK 0xffffffu
#define PSN_HALF 0x800000u

static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
    return (psn + n) & PSN_MASK;
}

/* How far a is ahead of b, 0 to 2^24 - 1. */
static inline uint32_t psn_sub(uint32_t a, uint32_t b)
{
    return (a - b) & PSN_MASK;
}

/* Negative: a is before b; zero: equal; positive: a is after b. */
static inline int32_t psn_cmp(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

#endif
