/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion between elements and numbers. */
#ifndef TRIB_HOST_BENCH_VERIFY_VALUE_H
#define TRIB_HOST_BENCH_VERIFY_VALUE_H

#include "aggregation/arith.h"

#include <stdint.h>

/* A pair as one number: the value, and below it the index. */
#define VALUE_LOC_BITS 20
#define VALUE_LOC_MASK ((1 << VALUE_LOC_BITS) - 1)

/* buf[i] = x, an integer that the type holds; integer types take its low bits. */
void value_store(enum dtype t, void *buf, size_t i, int64_t x);
/* Of a type that is one number of 16 bits or more, or an integer; NaN of others. */
double value_of(enum dtype t, const uint8_t *p);

/* Multiplies n float32 in place. */
void value_scale(void *buf, size_t n, double by);

#endif
