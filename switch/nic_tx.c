/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/nic_priv.h"
#include "switch/source_guard.h"

/*
 * From the processes to the link and to the loop. When one of the two queues is free, it pulls the head
 * of a slot's stash if that head is for this queue. A head for the other queue blocks the frames behind
 * it, which keeps the order within a slot's queue. Only a pull that uncovers a head for the other queue,
 * or may have, kicks that queue: two queues that kicked each other for heads that neither may send would
 * never stop.
 */

static inline struct egress *egress_of(struct nic_port *np, enum nic_way way)
{
    return way == NIC_LOOP ? np->loop : np->nic->nd.egress[np->port];
}

/* Kicks the other queue if the stash's new head is for it. */
static inline void uncovered(struct nic_port *np, const struct nic_stash *st, enum nic_way mine,
                             int64_t now)
{
    if (st->n && st->way[st->head] != mine && egress_of(np, st->way[st->head]))
        egress_kick(egress_of(np, st->way[st->head]), now);
}

/* After the last frame of a stash is taken: kicks the other queue, as the endpoint may have a frame for
 * it. */
static inline void emptied(struct nic_port *np, enum nic_way mine, int64_t now)
{
    enum nic_way other = mine == NIC_UP ? NIC_LOOP : NIC_UP;

    if (np->looped && egress_of(np, other))
        egress_kick(egress_of(np, other), now);
}

static void nic_tx_refuse(struct nic_port *np, unsigned slot, struct rte_mbuf *m, enum drop why,
                          int64_t now)
{
    node_drop(&np->nic->nd, np->port, m, why);
    nic_offence(np, slot, why, now);
}

/* Classifies a frame of a process. False: the frame was refused and freed. */
static bool admit(struct nic_port *np, unsigned slot, struct rte_mbuf *m, uint8_t *way, int64_t now)
{
    struct packet_class k;
    enum drop why;

    classify_frame(m, &k);
    frame_meta(m)->cls = k.cls;
    frame_meta(m)->in_port = NODE_NO_PORT;
    if (unlikely(k.kind == PACKET_BAD || k.kind == PACKET_MAC_CONTROL)) {
        /* MAC control frames belong to the NIC: no process may pause the switch. */
        nic_tx_refuse(np, slot, m, k.kind == PACKET_BAD ? k.why : DROP_LINK_LOCAL, now);
        return false;
    }
    why = source_guard(m, &k, np->mac, np->ip, source_space(slot));
    if (unlikely(why != SOURCE_ADMITTED)) {
        nic_tx_refuse(np, slot, m, why, now);
        return false;
    }
    if (unlikely(k.kind == PACKET_IGMP)) {
        nic_igmp_input(np, slot, m, &k, now);
        return false;
    }
    *way = mac_equal(rte_pktmbuf_mtod(m, const uint8_t *), np->mac) ? NIC_LOOP : NIC_UP;
    np->looped |= *way == NIC_LOOP;
    np->loop_used |= np->looped;
    return true;
}

static void refill(struct nic_port *np, unsigned slot, enum endpoint_queue q, enum nic_way mine,
                   int64_t now)
{
    struct nic_slot *s = nic_slot_at(np, slot);
    struct nic_stash *st = &s->stash[q];
    struct rte_mbuf *m[NIC_STASH];

    T_ASSERT_HOT(st->n == 0, "a stash is filled that is not empty");
    do {
        uint16_t n = s->ep.output(s->ep.ctx, q, m, NIC_STASH, now);

        nic_ask(s);
        T_ASSERT_HOT(n <= NIC_STASH, "an endpoint returned more frames than requested");
        st->head = 0;
        if (n == 0)
            return;
        for (uint16_t i = 0; i < n; i++)
            if (unlikely(s->shut))
                node_drop(&np->nic->nd, np->port, m[i], DROP_PORT_SHUT);
            else if (admit(np, slot, m[i], &st->way[st->n], now))
                st->m[st->n++] = m[i];
    } while (st->n == 0 && likely(!s->shut));
    uncovered(np, st, mine, now);
}

/* Whether the loop may take the frame: a slow receiver holds back senders on its host, as PFC does
 * remote ones. */
static bool loop_may_take(const struct nic_port *np, struct rte_mbuf *m)
{
    const struct nic_slot *s;
    struct packet_class k;

    classify_frame(m, &k);
    s = nic_slot_at(np, nic_slot_of_qpn(k.dqpn));
    return k.kind != PACKET_ROCE || !s || !s->attached || !nic_rx_half_full(np, s);
}

