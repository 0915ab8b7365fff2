/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/nic.h"

#include "aggregation/proto.h"
#include "base/cacheline.h"
#include "switch/nic_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NIC_UDP_SRC  0xc000 /* of messages from the NIC itself */
#define NIC_DSCP_ECT 0x02

static void run_slot(struct nic_port *np, unsigned slot, int64_t now)
{
    struct nic_slot *s = nic_slot_at(np, slot);

    if (s->tick_ps > now || s->floor_ps > now)
        return;
    s->ep.tick(s->ep.ctx, now);
    nic_ask(s);
    s->floor_ps = now + PS_PER_NS;
}

static void send_gone(struct nic_port *np, int64_t gap_ps, int64_t now);

static void run_port(struct nic_port *np, int64_t now)
{
    struct rte_mbuf *m[NODE_BURST];
    uint16_t n;

    nic_each(np, np->attached, slot) run_slot(np, slot, now);
    if (np->retry_ps <= now) {
        if (unlikely(nic_set_any(np, np->shutting)))
            nic_shut_pending(np, now);
        if (np->again_ps <= now)
            send_gone(np, 2 * np->gap_ps, now);
        np->retry_ps = np->again_ps;
        nic_each(np, np->attached, slot) nic_rx_flush(np, slot, now);
    }
    nic_kick_port(np, now);
    while (np->loop_used && egress_next(np->loop) <= now) {
        n = egress_pop(np->loop, m, NODE_BURST, now);
        if (n)
            nic_loop_input(np, m, n, now);
    }
    nic_settle(np);
}

static void nic_tick(struct node *nd, int64_t now_ps)
{
    node_pfc_tick(nd, now_ps);
    for (uint16_t p = 0; p < nd->n_ports; p++)
        if (nic_of(nd)->due_ps[p] <= now_ps)
            run_port(&nic_of(nd)->p[p], now_ps);
}

static int64_t nic_next(struct node *nd)
{
    const struct nic *nic = nic_of(nd);
    int64_t t = nd->pfc_due_ps;

    for (uint16_t p = 0; p < nd->n_ports; p++)
        t = RTE_MIN(t, nic->due_ps[p]);
    return t;
}

void nic_kick(struct node *nd, uint16_t port, unsigned slot, int64_t now_ps)
{
    struct nic *nic = nic_of(nd);
    struct nic_port *np = port < nd->n_ports ? &nic->p[port] : NULL;
    struct nic_slot *s = np ? nic_slot_at(np, slot) : NULL;

    if (!s || !s->attached)
        return;
    nic_ask(s);
    if (nic_rx_used(s))
        nic_rx_flush(np, slot, now_ps);
    nic_kick_port(np, now_ps);
    nic_settle(np);
}

uint32_t nic_backlog(struct node *nd, uint16_t port, unsigned slot)
{
    const struct nic_slot *s;

    T_ASSERT(port < nd->n_ports, "the backlog of a port that is not there");
    s = nic_slot_at(&nic_of(nd)->p[port], slot);
    return s ? nic_rx_used(s) : 0;
}

static void init_slot(struct nic_port *np, struct nic_slot *s)
{
    s->ring_mask = rte_align32pow2(RTE_MAX(np->rx_limit_pkts, NIC_FEW)) - 1;
    nic_rx_begin(s);
}

static struct nic_slot *make_slot(struct nic_port *np, unsigned slot)
{
    struct nic_slot *s = nic_slot_at(np, slot);

    if (s)
        return s;
    if (!np->far)
        np->far = calloc(np->nic->n_slots - NIC_NEAR, sizeof(struct nic_slot *));
    s = np->far ? cacheline_alloc(sizeof(*s)) : NULL;
    if (!s)
        return NULL;
    init_slot(np, s);
    np->far[slot - NIC_NEAR] = s;
    return s;
}

