/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion marks: RFC 3168 CE on an ECT frame; the IP checksum follows by RFC 1624. The ICRC
 * leaves out both fields.
 */
#ifndef TRIB_SWITCH_QUEUE_ECN_H
#define TRIB_SWITCH_QUEUE_ECN_H

#include "roce/frame.h"
#include "switch/queue/link_fault.h"

/* Which frames are marked, by how much of their class waits: above min_bytes some, with a
 * probability that grows up to `prob` (times 2^53) at max_bytes; above max_bytes all. min_bytes 0:
 * none. */
struct ecn {
    uint64_t min_bytes, max_bytes, prob;
    struct fault_rng rng;
};

void ecn_init(struct ecn *e, uint64_t min_bytes, uint64_t max_bytes, double prob, uint64_t seed);
bool ecn_hits(struct ecn *e, uint64_t waiting_bytes);

/* The frame, marked and counted where it can be: with a pool in a header of its own where others
 * hold this one too, without one only where nobody does. */
struct rte_mbuf *ecn_mark(struct rte_mbuf *m, struct rte_mempool *pool, uint64_t *marks);

#endif
