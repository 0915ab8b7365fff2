/*
 * Congestion marks: RFC 3168 CE on an ECT frame; the IP checksum follows by RFC 1624. The ICRC
 * leaves out both fields.
 */
#ifndef TRIB_SWITCH_ECN_H
#define TRIB_SWITCH_ECN_H

#include "roce/frame.h"

/* The frame, marked and counted where it can be: with a pool in a header of its own where others
 * hold this one too, without one only where nobody does. */
struct rte_mbuf *ecn_mark(struct rte_mbuf *m, struct rte_mempool *pool, uint64_t *marks);

#endif