int nic_attach(struct node *nd, uint16_t port, unsigned slot, const struct endpoint *ep)
{
    struct nic *nic = nic_of(nd);
    struct nic_slot *s;

    if (port >= nd->n_ports || slot >= nic->n_slots)
        return -EINVAL;
    s = make_slot(&nic->p[port], slot);
    if (!s)
        return -ENOMEM;
    if (s->attached || s->shut)
        return -EBUSY;
    T_ASSERT(!nic_set_has(nic->p[port].attached, slot),
             "a free slot is in the set of attached ones");
    T_ASSERT(!nic_rx_used(s) && !s->rx_bytes && !s->stash[ENDPOINT_ACK].n &&
                 !s->stash[ENDPOINT_DATA].n,
             "a free slot holds frames");
    /* Rings are allocated on demand: hosts have more slots than processes, and rings are long. */
    if (!s->ring)
        s->ring = cacheline_take((s->ring_mask + 1) * sizeof(*s->ring));
    if (!s->ring)
        return -ENOMEM;
    s->ep = *ep;
    nic_stall_reset(&nic->p[port], s);
    s->stall_drops = 0;
    s->floor_ps = 0;
    s->shut = nic->p[port].shut;
    s->attached = !s->shut;
    nic_set_put(nic->p[port].attached, slot, s->attached);
    nic_set_put(nic->p[port].gone, slot, false);
    nic_ask(s);
    nic_settle(&nic->p[port]);
    return 0;
}

uint64_t nic_stall_drops(struct node *nd, uint16_t port, unsigned slot)
{
    const struct nic_slot *s;

    T_ASSERT(port < nd->n_ports, "the drops of a port that is not there");
    s = nic_slot_at(&nic_of(nd)->p[port], slot);
    return s ? s->stall_drops : 0;
}

bool nic_is_used(struct node *nd)
{
    bool used = false;

    for (uint16_t p = 0; p < nd->n_ports; p++)
        used |= nic_set_any(&nic_of(nd)->p[p], nic_of(nd)->p[p].attached);
    return used;
}

void nic_list_cachelines(struct node *nd, uint16_t port, struct cacheline_list *lines)
{
    const struct nic_port *np = &nic_of(nd)->p[port];

    T_ASSERT(port < nd->n_ports, "cache lines of a port that is not there");
    cacheline_list_add(lines, np, sizeof(*np));
    cacheline_list_add(lines, np->slot, sizeof(*np->slot));
}

/* ---- the end of a process ---- */

static void send_peer_down(struct nic_port *np, uint16_t an_node, unsigned slot, int64_t now)
{
    const struct fabric *f = np->nic->nd.fab;
    struct agg_ctl ctl = {
        .magic = RTE_BE32(AGG_MAGIC),
        .version = AGG_VERSION,
        .type = AGG_PEER_DOWN,
        .qpn = rte_cpu_to_be_32((slot + 1) << 16),
        .node = RTE_BE16(0xffff),
    };
    struct roce_pkt pkt = {
        .opcode = ROCE_OP_UD_SEND_ONLY,
        .tos = NIC_DSCP_ECT,
        .ttl = 64,
        .pkey = ROCE_DEFAULT_PKEY,
        .udp_src = NIC_UDP_SRC,
        .src_ip = np->ip,
        .dst_ip = f->nodes[an_node].ip,
        .dqpn = AGG_QPN,
        .qkey = AGG_QKEY,
        .sqpn = AGG_NIC_QPN,
        .len = sizeof(ctl),
    };
    struct rte_mbuf *m = frame_alloc(np->nic->nd.pool);

    if (!m) {
        np->nic->nd.cnt[np->port].drops[DROP_NO_BUFFER]++;
        return;
    }
    roce_mac_of_ip(np->ip, pkt.src_mac);
    roce_mac_of_ip(pkt.dst_ip, pkt.dst_mac);
    roce_build(m, &pkt);
    memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, pkt.hdr_len), &ctl, sizeof(ctl));
    roce_seal(m, &pkt);
    frame_meta(m)->cls = FRAME_LOSSLESS;
    frame_meta(m)->in_port = NODE_NO_PORT;
    node_send(&np->nic->nd, np->port, m, now);
}

/* Whether this port reaches the node; other ports of the host may be in other networks. */
static bool nic_reaches(const struct nic_port *np, const struct fab_node *an)
{
    uint16_t port[FAB_MAX_HOST_PORTS];
    unsigned n = fabric_hops(np->nic->nd.fab, np->nic->nd.id, an->dest, port, FAB_MAX_HOST_PORTS);

    for (unsigned i = 0; i < n; i++)
        if (port[i] == np->port)
            return true;
    return false;
}

