/* SPDX-License-Identifier: BSD-3-Clause */
/* How far a result may be from the exact one: protocols that quantise state a bound. */
#ifndef TRIB_HOST_BENCH_TOLERANCE_H
#define TRIB_HOST_BENCH_TOLERANCE_H

#include "host/bench/row.h"

/* Of an element of the row, whose data is test_pattern.h's. 0: its algorithm is exact. */
double row_tolerance(const struct fabric *f, const struct row *r);

#endif
