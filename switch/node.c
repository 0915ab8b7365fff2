/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/node_events.h"

#include "base/cacheline.h"
#include "roce/wire.h"
#include "switch/queue/link_fault.h"
#include "switch/sw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const event_name[NODE_EV_KINDS] = {
    [NODE_EV_PORT_DOWN] = "port %u down, reasons %u (1 no neighbour, 2 link)",
    [NODE_EV_PORT_UP] = "port %u up",
    [NODE_EV_XOFF] = "PFC pauses the neighbour at port %u, which has %u frames here",
    [NODE_EV_XON] = "PFC resumes the neighbour at port %u, which has %u frames here",
    [NODE_EV_PAUSED] = "PFC paused port %u for %u quanta",
    [NODE_EV_RESUMED] = "PFC resumed port %u",
    [NODE_EV_STUCK] = "watchdog: port %u is stuck and discards, trip %u",
    [NODE_EV_RELEASED] = "watchdog: port %u is released, %u trips so far",
    [NODE_EV_GROUP_JOINED] = "multicast: port or slot %u joined group %u",
    [NODE_EV_GROUP_LEFT] = "multicast: port or slot %u left group %u",
    [NODE_EV_GROUP_REFUSED] = "multicast: port or slot %u may not join group %u",
    [NODE_EV_ROUTES] = "new routes: %u ports on the spanning tree, were %u",
    [NODE_EV_HOST_LOST] = "the host behind port %u, node %u, counts as lost",
    [NODE_EV_RESTARTED] = "aggregation node restarted, life %u",
    [NODE_EV_STALLED] = "port %u: a process stalls, %u frames wait for it",
    [NODE_EV_SHUT] = "port %u: slot %u is shut for what its process has sent",
    [NODE_EV_OPENED] = "port %u: slot %u is opened",
    [NODE_EV_TAKES_AGAIN] = "port %u: a stalled process takes frames again, %u wait for it",
};
static const struct event_kinds event_kinds = {"switch", event_name, NODE_EV_KINDS};

#define CONTROL_PKTS 256u
/* Buffers of a port to the outside without a link in the conf. */
#define EXTERNAL_BYTES (1u << 20)
#define EXTERNAL_PKTS  1024u

static void send_pause(struct node *nd, uint16_t port, uint16_t quanta, int64_t now_ps)
{
    struct rte_mbuf *m = nd->egress[port] ? pfc_frame(nd->pool, nd->np[port].mac, quanta) : NULL;

    if (!m)
        return;
    frame_meta(m)->in_port = NODE_NO_PORT;
    if (egress_push(nd->egress[port], m, now_ps) != 0)
        rte_pktmbuf_free(m); /* repeated when due */
    else
        nd->cnt[port].pauses_sent++;
}

static inline void port_account(struct node *nd, uint16_t port, uint32_t bytes, int64_t now_ps)
{
    struct pfc *p = &nd->np[port].pfc;

    if (pfc_enter(p, bytes, now_ps) == PFC_XOFF) {
        nd->pfc_due_ps = RTE_MIN(nd->pfc_due_ps, p->due_ps);
        node_event(nd, now_ps, NODE_EV_XOFF, port, p->pkts);
        send_pause(nd, port, PFC_MAX_QUANTA, now_ps);
    }
}

static inline void node_release_bytes(struct node *nd, uint16_t port, uint32_t bytes,
                                      int64_t now_ps)
{
    T_ASSERT_HOT(port < nd->n_ports, "a frame leaves the accounting of a port that is not there");
    if (pfc_leave(&nd->np[port].pfc, bytes) == PFC_XON) {
        node_event(nd, now_ps, NODE_EV_XON, port, nd->np[port].pfc.pkts);
        send_pause(nd, port, 0, now_ps);
    }
}

void node_release(struct node *nd, uint16_t port, uint32_t bytes, int64_t now_ps)
{
    node_release_bytes(nd, port, bytes, now_ps);
}

void node_hold(struct node *nd, uint16_t port, struct rte_mbuf *m, int64_t now_ps)
{
    if (nd->np[port].pfc.on && frame_meta(m)->cls == FRAME_LOSSLESS) {
        frame_meta(m)->in_port = port;
        port_account(nd, port, frame_bytes(m), now_ps);
    } else {
        frame_meta(m)->in_port = NODE_NO_PORT;
    }
}