/* Sends to the aggregation nodes that may have granted something to this host's processes: its
 * parents in all trees, every reducing neighbour and every multimem switch; one message each. */
static void send_peer_down_all(struct nic_port *np, unsigned slot, int64_t now)
{
    const struct fabric *f = np->nic->nd.fab;
    uint16_t host = np->nic->nd.id;
    const struct fab_port *p = &f->nodes[host].ports[np->port];

    for (uint16_t n = 0; n < f->n_nodes; n++) {
        const struct fab_node *an = &f->nodes[n];
        bool joins = an->multimem || (p->link != FAB_NONE && p->peer_node == n);

        if (an->kind != FAB_SWITCH || !(an->reduce.on || an->multimem))
            continue;
        for (uint16_t t = 0; t < f->n_trees && !joins; t++)
            joins = f->trees[t].parent[host] == n;
        if (joins && nic_reaches(np, an))
            send_peer_down(np, n, slot, now);
    }
}

/* Sends PEER_DOWN for all processes that have ended; repeated after the gap. */
static void send_gone(struct nic_port *np, int64_t gap_ps, int64_t now)
{
    nic_each(np, np->gone, slot) send_peer_down_all(np, slot, now);
    np->gap_ps = gap_ps;
    np->again_ps =
        nic_set_any(np, np->gone) && gap_ps <= NIC_AGAIN_LAST_PS ? now + gap_ps : PS_NEVER;
    np->retry_ps = RTE_MIN(np->retry_ps, np->again_ps);
}

void nic_leave(struct nic_port *np, unsigned slot, enum drop why, int64_t now_ps)
{
    struct nic_slot *s = nic_slot_at(np, slot);

    nic_set_put(np->attached, slot, false);
    nic_set_put(np->gone, slot, true);
    for (int q = 0; q < ENDPOINT_QUEUES; q++) {
        for (; s->stash[q].n; s->stash[q].head++, s->stash[q].n--)
            node_drop(&np->nic->nd, np->port, s->stash[q].m[s->stash[q].head], why);
        s->stash[q].head = 0;
    }
    nic_rx_drop(np, slot, why, now_ps);
    s->stalled = false;
    nic_igmp_forget(np, slot, now_ps);
    send_gone(np, NIC_AGAIN_PS, now_ps);
}

int nic_detach(struct node *nd, uint16_t port, unsigned slot, int64_t now_ps)
{
    struct nic *nic = nic_of(nd);
    struct nic_port *np;
    struct nic_slot *s;

    if (port >= nd->n_ports || slot >= nic->n_slots)
        return -EINVAL;
    np = &nic->p[port];
    s = nic_slot_at(np, slot);
    if (!s || (!s->attached && !s->shut))
        return -ENOENT;
    T_ASSERT(nic_set_has(np->attached, slot) == s->attached,
             "an attached slot is not in their set");
    s->attached = s->shut = false;
    nic_set_put(np->shutting, slot, false);
    nic_leave(np, slot, DROP_DETACHED, now_ps);
    nic_kick_port(np, now_ps);
    nic_settle(np);
    return 0;
}

/* ---- a link that is back ---- */

/* Announces again after a link was down: the switch has forgotten the port's memberships, and
 * PEER_DOWN messages sent meanwhile or just before are lost, so aggregation nodes may still wait
 * for those processes. */
static void nic_port_state(struct node *nd, uint16_t port, bool up, int64_t now_ps)
{
    struct nic_port *np = &nic_of(nd)->p[port];

    node_port_reset(nd, port, up, now_ps);
    if (!up)
        return;
    nic_igmp_again(np, now_ps);
    send_gone(np, NIC_AGAIN_PS, now_ps);
    nic_settle(np);
}

/* ---- set-up ---- */

