/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"
#include "switch/sw_priv.h"

#include <errno.h>

/* ---- replication ---- */

/* Copies by reference to the ports of a list; the last port gets the frame itself. */
struct copies {
    struct sw *s;
    struct rte_mbuf *m;
    int64_t now;
    int last; /* port that has no copy yet, -1: none */
};

static void copy_to(struct copies *c, uint16_t port)
{
    struct rte_mbuf *m;

    T_ASSERT_HOT(port < c->s->nd.n_ports, "a copy for a port that is not there");
    T_ASSERT_HOT(c->last < (int)port, "ports of a list out of order, or one twice");
    if (c->last >= 0) {
        m = frame_clone(c->m, c->s->nd.pool);
        if (m)
            node_send(&c->s->nd, (uint16_t)c->last, m, c->now);
        else
            c->s->nd.cnt[c->last].drops[DROP_NO_BUFFER]++;
    }
    c->last = port;
}

static void copies_end(struct copies *c, uint16_t in, enum drop why)
{
    if (c->last >= 0)
        node_send(&c->s->nd, (uint16_t)c->last, c->m, c->now);
    else
        node_drop(&c->s->nd, in, c->m, why);
}

void sw_flood(struct sw *s, uint16_t in, struct rte_mbuf *m, uint8_t flag, enum drop why,
              int64_t now)
{
    struct copies c = {s, m, now, -1};

    for (uint16_t p = 0; p < s->nd.n_ports; p++)
        if (p != in && (s->flags[p] & flag))
            copy_to(&c, p);
    copies_end(&c, in, why);
}

static void replicate(struct sw *s, uint16_t in, struct rte_mbuf *m, uint32_t group, int64_t now)
{
    const uint64_t *bits = mcast_members(s->mc, group);
    struct copies c = {s, m, now, -1};

    for (uint16_t w = 0; bits && w < (s->nd.n_ports + 63) / 64; w++)
        for (uint64_t b = bits[w]; b; b &= b - 1) {
            uint16_t p = (uint16_t)(w * 64 + __builtin_ctzll(b));

            if (p != in)
                copy_to(&c, p);
        }
    copies_end(&c, in, bits ? DROP_REFLECTED : DROP_UNKNOWN_GROUP);
}

/* ---- memberships ---- */

struct snoop {
    struct sw *s;
    uint16_t port;
    bool query;
    int64_t now;
};

static void sw_group_announce(struct sw *s, uint16_t port, enum igmp_what what, uint32_t group,
                              int64_t now)
{
    struct rte_mbuf *m = igmp_build(s->nd.pool, what, group, s->ip, s->mac);

    if (m)
        node_send(&s->nd, port, m, now);
    else
        s->nd.cnt[port].drops[DROP_NO_BUFFER]++;
}

/* Tells neighbours on the tree of a join or leave. They hear of a leave only if no member is left on
 * this side. */
static void membership(const struct snoop *sn, uint32_t group, bool join)
{
    struct sw *s = sn->s;

    for (uint16_t p = 0; p < s->nd.n_ports; p++) {
        if (p == sn->port || !(s->flags[p] & PORT_BRIDGE))
            continue;
        if (join)
            sw_group_announce(s, p, IGMP_JOIN, group, sn->now);
        else if (!mcast_others(s->mc, group, p))
            sw_group_announce(s, p, IGMP_LEAVE, group, sn->now);
    }
}

static void port_left_group(void *ctx, uint32_t group)
{
    const struct snoop *sn = ctx;

    node_event(&sn->s->nd, sn->now, NODE_EV_GROUP_LEFT, sn->port, group);
    membership(sn, group, false);
}

/* Joins a port to a group, within a host's share. If the table is full, no port can join. */
static int snoop_join(const struct snoop *sn, uint32_t group)
{
    struct sw *s = sn->s;

    if (!(s->flags[sn->port] & PORT_BRIDGE) && !mcast_is_member(s->mc, group, sn->port) &&
        mcast_held(s->mc, sn->port) >= s->nd.fab->multicast_per_host)
        return -EDQUOT;
    return mcast_join(s->mc, group, sn->port);
}

/* Refuses a join; tells a host by a leave of the group. Logs the first refusal of a port, and then each
 * that doubles their number. */
static void snoop_refuse(const struct snoop *sn, uint32_t group)
{
    struct sw *s = sn->s;
    const struct fab_port *p = &s->nd.fab->nodes[s->nd.id].ports[sn->port];
    uint64_t n = ++s->nd.cnt[sn->port].drops[DROP_GROUP_QUOTA];

    node_event(&s->nd, sn->now, NODE_EV_GROUP_REFUSED, sn->port, group);
    if (!(n & (n - 1)))
        T_LOG(
            "switch", LOG_WARN,
            "%s: %s may not join multicast group %u.%u.%u.%u: it has %u groups of at most %u, the "
            "switch %u of %u (refusal %llu)",
            s->nd.name, p->link == FAB_NONE ? "the outside" : s->nd.fab->nodes[p->peer_node].name,
            group >> 24, group >> 16 & 0xff, group >> 8 & 0xff, group & 0xff,
            mcast_held(s->mc, sn->port), s->nd.fab->multicast_per_host, mcast_groups(s->mc),
            MCAST_MAX_GROUPS, (unsigned long long)n);
    if (!(s->flags[sn->port] & PORT_BRIDGE))
        sw_group_announce(s, sn->port, IGMP_LEAVE, group, sn->now);
}

