/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast groups by port: IGMP v1, v2 and v3 (RFC 1112, 2236, 3376) as it passes by. There is no
 * querier in the fabric, so a membership lasts until it is left or its port goes down. Reports are
 * carried on over the spanning tree to all switches; so each of them knows which of its tree ports
 * lead to members, and data follows the tree: no loops, and one copy on each link. Groups that
 * nobody joined are dropped under a name, but 224.0.0.0/24 (RFC 4541), which is flooded.
 */
#ifndef TRIB_SWITCH_MCAST_H
#define TRIB_SWITCH_MCAST_H

#include "switch/classify.h"

#define MCAST_MAX_GROUPS 1024u

struct mcast;

int mcast_create(struct mcast **mc, uint16_t n_ports);
void mcast_destroy(struct mcast *mc);
/* A bit per port, (n_ports + 63) / 64 words; NULL: nobody. */
const uint64_t *mcast_members(const struct mcast *mc, uint32_t group);
/* 1: a new member, 0: was one, -ENOSPC: the table is full, -ENOMEM. */
int mcast_join(struct mcast *mc, uint32_t group, uint16_t port);
/* Whether it was a member. */
bool mcast_leave(struct mcast *mc, uint32_t group, uint16_t port);
/* The port leaves all groups; left(ctx, group) after each. */
void mcast_forget_port(struct mcast *mc, uint16_t port, void (*left)(void *ctx, uint32_t group),
                       void *ctx);
/* Whether anybody but this port is a member. */
bool mcast_others(const struct mcast *mc, uint32_t group, uint16_t port);
/* All groups that have members. */
void mcast_each(const struct mcast *mc, void (*fn)(void *ctx, uint32_t group), void *ctx);

enum igmp_what { IGMP_JOIN, IGMP_LEAVE, IGMP_QUERY };
/*
 * Reads an IGMP frame, fn for each membership in it. 0, or -EINVAL when it is malformed (what stood
 * before the fault was told).
 */
int igmp_parse(struct rte_mbuf *m, const struct packet_class *k,
               void (*fn)(void *ctx, enum igmp_what what, uint32_t group), void *ctx);
/* A version 2 report, leave or general query (group 0) from this address. NULL: pool empty. */
struct rte_mbuf *igmp_build(struct rte_mempool *pool, enum igmp_what what, uint32_t group,
                            uint32_t src_ip, const uint8_t src_mac[6]);

static inline bool mcast_is_local(uint32_t group)
{
    return group >> 8 == 0xe00000;
}

#endif
