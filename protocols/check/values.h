/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Vectors of an operation, and the expected result. Exact protocols get numbers whose result does
 * not depend on the order of reduction; protocols with an error bound get numbers of all
 * magnitudes.
 */
#ifndef TRIB_PROTOCOLS_CHECK_VALUES_H
#define TRIB_PROTOCOLS_CHECK_VALUES_H

#include "protocols/check/check_case.h"

/* Writes the vector of a rank in operation `op` of a job. */
void values_fill(const struct check_case *c, unsigned job, unsigned op, unsigned rank, void *to);
/* Whether all elements of a result are right. False: `why` describes the first wrong one. */
bool values_check(const struct check_case *c, unsigned job, unsigned op, const void *result,
                  char *why, size_t size);

#endif
