/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/net/net_priv.h"

#include "base/cacheline.h"
#include "switch/nic.h"
#include "switch/reduce/an.h"
#include "switch/sw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Events are of two kinds: an egress queue's deadline (a frame starts or arrives) and a node's (a
 * timer, an endpoint). Each has one place in a heap of fixed size, so a link has one pending event
 * however many frames are on it. Order: time, then queues before nodes, queues by link and
 * direction, then ports to the outside, then nodes.
 */

void net_refresh_src(struct source *s)
{
    heap_set(&s->net->heap, s->id, egress_next(s->e));
}

void net_earlier(void *ctx)
{
    net_refresh_src(ctx);
}

void net_arrive(struct net *n, struct source *s, struct rte_mbuf **m, uint16_t cnt)
{
    int64_t t = frame_meta(m[0])->due_ps;

    if (n->cfg.late)
        n->cfg.late(n->cfg.ctx, t, cnt);
    if (unlikely(n->tap != NULL) && s->dirlink != NO_LINK)
        for (uint16_t i = 0; i < cnt; i++)
            n->tap(n->tap_ctx, s->dirlink, m[i], frame_meta(m[i])->due_ps);
    if (s->to) {
        if (n->ahead_ps) /* time does not go back for a node, however far ahead the link is */
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
 * A queue's event: starts what may start, hands on what has arrived. They count apart, as they do
 * in net_apart.c; one that finds neither, since a pause came, does not. What leaves the process
 * leaves no earlier than now, so that all of it that is due goes in one burst; nothing here hears
 * of it but PFC's accounting, which is told the time of each start.
 */
static unsigned run_src(struct net *n, struct source *s, int64_t now_ps)
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
    net_refresh_src(s);
    net_refresh(n, s->nd);
    if (cnt)
        net_arrive(n, s, m, cnt);
    return cnt;
}

unsigned net_advance(struct net *n, int64_t now_ps)
{
    unsigned moved = 0;

    n->in_event = true;
    while (heap_time(&n->heap) <= now_ps && heap_time(&n->heap) != PS_NEVER) {
        uint32_t i = heap_top(&n->heap);

        n->now_ps = RTE_MAX(n->now_ps, heap_time(&n->heap));
        if (i < n->n_src) {
            moved += run_src(n, &n->src[i], now_ps);
        } else {
            struct node *nd = n->node[i - n->n_src];

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
    /* A late kick must not overtake what was due before it: room that a process makes now would end
     * a pause in the past, and all that it held back would come at once. */
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

bool net_an_idle(struct net *n, uint16_t node)
{
    struct an *an = net_an(n, node);

    return !an || an_idle(an);
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
        n->attached++;
        net_kick(n, node, port, slot, n->now_ps);
    }
    return rc;
}

void net_list_lines(struct net *n, uint16_t node, uint16_t port, unsigned slot,
                    const struct cacheline_list *lines)
{
    if (n->cfg.fab->nodes[node].kind == FAB_HOST)
        nic_list_lines(net_node(n, node), port, slot, lines);
}

void net_detach(struct net *n, uint16_t node, uint16_t port, unsigned slot, int64_t now_ps)
{
    struct node *nd = net_node(n, node);
    int64_t t = net_catch_up(n, now_ps);

    if (!nd || n->cfg.fab->nodes[node].kind != FAB_HOST)
        return;
    n->attached -= nic_detach(nd, port, slot, t) == 0;
    net_refresh_node(n, node);
}

int net_restart(struct net *n, uint16_t node, int64_t now_ps)
{
    struct node *nd = net_node(n, node);
    int rc;

    if (!nd || n->cfg.fab->nodes[node].kind != FAB_SWITCH)
        return -EINVAL;
    net_catch_up(n, now_ps);
    rc = sw_restart(nd);
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
        nd->dogs.told = n->cfg.stuck;
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

/* Grants are promises of mbufs of this process's pool: three quarters of it, shared by the ANs that
 * are here. */
static uint32_t an_share(const struct net *n)
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
            .an_mbufs = an_share(n),
            .late_on_way = n->cfg.late_on_way,
            .ctx = n->cfg.ctx,
        };

        if (n->cfg.mine && !n->cfg.mine[i])
            continue;
        rc = f->nodes[i].kind == FAB_HOST ? nic_create(&n->node[i], &nc)
                                          : sw_create(&n->node[i], &nc);
    }
    return rc;
}

/* Sources: directions of links by their number, then ports outside by node and port. Those that are
 * not here stay empty. */
static void add_sources(struct net *n)
{
    const struct fabric *f = n->cfg.fab;
    uint32_t external = 2u * f->n_links;

    for (uint16_t i = 0; i < f->n_nodes; i++)
        for (uint16_t p = 0; n->node[i] && p < f->nodes[i].n_ports; p++) {
            const struct fab_port *fp = &f->nodes[i].ports[p];
            struct source s = {.net = n,
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
                const struct fab_link *l = &f->links[fp->link];

                s.id = s.dirlink = 2u * fp->link + !(l->a == i && l->a_port == p);
                s.peer_port = fp->peer_port;
                s.to = n->node[fp->peer_node];
                s.peer = s.to ? fp->peer_node : FAB_NONE;
            } else {
                external++;
            }
            n->src[s.id] = s;
            egress_on_earlier(s.e, net_earlier, &n->src[s.id]);
            egress_count_faults(s.e, &n->faulty);
        }
}

static int64_t least_latency(const struct net *n)
{
    int64_t least = PS_NEVER;

    for (uint32_t i = 0; i < n->n_src; i++) {
        const struct source *s = &n->src[i];

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
    int rc;

    *out = NULL;
    if (!n)
        return -ENOMEM;
    n->cfg = *cfg;
    n->n_src = 2u * cfg->fab->n_links;
    for (uint16_t i = 0; i < cfg->fab->n_nodes; i++)
        for (uint16_t p = 0; p < cfg->fab->nodes[i].n_ports; p++)
            n->n_src += cfg->fab->nodes[i].ports[p].link == FAB_NONE;
    n->src = cacheline_alloc((n->n_src + 1u) * sizeof(*n->src));
    n->node = calloc(cfg->fab->n_nodes + 1u, sizeof(struct node *));
    n->link_down = calloc(cfg->fab->n_links + 1u, sizeof(*n->link_down));
    n->cut = calloc(cfg->fab->n_links + 1u, sizeof(*n->cut));
    rc = n->src && n->node && n->link_down && n->cut
             ? heap_init(&n->heap, n->n_src + cfg->fab->n_nodes)
             : -ENOMEM;
    if (rc == 0)
        rc = add_nodes(n);
    if (rc) {
        net_destroy(n);
        return rc;
    }
    add_sources(n);
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
    for (uint32_t i = 0; n->src && i < n->n_src; i++)
        if (n->src[i].e) {
            egress_on_earlier(n->src[i].e, NULL, NULL);
            egress_count_faults(n->src[i].e, NULL);
        }
    apart_destroy(n);
    for (uint16_t i = 0; n->node && i < n->cfg.fab->n_nodes; i++)
        if (n->node[i])
            n->node[i]->ops->destroy(n->node[i]);
    heap_fini(&n->heap);
    fabric_free(n->around);
    free(n->link_down);
    free(n->cut);
    free(n->src);
    free(n->node);
    free(n);
}
