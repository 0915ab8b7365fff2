/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/net/net_priv.h"

#include "base/cacheline.h"
#include "switch/nic.h"
#include "switch/protocol/protocol_node.h"
#include "switch/reduce/an.h"
#include "switch/sw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * There are two kinds of events: the deadline of an egress queue (a frame starts or arrives) and that of a
 * node (a timer, an endpoint). Each queue and node has one entry in a heap of fixed size, so a link has
 * one pending event however many frames are on it. Order: time; then queues, by link and direction; then
 * ports to the outside; then nodes.
 */

static const char *const event_name[NET_EV_KINDS] = {
    [NET_EV_LINK_DOWN] = "link %u down",
    [NET_EV_LINK_UP] = "link %u up",
    [NET_EV_PORT_DOWN] = "node %u port %u down: no peer at the other end",
    [NET_EV_PORT_UP] = "node %u port %u up: a peer at the other end",
    [NET_EV_ROUTES] = "routes lead around %u links that are down, %u of them cut off",
    [NET_EV_ATTACHED] = "process attached to node %u slot %u",
    [NET_EV_DETACHED] = "process detached from node %u slot %u",
    [NET_EV_RESTARTED] = "switch %u restarted",
    [NET_EV_PARTITIONED] = "nodes divided into %u partitions, %u phases a slice",
    [NET_EV_APART] = "nodes run apart in %u partitions, %u phases a slice",
    [NET_EV_TOGETHER] = "nodes run together again: %u partitions merged",
};
static const struct event_kinds event_kinds = {"switch", event_name, NET_EV_KINDS};

void net_refresh_tx(struct transmitter *s)
{
    heap_set(&s->net->heap, s->id, egress_next(s->e));
}

void net_earlier(void *ctx)
{
    net_refresh_tx(ctx);
}

void net_arrive(struct net *n, struct transmitter *s, struct rte_mbuf **m, uint16_t cnt)
{
    int64_t t = frame_meta(m[0])->due_ps;

    if (n->cfg.late)
        n->cfg.late(n->cfg.ctx, t, cnt);
    if (unlikely(n->tap != NULL) && s->dirlink != NO_LINK)
        for (uint16_t i = 0; i < cnt; i++)
            n->tap(n->tap_ctx, s->dirlink, m[i], frame_meta(m[i])->due_ps);
    if (s->to) {
        if (n->ahead_ps) /* a node's time never goes back, however far ahead the link is */
            t = RTE_MIN(t, n->now_ps);
        s->to->ops->input(s->to, s->peer_port, m, cnt, t);
        net_refresh(n, s->to);
    } else if (n->cfg.deliver) {
        n->cfg.deliver(n->cfg.ctx, s->node, s->port, m, cnt, t);
    } else {
        rte_pktmbuf_free_bulk(m, cnt);
    }
}

/*
 * Runs the event of a queue: starts frames, and passes on those that have arrived. Starts and arrivals
 * count as two events, as in net_logical_process.c; an event that finds neither, because a pause came,
 * counts as none. Frames leave the process no earlier than now, so all that are due go in one burst; only
 * PFC's accounting depends on their start times, and gets them.
 */
static unsigned run_transmitter(struct net *n, struct transmitter *s, int64_t now_ps)
{
    struct rte_mbuf *m[NODE_BURST];
    bool out = s->peer == FAB_NONE && n->cfg.deliver && now_ps != PS_NEVER;
    bool starts = egress_next_start(s->e) <= n->now_ps;
    int64_t until = out ? now_ps : n->now_ps;
    uint16_t cnt;

    if (!out && n->ahead_ps)
        until = RTE_MAX(until, RTE_MIN(now_ps, until + n->ahead_ps));
    cnt = egress_pop(s->e, m, NODE_BURST, until);

    n->events += starts + (cnt > 0);
    net_refresh_tx(s);
    net_refresh(n, s->nd);
    if (cnt)
        net_arrive(n, s, m, cnt);
    return cnt;
}

unsigned net_advance(struct net *n, int64_t now_ps)
{
    unsigned moved = 0;

    T_ASSERT(!n->is_apart, "net_advance() of a net whose nodes run apart");
    T_ASSERT(!n->in_event, "net_advance() from within an event");
    n->in_event = true;
    while (heap_time(&n->heap) <= now_ps && heap_time(&n->heap) != PS_NEVER) {
        uint32_t i = heap_top(&n->heap);

        n->now_ps = RTE_MAX(n->now_ps, heap_time(&n->heap));
        T_ASSERT_HOT(i < n->n_tx ? n->tx[i].e != NULL : n->node[i - n->n_tx] != NULL,
                     "an event of a queue or a node that is not here");
        if (i < n->n_tx) {
            moved += run_transmitter(n, &n->tx[i], now_ps);
        } else {
            struct node *nd = n->node[i - n->n_tx];

            n->events++;
            nd->ops->tick(nd, n->now_ps);
            net_refresh(n, nd);
        }
    }
    n->in_event = false;
    if (now_ps != PS_NEVER)
        n->now_ps = RTE_MAX(n->now_ps, now_ps);
    return moved;
}

