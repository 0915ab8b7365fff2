/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Next hops. All destinations at one switch share the route to it, and switches reach each other only
 * within a network. So a switch stores one set of ports per switch of its network; a host stores nothing
 * and uses the switches of its ports. Rejected: a table of every node for every destination, which takes
 * 2 GB for 4,096 GPUs of five ports.
 */
#include "base/assert.h"
#include "fabric/build.h"
#include "fabric/routing/routes.h"

#include <string.h>

/* The switch of a destination: itself, or the one to which its host is linked; FAB_NONE: the host is linked
 * to hosts. */
static fab_id switch_of(const struct fabric *f, const struct fab_dest *d)
{
    const struct fab_node *n = &f->nodes[d->node];

    return n->kind == FAB_SWITCH ? d->node : peer_switch(f, &n->ports[d->port]);
}

/* The number of ports, then the ports; NULL: no route. */
static const fab_id *route_of(const struct fabric *f, fab_id from, fab_id to)
{
    const struct fab_node *u = &f->nodes[from], *t = &f->nodes[to];

    if (u->network != t->network)
        return NULL;
    return fabric_is_large(f) ? routes_find(f, from, to) : u->routes[t->network_index];
}

/* Finds the ports of a host whose switch is the target or has a route to it. */
static unsigned of_host(const struct fabric *f, fab_id node, fab_id target, fab_id *port)
{
    const struct fab_node *n = &f->nodes[node];
    unsigned k = 0;

    for (unsigned p = 0; p < n->n_ports && target != FAB_NONE; p++) {
        fab_id v = peer_switch(f, &n->ports[p]);

        if (v != FAB_NONE && (v == target || route_of(f, v, target)))
            port[k++] = (fab_id)p;
    }
    return k;
}

unsigned hops_find(const struct fabric *f, fab_id node, unsigned dest,
                   fab_id buf[FAB_MAX_HOST_PORTS], const fab_id **port)
{
    const struct fab_dest *d = &f->dests[dest];
    const struct fab_node *dn = &f->nodes[d->node];
    fab_id target;
    const fab_id *r;

    T_ASSERT_HOT(dest < f->n_dests && node < f->n_nodes,
                 "next hops of a node or destination that the fabric does not have");
    *port = buf;
    if (d->node == node)
        return 0;
    if (dn->kind == FAB_HOST && dn->ports[d->port].peer_node == node) {
        buf[0] = dn->ports[d->port].peer_port;
        return 1;
    }
    target = switch_of(f, d);
    if (f->nodes[node].kind == FAB_HOST)
        return of_host(f, node, target, buf);
    r = target == FAB_NONE ? NULL : route_of(f, node, target);
    if (!r)
        return 0;
    T_ASSERT_HOT(r[0] && r[0] <= f->nodes[node].n_ports,
                 "a set of next hops is empty or larger than its switch");
    *port = r + 1;
    return r[0];
}

unsigned fabric_hops(const struct fabric *f, fab_id node, unsigned dest, fab_id *port, unsigned max)
{
    fab_id buf[FAB_MAX_HOST_PORTS];
    const fab_id *all;
    unsigned n = hops_find(f, node, dest, buf, &all);

    if (max)
        memcpy(port, all, (n < max ? n : max) * sizeof(*port));
    return n;
}
