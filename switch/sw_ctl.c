/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch's control path: ports that go down and come up, routes, set-up. Frames: sw.c. */
#include "switch/sw_priv.h"

#include "base/cacheline.h"

#include <errno.h>
#include <stdlib.h>

/* ---- ports ---- */

void sw_set_lost(struct sw *s, uint16_t port, int64_t at_ps)
{
    T_ASSERT(port < s->nd.n_ports, "a host behind a port that is not there");
    T_ASSERT(at_ps == PS_NEVER || s->an, "a switch that does not reduce waits for a host");
    s->lost_ps[port] = at_ps;
    s->lost_due_ps = PS_NEVER;
    for (uint16_t p = 0; p < s->nd.n_ports; p++)
        s->lost_due_ps = RTE_MIN(s->lost_due_ps, s->lost_ps[p]);
}

static bool linked(const struct node *nd, uint16_t peer_node)
{
    const struct fab_port *ports = nd->fab->nodes[nd->id].ports;

    for (uint16_t p = 0; p < nd->n_ports; p++)
        if (ports[p].link != FAB_NONE && !nd->np[p].down && ports[p].peer_node == peer_node)
            return true;
    return false;
}

static bool an_linked(void *sw, uint16_t peer_node)
{
    return linked(&((struct sw *)sw)->nd, peer_node);
}

static bool cut_off(const struct node *nd)
{
    for (uint16_t p = 0; p < nd->n_ports; p++)
        if (nd->egress[p] && !nd->np[p].down)
            return false;
    return true;
}

/* Whether only the host's own link is down, not its process: then RC retransmits what is lost meanwhile.
 * A lost edge between switches ends a group at once, because the operation can fail over to another tree
 * or to the hosts. */
static bool may_be_back(const struct node *nd, uint16_t port)
{
    const struct fab_port *p = &nd->fab->nodes[nd->id].ports[port];

    return p->link != FAB_NONE && nd->np[port].down == NODE_LINK_DOWN && nd->link_down_grace_ps &&
           nd->fab->nodes[p->peer_node].kind == FAB_HOST;
}

void sw_peer_down(struct sw *s, uint16_t peer_node, int64_t now_ps)
{
    an_peer_down(s->an, peer_node, now_ps);
    if (s->protocols)
        protocol_node_peer_down(s->protocols, peer_node, now_ps);
}

static void sw_cut_off(struct sw *s, int64_t now_ps)
{
    an_cut_off(s->an, now_ps);
    if (s->protocols)
        protocol_node_cut_off(s->protocols, now_ps);
}

static void sw_port_state(struct node *nd, uint16_t port, bool up, int64_t now_ps)
{
    struct sw *s = sw_of(nd);
    const struct fab_port *p = &nd->fab->nodes[nd->id].ports[port];

    node_port_reset(nd, port, up, now_ps);
    sw_group_port_state(s, port, up, now_ps);
    sw_set_lost(s, port, PS_NEVER);
    if (up)
        return;
    fib_forget_port(s->fib, port);
    if (s->an && cut_off(nd))
        sw_cut_off(s, now_ps);
    else if (s->an && may_be_back(nd, port))
        sw_set_lost(s, port, now_ps + nd->link_down_grace_ps);
    else if (s->an && p->link != FAB_NONE && !linked(nd, p->peer_node))
        sw_peer_down(s, p->peer_node, now_ps);
    if (s->has_ep)
        sw_drain(s, now_ps);
}

struct an *sw_an(struct node *nd)
{
    return sw_of(nd)->an;
}

