/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics of a port, for reports: its egress queue (one direction of a link), and its PFC
 * frames.
 */
#ifndef TRIB_SWITCH_NET_NET_STATS_H
#define TRIB_SWITCH_NET_NET_STATS_H

#include "switch/net/net.h"

struct net_port_stats {
    uint64_t frames, bytes, link_bytes; /* sent; bytes of layer 2; with preamble, FCS and gap */
    uint64_t ecn_marks;                 /* frames marked in the queue */
    uint64_t pauses_sent,
        pauses_received;                /* frames; the lossless class is the only one with pauses */
    uint64_t drops;                     /* of frames that came in by the port, for any reason */
    uint64_t overflows;                 /* of these: because an egress queue was full */
    uint64_t watchdog_trips, discarded; /* PFC watchdog: trips, dropped frames */
    uint64_t peak_bytes, class_peak_bytes[FRAME_CLASSES]; /* most bytes that waited */
    int64_t busy_ps, paused_ps; /* paused_ps: of the lossless class, up to now */
};

/* False: the node is not local, or nothing is connected to the port. */
bool net_port_stats(struct net *n, uint16_t node, uint16_t port, struct net_port_stats *s);
/* Bytes that have started on a direction of a link (link * 2 + direction), with link overhead; for a host
 * outside, bytes that have arrived from it. False: another process knows. */
bool net_sent_bytes(struct net *n, const struct fabric *f, uint32_t dirlink, uint64_t *bytes);
/* Sums over all local ports; for peaks the maximum. */
void net_total_stats(struct net *n, const struct fabric *f, struct net_port_stats *sum);

#endif
