/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/outside_guard.h"
#include "switch/sw_priv.h"

#define AN_RETRY_PS                                                                                \
    PS_PER_US /* delay before an endpoint that is ready but gave no frame is polled again */

static void local_flush(struct sw *s, int64_t now)
{
    uint16_t n = s->n_local, k;

    if (!n)
        return;
    s->n_local = 0;
    k = s->ep.input(s->ep.ctx, s->local, n, now);
    T_ASSERT_HOT(k <= n, "the endpoint took more frames than it was given");
    for (; k < n; k++)
        node_drop(&s->nd, frame_meta(s->local[k])->in_port, s->local[k], DROP_AN_REFUSED);
}

static inline void local_add(struct sw *s, struct rte_mbuf *m, int64_t now)
{
    if (s->n_local == NODE_BURST)
        local_flush(
            s, now); /* before adding: n_local stays above 0; the burst's end flushes the rest */
    T_ASSERT_HOT(s->n_local < NODE_BURST, "more frames for the endpoint than a burst has");
    s->local[s->n_local++] = m;
}

static void local_input(struct sw *s, uint16_t in, struct rte_mbuf *m, const struct packet_class *k,
                        int64_t now)
{
    if (likely(k->kind == PACKET_ROCE && s->has_ep && in != NODE_NO_PORT)) {
        local_add(s, m, now);
    } else if (k->kind == PACKET_ARP && in != NODE_NO_PORT && arp_asks_for(m, k, s->ip)) {
        sw_arp_input(s, in, m, k, now);
    } else {
        node_drop(&s->nd, in, m, k->kind == PACKET_ROCE ? DROP_NO_AN : DROP_NOT_ROCE);
    }
}

static inline bool bridge_reserved(const uint8_t *d)
{
    return d[0] == 0x01 && d[1] == 0x80 && d[2] == 0xc2 && d[3] == 0 && d[4] == 0 && d[5] < 0x10;
}

/* Handles a frame that is not forwarded by its address alone. Takes ownership. */
static void frame_special(struct sw *s, uint16_t in, struct rte_mbuf *m,
                          const struct packet_class *k, uint16_t port, int64_t now)
{
    const uint8_t *dst = rte_pktmbuf_mtod(m, const uint8_t *);

    if (unlikely(k->kind == PACKET_BAD))
        node_drop(&s->nd, in, m, k->why);
    else if (k->kind == PACKET_MAC_CONTROL && in != NODE_NO_PORT)
        node_pause_input(&s->nd, in, m, now);
    else if (bridge_reserved(dst))
        node_drop(&s->nd, in, m, DROP_LINK_LOCAL);
    else if (dst[0] & 1)
        sw_group_input(s, in, m, k, now);
    else if (mac_equal(dst, s->mac))
        local_input(s, in, m, k, now);
    else if (port == FIB_OUTSIDE)
        sw_flood(s, in, m, PORT_OUTSIDE, DROP_UNKNOWN_DEST, now);
    else
        node_drop(&s->nd, in, m,
                  port == in && port < s->nd.n_ports ? DROP_REFLECTED : DROP_NO_ROUTE);
}

/* The egress port of a unicast frame. False: frame_special() handles it. *any: the port is the same for every
 * frame to that address. */
static inline bool passes_on(struct sw *s, uint16_t in, struct rte_mbuf *m,
                             const struct packet_class *k, uint16_t *port, bool *any)
{
    const uint8_t *dst = rte_pktmbuf_mtod(m, const uint8_t *);

    *port = FIB_NO_PORT;
    *any = false;
    if (unlikely(k->kind == PACKET_BAD || (k->kind == PACKET_MAC_CONTROL && in != NODE_NO_PORT)))
        return false;
    if (unlikely(s->outside) && in != NODE_NO_PORT && (s->flags[in] & PORT_TREE))
        fib_learn(s->fib, dst + 6, in);
    if (unlikely(dst[0] & 1) || mac_equal(dst, s->mac))
        return false;
    *port = fib_lookup(s->fib, dst, k, any);
    return likely(*port < s->nd.n_ports && *port != in);
}

