/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast groups by port, snooped from IGMP v1, v2 and v3 (RFC 1112, 2236, 3376). The fabric has
 * no querier, so a membership lasts until the port leaves the group or goes down. Switches announce
 * memberships to each other over the spanning tree, so each knows which of its tree ports lead to
 * members, and data follows the tree: no loops, and one copy on each link. Frames for groups
 * without members are dropped and counted, but 224.0.0.0/24 (RFC 4541) is flooded.
 */
#ifndef TRIB_SWITCH_MCAST_H
#define TRIB_SWITCH_MCAST_H

#include "switch/classify.h"

#define MCAST_MAX_GROUPS 1024u /* FAB_MAX_MULTICAST */

/* One process of a host may be in 1/2 of the groups that the host's port may be in. */
#define MCAST_SLOT_SHARE 2u

struct mcast;

int mcast_create(struct mcast **mc, uint16_t n_ports);
void mcast_destroy(struct mcast *mc);
/* A bit per port, (n_ports + 63) / 64 words; NULL: no members. */
const uint64_t *mcast_members(const struct mcast *mc, uint32_t group);
/* Returns 1: new member, 0: it was one already, -ENOSPC: the table is full, -ENOMEM. group must not
 * be 0. */
int mcast_join(struct mcast *mc, uint32_t group, uint16_t port);
/* Whether it was a member. */
bool mcast_leave(struct mcast *mc, uint32_t group, uint16_t port);
/* Removes the port from all groups; calls left(ctx, group) after each. */
void mcast_forget_port(struct mcast *mc, uint16_t port, void (*left)(void *ctx, uint32_t group),
                       void *ctx);
bool mcast_is_member(const struct mcast *mc, uint32_t group, uint16_t port);
/* Groups that the port is in; groups that have members. */
uint32_t mcast_held(const struct mcast *mc, uint16_t port);
uint32_t mcast_groups(const struct mcast *mc);
/* Whether any other port is a member. */
bool mcast_others(const struct mcast *mc, uint32_t group, uint16_t port);
/* All groups that have members. */
void mcast_each(const struct mcast *mc, void (*fn)(void *ctx, uint32_t group), void *ctx);

enum igmp_what { IGMP_JOIN, IGMP_LEAVE, IGMP_QUERY };
/*
 * Calls fn for each membership in a PACKET_IGMP frame. 0, or -EINVAL: it is malformed (fn was
 * called for the memberships before the fault).
 */
int igmp_parse(struct rte_mbuf *m, const struct packet_class *k,
               void (*fn)(void *ctx, enum igmp_what what, uint32_t group), void *ctx);
/* Builds a version 2 report, leave or general query (group 0) from this address. NULL: pool
 * empty. */
struct rte_mbuf *igmp_build(struct rte_mempool *pool, enum igmp_what what, uint32_t group,
                            uint32_t src_ip, const uint8_t src_mac[6]);

static inline bool mcast_is_local(uint32_t group)
{
    return group >> 8 == 0xe00000;
}

#endif
