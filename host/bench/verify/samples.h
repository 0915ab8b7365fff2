/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sampled elements of a reduction: positions in the ranks' streams (layout.h), and contributions
 * there that make rounding and order visible, which the small whole numbers of all other elements
 * cannot. Integers are random bits, so that they wrap. Floats have random mantissas; the position
 * decides whether exponents are near each other, far apart, at the bottom (denormal numbers) or at
 * the top (overflow), whether sums are halfway between two numbers or cancel, and whether zeros of
 * both signs, infinities or NaNs are among them.
 */
#ifndef TRIB_HOST_BENCH_VERIFY_SAMPLES_H
#define TRIB_HOST_BENCH_VERIFY_SAMPLES_H

#include "host/bench/verify/layout.h"

#define SAMPLES_MAX 4096u

struct samples {
    unsigned n;
    uint64_t at[SAMPLES_MAX]; /* ascending */
};

/*
 * All positions if there are no more than SAMPLES_MAX, else so many: the first and the last ones;
 * elements at both sides of the ranks' blocks, of packets and of messages of the aggregation
 * protocol; the others spread evenly, at random.
 */
void samples_choose(struct samples *s, const struct layout *l, enum dtype t, uint32_t mtu);
/* Index of the first sample at or after a position; n: there is none. */
unsigned samples_from(const struct samples *s, uint64_t at);
/* Rank's contribution at the position, as the bits of its type. */
uint64_t samples_value(enum dtype t, enum redop op, unsigned nranks, unsigned rank, uint64_t at);

#endif