/* Handles one frame. in: NODE_NO_PORT for a frame of the switch's endpoint. */
static void sw_take_frame(struct sw *s, uint16_t in, struct rte_mbuf *m, int64_t now)
{
    struct packet_class k;
    uint16_t port;
    bool any;

    classify_frame(m, &k);
    frame_meta(m)->cls = k.cls;
    frame_meta(m)->in_port = in;
    if (likely(passes_on(s, in, m, &k, &port, &any)))
        node_send(&s->nd, port, m, now);
    else
        frame_special(s, in, m, &k, port, now);
}

/* ---- the endpoint behind the switch ---- */

/* Number of frames for which every egress queue has room. */
static uint16_t room_everywhere(const struct sw *s)
{
    uint32_t n = SW_AN_BURST;

    for (uint16_t p = 0; p < s->nd.n_ports && n; p++) {
        const struct own_room *own = &s->nd.np[p].own;

        if (own->on)
            n = own_room_frames(own, s->nd.max_frame, n);
        else if (s->nd.egress[p])
            n = egress_room(s->nd.egress[p], FRAME_LOSSLESS, s->nd.max_frame, n);
    }
    return (uint16_t)n;
}

/* Forwards a frame of the endpoint, by its address alone if that is enough. */
static inline void take_own(struct sw *s, struct rte_mbuf *m, int64_t now)
{
    const uint8_t *dst = rte_pktmbuf_mtod(m, const uint8_t *);
    enum frame_class cls = classify_plain(m);
    uint16_t port = likely(cls != FRAME_CLASSES) ? fib_only_port(s->fib, dst) : FIB_NO_PORT;

    if (unlikely(port >= s->nd.n_ports)) {
        sw_take_frame(s, NODE_NO_PORT, m, now);
        return;
    }
    frame_meta(m)->cls = (uint8_t)cls;
    frame_meta(m)->in_port = NODE_NO_PORT;
    node_send(&s->nd, port, m, now);
}

/* Sends the endpoint's frames, acknowledgements first. False: an egress queue is full. */
static bool endpoint_send(struct sw *s, int64_t now)
{
    struct rte_mbuf *m[SW_AN_BURST];
    uint16_t n, room = 0;

    for (int q = 0; q < ENDPOINT_QUEUES; q++) {
        do {
            if (!room) /* a frame uses at most one entry of a queue */
                room = room_everywhere(s);
            if (!room)
                return false;
            n = s->ep.output(s->ep.ctx, (enum endpoint_queue)q, m, room, now);
            T_ASSERT_HOT(n <= room, "an endpoint returned more frames than requested");
            room = (uint16_t)(room - n);
            for (uint16_t i = 0; i < n; i++)
                take_own(s, m[i], now);
        } while (n);
    }
    return true;
}

/* Does what is due at once: runs a due timer, which frames that arrive at the same time must not
 * postpone; polls later an endpoint that says it is ready but gives no frame. */
static __rte_noinline bool endpoint_catch_up(struct sw *s, int64_t now)
{
    if (now >= s->held_ps) {
        s->ep.tick(s->ep.ctx, now);
        if (!endpoint_send(s, now))
            return false;
        s->ep_next_ps = s->ep.next(s->ep.ctx);
    }
    if (s->ep_next_ps <= now)
        s->ep_next_ps = RTE_MAX(now + AN_RETRY_PS, s->held_ps);
    return true;
}

void sw_drain(struct sw *s, int64_t now)
{
    T_ASSERT(s->has_ep, "a switch without an endpoint has frames of its own");
    s->blocked = !endpoint_send(s, now);
    if (s->blocked)
        return;
    s->ep_next_ps = s->ep.next(s->ep.ctx);
    if (unlikely(s->ep_next_ps <= now))
        s->blocked = !endpoint_catch_up(s, now);
}

/* Consecutive frames of a burst that leave by one port in one class. */
struct frames_run {
    struct rte_mbuf **m;
    uint32_t n, bytes;
    uint16_t port;
    uint8_t cls;
};

