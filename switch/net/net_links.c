/* SPDX-License-Identifier: BSD-3-Clause */
/* Links and ports of a net that go down and come up. */
#include "switch/net/net_priv.h"

#include "fabric/routing/reroute.h"
#include "switch/sw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Adds or removes a reason (NODE_*_DOWN) for which a port is down. The port is up when no reason is left;
 * its queue is down as soon as there is one. Returns whether its node must be notified. */
static bool mark(struct net *n, uint16_t node, uint16_t port, uint8_t why, bool up)
{
    struct node *nd = net_node(n, node);
    uint8_t before;

    if (!nd || port >= nd->n_ports)
        return false;
    before = nd->np[port].down;
    T_ASSERT(!nd->egress[port] || egress_is_down(nd->egress[port]) == (before != 0),
             "a port and its egress queue disagree whether they are down");
    nd->np[port].down = up ? before & ~why : before | why;
    if (nd->np[port].down && (up || before))
        return false; /* it was down and stays down */
    if (!up && nd->egress[port])
        egress_set_down(nd->egress[port], true, n->now_ps);
    return true;
}

static void port_notify(struct net *n, uint16_t node, uint16_t port, bool up)
{
    struct node *nd = net_node(n, node);

    nd->ops->port_state(nd, port, up, n->now_ps);
    net_refresh_node(n, node);
}

void net_port_state(struct net *n, uint16_t node, uint16_t port, bool up, int64_t now_ps)
{
    net_catch_up(n, now_ps);
    if (mark(n, node, port, NODE_CABLE_DOWN, up)) {
        events_add(&n->ev, n->now_ps, up ? NET_EV_PORT_UP : NET_EV_PORT_DOWN, node, port);
        port_notify(n, node, port, up);
    }
}

static void use_routes(struct net *n, struct fabric *around)
{
    const struct fabric *f = n->cfg.fab;
    uint32_t down = 0, cut = 0;

    for (unsigned i = 0; i < f->n_links; i++) {
        down += n->link_down[i] || n->cut[i];
        cut += n->cut[i];
    }
    events_add(&n->ev, n->now_ps, NET_EV_ROUTES, down, cut);
    T_ASSERT(!around == !down, "routes disagree with the links that are down");
    for (uint16_t i = 0; i < f->n_nodes; i++)
        if (n->node[i] && f->nodes[i].kind == FAB_SWITCH) {
            sw_reroute(n->node[i], around ? around : f, n->now_ps);
            net_refresh_node(n, i);
        }
    fabric_free(n->around);
    n->around = around;
}

/* *around: the fabric without links that are down or cut; NULL: there are none. */
static int routes_left(const struct net *n, const bool *cut, struct fabric **around)
{
    const struct fabric *f = n->cfg.fab;
    bool *gone, any = false;

    *around = NULL;
    gone = calloc(f->n_links + 1u, sizeof(*gone));
    if (!gone)
        return -ENOMEM;
    for (unsigned i = 0; i < f->n_links; i++)
        any |= gone[i] = n->link_down[i] || cut[i];
    if (any)
        *around = fabric_without(f, gone);
    free(gone);
    return any && !*around ? -ENOMEM : 0;
}

/* Changes links at one instant: a node that is notified of a port going down sees which other ports went
 * down with it. end: [2 * n_links], of which the first of each pair is set if the link changes;
 * overwritten. */
