/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/nic_priv.h"

#include "base/log.h"

/*
 * Multicast memberships of a host's processes. The NIC answers every report of a process: with the same
 * report if the process is a member now, with a leave if it is not. So a refusal reaches the process that
 * asked, and involves no other host and no switch.
 *
 * A host's port may be in multicast_per_host groups, and each process in a share of them, because a
 * switch has one table for all hosts. Joins are announced at a limited rate, because an announcement goes
 * to every switch.
 */
#define REPORT_PS    (100 * PS_PER_US) /* average interval of announcements of joins */
#define REPORT_BURST 256

static void nic_igmp_announce(struct nic_port *np, enum igmp_what what, uint32_t group,
                              int64_t now_ps)
{
    struct rte_mbuf *m = igmp_build(np->nic->nd.pool, what, group, np->ip, np->mac);

    if (m)
        node_send(&np->nic->nd, np->port, m, now_ps);
    else
        np->nic->nd.cnt[np->port].drops[DROP_NO_BUFFER]++;
}

/* Answers a process; its frames are offered at the next retry. */
static void nic_igmp_answer(struct nic_port *np, unsigned slot, enum igmp_what what, uint32_t group,
                            int64_t now_ps)
{
    struct rte_mbuf *m = igmp_build(np->nic->nd.pool, what, group, np->ip, np->mac);

    if (m)
        nic_rx_put(np, slot, m);
    else
        np->nic->nd.cnt[np->port].drops[DROP_NO_BUFFER]++;
    np->retry_ps = RTE_MIN(np->retry_ps, now_ps);
}

static uint32_t host_share(const struct nic_port *np)
{
    return np->nic->nd.fab->multicast_per_host;
}

static bool over_quota(const struct nic_port *np, uint16_t slot, uint32_t group)
{
    uint32_t share = host_share(np);

    if (mcast_is_member(np->mc, group, slot))
        return false;
    return mcast_held(np->mc, slot) >= RTE_MAX(share / MCAST_SLOT_SHARE, 1u) ||
           (mcast_groups(np->mc) >= share && !mcast_members(np->mc, group));
}

/* Whether a join may be announced now; if so counts it. */
static bool announceable(struct nic_port *np, int64_t now_ps)
{
    if (np->report_ps > now_ps + REPORT_BURST * REPORT_PS)
        return false;
    np->report_ps = RTE_MAX(np->report_ps, now_ps) + REPORT_PS;
    return true;
}

/* Refuses a join. Logs the first refusal of a port, and then each that doubles their number. */
static void nic_igmp_refuse(struct nic_port *np, uint16_t slot, uint32_t group, const char *why,
                            int64_t now_ps)
{
    struct node *nd = &np->nic->nd;
    uint64_t n = ++np->reports_refused;

    nd->cnt[np->port].drops[DROP_GROUP_QUOTA]++;
    node_event(nd, now_ps, NODE_EV_GROUP_REFUSED, slot, group);
    if (!(n & (n - 1)))
        T_LOG("switch", LOG_WARN,
              "%s: process slot %u may not join multicast group %u.%u.%u.%u: %s (%u groups of at "
              "most %u, refusal %llu)",
              nd->name, slot, group >> 24, group >> 16 & 0xff, group >> 8 & 0xff, group & 0xff, why,
              mcast_groups(np->mc), host_share(np), (unsigned long long)n);
    nic_igmp_answer(np, slot, IGMP_LEAVE, group, now_ps);
}

