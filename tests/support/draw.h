/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cases drawn from a seed. What a test draws by default is fixed; TRIB_CASES says how many cases, and
 * TRIB_SEED the first one, so that a case that failed is run alone.
 */
#ifndef TRIB_TESTS_SUPPORT_DRAW_H
#define TRIB_TESTS_SUPPORT_DRAW_H

#include "base/random.h"

#include <stdlib.h>

static uint64_t draw_seed;

/* 0 to n - 1. */
static inline unsigned draw(unsigned n)
{
    return (unsigned)(random_next(&draw_seed) % n);
}

/* One of the numbers. */
#define PICK(...)                                                                                  \
    ((const unsigned[]){                                                                           \
        __VA_ARGS__})[draw(sizeof((const unsigned[]){__VA_ARGS__}) / sizeof(unsigned))]

/* A number of the environment. */
static inline unsigned draw_number(const char *name, unsigned otherwise)
{
    const char *v = getenv(name);

    return v ? (unsigned)strtoul(v, NULL, 10) : otherwise;
}

#endif
