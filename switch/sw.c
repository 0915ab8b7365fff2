/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/sw_priv.h"

#include "base/cacheline.h"
#include "switch/reduce/an.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AN_RETRY_PS PS_PER_US /* an endpoint that says "ready" and gives nothing is asked again */

static void local_flush(struct sw *s, int64_t now)
{
    uint16_t n = s->n_local, k;

    if (!n)
        return;
    s->n_local = 0;
    k = s->ep.input(s->ep.ctx, s->local, n, now);
    for (; k < n; k++)
        node_drop(&s->nd, frame_meta(s->local[k])->in_port, s->local[k], DROP_AN_REFUSED);
}

static inline void local_add(struct sw *s, struct rte_mbuf *m, int64_t now)
{
    if (s->n_local == NODE_BURST)
        local_flush(s, now); /* before the next: whoever ends a burst sees that there was one */
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

/* Takes a frame that is not simply passed on. */
static void special(struct sw *s, uint16_t in, struct rte_mbuf *m, const struct packet_class *k,
                    uint16_t port, int64_t now)
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

/* Where the frame goes. False: to special(). *any: so does every frame to that address. */
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

/* in: NODE_NO_PORT for a frame of our own endpoint. */
static void take(struct sw *s, uint16_t in, struct rte_mbuf *m, int64_t now)
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
        special(s, in, m, &k, port, now);
}

/* ---- the endpoint behind the switch ---- */

/* Frames that every egress queue can take for certain, wherever they go. */
static uint16_t room_everywhere(const struct sw *s)
{
    uint32_t n = SW_AN_BURST;

    for (uint16_t p = 0; p < s->nd.n_ports && n; p++)
        if (s->nd.egress[p])
            n = egress_room(s->nd.egress[p], FRAME_LOSSLESS, s->nd.max_frame, n);
    return (uint16_t)n;
}

/* A frame of the endpoint: by its address where that is enough. */
static inline void take_own(struct sw *s, struct rte_mbuf *m, int64_t now)
{
    const uint8_t *dst = rte_pktmbuf_mtod(m, const uint8_t *);
    enum frame_class cls = classify_plain(m);
    uint16_t port = likely(cls != FRAME_CLASSES) ? fib_only_port(s->fib, dst) : FIB_NO_PORT;

    if (unlikely(port >= s->nd.n_ports)) {
        take(s, NODE_NO_PORT, m, now);
        return;
    }
    frame_meta(m)->cls = (uint8_t)cls;
    frame_meta(m)->in_port = NODE_NO_PORT;
    node_send(&s->nd, port, m, now);
}

/* Takes all that the endpoint has to send, acknowledgements first, as long as it can be queued. */
static void drain(struct sw *s, int64_t now)
{
    struct rte_mbuf *m[SW_AN_BURST];
    uint16_t n, room = 0;

    s->blocked = false;
    for (int q = 0; q < ENDPOINT_QUEUES; q++) {
        do {
            if (!room) /* no frame takes more than one place in a queue */
                room = room_everywhere(s);
            if (!room) {
                s->blocked = true;
                return;
            }
            n = s->ep.output(s->ep.ctx, (enum endpoint_queue)q, m, room, now);
            room = (uint16_t)(room - n);
            for (uint16_t i = 0; i < n; i++)
                take_own(s, m[i], now);
        } while (n);
    }
    s->ep_next_ps = s->ep.next(s->ep.ctx);
    if (s->ep_next_ps <= now)
        s->ep_next_ps = RTE_MAX(now + AN_RETRY_PS, s->held_ps);
}

/* Frames of a burst, one behind the other, that leave by one port in one class. */
struct run {
    struct rte_mbuf **m;
    uint32_t n, bytes;
    uint16_t port;
    uint8_t cls;
};

/* How many bytes it was. */
static inline uint32_t run_end(struct sw *s, struct run *r, int64_t now)
{
    if (!r->n)
        return 0;
    node_send_run(&s->nd, r->port, r->m, r->n, r->bytes, now);
    r->n = 0;
    return r->bytes;
}

