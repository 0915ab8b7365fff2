/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Vectors of an operation and what is to come out. Exact protocols get numbers whose result does not
 * depend on the order of the reduction; those with an error bound get numbers of all sizes.
 */
#ifndef TRIB_PROTOCOLS_CHECK_VALUES_H
#define TRIB_PROTOCOLS_CHECK_VALUES_H

#include "protocols/check/check_case.h"

/* The vector of a rank in operation `op` of a job. */
void values_fill(const struct check_case *c, unsigned job, unsigned op, unsigned rank, void *to);
/* Whether all elements of a result are right; else what is wrong with the first that is not. */
bool values_check(const struct check_case *c, unsigned job, unsigned op, const void *result,
                  char *why, size_t size);

#endif