/* Joins a group. Announces a repeated join again, because the first announcement may have been lost. */
static void nic_igmp_join(struct nic_port *np, uint16_t slot, uint32_t group, int64_t now_ps)
{
    bool member = mcast_is_member(np->mc, group, slot);
    int joined;

    if (over_quota(np, slot, group)) {
        nic_igmp_refuse(np, slot, group, "over quota", now_ps);
        return;
    }
    if (!announceable(np, now_ps)) {
        if (member)
            nic_igmp_answer(np, slot, IGMP_JOIN, group, now_ps);
        else
            nic_igmp_refuse(np, slot, group, "too many reports", now_ps);
        return;
    }
    joined = mcast_join(np->mc, group, slot);
    if (joined < 0) {
        nic_igmp_refuse(np, slot, group, "the table is full", now_ps);
        return;
    }
    if (joined > 0)
        node_event(&np->nic->nd, now_ps, NODE_EV_GROUP_JOINED, slot, group);
    nic_igmp_announce(np, IGMP_JOIN, group, now_ps);
    nic_igmp_answer(np, slot, IGMP_JOIN, group, now_ps);
}

static void slot_left_group(struct nic_port *np, uint16_t slot, uint32_t group, int64_t now_ps)
{
    node_event(&np->nic->nd, now_ps, NODE_EV_GROUP_LEFT, slot, group);
    if (!mcast_members(np->mc, group))
        nic_igmp_announce(np, IGMP_LEAVE, group, now_ps);
}

/* ---- reports of processes ---- */

struct report {
    struct nic_port *np;
    uint16_t slot;
    int64_t now;
    uint64_t *touched;
};

static void reported(void *ctx, enum igmp_what what, uint32_t group)
{
    struct report *r = ctx;

    if (what == IGMP_JOIN)
        nic_igmp_join(r->np, r->slot, group, r->now);
    else if (what == IGMP_LEAVE && mcast_leave(r->np->mc, group, r->slot))
        slot_left_group(r->np, r->slot, group, r->now);
}

void nic_igmp_input(struct nic_port *np, unsigned slot, struct rte_mbuf *m,
                    const struct packet_class *k, int64_t now_ps)
{
    struct report r = {np, (uint16_t)slot, now_ps, NULL};

    if (igmp_parse(m, k, reported, &r) != 0) {
        node_drop(&np->nic->nd, np->port, m, DROP_BAD_LENGTH);
        nic_offence(np, slot, DROP_BAD_LENGTH, now_ps);
    } else {
        rte_pktmbuf_free(m);
    }
}

/* ---- reports of the switch ---- */

/* Handles a leave from the switch, which refuses the group because its own table is full. */
static void nic_igmp_refused(void *ctx, enum igmp_what what, uint32_t group)
{
    struct report *r = ctx;
    struct nic_port *np = r->np;

    if (what != IGMP_LEAVE || !mcast_members(np->mc, group))
        return;
    nic_each(np, np->attached, slot)
    {
        if (!mcast_leave(np->mc, group, (uint16_t)slot))
            continue;
        nic_igmp_refuse(np, (uint16_t)slot, group, "refused by the switch", r->now);
        nic_set_put(r->touched, slot, true);
    }
}

void nic_igmp_from_link(struct nic_port *np, struct rte_mbuf *m, const struct packet_class *k,
                        int64_t now_ps, uint64_t *touched)
{
    struct report r = {np, 0, now_ps, touched};

    if (igmp_parse(m, k, nic_igmp_refused, &r) != 0)
        node_drop(&np->nic->nd, np->port, m, DROP_BAD_LENGTH);
    else
        rte_pktmbuf_free(m);
}

/* ---- the end of a process, a link that is back ---- */

static void forgotten(void *ctx, uint32_t group)
{
    struct report *r = ctx;

    slot_left_group(r->np, r->slot, group, r->now);
}

void nic_igmp_forget(struct nic_port *np, unsigned slot, int64_t now_ps)
{
    struct report r = {np, (uint16_t)slot, now_ps, NULL};

    mcast_forget_port(np->mc, (uint16_t)slot, forgotten, &r);
}

static void announce_again(void *ctx, uint32_t group)
{
    struct report *r = ctx;

    nic_igmp_announce(r->np, IGMP_JOIN, group, r->now);
}

void nic_igmp_again(struct nic_port *np, int64_t now_ps)
{
    struct report r = {np, 0, now_ps, NULL};

    mcast_each(np->mc, announce_again, &r);
}
