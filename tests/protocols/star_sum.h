/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of random elements by a protocol that quantises floats, checked. */
#ifndef TRIB_TESTS_PROTOCOLS_STAR_SUM_H
#define TRIB_TESTS_PROTOCOLS_STAR_SUM_H

#include "tests/protocols/star.h"

extern uint64_t star_random; /* of all that is random here */
void *star_random_ints(unsigned ranks, uint64_t count);
/* Floats below 1 of very different sizes, `count` for each rank. */
void *star_random_floats(unsigned ranks, uint64_t count);
/* Exact; within the protocol's bound with its usual keys. The same at all ranks. */
void star_check_ints(const uint32_t *send, const uint32_t *recv, unsigned ranks, uint64_t count);
void star_check_floats(const struct star_conf *c, const float *send, const float *recv,
                       unsigned ranks, uint64_t count, double max_abs);
/* One sum of int32 or float32, in place if asked, checked. */
void star_sum(struct star *s, const struct star_conf *c, int job, unsigned ranks, uint64_t count,
              enum trib_type type, bool in_place);

#endif
