/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The expected result of a reduction, by arithmetic on values rather than on bits. It shares no
 * code with aggregation/arith.c and implements the same rule independently.
 */
#ifndef TRIB_TESTS_SUPPORT_REDUCE_REF_H
#define TRIB_TESTS_SUPPORT_REDUCE_REF_H

#include "aggregation/arith.h"
#include "base/random.h"

/* Value of a small float of the given shape; NaN and infinities as they are. */
double ref_value(unsigned bits, unsigned exp_bits, unsigned man_bits);
/* Nearest small float, ties to even; a NaN is canonical. */
unsigned ref_nearest(double v, unsigned exp_bits, unsigned man_bits);

/* The same for a type of at most 32 bits. */
double ref_float(enum dtype t, unsigned bits);
unsigned ref_round(enum dtype t, double v);

/* Element i of the reduction of n arrays, as the bits of its type. */
uint64_t ref_element(enum redop op, enum dtype t, const void *const *in, unsigned n, size_t i);
/* The whole of it. out is none of the inputs. */
void ref_reduce(enum redop op, enum dtype t, const void *const *in, unsigned n, size_t count,
                void *out);

/* Elements from a seed: a third special values, a third of a size at which sums and products round,
 * a third any bits. */
void ref_fill(enum dtype t, void *p, size_t count, uint64_t *seed);
extern const uint16_t ref_special_halves[];
extern const unsigned ref_n_special_halves;

#endif