/* Sends the run; returns its bytes. */
static inline uint32_t run_end(struct sw *s, struct frames_run *r, int64_t now)
{
    if (!r->n)
        return 0;
    node_send_run(&s->nd, r->port, r->m, r->n, r->bytes, now);
    r->n = 0;
    return r->bytes;
}

/* The lookup of a frame, reused for later frames of the burst. */
struct known {
    struct packet_likeness like; /* words that such frames have */
    uint32_t len;
    uint16_t port;
    uint8_t cls;
    bool address; /* port holds for every frame to this address */
    bool local;   /* such frames go to the endpoint */
};

/* Classifies and looks up one frame. False: frame_special() handles it. more: frames of the burst
 * follow. */
static __rte_noinline bool look_at(struct sw *s, uint16_t in, struct rte_mbuf *m, bool more,
                                   struct known *k, struct packet_class *p, uint16_t *port)
{
    enum frame_class cls = FRAME_CLASSES;
    bool plain = true, passes = true, local, any;

    if (k->address && packet_same_address(m, &k->like))
        cls = classify_plain(m);
    if (cls == FRAME_CLASSES) {
        plain = classify_frame(m, p);
        frame_meta(m)->cls = cls = p->cls;
        passes = passes_on(s, in, m, p, port, &any);
        local = !passes && plain && s->has_ep &&
                mac_equal(rte_pktmbuf_mtod(m, const uint8_t *), s->mac);
        if (!passes && !local)
            return false;
        k->local = local;
        k->port = *port;
        k->address = any && !s->outside;
    }
    k->cls = (uint8_t)cls;
    k->len = frame_bytes(m);
    if (more) {
        k->like = packet_likeness(m);
        if (cls != FRAME_LOSSLESS || !plain || s->outside || !(k->address || k->local))
            k->like.lens = PACKET_NO_LENS;
    }
    return passes;
}

static inline void run_add(struct frames_run *r, struct rte_mbuf **m, uint32_t n,
                           const struct known *k)
{
    if (!r->n)
        *r = (struct frames_run){.m = m, .port = k->port, .cls = k->cls};
    T_ASSERT_HOT(r->port == k->port && r->cls == k->cls, "a run of frames of two ports or classes");
    r->n += n;
    r->bytes += n * k->len;
}

/* Number of the n consecutive frames that match the known lookup. */
static inline uint16_t mark_alike(struct rte_mbuf **m, uint16_t n, uint16_t in,
                                  const struct known *k)
{
    uint16_t i = 0;

    for (; i < n && packet_is_like(m[i], &k->like); i++) {
        struct frame_meta *meta = frame_meta(m[i]);

        T_ASSERT_HOT(classify_plain(m[i]) == k->cls && frame_bytes(m[i]) == k->len,
                     "a frame that counts as alike is of another class or length");
        meta->in_port = in;
        meta->cls = k->cls;
    }
    return i;
}

static __rte_noinline void take_burst(struct sw *s, uint16_t port, struct rte_mbuf **m, uint16_t n,
                                      int64_t now_ps)
{
    struct known k = {.like.lens = PACKET_NO_LENS};
    struct frames_run r = {.n = 0};
    uint64_t bytes = 0;
    uint16_t out;

    for (uint16_t i = 0; i < n; i++) {
        uint16_t alike = mark_alike(m + i, (uint16_t)(n - i), port, &k);
        struct packet_class p;

        if (alike) {
            if (k.local)
                for (uint16_t j = 0; j < alike; j++, bytes += k.len)
                    local_add(s, m[i + j], now_ps);
            else
                run_add(&r, m + i, alike, &k);
            i = (uint16_t)(i + alike);
            if (i == n)
                break;
        }
        if (i + 1 < n)
            rte_prefetch0(rte_pktmbuf_mtod(m[i + 1], void *));
        frame_meta(m[i])->in_port = port;
        if (unlikely(!look_at(s, port, m[i], i + 1 < n, &k, &p, &out))) {
            bytes += run_end(s, &r, now_ps) + frame_bytes(m[i]);
            frame_special(s, port, m[i], &p, out, now_ps);
            continue;
        }
        frame_meta(m[i])->cls = k.cls;
        if (r.n && (k.port != r.port || k.cls != r.cls))
            bytes += run_end(s, &r, now_ps);
        run_add(&r, m + i, 1, &k);
    }
    bytes += run_end(s, &r, now_ps);
    s->nd.cnt[port].rx_frames += n;
    s->nd.cnt[port].rx_bytes += bytes;
}