int64_t net_catch_up(struct net *n, int64_t now_ps)
{
    T_ASSERT(!n->is_apart, "an input from outside while nodes run apart");
    if (heap_time(&n->heap) < now_ps)
        net_advance(n, now_ps - 1);
    n->now_ps = RTE_MAX(n->now_ps, now_ps);
    return n->now_ps;
}

void net_input(struct net *n, uint16_t node, uint16_t port, struct rte_mbuf **m, uint16_t cnt,
               int64_t now_ps)
{
    struct node *nd = net_node(n, node);
    int64_t t = net_catch_up(n, now_ps);

    if (!nd || port >= nd->n_ports) {
        rte_pktmbuf_free_bulk(m, cnt);
        return;
    }
    n->in_event = true;
    nd->ops->input(nd, port, m, cnt, t);
    n->in_event = false;
    net_refresh_node(n, node);
}

int64_t net_next(struct net *n)
{
    return unlikely(n->is_apart) ? apart_next(n) : heap_time(&n->heap);
}

uint64_t net_events(const struct net *n)
{
    return n->events + (n->apart ? apart_events(n) : 0);
}

int64_t net_now(const struct net *n)
{
    return n->now_ps;
}

void net_kick(struct net *n, uint16_t node, uint16_t port, unsigned slot, int64_t now_ps)
{
    struct node *nd = net_node(n, node);

    if (!nd)
        return;
    /* A late kick must not overtake earlier events: room that a process makes now would end a pause
     * in the past, and all frames that it held back would arrive at once. */
    if (!n->in_event)
        net_catch_up(n, now_ps);
    if (n->cfg.fab->nodes[node].kind == FAB_HOST)
        nic_kick(nd, port, slot, RTE_MAX(net_now_of(n, node), now_ps));
    else
        sw_kick(nd);
    net_refresh_node(n, node);
}

/* ---- control path ---- */

struct node *net_node(struct net *n, uint16_t node)
{
    return node < n->cfg.fab->n_nodes ? n->node[node] : NULL;
}

struct egress *net_egress(struct net *n, uint16_t node, uint16_t port)
{
    struct node *nd = net_node(n, node);

    return nd && port < nd->n_ports ? nd->egress[port] : NULL;
}

struct an *net_an(struct net *n, uint16_t node)
{
    struct node *nd = net_node(n, node);

    return nd && n->cfg.fab->nodes[node].kind == FAB_SWITCH ? sw_an(nd) : NULL;
}

struct protocol_node *net_protocols(struct net *n, uint16_t node)
{
    struct node *nd = net_node(n, node);

    return nd && n->cfg.fab->nodes[node].kind == FAB_SWITCH ? sw_protocols(nd) : NULL;
}

bool net_an_idle(struct net *n, uint16_t node)
{
    struct protocol_node *p = net_protocols(n, node);
    struct an *an = net_an(n, node);

    return (!an || an_idle(an)) && (!p || protocol_node_idle(p));
}

int net_attach(struct net *n, uint16_t node, uint16_t port, unsigned slot,
               const struct endpoint *ep)
{
    struct node *nd = net_node(n, node);
    int rc = 0;

    if (!nd)
        return -EINVAL;
    if (n->cfg.fab->nodes[node].kind == FAB_HOST)
        rc = nic_attach(nd, port, slot, ep);
    else if (port || slot)
        rc = -EINVAL;
    else
        sw_attach(nd, ep);
    if (rc == 0) {
        events_add(&n->ev, n->now_ps, NET_EV_ATTACHED, node, slot);
        net_kick(n, node, port, slot, n->now_ps);
    }
    return rc;
}

/* The number of the direction in which this port sends on the link. */
static uint32_t dirlink_of(const struct fabric *f, uint16_t link, uint16_t node, uint16_t port)
{
    const struct fab_link *l = &f->links[link];

    return 2u * link + !(l->a == node && l->a_port == port);
}

void net_list_cachelines(struct net *n, uint16_t node, uint16_t port, struct cacheline_list *lines)
{
    uint16_t link;

    T_ASSERT(net_node(n, node) && n->cfg.fab->nodes[node].kind == FAB_HOST,
             "cache lines of an endpoint at no host of this net");
    nic_list_cachelines(n->node[node], port, lines);
    link = n->cfg.fab->nodes[node].ports[port].link;
    if (link != FAB_NONE)
        n->lines[dirlink_of(n->cfg.fab, link, node, port)] = lines;
}

