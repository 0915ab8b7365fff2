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

/* What a rank's queue pair receives of them: with the GRH's room. */
#define PROTO_RECEIVED(bytes) (40u + 16u + (bytes))

/* The ranks of a job, as members of a tree. */
struct proto_ways {
    const struct fabric *fab;
    const struct fab_tree *tree; /* NULL: none, ranks use the first ports of their hosts */
    const struct fab_members *members;
};

/* Until the last bit of a packet has arrived. bytes: of head and data. -1: there is no way. */
int64_t proto_path_ps(const struct fabric *f, uint16_t from, uint16_t from_port, uint16_t to,
                      uint16_t to_port, uint32_t bytes);
/* From a rank to the root of the job's tree, from there to a rank, from rank to rank: the longest.
 * 0: there is no such way. */
int64_t proto_up_ps(const struct proto_ways *w, uint32_t bytes);
int64_t proto_down_ps(const struct proto_ways *w, uint32_t bytes);
int64_t proto_across_ps(const struct proto_ways *w, uint32_t bytes);
/* As trib_rank.notice_ps, of so many bytes of head and data. every_ps: trib_model.notice_every_ps of
 * as many; NULL: not asked. */
int64_t proto_notice_ps(const struct proto_ways *w, uint32_t bytes, int64_t *every_ps);
/* Whether every rank reaches every other by the one port that protocols use. */
bool proto_all_reach(const struct proto_ways *w);
/* To the root and back; without a tree to another rank and back. */
int64_t proto_round_trip_ps(const struct proto_ways *w, uint32_t bytes);
/* Switches from a rank to the root, the root included; 0 without a tree. */
unsigned proto_levels(const struct proto_ways *w);
/* Switches at which ranks join. */
unsigned proto_leaves(const struct proto_ways *w);
/* As trib_model.busiest, of links as fast as rate_bps. */
double proto_busiest(const struct proto_ways *w, unsigned servers, bool back, uint64_t rate_bps,
                     double *one);
/* The port of a host that its ranks use. */
uint16_t proto_host_port(const struct proto_ways *w, unsigned host);
/* The slowest link of a rank, and how many ranks share it at most. */
uint64_t proto_rate_bps(const struct proto_ways *w, unsigned *ranks_a_link);

/* As trib_model.between, of links as fast as rate_bps. */
double proto_between(const struct proto_ways *w, unsigned servers, double packets,
                     uint64_t rate_bps);
/* As trib_rank.share_bps. */
uint64_t proto_share_bps(const struct proto_ways *w);

#endif
