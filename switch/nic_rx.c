/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/nic_priv.h"

#include "switch/arp.h"

/*
 * From the link, or from the loop, to the processes. A frame enters its slot's ring, which is offered to
 * the process at the end of the burst. Only frames that the process leaves there count as ingress
 * occupancy. in_port: NODE_NO_PORT for the loop.
 */

void nic_rx_drop(struct nic_port *np, unsigned slot, enum drop why, int64_t now_ps)
{
    struct nic_slot *s = nic_slot_at(np, slot);

    for (; s->rx_head != s->rx_tail; s->rx_head++) {
        struct rte_mbuf *m = s->rx[s->rx_head & s->rx_mask];

        s->rx_bytes -= frame_bytes(m);
        if (frame_meta(m)->in_port != NODE_NO_PORT)
            node_release(&np->nic->nd, np->port, frame_bytes(m), now_ps);
        node_drop(&np->nic->nd, np->port, m, why);
    }
    T_ASSERT(!s->rx_bytes, "a slot counts other bytes than those of its frames");
}

uint32_t nic_rx_flush(struct nic_port *np, unsigned slot, int64_t now_ps)
{
    struct nic_slot *s = nic_slot_at(np, slot);
    uint32_t total = 0;

    T_ASSERT_HOT(nic_rx_used(s) <= s->rx_mask + 1, "a slot holds more frames than its ring");
    while (s->rx_head != s->rx_tail) {
        struct rte_mbuf **m = &s->rx[s->rx_head & s->rx_mask];
        uint32_t room = s->rx_mask + 1 - (s->rx_head & s->rx_mask), bytes[NODE_BURST];
        uint16_t n = (uint16_t)RTE_MIN(RTE_MIN(nic_rx_used(s), room), (uint32_t)NODE_BURST), k;
        bool held[NODE_BURST] = {false};

        for (uint16_t i = 0; i < n; i++) {
            bytes[i] = frame_bytes(m[i]); /* read before ownership passes */
            held[i] = frame_meta(m[i])->in_port != NODE_NO_PORT;
        }
        k = s->ep.input(s->ep.ctx, m, n, now_ps);
        T_ASSERT_HOT(k <= n, "the endpoint took more frames than it was offered");
        nic_ask(s);
        s->rx_head += k;
        total += k;
        if (unlikely(s->waits || s->stalled))
            nic_stall_took(np, s, k, now_ps);
        for (uint16_t i = 0; i < k; i++) {
            T_ASSERT_HOT(s->rx_bytes >= bytes[i], "a slot counts fewer bytes than its frames have");
            s->rx_bytes -= bytes[i];
            if (held[i])
                node_release(&np->nic->nd, np->port, bytes[i], now_ps);
        }
        if (k == n)
            continue;
        if (nic_stall_look(np, s, now_ps)) {
            s->stall_drops += nic_rx_used(s);
            nic_rx_drop(np, slot, DROP_SLOT_STALLED, now_ps);
        } else
            np->retry_ps = RTE_MIN(np->retry_ps, now_ps + NIC_RETRY_PS);
        break;
    }
    return total;
}

/* Counts frames that the process left in the ring as occupancy of the port by which they came. */
static void hold_rest(struct nic_port *np, struct nic_slot *s, uint16_t in, int64_t now)
{
    uint32_t i = (int32_t)(s->rx_head - s->seen) > 0 ? s->rx_head : s->seen;

    for (; in != NODE_NO_PORT && i != s->rx_tail; i++)
        node_hold(&np->nic->nd, in, s->rx[i & s->rx_mask], now);
    s->seen = s->rx_tail;
    if (s->rx_head == s->rx_tail) {
        T_ASSERT_HOT(!s->rx_bytes, "an empty slot counts bytes");
        nic_rx_begin(s);
    }
}

static void to_ring(struct nic_slot *s)
{
    T_ASSERT_HOT(s->rx != s->ring, "a slot overflows the ring that was made for its limit");
    for (uint32_t i = s->rx_head; i != s->rx_tail; i++)
        s->ring[i & s->ring_mask] = s->rx[i & s->rx_mask];
    s->rx = s->ring;
    s->rx_mask = s->ring_mask;
}

void nic_rx_put(struct nic_port *np, unsigned slot, struct rte_mbuf *m)
{
    struct nic_slot *s = nic_slot_at(np, slot);

    if (unlikely(!s || !s->attached)) {
        node_drop(&np->nic->nd, np->port, m, s && s->shut ? DROP_PORT_SHUT : DROP_NO_SLOT);
        return;
    }
    if (unlikely(nic_rx_used(s) >= np->rx_limit_pkts ||
                 s->rx_bytes + frame_bytes(m) > np->rx_limit_bytes)) {
        node_drop(&np->nic->nd, np->port, m, DROP_SLOT_FULL);
        return;
    }
    if (unlikely(nic_rx_used(s) > s->rx_mask))
        to_ring(s);
    T_ASSERT_HOT(nic_rx_used(s) <= s->rx_mask, "a slot's ring overflows");
    frame_meta(m)->in_port = NODE_NO_PORT;
    s->rx_bytes += frame_bytes(m);
    s->rx[s->rx_tail++ & s->rx_mask] = m;
}

