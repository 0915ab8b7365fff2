/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric's part of a time line (host/bench/timeline.h) in virtual time: for each direction of a
 * link the runs of frames that follow each other without a gap, its pauses and the bytes in its
 * queue; what links and switches drop, the slots of aggregation nodes, and packets that queue pairs
 * send again. All of it is read from taps and counters: engines know nothing of it.
 *
 * Runs are exact. Queues, drops, slots and retransmissions are looked up at NET_TIMELINE_SAMPLES
 * times of an operation that takes as long as expected.
 */
#ifndef TRIB_SIM_REPORT_NET_TIMELINE_H
#define TRIB_SIM_REPORT_NET_TIMELINE_H

#include "host/bench/timeline.h"
#include "sim/world/world.h"

#define NET_TIMELINE_SAMPLES 400
#define NET_TIMELINE_EVENTS  (2 * (uint64_t)TIMELINE_EVENTS / 3) /* the ranks' come after them */

struct net_timeline;

struct net_timeline_cfg {
    struct timeline *t;
    const struct fabric *fab;
    unsigned nranks; /* those behind them in the world are of a background flow */
    const uint16_t *host_of_rank;
};

int net_timeline_create(struct net_timeline **n, const struct net_timeline_cfg *cfg);
void net_timeline_destroy(struct net_timeline *n);           /* NULL: nothing */
struct timeline *net_timeline_ranks(struct net_timeline *n); /* cfg.t */
/* A net_tap_fn: records every frame that arrives. */
void net_timeline_frame(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now_ps);
/* Around operations, of which the one behind `skip` is recorded; it is expected to take so long. */
void net_timeline_begin(struct net_timeline *n, struct world *w, unsigned skip,
                        int64_t expected_ps);
void net_timeline_step(struct net_timeline *n); /* after each event of the world */
void net_timeline_end(struct net_timeline *n);
/* Of the recorded operation: each direction of each link, with what it carried; switches that
 * reduced. The caller's. */
struct json_t *net_timeline_links(const struct net_timeline *n);
struct json_t *net_timeline_switches(const struct net_timeline *n);

#endif
