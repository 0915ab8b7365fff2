/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times of a protocol's packets on an idle fabric, along the tree and from rank to rank. Switches
 * of the tree store what is for them; others cut through where they can.
 */
#ifndef TRIB_PROTOCOLS_HOST_PATH_H
#define TRIB_PROTOCOLS_HOST_PATH_H

#include "fabric/fabric.h"

/* Bytes that a packet occupies on a link beyond the protocol's head and data: proto_head 16,
 * Ethernet 14, IP 20, UDP 8, BTH 12, DETH 8, ICRC 4, and preamble, FCS and gap 24. */
#define PROTO_OVERHEAD (16u + 66u + 24u)

/* Bytes that a rank's queue pair receives of a packet, with the space for the GRH. */
#define PROTO_RECEIVED(bytes) (40u + 16u + (bytes))

/* The ranks of a job, as members of a tree. */
struct proto_ways {
    const struct fabric *fab;
    const struct fab_tree *tree; /* NULL: none, ranks use the first ports of their hosts */
    const struct fab_members *members;
};

/* Time until the last bit of a packet has arrived. bytes: head and data. -1: there is no path. */
int64_t proto_path_ps(const struct fabric *f, uint16_t from, uint16_t from_port, uint16_t to,
                      uint16_t to_port, uint32_t bytes);
/* Longest time from a rank to the root of the job's tree, from the root to a rank, and from rank to
 * rank. 0: there is no such path. */
int64_t proto_up_ps(const struct proto_ways *w, uint32_t bytes);
int64_t proto_down_ps(const struct proto_ways *w, uint32_t bytes);
int64_t proto_across_ps(const struct proto_ways *w, uint32_t bytes);
/* trib_rank.notice_ps of a packet with this many bytes of head and data. every_ps: NULL, or gets
 * trib_model.notice_every_ps. */
int64_t proto_notice_ps(const struct proto_ways *w, uint32_t bytes, int64_t *every_ps);
/* Whether every rank reaches every other by the one port that protocols use. */
bool proto_all_reach(const struct proto_ways *w);
/* Round trip to the root, or without a tree to another rank. */
int64_t proto_round_trip_ps(const struct proto_ways *w, uint32_t bytes);
/* Number of switches from a rank to the root, the root included; 0 without a tree. */
unsigned proto_levels(const struct proto_ways *w);
/* Number of switches at which ranks join. */
unsigned proto_leaves(const struct proto_ways *w);
/* trib_model.busiest, counting in links of rate_bps. */
double proto_busiest(const struct proto_ways *w, unsigned servers, bool back, uint64_t rate_bps,
                     double *one);
/* The port of a host that its ranks use. */
uint16_t proto_host_port(const struct proto_ways *w, unsigned host);
/* Rate of a rank's slowest link, and the most ranks that share a link. */
uint64_t proto_rate_bps(const struct proto_ways *w, unsigned *ranks_a_link);

/* trib_model.between, counting in links of rate_bps. */
double proto_between(const struct proto_ways *w, unsigned servers, double packets,
                     uint64_t rate_bps);
/* trib_rank.share_bps. */
uint64_t proto_share_bps(const struct proto_ways *w);

#endif