/* Drops frames that a port to the outside may not send. Returns the number of frames left. */
static __rte_noinline uint16_t guard(struct sw *s, uint16_t port, struct rte_mbuf **m, uint16_t n)
{
    const struct fabric *f = s->nd.fab;
    uint16_t left = 0;

    for (uint16_t i = 0; i < n; i++) {
        struct packet_class k;
        enum drop why;

        classify_frame(m[i], &k);
        why = outside_guard(f, &f->nodes[s->nd.id].ports[port], m[i], &k);
        if (why == SOURCE_ADMITTED)
            m[left++] = m[i];
        else
            node_drop(&s->nd, port, m[i], why);
    }
    return left;
}

void sw_input(struct node *nd, uint16_t port, struct rte_mbuf **m, uint16_t n, int64_t now_ps)
{
    struct sw *s = sw_of(nd);

    T_ASSERT_HOT(port < nd->n_ports && n > 0, "frames of a port that is not there, or none");
    T_ASSERT_HOT(!s->n_local, "frames of the burst before are still with the switch");
    if (unlikely(s->outside) && s->flags[port] & PORT_EXTERNAL && !(n = guard(s, port, m, n)))
        return;
    if (n == 1) { /* the usual case in virtual time */
        nd->cnt[port].rx_frames++;
        nd->cnt[port].rx_bytes += frame_bytes(*m);
        sw_take_frame(s, port, *m, now_ps);
    } else {
        take_burst(s, port, m, n, now_ps);
    }
    if (s->n_local) {
        local_flush(s, now_ps);
        sw_drain(s, now_ps);
    }
}

/* Hosts whose links were down for longer than the grace period count as lost. */
static void lost_tick(struct sw *s, int64_t now_ps)
{
    for (uint16_t p = 0; p < s->nd.n_ports; p++)
        if (s->lost_ps[p] <= now_ps) {
            uint16_t host = s->nd.fab->nodes[s->nd.id].ports[p].peer_node;

            T_ASSERT(s->nd.np[p].down, "a host behind a link that is up counts as lost");
            node_event(&s->nd, now_ps, NODE_EV_HOST_LOST, p, host);
            sw_set_lost(s, p, PS_NEVER);
            sw_peer_down(s, host, now_ps);
        }
    sw_drain(s, now_ps);
}

void sw_tick(struct node *nd, int64_t now_ps)
{
    struct sw *s = sw_of(nd);

    node_pfc_tick(nd, now_ps);
    if (likely(now_ps >= s->held_ps)) {
        watchdog_tick(nd, now_ps);
        if (unlikely(s->lost_due_ps <= now_ps))
            lost_tick(s, now_ps);
    }
    if (!s->has_ep || (!s->blocked && s->ep_next_ps > now_ps))
        return;
    if (now_ps >= s->held_ps && s->ep.next(s->ep.ctx) <= now_ps)
        s->ep.tick(s->ep.ctx, now_ps);
    sw_drain(s, now_ps);
}

int64_t sw_next(struct node *nd)
{
    struct sw *s = sw_of(nd);
    int64_t t = RTE_MIN(nd->dogs.due_ps, s->lost_due_ps);

    t = RTE_MIN(nd->pfc_due_ps, RTE_MAX(t, s->held_ps));
    if (s->has_ep) {
        if (!s->blocked)
            t = RTE_MIN(t, s->ep_next_ps);
        else if (room_everywhere(s))
            t = 0;
    }
    return t;
}
