/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion marks: RFC 3168 CE on an ECT frame, with the IP checksum updated by RFC 1624. The ICRC
 * covers neither field.
 */
#ifndef TRIB_SWITCH_QUEUE_ECN_H
#define TRIB_SWITCH_QUEUE_ECN_H

#include "roce/frame.h"
#include "switch/queue/link_fault.h"

/* Marking by queue length: above min_bytes waiting in a class, frames are marked with a probability
 * that grows to `prob` (times 2^53) at max_bytes; above max_bytes always. min_bytes 0: never. */
struct ecn {
    uint64_t min_bytes, max_bytes, prob;
    struct fault_rng rng;
};

void ecn_init(struct ecn *e, uint64_t min_bytes, uint64_t max_bytes, double prob, uint64_t seed);
bool ecn_hits(struct ecn *e, uint64_t waiting_bytes);

/* Marks and counts a frame if possible, and returns it. Shared headers are copied to a new mbuf of
 * the pool; without a pool (NULL) such a frame is not marked. */
struct rte_mbuf *ecn_mark(struct rte_mbuf *m, struct rte_mempool *pool, uint64_t *marks);

#endif