/* What was found for a frame, and for which others of the burst it holds. */
struct known {
    struct packet_likeness like; /* those like this one */
    uint32_t len;
    uint16_t port;
    uint8_t cls;
    bool address; /* the port: all of this address */
    bool local;   /* for the endpoint, instead */
};

/* False: to special(). more: the burst does not end with it. */
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

static inline void run_add(struct run *r, struct rte_mbuf **m, uint32_t n, const struct known *k)
{
    if (!r->n)
        *r = (struct run){.m = m, .port = k->port, .cls = k->cls};
    r->n += n;
    r->bytes += n * k->len;
}

/* How many of n frames, one behind the other, are like the one that is known. */
static inline uint16_t mark_alike(struct rte_mbuf **m, uint16_t n, uint16_t in,
                                  const struct known *k)
{
    uint16_t i = 0;

    for (; i < n && packet_is_like(m[i], &k->like); i++) {
        struct frame_meta *meta = frame_meta(m[i]);

        meta->in_port = in;
        meta->cls = k->cls;
    }
    return i;
}

static __rte_noinline void take_burst(struct sw *s, uint16_t port, struct rte_mbuf **m, uint16_t n,
                                      int64_t now_ps)
{
    struct known k = {.like.lens = PACKET_NO_LENS};
    struct run r = {.n = 0};
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
            special(s, port, m[i], &p, out, now_ps);
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

static void sw_input(struct node *nd, uint16_t port, struct rte_mbuf **m, uint16_t n,
                     int64_t now_ps)
{
    struct sw *s = sw_of(nd);

    if (n == 1) { /* in virtual time nearly always */
        nd->cnt[port].rx_frames++;
        nd->cnt[port].rx_bytes += frame_bytes(*m);
        take(s, port, *m, now_ps);
    } else {
        take_burst(s, port, m, n, now_ps);
    }
    if (s->n_local) {
        local_flush(s, now_ps);
        drain(s, now_ps);
    }
}

static void set_lost(struct sw *s, uint16_t port, int64_t at_ps)
{
    s->lost_ps[port] = at_ps;
    s->lost_due_ps = PS_NEVER;
    for (uint16_t p = 0; p < s->nd.n_ports; p++)
        s->lost_due_ps = RTE_MIN(s->lost_due_ps, s->lost_ps[p]);
}

/* Links that were down for longer than a blip. */
static void lost_tick(struct sw *s, int64_t now_ps)
{
    for (uint16_t p = 0; p < s->nd.n_ports; p++)
        if (s->lost_ps[p] <= now_ps) {
            set_lost(s, p, PS_NEVER);
            an_peer_down(s->an, s->nd.fab->nodes[s->nd.id].ports[p].peer_node, now_ps);
        }
    drain(s, now_ps);
}

static void sw_tick(struct node *nd, int64_t now_ps)
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
    drain(s, now_ps);
}

static int64_t sw_next(struct node *nd)
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

/* ---- control path ---- */

/* Whether a parallel cable still leads to the neighbour of this port. */
static bool has_other_cable(const struct node *nd, uint16_t port)
{
    const struct fab_port *ports = nd->fab->nodes[nd->id].ports;

    for (uint16_t p = 0; p < nd->n_ports; p++)
        if (p != port && ports[p].link != FAB_NONE && !nd->np[p].down &&
            ports[p].peer_node == ports[port].peer_node)
            return true;
    return false;
}

static bool cut_off(const struct node *nd)
{
    for (uint16_t p = 0; p < nd->n_ports; p++)
        if (nd->egress[p] && !nd->np[p].down)
            return false;
    return true;
}

/* A host whose own link is down, and neither its cable nor its process: RC sends again what is lost
 * meanwhile. Between switches a lost edge ends a group at once, since there is another tree, and
 * the operation goes on by it or by the hosts. */
