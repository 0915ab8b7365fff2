/* SPDX-License-Identifier: BSD-3-Clause */
/* Pseudo-random numbers from a seed: SplitMix64, the same on every machine. For data, delays and keys of
 * tests and simulations, and for protocols that guessing cannot harm. */
#ifndef TRIB_BASE_RANDOM_H
#define TRIB_BASE_RANDOM_H

#include <stdint.h>

static inline uint64_t random_mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Returns the next number. All seeds are equally good. */
static inline uint64_t random_next(uint64_t *state)
{
    return random_mix(*state += 0x9e3779b97f4a7c15u);
}

#endif