static void snooped(void *ctx, enum igmp_what what, uint32_t group)
{
    struct snoop *sn = ctx;

    if (what == IGMP_QUERY) {
        sn->query = true;
    } else if (mcast_is_local(group)) {
        return; /* always flooded */
    } else if (what == IGMP_JOIN) {
        int joined = snoop_join(sn, group);

        if (joined < 0)
            snoop_refuse(sn, group);
        if (joined > 0)
            node_event(&sn->s->nd, sn->now, NODE_EV_GROUP_JOINED, sn->port, group);
        if (joined >= 0)
            membership(sn, group, true);
    } else if (mcast_leave(sn->s->mc, group, sn->port)) {
        port_left_group(sn, group);
    }
}

static void announce_to_port(void *ctx, uint32_t group)
{
    struct snoop *sn = ctx;

    if (mcast_others(sn->s->mc, group, sn->port))
        sw_group_announce(sn->s, sn->port, IGMP_JOIN, group, sn->now);
}

static bool is_end_of_tree(const struct sw *s, uint16_t in)
{
    for (uint16_t p = 0; p < s->nd.n_ports; p++)
        if (p != in && (s->flags[p] & PORT_TREE))
            return false;
    return true;
}

static void igmp_input(struct sw *s, uint16_t in, struct rte_mbuf *m, const struct packet_class *k,
                       int64_t now)
{
    struct snoop sn = {s, in, false, now};

    if (!(s->flags[in] & PORT_TREE)) {
        node_drop(&s->nd, in, m,
                  DROP_REFLECTED); /* not on the tree: data would not follow it back */
    } else if (igmp_parse(m, k, snooped, &sn) != 0) {
        node_drop(&s->nd, in, m, DROP_BAD_LENGTH);
    } else if (sn.query) {
        if (s->flags[in] & PORT_BRIDGE) /* a switch answers for its hosts */
            mcast_each(s->mc, announce_to_port, &sn);
        if (is_end_of_tree(s, in))
            rte_pktmbuf_free(m);
        else
            sw_flood(s, in, m, PORT_TREE, DROP_UNKNOWN_GROUP, now);
    } else {
        rte_pktmbuf_free(m); /* neighbours get announcements of our own */
    }
}

/* ---- one frame ---- */

void sw_arp_input(struct sw *s, uint16_t in, struct rte_mbuf *m, const struct packet_class *k,
                  int64_t now)
{
    if (arp_asks_for(m, k, s->ip)) {
        struct rte_mbuf *a = arp_answer(m, k, s->ip, s->mac, s->nd.pool);

        if (a)
            node_send(&s->nd, in, a, now);
        else
            s->nd.cnt[in].drops[DROP_NO_BUFFER]++;
        rte_pktmbuf_free(m);
    } else {
        sw_flood(s, in, m, PORT_TREE, DROP_UNKNOWN_DEST, now);
    }
}

void sw_group_input(struct sw *s, uint16_t in, struct rte_mbuf *m, const struct packet_class *k,
                    int64_t now)
{
    const uint8_t *dst = rte_pktmbuf_mtod(m, const uint8_t *);
    bool ip = dst[0] == 0x01 && dst[1] == 0x00 && dst[2] == 0x5e && k->dst_ip >> 28 == 14;

    if (in != NODE_NO_PORT && !(s->flags[in] & PORT_TREE)) {
        node_drop(&s->nd, in, m, DROP_REFLECTED);
        return;
    }
    if (in != NODE_NO_PORT && k->kind == PACKET_ARP)
        sw_arp_input(s, in, m, k, now);
    else if (in != NODE_NO_PORT && k->kind == PACKET_IGMP)
        igmp_input(s, in, m, k, now);
    else if (ip && !mcast_is_local(k->dst_ip))
        replicate(s, in, m, k->dst_ip, now);
    else
        sw_flood(s, in, m, PORT_TREE, DROP_UNKNOWN_GROUP, now);
}

void sw_group_port_state(struct sw *s, uint16_t port, bool up, int64_t now)
{
    struct snoop sn = {s, port, false, now};

    if (!up)
        mcast_forget_port(s->mc, port, port_left_group, &sn);
    else if (s->flags[port] & PORT_BRIDGE)
        mcast_each(s->mc, announce_to_port, &sn);
}

void sw_group_leave_tree(struct sw *s, uint16_t port, int64_t now)
{
    struct snoop sn = {s, port, false, now};

    T_ASSERT(s->flags[port] & PORT_TREE, "a port leaves the tree that is not on it");
    mcast_forget_port(s->mc, port, port_left_group, &sn);
}

void sw_group_join_tree(struct sw *s, uint16_t port, int64_t now)
{
    struct snoop sn = {s, port, false, now};

    T_ASSERT(s->flags[port] & PORT_BRIDGE, "a port joins the tree that has no neighbour there");
    mcast_each(s->mc, announce_to_port, &sn);
    /* Both ends may learn of the tree at different times: the later one's query is answered. */
    sw_group_announce(s, port, IGMP_QUERY, 0, now);
}
