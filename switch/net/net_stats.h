/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics of a port, for reports: its egress queue (one direction of a link), and its PFC
 * frames.
 */
#ifndef TRIB_SWITCH_NET_NET_STATS_H
#define TRIB_SWITCH_NET_NET_STATS_H

#include "switch/net/net.h"

struct net_port_stats {
    uint64_t frames, bytes, link_bytes; /* sent; layer 2, and with preamble, FCS and gap */
    uint64_t ecn_marks;                 /* frames marked in the queue */
    uint64_t pauses_sent,
        pauses_received; /* frames; the lossless class is the only one with pauses */
    uint64_t drops;      /* of frames that came in by the port, whatever the reason */
    uint64_t overflows;  /* of these: an egress queue was full */
    uint64_t watchdog_trips, discarded; /* PFC watchdog of this queue: times, frames */
    uint64_t peak_bytes, class_peak_bytes[FRAME_CLASSES]; /* most bytes that waited */
    int64_t busy_ps, paused_ps; /* paused_ps: of the lossless class, up to now */
};

/* False: the node is not here, or nothing is connected to the port. */
bool net_port_stats(struct net *n, uint16_t node, uint16_t port, struct net_port_stats *s);
/* Bytes that have started on a direction of a link (link * 2 + direction), with link overhead; from
 * a host outside, those that have arrived. False: the other process knows. */
bool net_sent_bytes(struct net *n, const struct fabric *f, uint32_t dirlink, uint64_t *bytes);
/* Sums over all ports that are here; peaks are the greatest. */
void net_total_stats(struct net *n, const struct fabric *f, struct net_port_stats *sum);

#endif
