/* SPDX-License-Identifier: BSD-3-Clause */
/* One egress queue of 400 Gb/s, frames with a tag, and the frames that it gives. */
#ifndef TRIB_TESTS_SUPPORT_EGRESS_FIXTURE_H
#define TRIB_TESTS_SUPPORT_EGRESS_FIXTURE_H

#include "switch/queue/egress.h"

#define RATE    (400ull * 1000000000) /* 20 ps a byte */
#define LATENCY (300 * PS_PER_NS)
#define LEN     4096
#define BYTES   (54 + LEN + 4)
#define DUR     ((BYTES + 24) * 20ll)

struct egress_cfg
egress_fixture_usual(struct rte_mempool *pool); /* no faults, no marks, room for thousands */
struct egress *egress_fixture_make(const struct egress_cfg *c);
struct rte_mbuf *egress_fixture_frame(struct rte_mempool *pool, enum frame_class cls, uint32_t len,
                                      uint32_t tag);
uint32_t egress_fixture_tag(struct rte_mbuf *m);
/* Pops all frames, at the deadlines of egress_next(); writes tags and times (either may be NULL).
 * Returns how many. */
unsigned egress_fixture_drain(struct egress *e, uint32_t *tag, int64_t *at, unsigned max);
/* Teardown of a test whose state is its pool: fails when a frame is missing. */
int egress_fixture_no_leak(void **state);

#endif