static int init_port(struct nic *nic, uint16_t i, const struct node_cfg *cfg)
{
    const struct fab_port *fp = &cfg->fab->nodes[cfg->id].ports[i];
    const struct fab_link *l = fp->link == FAB_NONE ? NULL : &cfg->fab->links[fp->link];
    const struct pfc *pfc = &nic->nd.np[i].pfc;
    struct nic_port *np = &nic->p[i];
    struct egress_cfg ec = {
        .rate_bps = fp->rate_bps,
        .pool = cfg->pool,
        .pull = nic_pull_loop,
        .ctx = np,
    };
    uint64_t bytes;
    uint32_t pkts;
    int rc;

    np->nic = nic;
    np->port = i;
    np->ip = cfg->fab->nodes[cfg->id].ip_of_port[i];
    roce_mac_of_ip(np->ip, np->mac);
    np->retry_ps = np->again_ps = np->owed_ps = PS_NEVER;
    /* Room for the frames that the link may bring before its pause takes effect, and as many from
     * the loop, which stops at half. */
    bytes = RTE_MAX(l ? l->buffer_bytes : 0, pfc->xoff_bytes + pfc->headroom_bytes);
    pkts = RTE_MAX(l ? l->buffer_pkts : 0, pfc->xoff_pkts + pfc->headroom_pkts);
    np->rx_limit_bytes = 2 * (bytes + nic->nd.max_frame);
    np->rx_limit_pkts = 2 * RTE_MIN(pkts + 1, NIC_RX_MAX / 2);
    for (int c = 0; c < FRAME_CLASSES; c++) {
        ec.limit_bytes[c] = bytes;
        ec.limit_pkts[c] = pkts;
    }
    np->slot = cacheline_alloc(NIC_NEAR * sizeof(*np->slot));
    if (!np->slot)
        return -ENOMEM;
    rc = egress_create(&np->loop, &ec);
    if (rc == 0)
        rc = mcast_create(&np->mc, (uint16_t)nic->n_slots);
    nic->due_ps[i] = PS_NEVER;
    for (unsigned s = 0; s < NIC_NEAR && rc == 0; s++)
        init_slot(np, &np->slot[s]);
    return rc;
}

static void fini_port(struct nic *nic, struct nic_port *np)
{
    for (unsigned i = 0; np->slot && i < nic->n_slots; i++) {
        struct nic_slot *s = nic_slot_at(np, i);

        if (!s)
            continue;
        for (int q = 0; q < ENDPOINT_QUEUES; q++)
            for (; s->stash[q].n; s->stash[q].head++, s->stash[q].n--)
                rte_pktmbuf_free(s->stash[q].m[s->stash[q].head]);
        for (; s->rx_head != s->rx_tail; s->rx_head++)
            rte_pktmbuf_free(s->rx[s->rx_head & s->rx_mask]);
        free(s->ring);
        if (i >= NIC_NEAR)
            free(s);
    }
    free(np->far);
    free(np->slot);
    egress_destroy(np->loop);
    mcast_destroy(np->mc);
}

static void nic_destroy(struct node *nd)
{
    struct nic *nic = nic_of(nd);

    for (uint16_t i = 0; nic->p && i < nd->n_ports; i++)
        fini_port(nic, &nic->p[i]);
    free(nic->p);
    node_fini(nd);
    free(nic);
}

static const struct node_ops nic_ops = {
    .input = nic_input,
    .tick = nic_tick,
    .next = nic_next,
    .port_state = nic_port_state,
    .destroy = nic_destroy,
};

int nic_create(struct node **out, const struct node_cfg *cfg)
{
    struct node_cfg pulling = *cfg;
    uint16_t ports = cfg->fab->nodes[cfg->id].n_ports;
    struct nic *nic = cacheline_alloc(sizeof(*nic) + ports * sizeof(int64_t));
    int rc;

    *out = NULL;
    if (!nic)
        return -ENOMEM;
    pulling.pull = nic_pull_up;
    rc = node_init(&nic->nd, &nic_ops, &pulling);
    if (rc) {
        free(nic);
        return rc;
    }
    nic->stall_ps = NIC_STALL_PS;
    nic->offence_ps = NIC_OFFENCE_WINDOW_PS;
    nic->lag_ps = cfg->lag_ps;
    nic->n_slots = RTE_MAX(RTE_MIN(cfg->fab->slots_per_host, FAB_MAX_SLOTS), 1);
    nic->n_words = (nic->n_slots + 63) / 64;
    nic->p = cacheline_alloc((ports + 1u) * sizeof(*nic->p));
    rc = nic->p ? 0 : -ENOMEM;
    for (uint16_t i = 0; i < ports && rc == 0; i++)
        rc = init_port(nic, i, cfg);
    if (rc) {
        nic_destroy(&nic->nd);
        return rc;
    }
    *out = &nic->nd;
    return 0;
}