void net_detach(struct net *n, uint16_t node, uint16_t port, unsigned slot, int64_t now_ps)
{
    struct node *nd = net_node(n, node);
    int64_t t = net_catch_up(n, now_ps);

    if (!nd || n->cfg.fab->nodes[node].kind != FAB_HOST)
        return;
    if (nic_detach(nd, port, slot, t) == 0) {
        events_add(&n->ev, t, NET_EV_DETACHED, node, slot);
    }
    net_refresh_node(n, node);
}

int net_restart(struct net *n, uint16_t node, int64_t now_ps)
{
    struct node *nd = net_node(n, node);
    int rc;

    if (!nd || n->cfg.fab->nodes[node].kind != FAB_SWITCH)
        return -EINVAL;
    net_catch_up(n, now_ps);
    rc = sw_restart(nd, n->now_ps);
    if (!rc)
        events_add(&n->ev, n->now_ps, NET_EV_RESTARTED, node, 0);
    net_refresh_node(n, node);
    return rc;
}

void net_set_link_down_grace(struct net *n, int64_t ps)
{
    for (uint16_t i = 0; i < n->cfg.fab->n_nodes; i++)
        if (n->node[i])
            n->node[i]->link_down_grace_ps = ps;
}

void net_set_stall(struct net *n, int64_t ps)
{
    for (uint16_t i = 0; i < n->cfg.fab->n_nodes; i++)
        if (n->node[i] && n->cfg.fab->nodes[i].kind == FAB_HOST)
            nic_set_stall(n->node[i], ps);
}

void net_open_port(struct net *n, uint16_t node, uint16_t port, int64_t now_ps)
{
    if (node >= n->cfg.fab->n_nodes || !n->node[node] || n->cfg.fab->nodes[node].kind != FAB_HOST)
        return;
    nic_open(n->node[node], port, now_ps);
    net_refresh_node(n, node);
}

void net_excuse(struct net *n, int64_t until_ps)
{
    for (uint16_t i = 0; i < n->cfg.fab->n_nodes; i++) {
        if (!n->node[i])
            continue;
        if (n->cfg.fab->nodes[i].kind == FAB_HOST)
            nic_excuse(n->node[i], until_ps);
        else
            sw_excuse(n->node[i], until_ps);
        net_refresh_node(n, i);
    }
}

void net_set_watchdog(struct net *n, int64_t after_ps)
{
    for (uint16_t i = 0; i < n->cfg.fab->n_nodes; i++) {
        struct node *nd = n->node[i];

        if (!nd || n->cfg.fab->nodes[i].kind != FAB_SWITCH)
            continue;
        nd->dogs.changed = n->cfg.stuck;
        nd->dogs.ctx = n->cfg.ctx;
        watchdog_set(nd, after_ps, n->now_ps);
        net_refresh_node(n, i);
    }
}

void net_set_ahead(struct net *n, int64_t ahead_ps)
{
    n->ahead_ps = ahead_ps;
}

void net_tap(struct net *n, net_tap_fn fn, void *ctx)
{
    n->tap = fn;
    n->tap_ctx = ctx;
}

/* Mbufs of this process's pool that each local aggregation node may grant: together 3/4 of the pool. */
static uint32_t an_budget(const struct net *n)
{
    uint32_t ans = 0;

    for (uint16_t i = 0; i < n->cfg.fab->n_nodes; i++)
        ans += (n->cfg.fab->nodes[i].reduce.on || n->cfg.fab->nodes[i].multimem) &&
               (!n->cfg.mine || n->cfg.mine[i]);
    return n->cfg.an_mbufs ? n->cfg.an_mbufs : n->cfg.pool->size / 4 * 3 / RTE_MAX(ans, 1u);
}

static int add_nodes(struct net *n)
{
    const struct fabric *f = n->cfg.fab;
    int rc = 0;

    for (uint16_t i = 0; i < f->n_nodes && rc == 0; i++) {
        struct node_cfg nc = {
            .fab = f,
            .id = i,
            .pool = n->cfg.pool,
            .parts = n->cfg.parts,
            .seed = n->cfg.seed,
            .lag_ps = n->cfg.lag_ps,
            .an_mbufs = an_budget(n),
            .lateness_on_path = n->cfg.lateness_on_path,
            .ctx = n->cfg.ctx,
        };

        if (n->cfg.mine && !n->cfg.mine[i])
            continue;
        rc = f->nodes[i].kind == FAB_HOST ? nic_create(&n->node[i], &nc)
                                          : sw_create(&n->node[i], &nc);
    }
    return rc;
}