/* Frames of one class have left the queue of np's port: releases them at their ingress ports. */
static void departed(void *ctx, struct rte_mbuf *const *m, const int64_t *at_ps, uint32_t n,
                     uint32_t bytes)
{
    struct node_port *np = ctx;
    bool own = np->own.on && frame_meta(*m)->cls == FRAME_LOSSLESS;
    uint16_t in = frame_meta(*m)->in_port;
    uint32_t same = 1;

    while (same < n && frame_meta(m[same])->in_port == in)
        same++;
    if (likely(same == n)) {
        if (in == NODE_NO_PORT) {
            if (own)
                own_room_give(&np->own, bytes, n);
            return;
        }
        T_ASSERT_HOT(in < np->nd->n_ports, "a frame in a queue has no ingress port of this node");
        if (likely(!np->nd->np[in].pfc.over)) { /* the neighbour is not paused */
            pfc_leave_quietly(&np->nd->np[in].pfc, bytes, n);
            return;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        in = frame_meta(m[i])->in_port;
        if (in != NODE_NO_PORT)
            node_release_bytes(np->nd, in, frame_bytes(m[i]), at_ps[i]);
        else if (own)
            own_room_give(&np->own, frame_bytes(m[i]), 1);
    }
}

void node_drop(struct node *nd, uint16_t in_port, struct rte_mbuf *m, enum drop why)
{
    T_ASSERT_HOT(why < DROP_REASONS, "a frame is dropped for no reason that counts");
    T_ASSERT_HOT(in_port < nd->n_ports || in_port == NODE_NO_PORT,
                 "a frame is dropped at a port that is not there");
    nd->cnt[in_port < nd->n_ports ? in_port : 0].drops[why]++;
    rte_pktmbuf_free(m);
}

/*
 * Pushes a frame of which the header has come in by port `in`. On a faster link the frame starts so late
 * that its last bit has arrived when it has to leave.
 */
static __rte_noinline int push_cut(struct node *nd, uint16_t in, uint16_t port, struct rte_mbuf *m,
                                   int64_t now_ps)
{
    uint64_t from_bps = egress_rate_bps(nd->egress[in]), to_bps = egress_rate_bps(nd->egress[port]);
    uint32_t wire = frame_wire_bytes(m);
    int64_t behind; /* time from the header's arrival to the last bit's */

    if (frame_meta(m)->cls == FRAME_CONTROL || to_bps <= from_bps)
        return egress_push(nd->egress[port], m, now_ps);
    behind = link_time_ps(wire, from_bps) - link_time_ps(FAB_CUT_BYTES, from_bps);
    return egress_push_later(nd->egress[port], m, now_ps + behind - link_time_ps(wire, to_bps),
                             now_ps);
}

static inline int node_push(struct node *nd, uint16_t in, uint16_t port, struct rte_mbuf *m,
                            int64_t now_ps)
{
    if (likely(in == NODE_NO_PORT || !nd->np[in].cuts_up))
        return egress_push(nd->egress[port], m, now_ps);
    return push_cut(nd, in, port, m, now_ps);
}

/* Drops a frame that found no room, or a lossless one in a queue that discards. */
static __rte_noinline void drop_full(struct node *nd, uint16_t in, uint16_t port,
                                     struct rte_mbuf *m)
{
    node_drop(nd, in, m,
              egress_discards(nd->egress[port]) && frame_meta(m)->cls == FRAME_LOSSLESS
                  ? DROP_PFC_WATCHDOG
                  : DROP_QUEUE_FULL);
}

void node_send(struct node *nd, uint16_t port, struct rte_mbuf *m, int64_t now_ps)
{
    struct frame_meta *meta = frame_meta(m);
    struct own_room *own = &nd->np[port].own;
    uint16_t in = meta->in_port;
    uint32_t bytes = frame_bytes(m);
    bool held, owns;

    T_ASSERT_HOT(port < nd->n_ports, "a frame leaves by a port that is not there");
    T_ASSERT_HOT(in < nd->n_ports || in == NODE_NO_PORT,
                 "a frame came in by a port that is not there");
    T_ASSERT_HOT(meta->cls < FRAME_CLASSES, "a frame has no class");
    held = in != NODE_NO_PORT && meta->cls == FRAME_LOSSLESS && nd->np[in].pfc.on;
    if (!held)
        meta->in_port = NODE_NO_PORT;
    if (unlikely(!nd->egress[port])) {
        node_drop(nd, in, m, DROP_NO_ROUTE);
        return;
    }
    /* Account first: a frame that starts at once is released inside the push. */
    owns = !held && own->on && meta->cls == FRAME_LOSSLESS;
    if (held) {
        port_account(nd, in, bytes, now_ps);
    } else if (owns && unlikely(!own_room_take(own, bytes, 1))) {
        drop_full(nd, in, port, m);
        return;
    }
    if (unlikely(node_push(nd, in, port, m, now_ps) != 0)) {
        if (held)
            node_release(nd, in, bytes, now_ps);
        else if (owns)
            own_room_give(own, bytes, 1);
        drop_full(nd, in, port, m);
    }
}

/* Whether the frames are of one class, came in by one port, and sum up to so many bytes. */
static __rte_unused bool is_run(struct rte_mbuf **m, uint32_t n, uint32_t bytes)
{
    for (uint32_t i = 0; i < n; i++) {
        if (frame_meta(m[i])->cls != frame_meta(*m)->cls ||
            frame_meta(m[i])->in_port != frame_meta(*m)->in_port)
            return false;
        bytes -= frame_bytes(m[i]);
    }
    return n && !bytes;
}

void node_send_run(struct node *nd, uint16_t port, struct rte_mbuf **m, uint32_t n, uint32_t bytes,
                   int64_t now_ps)
{
    uint16_t in = frame_meta(*m)->in_port;
    struct pfc *p = &nd->np[in].pfc;
    struct own_room *own = &nd->np[port].own;
    bool held = frame_meta(*m)->cls == FRAME_LOSSLESS && p->on;
    bool owns = !held && own->on && frame_meta(*m)->cls == FRAME_LOSSLESS;

    T_ASSERT_HOT(port < nd->n_ports && in < nd->n_ports,
                 "a run of frames by a port that is not there");
    T_ASSERT_HOT(is_run(m, n, bytes),
                 "a run of frames of two ports or classes, or of other lengths");
    /* Account first, as in node_send(). */
    if (n > 1 && likely(nd->egress[port] && !nd->np[in].cuts_up &&
                        (held   ? pfc_enter_quietly(p, bytes, n)
                         : owns ? own_room_take(own, bytes, n)
                                : true))) {
        for (uint32_t i = 0; i < n && !held; i++)
            frame_meta(m[i])->in_port = NODE_NO_PORT;
        if (likely(egress_push_run(nd->egress[port], m, n, bytes, now_ps)))
            return;
        if (held)
            pfc_leave_quietly(p, bytes, n);
        else if (owns)
            own_room_give(own, bytes, n);
    }
    for (uint32_t i = 0; i < n; i++) {
        frame_meta(m[i])->in_port = in;
        node_send(nd, port, m[i], now_ps);
    }
}

void node_pause_input(struct node *nd, uint16_t port, struct rte_mbuf *m, int64_t now_ps)
{
    int quanta = pfc_parse(m);

    if (quanta == -EINVAL) {
        node_drop(nd, port, m, DROP_BAD_PAUSE);
        return;
    }
    if (quanta >= 0 && nd->egress[port]) {
        uint64_t rate = nd->fab->nodes[nd->id].ports[port].rate_bps;

        if (egress_is_paused(nd->egress[port], now_ps) != (quanta > 0))
            node_event(nd, now_ps, quanta ? NODE_EV_PAUSED : NODE_EV_RESUMED, port,
                       (uint32_t)quanta);
        nd->cnt[port].pauses_received++;
        egress_pause(nd->egress[port], FRAME_LOSSLESS,
                     quanta ? now_ps + pfc_quanta_ps((uint32_t)quanta, rate) : 0, now_ps);
        if (quanta)
            watchdog_pause(nd, port, now_ps);
    }
    rte_pktmbuf_free(m);
}

void node_pfc_tick(struct node *nd, int64_t now_ps)
{
    if (nd->pfc_due_ps > now_ps)
        return;
    nd->pfc_due_ps = PS_NEVER;
    for (uint16_t p = 0; p < nd->n_ports; p++) {
        struct pfc *pfc = &nd->np[p].pfc;

        if (pfc->due_ps <= now_ps) {
            pfc->due_ps = now_ps + pfc->refresh_ps;
            send_pause(nd, p, PFC_MAX_QUANTA, now_ps);
        }
        nd->pfc_due_ps = RTE_MIN(nd->pfc_due_ps, pfc->due_ps);
    }
}

void node_port_reset(struct node *nd, uint16_t port, bool up, int64_t now_ps)
{
    T_ASSERT(up == !nd->np[port].down, "a port is reset to a state that is not its own");
    node_event(nd, now_ps, up ? NODE_EV_PORT_UP : NODE_EV_PORT_DOWN, port, nd->np[port].down);
    if (!nd->egress[port])
        return;
    egress_set_down(nd->egress[port], !up, now_ps);
    /* A neighbour that comes back has lost the pause: the node repeats it at once. */
    if (up && nd->np[port].pfc.over)
        nd->np[port].pfc.due_ps = nd->pfc_due_ps = now_ps;
}

/* ---- set-up ---- */

static const struct fab_link *link_of(const struct fabric *f, const struct fab_port *p)
{
    return p->link == FAB_NONE ? NULL : &f->links[p->link];
}

static bool node_connected(const struct fab_port *p)
{
    return p->link != FAB_NONE || p->external[0];
}

static void init_pfc(struct node *nd, const struct node_cfg *cfg, unsigned n_connected)
{
    const struct fab_node *fn = &cfg->fab->nodes[cfg->id];

    for (uint16_t i = 0; i < nd->n_ports; i++) {
        const struct fab_link *l = link_of(cfg->fab, &fn->ports[i]);
        uint64_t bytes = l ? l->buffer_bytes : EXTERNAL_BYTES;
        uint32_t pkts = l ? l->buffer_pkts : EXTERNAL_PKTS;
        struct pfc_cfg pc = {
            .on = l && l->pfc,
            .rate_bps = fn->ports[i].rate_bps,
            .latency_ps = fn->ports[i].latency_ps,
            .lag_ps = cfg->lag_ps,
            .max_frame = nd->max_frame,
            .share_bytes = bytes / n_connected,
            .share_pkts = pkts / n_connected,
        };

        pfc_init(&nd->np[i].pfc, &pc);
        nd->np[i].nd = nd;
        nd->np[i].port = i;
        roce_mac_of_ip(fn->kind == FAB_HOST ? fn->ip_of_port[i] : fn->ip, nd->np[i].mac);
    }
}

/*
 * Applies the limits of the conf. With PFC, a lossless queue holds all frames that ports may bring before
 * their pauses take effect; in a switch it also has room for frames that no port accounts for
 * (own_room.h). So no frame is lost because a queue is full.
 */
static void init_limits(struct node *nd, uint16_t port, const struct fab_link *l,
                        struct egress_cfg *ec)
{
    struct own_room *own = &nd->np[port].own;
    uint64_t bytes = 0, pkts = 0;

    for (int c = 0; c < FRAME_CLASSES; c++) {
        ec->limit_bytes[c] = l ? l->buffer_bytes : EXTERNAL_BYTES;
        ec->limit_pkts[c] = l ? l->buffer_pkts : EXTERNAL_PKTS;
    }
    ec->limit_pkts[FRAME_CONTROL] = CONTROL_PKTS;
    ec->limit_bytes[FRAME_CONTROL] = (uint64_t)CONTROL_PKTS * FRAME_ETHERNET_MAX;
    if (!l || !l->pfc)
        return;
    for (uint16_t i = 0; i < nd->n_ports; i++) {
        const struct pfc *p = &nd->np[i].pfc;

        if (p->on) {
            bytes += p->xoff_bytes + p->headroom_bytes;
            pkts += p->xoff_pkts + p->headroom_pkts;
        }
    }
    own->on = nd->fab->nodes[nd->id].kind == FAB_SWITCH;
    own->bytes = (uint32_t)RTE_MIN(RTE_MAX(l->buffer_bytes, (uint64_t)SW_AN_BURST * nd->max_frame),
                                   OWN_ROOM_MAX_BYTES);
    own->pkts = RTE_MAX(l->buffer_pkts, SW_AN_BURST);
    ec->limit_bytes[FRAME_LOSSLESS] = bytes + own->bytes;
    ec->limit_pkts[FRAME_LOSSLESS] = (uint32_t)RTE_MIN(pkts + own->pkts, EGRESS_MAX_PKTS);
}

/* Whether the peer cuts through: frames on the link from this port arrive there with their header. */
static bool is_cut(const struct fabric *f, const struct fab_port *p)
{
    return p->link != FAB_NONE && !p->external[0] && p->rate_bps &&
           f->nodes[p->peer_node].kind == FAB_SWITCH && f->nodes[p->peer_node].cut_through;
}

/* Frames from devices outside are never cut through: they arrive whole. */
void node_rates_changed(struct node *nd)
{
    const struct fab_node *fn = &nd->fab->nodes[nd->id];

    for (uint16_t i = 0; i < nd->n_ports; i++) {
        const struct fab_port *p = &fn->ports[i];

        nd->np[i].cuts_up = false;
        if (p->link == FAB_NONE || p->external[0] ||
            !is_cut(nd->fab, &nd->fab->nodes[p->peer_node].ports[p->peer_port]))
            continue;
        for (uint16_t o = 0; o < nd->n_ports; o++)
            nd->np[i].cuts_up |=
                nd->egress[o] && egress_rate_bps(nd->egress[o]) > egress_rate_bps(nd->egress[i]);
    }
}

/* The link between a GPU and an NVSwitch that does multimem. */
static void init_multimem(const struct fabric *f, const struct fab_node *me,
                          const struct fab_port *p, struct egress_cfg *ec)
{
    const struct fab_node *peer = p->link == FAB_NONE ? NULL : &f->nodes[p->peer_node];

    if (!peer || me->kind == peer->kind || (!me->multimem && !peer->multimem))
        return;
    ec->mm_ip = me->kind == FAB_SWITCH ? me->ip : peer->ip;
    ec->mm_load = f->costs.mm_load;
    ec->mm_store = f->costs.mm_store;
}

static int init_egress(struct node *nd, const struct node_cfg *cfg, uint16_t i)
{
    const struct fab_port *p = &cfg->fab->nodes[cfg->id].ports[i];
    const struct fab_link *l = link_of(cfg->fab, p);
    struct egress_cfg ec = {
        .rate_bps = p->rate_bps,
        .latency_ps = p->latency_ps,
        .pool = cfg->pool,
        .departed = departed,
        .pull = cfg->pull,
        .ctx = &nd->np[i],
    };

    if (!node_connected(p))
        return 0;
    init_limits(nd, i, l, &ec);
    if (is_cut(cfg->fab, p)) {
        ec.cut_bytes = FAB_CUT_BYTES;
        roce_mac_of_ip(cfg->fab->nodes[p->peer_node].ip, ec.cut_mac);
    }
    init_multimem(cfg->fab, &cfg->fab->nodes[cfg->id], p, &ec);
    if (l) {
        unsigned dir = l->a == cfg->id && l->a_port == i ? 0 : 1;

        ec.ecn_bytes = l->ecn_bytes;
        ec.ecn_max_bytes = l->ecn_max_bytes;
        ec.ecn_prob = l->ecn_prob;
        ec.ecn_seed = fault_mix(cfg->seed, ~(2ull * p->link + dir));
        ec.faults = (struct egress_faults){
            .loss = l->loss,
            .dup = l->dup,
            .reorder = l->reorder,
            .corrupt = l->corrupt,
            .jitter_ps = l->jitter_ps,
            .seed = fault_mix(cfg->seed, 2u * p->link + dir),
        };
    }
    return egress_create(&nd->egress[i], &ec);
}

int node_init(struct node *nd, const struct node_ops *ops, const struct node_cfg *cfg)
{
    const struct fab_node *fn = &cfg->fab->nodes[cfg->id];
    unsigned n_connected = 0;
    int rc = 0;

    nd->ops = ops;
    nd->id = cfg->id;
    nd->n_ports = fn->n_ports;
    nd->pool = cfg->pool;
    nd->fab = cfg->fab;
    nd->pfc_due_ps = nd->dogs.due_ps = PS_NEVER;
    nd->link_down_grace_ps = NODE_LINK_DOWN_GRACE_PS;
    nd->max_frame = frame_longest(cfg->fab->mtu);
    memcpy(nd->name, fn->name, sizeof(nd->name));
    _Static_assert(sizeof(nd->name) == sizeof(fn->name), "names of nodes");
    nd->egress = calloc(fn->n_ports + 1u, sizeof(*nd->egress));
    nd->cnt = calloc(fn->n_ports + 1u, sizeof(*nd->cnt));
    nd->np = cacheline_alloc((fn->n_ports + 1u) * sizeof(*nd->np));
    nd->events = calloc(1, sizeof(*nd->events));
    if (nd->events)
        events_init(nd->events, &event_kinds, nd->name);
    if (!nd->egress || !nd->cnt || !nd->np || !nd->events) {
        node_fini(nd);
        return -ENOMEM;
    }
    for (uint16_t i = 0; i < fn->n_ports; i++)
        n_connected += node_connected(&fn->ports[i]);
    init_pfc(nd, cfg, RTE_MAX(n_connected, 1u));
    for (uint16_t i = 0; i < fn->n_ports && rc == 0; i++)
        rc = init_egress(nd, cfg, i);
    if (rc)
        node_fini(nd);
    else
        node_rates_changed(nd);
    return rc;
}

void node_fini(struct node *nd)
{
    for (uint16_t i = 0; nd->egress && i < nd->n_ports; i++)
        egress_destroy(nd->egress[i]);
    if (nd->events)
        events_fini(nd->events);
    free(nd->events);
    free(nd->egress);
    free(nd->cnt);
    free(nd->np);
    nd->egress = NULL;
    nd->cnt = NULL;
    nd->np = NULL;
    nd->events = NULL;
}