struct protocol_node *sw_protocols(struct node *nd)
{
    return sw_of(nd)->protocols;
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

/* Attaches the aggregation node; the switch's protocols stand in front of it. */
static int attach_an(struct sw *s)
{
    struct protocol_node_cfg pc = {.fab = s->an_cfg.fab,
                                   .node = s->an_cfg.node,
                                   .pool = s->an_cfg.pool,
                                   .linked = s->an_cfg.linked,
                                   .linked_ctx = s->an_cfg.linked_ctx};
    struct endpoint ep;
    int rc = an_create(&s->an, &s->an_cfg);

    if (rc)
        return rc;
    pc.behind = ep = an_endpoint(s->an);
    if (s->protocols)
        protocol_node_restart(s->protocols, &ep);
    else if (pc.fab->nodes[pc.node].reduce.on && protocol_node_create(&s->protocols, &pc))
        return -ENOMEM;
    if (s->protocols)
        ep = protocol_node_endpoint(s->protocols);
    sw_attach(&s->nd, &ep);
    return 0;
}

int sw_restart(struct node *nd, int64_t now_ps)
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
    if (!rc)
        node_event(nd, now_ps, NODE_EV_RESTARTED, s->an_cfg.life, 0);
    return rc;
}

static void sw_destroy(struct node *nd)
{
    struct sw *s = sw_of(nd);

    protocol_node_destroy(s->protocols);
    if (s->an)
        an_destroy(s->an);
    fib_destroy(s->fib);
    mcast_destroy(s->mc);
    node_fini(nd);
    free(s->flags);
    free(s->lost_ps);
    free(s);
}

static const struct node_ops sw_ops = {
    .input = sw_input,
    .tick = sw_tick,
    .next = sw_next,
    .port_state = sw_port_state,
    .destroy = sw_destroy,
};

/* Whether the tree leads from node `at` to a port to the outside, without going back to `from`. */
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

/* The flags PORT_* of a port, on the spanning tree of f. */
static uint8_t flags_of(const struct sw *s, const struct fabric *f, uint16_t port)
{
    const struct fab_port *q = &f->nodes[s->nd.id].ports[port];
    bool way_out = q->external[0], anybody = way_out && q->link == FAB_NONE;
    uint8_t flags = way_out ? PORT_EXTERNAL : 0;

    if (!q->flood)
        return flags;
    flags |= PORT_TREE;
    if (anybody || f->nodes[q->peer_node].kind == FAB_SWITCH)
        flags |= PORT_BRIDGE;
    if (way_out || (s->outside && leads_outside(f, q->peer_node, s->nd.id, 0)))
        flags |= PORT_OUTSIDE;
    return flags;
}

static uint32_t tree_ports(const struct sw *s)
{
    uint32_t n = 0;

    for (uint16_t p = 0; p < s->nd.n_ports; p++)
        n += s->flags[p] & PORT_TREE;
    return n;
}

void sw_reroute(struct node *nd, const struct fabric *f, int64_t now_ps)
{
    struct sw *s = sw_of(nd);
    uint32_t were = tree_ports(s);

    fib_reroute(s->fib, f);
    for (uint16_t p = 0; p < nd->n_ports; p++)
        if ((s->flags[p] & PORT_TREE) && !(flags_of(s, f, p) & PORT_TREE)) {
            sw_group_leave_tree(s, p, now_ps);
            s->flags[p] &= PORT_EXTERNAL;
        }
    for (uint16_t p = 0; p < nd->n_ports; p++) {
        bool was = s->flags[p] & PORT_BRIDGE;

        s->flags[p] = flags_of(s, f, p);
        if (!was && (s->flags[p] & PORT_BRIDGE))
            sw_group_join_tree(s, p, now_ps);
    }
    node_event(nd, now_ps, NODE_EV_ROUTES, tree_ports(s), were);
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
        s->an_cfg = (struct an_cfg){.linked = an_linked,
                                    .linked_ctx = s,
                                    .fab = cfg->fab,
                                    .node = cfg->id,
                                    .pool = cfg->pool,
                                    .parts = cfg->parts,
                                    .mbuf_budget = cfg->an_mbufs,
                                    .lateness_on_path = cfg->lateness_on_path,
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