/* Copies RoCE frames to a group into the loop, for members on this host. */
static void copy_to_loop(struct nic_port *np, struct rte_mbuf *m, int64_t now)
{
    struct rte_mbuf *c;
    struct packet_class k;

    classify_frame(m, &k);
    if (!mcast_members(np->mc, k.dst_ip))
        return;
    c = frame_clone(m, np->nic->nd.pool);
    if (!c)
        np->nic->nd.cnt[np->port].drops[DROP_NO_BUFFER]++;
    else if (egress_push(np->loop, c, now) != 0)
        node_drop(&np->nic->nd, np->port, c, DROP_QUEUE_FULL);
    np->loop_used = true;
}

/* Polls later: an endpoint that is ready gave no frame (its pool may be empty). */
static void retry_ready(struct nic_port *np, int64_t now)
{
    nic_each(np, np->attached, slot)
    {
        const struct nic_slot *s = nic_slot_at(np, slot);

        if (s->stash[ENDPOINT_ACK].n == 0 && s->stash[ENDPOINT_DATA].n == 0 && s->next_ps == 0)
            np->retry_ps = RTE_MIN(np->retry_ps, now + NIC_RETRY_PS);
    }
}

/* The head of a slot's stash if it is for this queue; else NULL. */
static inline struct rte_mbuf *pull_slot(struct nic_port *np, unsigned slot, enum endpoint_queue q,
                                         enum nic_way way, int64_t now, bool paused)
{
    struct nic_stash *st = &nic_slot_at(np, slot)->stash[q];
    struct rte_mbuf *m;

    if (st->n == 0)
        refill(np, slot, q, way, now);
    if (st->n == 0 || st->way[st->head] != way)
        return NULL;
    T_ASSERT_HOT(st->head + st->n <= NIC_STASH, "a stash holds frames beyond its end");
    m = st->m[st->head];
    if (way == NIC_UP ? paused && frame_meta(m)->cls == FRAME_LOSSLESS : !loop_may_take(np, m))
        return NULL;
    st->head++, st->n--;
    if (st->n)
        frame_prefetch(st->m[st->head]);
    np->turn[way][q] = slot + 1 == np->nic->n_slots ? 0 : slot + 1;
    if (st->n)
        uncovered(np, st, way, now);
    else
        emptied(np, way, now);
    return m;
}

static struct rte_mbuf *pull_next(struct nic_port *np, enum nic_way way, int64_t now, bool paused)
{
    unsigned words = np->nic->n_words;

    for (int q = 0; q < ENDPOINT_QUEUES; q++) {
        uint32_t turn = np->turn[way][q];
        uint64_t before = (1ull << turn % 64) - 1;

        T_ASSERT_HOT(turn < np->nic->n_slots, "it is the turn of a slot that is not there");
        /* Round robin from `turn` on: first the upper part of its word, at last the lower part. */
        for (unsigned i = 0; i <= words; i++) {
            unsigned w = (turn / 64 + i) % words;
            uint64_t part = i == 0 ? ~before : i == words ? before : ~0ull;

            for (uint64_t b = np->attached[w] & part; b; b &= b - 1) {
                unsigned slot = w * 64 + (unsigned)__builtin_ctzll(b);
                struct rte_mbuf *m = pull_slot(np, slot, (enum endpoint_queue)q, way, now, paused);

                if (m)
                    return m;
            }
        }
    }
    retry_ready(np, now);
    return NULL;
}

static struct rte_mbuf *port_pull(struct nic_port *np, enum nic_way way, int64_t now, bool paused)
{
    struct rte_mbuf *m = pull_next(np, way, now, paused);

    nic_settle(np);
    return m;
}

/* Notes that the link got free while a process was late: its next frame starts at that time, so that a late
 * process does not lower the link's rate. */
static void note_late(struct nic_port *np, int64_t now)
{
    nic_each(np, np->attached, slot)
    {
        const struct endpoint *ep = &nic_slot_at(np, slot)->ep;

        if (ep->late && ep->late(ep->ctx))
            np->owed_ps = now;
    }
}

struct rte_mbuf *nic_pull_up(void *ctx, int64_t now_ps, bool lossless_paused)
{
    struct node_port *p = ctx;
    struct nic_port *np = &nic_of(p->nd)->p[p->port];
    struct rte_mbuf *m = port_pull(np, NIC_UP, now_ps, lossless_paused);

    np->owed_ps = PS_NEVER;
    if (!m)
        note_late(np, now_ps);
    if (m && unlikely(*rte_pktmbuf_mtod(m, const uint8_t *) & 1) &&
        frame_meta(m)->cls == FRAME_LOSSLESS)
        copy_to_loop(np, m, now_ps);
    return m;
}

struct rte_mbuf *nic_pull_loop(void *ctx, int64_t now_ps, bool lossless_paused)
{
    (void)lossless_paused;
    return port_pull(ctx, NIC_LOOP, now_ps, false);
}