static bool may_be_back(const struct node *nd, uint16_t port)
{
    const struct fab_port *p = &nd->fab->nodes[nd->id].ports[port];

    return p->link != FAB_NONE && nd->np[port].down == NODE_LINK_DOWN && nd->link_down_grace_ps &&
           nd->fab->nodes[p->peer_node].kind == FAB_HOST;
}

static void sw_port_state(struct node *nd, uint16_t port, bool up, int64_t now_ps)
{
    struct sw *s = sw_of(nd);
    const struct fab_port *p = &nd->fab->nodes[nd->id].ports[port];

    node_port_reset(nd, port, up, now_ps);
    sw_group_port_state(s, port, up, now_ps);
    set_lost(s, port, PS_NEVER);
    if (up)
        return;
    fib_forget_port(s->fib, port);
    if (s->an && cut_off(nd))
        an_cut_off(s->an, now_ps);
    else if (s->an && may_be_back(nd, port))
        set_lost(s, port, now_ps + nd->link_down_grace_ps);
    else if (s->an && p->link != FAB_NONE && !has_other_cable(nd, port))
        an_peer_down(s->an, p->peer_node, now_ps);
    if (s->has_ep)
        drain(s, now_ps);
}

struct an *sw_an(struct node *nd)
{
    return sw_of(nd)->an;
}

void sw_attach(struct node *nd, const struct endpoint *ep)
{
    struct sw *s = sw_of(nd);

    s->ep = *ep;
    s->has_ep = true;
    s->ep_next_ps = 0;
}

void sw_excuse(struct node *nd, int64_t until_ps)
{
    sw_of(nd)->held_ps = until_ps;
}

void sw_kick(struct node *nd)
{
    if (sw_of(nd)->has_ep)
        sw_of(nd)->ep_next_ps = 0;
}

static int attach_an(struct sw *s)
{
    struct endpoint ep;
    int rc = an_create(&s->an, &s->an_cfg);

    if (rc)
        return rc;
    ep = an_endpoint(s->an);
    sw_attach(&s->nd, &ep);
    return 0;
}

int sw_restart(struct node *nd)
{
    struct sw *s = sw_of(nd);
    struct an *was = s->an;
    int rc;

    if (!was)
        return 0;
    s->an_cfg.life++;
    rc = attach_an(s);
    if (rc)
        s->an = was;
    else
        an_destroy(was);
    return rc;
}

static void sw_destroy(struct node *nd)
{
    struct sw *s = sw_of(nd);

    if (s->an)
        an_destroy(s->an);
    fib_destroy(s->fib);
    mcast_destroy(s->mc);
    node_fini(nd);
    free(s->flags);
    free(s->lost_ps);
    free(s);
}

static void sw_prefetch(struct node *nd, uint16_t port, const struct rte_mbuf *m, unsigned within)
{
    const struct sw *s = sw_of(nd);
    const uint8_t *dst = m ? rte_pktmbuf_mtod(m, const uint8_t *) : NULL;

    (void)port;
    if (within == 0)
        rte_prefetch0(&s->fib);
    else if (within == 1)
        fib_prefetch(s->fib);
    else if (within == 2 && dst)
        fib_prefetch_to(s->fib, dst);
    else if (dst) {
        uint16_t out = fib_only_port(s->fib, dst);

        if (out < nd->n_ports && nd->egress[out])
            egress_prefetch(nd->egress[out], true);
    }
}

static const struct node_ops sw_ops = {
    .input = sw_input,
    .tick = sw_tick,
    .next = sw_next,
    .soon = sw_prefetch,
    .port_state = sw_port_state,
    .destroy = sw_destroy,
};

/* Whether the tree leads to a port outside from node `at`, not going back to `from`. */
static bool leads_outside(const struct fabric *f, uint16_t at, uint16_t from, unsigned depth)
{
    const struct fab_node *n = &f->nodes[at];

    if (n->kind == FAB_HOST || depth > f->n_switches)
        return false;
    for (uint16_t p = 0; p < n->n_ports; p++) {
        const struct fab_port *q = &n->ports[p];

        if (q->external[0])
            return true;
        if (q->flood && q->link != FAB_NONE && q->peer_node != from &&
            leads_outside(f, q->peer_node, at, depth + 1))
            return true;
    }
    return false;
}