static int set_links(struct net *n, bool *end, bool up, int64_t now_ps)
{
    const struct fab_link *l = n->cfg.fab->links;
    unsigned links = n->cfg.fab->n_links;
    struct fabric *around;

    for (unsigned i = 0; i < links; i++) {
        end[2 * i] = end[2 * i] && n->link_down[i] == up;
        n->link_down[i] ^= end[2 * i];
    }
    if (routes_left(n, n->cut, &around)) {
        for (unsigned i = 0; i < links; i++)
            n->link_down[i] ^= end[2 * i];
        return -ENOMEM;
    }
    net_catch_up(n, now_ps);
    /* Messages that nodes send because of the change use links that are up. */
    if (!up)
        use_routes(n, around);
    for (unsigned i = 0; i < links; i++)
        if (end[2 * i]) {
            events_add(&n->ev, n->now_ps, up ? NET_EV_LINK_UP : NET_EV_LINK_DOWN, i, 0);
            end[2 * i] = mark(n, l[i].a, l[i].a_port, NODE_LINK_DOWN, up);
            end[2 * i + 1] = mark(n, l[i].b, l[i].b_port, NODE_LINK_DOWN, up);
        }
    for (unsigned i = 0; i < links; i++) {
        if (end[2 * i])
            port_notify(n, l[i].a, l[i].a_port, up);
        if (end[2 * i + 1])
            port_notify(n, l[i].b, l[i].b_port, up);
    }
    if (up)
        use_routes(n, around);
    return 0;
}

int net_set_link(struct net *n, unsigned link, bool up, int64_t now_ps)
{
    bool *end;
    int rc;

    if (link >= n->cfg.fab->n_links)
        return -EINVAL;
    if (n->link_down[link] == !up)
        return 0;
    end = calloc(2u * n->cfg.fab->n_links, sizeof(*end));
    if (!end)
        return -ENOMEM;
    end[2 * link] = true;
    rc = set_links(n, end, up, now_ps);
    free(end);
    return rc;
}

int net_set_all_links(struct net *n, bool up, int64_t now_ps)
{
    unsigned links = n->cfg.fab->n_links, same = 0;
    bool *end = calloc(2u * links + 1, sizeof(*end));
    int rc = 0;

    if (!end)
        return -ENOMEM;
    for (unsigned i = 0; i < links; i++) {
        end[2 * i] = true;
        same += n->link_down[i] == !up;
    }
    if (same < links)
        rc = set_links(n, end, up, now_ps);
    free(end);
    return rc;
}

/* A port's latency is its link's plus its switch's. */
void net_set_link_terms(struct net *n, unsigned link, const struct link_terms *t, int64_t now_ps)
{
    const struct fab_link *l = &n->cfg.fab->links[link];

    T_ASSERT(link < n->cfg.fab->n_links && !n->is_apart,
             "rate or latency of a link that is not there, or while nodes run apart");
    net_catch_up(n, now_ps);
    for (unsigned end = 0; end < 2; end++) {
        uint16_t node = end ? l->b : l->a, port = end ? l->b_port : l->a_port;
        struct egress *e = net_egress(n, node, port);
        int64_t of_switch = n->cfg.fab->nodes[node].ports[port].latency_ps - l->latency_ps;

        if (!e)
            continue;
        egress_set_link(e, t->rate_bps, t->latency_ps + of_switch);
        node_rates_changed(n->node[node]);
        net_refresh_node(n, node);
    }
}

int net_set_node(struct net *n, uint16_t node, bool up, int64_t now_ps)
{
    const struct fabric *f = n->cfg.fab;
    bool *end;
    int rc;

    if (node >= f->n_nodes)
        return -EINVAL;
    end = calloc(2u * f->n_links + 1, sizeof(*end));
    if (!end)
        return -ENOMEM;
    for (uint16_t p = 0; p < f->nodes[node].n_ports; p++)
        if (f->nodes[node].ports[p].link != FAB_NONE)
            end[2 * f->nodes[node].ports[p].link] = true;
    rc = set_links(n, end, up, now_ps);
    free(end);
    return rc;
}

int net_cut_links(struct net *n, const bool *cut, int64_t now_ps)
{
    size_t size = n->cfg.fab->n_links * sizeof(*cut);
    struct fabric *around;

    if (!memcmp(n->cut, cut, size))
        return 0;
    if (routes_left(n, cut, &around))
        return -ENOMEM;
    memcpy(n->cut, cut, size);
    net_catch_up(n, now_ps);
    use_routes(n, around);
    return 0;
}

bool net_link_up(const struct net *n, unsigned link)
{
    T_ASSERT(link < n->cfg.fab->n_links, "the state of a link that is not there");
    return !n->link_down[link];
}
