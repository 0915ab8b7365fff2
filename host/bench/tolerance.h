/* SPDX-License-Identifier: BSD-3-Clause */
/* Permitted deviation of a result from the exact one: protocols that quantise state a bound. */
#ifndef TRIB_HOST_BENCH_TOLERANCE_H
#define TRIB_HOST_BENCH_TOLERANCE_H

#include "host/bench/row.h"

/* Permitted deviation of an element of the row, with data of test_pattern.h. 0: the algorithm is
 * exact. */
double row_tolerance(const struct fabric *f, const struct row *r);

#endif