static bool has_outside(const struct fabric *f)
{
    for (uint16_t i = 0; i < f->n_nodes; i++)
        for (uint16_t p = 0; p < f->nodes[i].n_ports; p++)
            if (f->nodes[i].ports[p].external[0])
                return true;
    return false;
}

/* Which frames that are flooded leave by a port, on the spanning tree of f. */
static uint8_t flags_of(const struct sw *s, const struct fabric *f, uint16_t port)
{
    const struct fab_port *q = &f->nodes[s->nd.id].ports[port];
    bool way_out = q->external[0], anybody = way_out && q->link == FAB_NONE;
    uint8_t flags = PORT_TREE;

    if (!q->flood)
        return 0;
    if (anybody || f->nodes[q->peer_node].kind == FAB_SWITCH)
        flags |= PORT_BRIDGE;
    if (way_out || (s->outside && leads_outside(f, q->peer_node, s->nd.id, 0)))
        flags |= PORT_OUTSIDE;
    return flags;
}

void sw_reroute(struct node *nd, const struct fabric *f, int64_t now_ps)
{
    struct sw *s = sw_of(nd);

    fib_reroute(s->fib, f);
    for (uint16_t p = 0; p < nd->n_ports; p++)
        if ((s->flags[p] & PORT_TREE) && !flags_of(s, f, p)) {
            sw_group_leave_tree(s, p, now_ps);
            s->flags[p] = 0;
        }
    for (uint16_t p = 0; p < nd->n_ports; p++) {
        bool was = s->flags[p] & PORT_BRIDGE;

        s->flags[p] = flags_of(s, f, p);
        if (!was && (s->flags[p] & PORT_BRIDGE))
            sw_group_join_tree(s, p, now_ps);
    }
}

int sw_create(struct node **out, const struct node_cfg *cfg)
{
    const struct fab_node *fn = &cfg->fab->nodes[cfg->id];
    struct sw *s = cacheline_alloc(sizeof(*s));
    int rc;

    *out = NULL;
    if (!s)
        return -ENOMEM;
    rc = node_init(&s->nd, &sw_ops, cfg);
    if (rc) {
        free(s);
        return rc;
    }
    s->ip = fn->ip;
    roce_mac_of_ip(s->ip, s->mac);
    s->ep_next_ps = PS_NEVER;
    s->lost_due_ps = PS_NEVER;
    s->flags = calloc(fn->n_ports + 1u, 1);
    s->lost_ps = calloc(fn->n_ports + 1u, sizeof(*s->lost_ps));
    for (uint16_t p = 0; s->lost_ps && p < fn->n_ports; p++)
        s->lost_ps[p] = PS_NEVER;
    rc = s->flags && s->lost_ps ? fib_create(&s->fib, cfg->fab, cfg->id) : -ENOMEM;
    if (rc == 0)
        rc = mcast_create(&s->mc, fn->n_ports);
    if (rc == 0 && (fn->reduce.on || fn->multimem)) {
        s->an_cfg = (struct an_cfg){.fab = cfg->fab,
                                    .node = cfg->id,
                                    .pool = cfg->pool,
                                    .parts = cfg->parts,
                                    .mbuf_budget = cfg->an_mbufs,
                                    .late_on_way = cfg->late_on_way,
                                    .late_ctx = cfg->ctx,
                                    .mm = {.on = fn->multimem}};
        rc = attach_an(s);
    }
    if (rc) {
        sw_destroy(&s->nd);
        return rc;
    }
    s->outside = has_outside(cfg->fab);
    for (uint16_t p = 0; p < fn->n_ports; p++)
        s->flags[p] = flags_of(s, cfg->fab, p);
    *out = &s->nd;
    return 0;
}