/* Copies by reference to the slots of a set; the last slot gets the frame itself. */
static void to_slots(struct nic_port *np, const uint64_t *set, struct rte_mbuf *m,
                     uint64_t *touched)
{
    int last = -1;

    nic_each(np, set, slot)
    {
        struct rte_mbuf *c = last < 0 ? NULL : frame_clone(m, np->nic->nd.pool);

        if (c)
            nic_rx_put(np, (unsigned)last, c);
        else if (last >= 0)
            np->nic->nd.cnt[np->port].drops[DROP_NO_BUFFER]++;
        last = (int)slot;
    }
    if (last < 0)
        node_drop(&np->nic->nd, np->port, m, DROP_NO_SLOT);
    else
        nic_rx_put(np, (unsigned)last, m);
    for (unsigned w = 0; w < np->nic->n_words; w++)
        touched[w] |= set[w];
}

/* Delivers to the attached members of the group, or to every process if it has none. */
static void to_group(struct nic_port *np, uint32_t group, struct rte_mbuf *m, uint64_t *touched)
{
    const uint64_t *bits = mcast_members(np->mc, group);
    uint64_t set[NIC_WORDS];

    for (unsigned w = 0; w < np->nic->n_words; w++)
        set[w] = np->attached[w] & (bits ? bits[w] : ~0ull);
    to_slots(np, set, m, touched);
}

static void arp_input(struct nic_port *np, struct rte_mbuf *m, const struct packet_class *k,
                      bool mine, int64_t now, uint64_t *touched)
{
    struct node *nd = &np->nic->nd;
    struct rte_mbuf *a = arp_answer(m, k, np->ip, np->mac, nd->pool);

    if (a)
        node_send(nd, np->port, a, now);
    else if (mine) {
        to_slots(np, np->attached, m, touched); /* a reply to a process's request */
        return;
    }
    rte_pktmbuf_free(m);
}

/* Handles one frame. touched: adds the slots that got a frame. */
static inline void input_one(struct nic_port *np, uint16_t in, struct rte_mbuf *m, int64_t now,
                             uint64_t *touched)
{
    struct node *nd = &np->nic->nd;
    const uint8_t *dst = rte_pktmbuf_mtod(m, const uint8_t *);
    struct packet_class k;
    bool mine;

    classify_frame(m, &k);
    frame_meta(m)->cls = k.cls;
    if (unlikely(k.kind == PACKET_BAD)) {
        node_drop(nd, np->port, m, k.why);
        return;
    }
    mine = mac_equal(dst, np->mac);
    if (likely(mine && k.kind == PACKET_ROCE)) {
        unsigned slot = nic_slot_of_qpn(k.dqpn);

        nic_rx_put(np, slot, m);
        if (slot < np->nic->n_slots)
            nic_set_put(touched, slot, true);
        return;
    }
    if (k.kind == PACKET_MAC_CONTROL && in != NODE_NO_PORT)
        node_pause_input(nd, np->port, m, now);
    else if (k.kind == PACKET_ARP)
        arp_input(np, m, &k, mine, now, touched);
    else if ((dst[0] & 1) && k.kind == PACKET_ROCE)
        to_group(np, k.dst_ip, m, touched);
    else if (k.kind == PACKET_IGMP && in != NODE_NO_PORT)
        nic_igmp_from_link(np, m, &k, now, touched);
    else
        node_drop(nd, np->port, m, mine || (dst[0] & 1) ? DROP_NOT_ROCE : DROP_NOT_MINE);
}

static void deliver(struct nic_port *np, uint16_t in, struct rte_mbuf **m, uint16_t n, int64_t now)
{
    uint64_t touched[NIC_WORDS];
    bool any = false;

    for (unsigned w = 0; w < np->nic->n_words; w++)
        touched[w] = 0;

    for (uint16_t i = 0; i < n; i++) {
        if (i + 1 < n)
            rte_prefetch0(rte_pktmbuf_mtod(m[i + 1], void *));
        input_one(np, in, m[i], now, touched);
    }
    for (unsigned w = 0; w < np->nic->n_words; w++)
        touched[w] &= np->attached[w];
    nic_each(np, touched, slot)
    {
        nic_rx_flush(np, slot, now);
        hold_rest(np, nic_slot_at(np, slot), in, now);
        any = true;
    }
    if (any) {
        nic_kick_port(np, now);
        nic_settle(np);
    }
}

void nic_input(struct node *nd, uint16_t port, struct rte_mbuf **m, uint16_t n, int64_t now_ps)
{
    struct node_port_counters *c = &nd->cnt[port];

    c->rx_frames += n;
    for (uint16_t i = 0; i < n; i++)
        c->rx_bytes += frame_bytes(m[i]);
    deliver(&nic_of(nd)->p[port], port, m, n, now_ps);
}

void nic_loop_input(struct nic_port *np, struct rte_mbuf **m, uint16_t n, int64_t now_ps)
{
    deliver(np, NODE_NO_PORT, m, n, now_ps);
}
