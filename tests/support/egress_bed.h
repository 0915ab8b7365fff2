/* SPDX-License-Identifier: BSD-3-Clause */
/* An egress queue of 400 Gb/s alone, frames with a tag, and all that comes out of it. */
#ifndef TRIB_TESTS_SUPPORT_EGRESS_BED_H
#define TRIB_TESTS_SUPPORT_EGRESS_BED_H

#include "switch/queue/egress.h"

#define RATE    (400ull * 1000000000) /* 20 ps a byte */
#define LATENCY (300 * PS_PER_NS)
#define LEN     4096
#define BYTES   (54 + LEN + 4)
#define DUR     ((BYTES + 24) * 20ll)

struct egress_cfg bed_usual(struct rte_mempool *pool); /* no faults, no marks, room for thousands */
struct egress *bed_make(const struct egress_cfg *c);
struct rte_mbuf *bed_frame(struct rte_mempool *pool, enum frame_class cls, uint32_t len,
                           uint32_t tag);
uint32_t bed_tag(struct rte_mbuf *m);
/* Pops everything, at the times that egress_next() names; writes tags and times (either may be
 * NULL). How many. */
unsigned bed_drain(struct egress *e, uint32_t *tag, int64_t *at, unsigned max);
/* Behind a test whose state is its pool: every frame is there again. */
int bed_no_leak(void **state);

#endif
