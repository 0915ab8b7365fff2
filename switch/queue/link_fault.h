/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults of a link, drawn from a seed: draws of one direction depend only on that seed and on
 * earlier frames.
 */
#ifndef TRIB_SWITCH_QUEUE_LINK_FAULT_H
#define TRIB_SWITCH_QUEUE_LINK_FAULT_H

#include "roce/frame.h"

#include <stdbool.h>

struct egress_faults;

/* xoshiro256** of Blackman and Vigna, seeded by splitmix64. */
struct fault_rng {
    uint64_t s[4];
};

struct fault {
    bool on;
    uint64_t loss, dup, reorder, corrupt; /* probability times 2^53 */
    int64_t jitter_ps;
    struct fault_rng rng;
};

void fault_seed(struct fault_rng *r, uint64_t seed);
uint64_t fault_draw(struct fault_rng *r);
/* Combines two numbers into a seed, so that every direction of every link has its own stream. */
uint64_t fault_mix(uint64_t a, uint64_t b);

void fault_set(struct fault *f, const struct egress_faults *cfg);

/* True with probability p / 2^53. Draws nothing when p is 0. */
static inline bool fault_hit(struct fault *f, uint64_t p)
{
    return p && (fault_draw(&f->rng) >> 11) < p;
}

/*
 * Returns a copy of the frame with one bit flipped behind its MAC addresses; shared bytes stay unchanged.
 * Frees m. A length-only payload has no bits to flip: sets FRAME_F_DAMAGED instead. NULL: there is no
 * buffer, so the frame is lost.
 */
struct rte_mbuf *fault_corrupt(struct fault *f, struct rte_mbuf *m, struct rte_mempool *pool);

#endif