/* Adds the directions of links by number, then ports to the outside by node and port. Entries of other
 * processes stay empty. */
static void add_transmitters(struct net *n)
{
    const struct fabric *f = n->cfg.fab;
    uint32_t external = 2u * f->n_links;

    for (uint16_t i = 0; i < f->n_nodes; i++)
        for (uint16_t p = 0; n->node[i] && p < f->nodes[i].n_ports; p++) {
            const struct fab_port *fp = &f->nodes[i].ports[p];
            struct transmitter s = {.net = n,
                                    .e = n->node[i]->egress[p],
                                    .nd = n->node[i],
                                    .node = i,
                                    .port = p,
                                    .dirlink = NO_LINK,
                                    .peer = FAB_NONE};

            if (!s.e)
                continue;
            s.id = external;
            if (fp->link != FAB_NONE) {
                s.id = s.dirlink = dirlink_of(f, fp->link, i, p);
                s.peer_port = fp->peer_port;
                s.to = n->node[fp->peer_node];
                s.peer = s.to ? fp->peer_node : FAB_NONE;
            } else {
                external++;
            }
            T_ASSERT(s.id < n->n_tx && !n->tx[s.id].e, "two transmitters have one number");
            n->tx[s.id] = s;
            egress_on_earlier(s.e, net_earlier, &n->tx[s.id]);
            egress_count_faults(s.e, &n->faulty);
        }
}

static int64_t least_latency(const struct net *n)
{
    int64_t least = PS_NEVER;

    for (uint32_t i = 0; i < n->n_tx; i++) {
        const struct transmitter *s = &n->tx[i];

        if (!s->e)
            continue;
        if (s->peer == FAB_NONE || s->peer == s->node || !egress_is_shaped(s->e))
            return 0;
        least = RTE_MIN(least, n->cfg.fab->nodes[s->node].ports[s->port].latency_ps);
    }
    return least == PS_NEVER ? 0 : least;
}

int net_create(struct net **out, const struct net_cfg *cfg)
{
    struct net *n = calloc(1, sizeof(*n));
    char who[EVENTS_NAMED];
    int rc;

    *out = NULL;
    if (!n)
        return -ENOMEM;
    snprintf(who, sizeof(who), "net of %u nodes", cfg->fab->n_nodes);
    events_init(&n->ev, &event_kinds, who);
    n->cfg = *cfg;
    n->n_tx = 2u * cfg->fab->n_links;
    for (uint16_t i = 0; i < cfg->fab->n_nodes; i++)
        for (uint16_t p = 0; p < cfg->fab->nodes[i].n_ports; p++)
            n->n_tx += cfg->fab->nodes[i].ports[p].link == FAB_NONE;
    n->tx = cacheline_alloc((n->n_tx + 1u) * sizeof(*n->tx));
    n->lines = calloc(n->n_tx + 1u, sizeof(*n->lines));
    n->node = calloc(cfg->fab->n_nodes + 1u, sizeof(struct node *));
    n->link_down = calloc(cfg->fab->n_links + 1u, sizeof(*n->link_down));
    n->cut = calloc(cfg->fab->n_links + 1u, sizeof(*n->cut));
    rc = n->tx && n->lines && n->node && n->link_down && n->cut
             ? heap_init(&n->heap, n->n_tx + cfg->fab->n_nodes)
             : -ENOMEM;
    if (rc == 0)
        rc = add_nodes(n);
    if (rc) {
        net_destroy(n);
        return rc;
    }
    add_transmitters(n);
    n->lookahead_ps = least_latency(n);
    for (uint16_t i = 0; i < cfg->fab->n_nodes; i++)
        if (n->node[i])
            net_refresh_node(n, i);
    net_set_watchdog(n, cfg->fab->pfc_watchdog_ps);
    *out = n;
    return 0;
}

void net_destroy(struct net *n)
{
    if (!n)
        return;
    for (uint32_t i = 0; n->tx && i < n->n_tx; i++)
        if (n->tx[i].e) {
            egress_on_earlier(n->tx[i].e, NULL, NULL);
            egress_count_faults(n->tx[i].e, NULL);
        }
    T_ASSERT(!n->faulty, "links with faults are miscounted");
    apart_destroy(n);
    for (uint16_t i = 0; n->node && i < n->cfg.fab->n_nodes; i++)
        if (n->node[i])
            n->node[i]->ops->destroy(n->node[i]);
    events_fini(&n->ev);
    heap_fini(&n->heap);
    fabric_free(n->around);
    free(n->link_down);
    free(n->cut);
    free(n->tx);
    free(n->lines);
    free(n->node);
    free(n);
}
