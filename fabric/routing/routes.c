/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forwarding tables: for every switch and every other of its network the set of equal-cost next
 * hops.
 *
 * A path goes up, then perhaps sideways between switches of one tier, then down, and never up
 * again: that is what keeps a fabric with PFC free of circular waiting. Tables depend on the
 * destination alone, not on the port of arrival, so the rule must hold for every path. It does if
 * every switch uses the first of these kinds of routes that it has, and the shortest of that kind:
 *
 *   DOWN      to a lower switch that has a DOWN route (or is where the destination hangs)
 *   SIDEWAYS  to a switch of its tier that has a DOWN or SIDEWAYS route
 *   UP        to a higher switch that has any route
 *
 * because a switch sends a frame down only to a switch with a DOWN route, which it then uses. Within a kind
 * the distance falls by one per hop, so there is no loop. Hosts do not forward.
 *
 * Rejected: with shortest paths over the whole graph, a frame would bounce off a leaf if a spine
 * has lost a link.
 *
 * All destinations at one switch share the route to it, and no route leads from one network to another, so
 * routes are computed once per pair of switches of a network (hops.c). A large fabric is only computed; a
 * table of all its pairs would take gigabytes, so only the routes to one switch are kept, that of the last
 * question.
 */
#include "base/assert.h"
#include "fabric/build.h"
#include "fabric/routing/routes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum route_kind { NO_ROUTE, DOWN, SIDEWAYS, UP };

/* Routes to one switch while they are computed. */
struct routes {
    const fab_id *mine; /* f->by_network: the current network */
    unsigned n_mine;
    unsigned *first; /* [n_nodes + 1] index of a switch's first neighbouring switch */
    fab_id *peer, *port;
    uint8_t *kind;     /* [n_nodes] route to the current switch */
    fab_id *dist;      /* [n_nodes] */
    fab_id *queue;     /* [n_switches] ring of switches whose neighbours must be visited again */
    bool *queued;      /* [n_nodes] */
    uint16_t *tier;    /* [n_nodes] */
    bool has_sideways; /* some link joins switches of one tier */
    fab_id target;     /* FAB_NONE: none yet */
    /* With tables: [n_nodes] the last set of hops, shared while it stays the same. Without: sets of hops to
     * the target; that of u, once known, is at first[u] + u. */
    const fab_id **recent;
    fab_id *set;
};

static void routes_offer(struct routes *w, fab_id u, enum route_kind kind, unsigned dist)
{
    if (w->kind[u] == NO_ROUTE || (w->kind[u] == kind && dist < w->dist[u])) {
        w->kind[u] = (uint8_t)kind;
        w->dist[u] = (fab_id)dist;
    }
}

/* Goes from the lowest tier up, so that everything below u is final when u is visited. */
static void routes_down(struct routes *w, fab_id target)
{
    w->kind[target] = DOWN;
    w->dist[target] = 0;
    for (unsigned s = 0; s < w->n_mine; s++) {
        fab_id u = w->mine[s];

        for (unsigned i = w->first[u]; i < w->first[u + 1u] && u != target; i++) {
            fab_id v = w->peer[i];

            if (w->tier[v] < w->tier[u] && w->kind[v] == DOWN)
                routes_offer(w, u, DOWN, w->dist[v] + 1u);
        }
    }
}

/* Goes from every switch with a DOWN route along its tier, and again whenever it finds a shorter route. */
static void routes_sideways(struct routes *w, unsigned size)
{
    unsigned head = 0, count = 0;

    for (unsigned s = 0; s < w->n_mine; s++) {
        fab_id u = w->mine[s];

        w->queued[u] = w->kind[u] == DOWN;
        if (w->queued[u])
            w->queue[count++] = u;
    }
    while (count) {
        fab_id u = w->queue[head];

        head = (head + 1) % size;
        count--;
        w->queued[u] = false;
        for (unsigned i = w->first[u]; i < w->first[u + 1u]; i++) {
            fab_id v = w->peer[i];

            if (w->tier[v] != w->tier[u] || w->kind[v] == DOWN ||
                (w->kind[v] == SIDEWAYS && w->dist[v] <= w->dist[u] + 1))
                continue;
            w->kind[v] = SIDEWAYS;
            w->dist[v] = w->dist[u] + 1;
            if (!w->queued[v]) {
                w->queued[v] = true;
                T_ASSERT(count < size, "a switch is queued twice");
                w->queue[(head + count++) % size] = v;
            }
        }
    }
}

/* Goes from the highest tier down, so that everything above u is final when u is visited. */
static void routes_up(struct routes *w)
{
    for (unsigned s = w->n_mine; s-- > 0;) {
        fab_id u = w->mine[s];

        if (w->kind[u] == DOWN || w->kind[u] == SIDEWAYS)
            continue;
        for (unsigned i = w->first[u]; i < w->first[u + 1u]; i++) {
            fab_id v = w->peer[i];

            if (w->tier[v] > w->tier[u] && w->kind[v] != NO_ROUTE)
                routes_offer(w, u, UP, w->dist[v] + 1u);
        }
    }
}

/* Whether a switch with u's kind of route may forward to its neighbour v. */
static bool is_next(const struct routes *w, fab_id u, fab_id v)
{
    int up = (int)w->tier[v] - (int)w->tier[u];

    if (w->kind[v] == NO_ROUTE || w->dist[v] + 1 != w->dist[u])
        return false;
    switch (w->kind[u]) {
    case DOWN:
        return up < 0 && w->kind[v] == DOWN;
    case SIDEWAYS:
        return up == 0; /* v then has a route down or sideways, at least by u */
    default:
        return up > 0;
    }
}

static void routes_to(struct routes *w, unsigned n_switches, fab_id target)
{
    for (unsigned s = 0; s < w->n_mine; s++)
        w->kind[w->mine[s]] = NO_ROUTE;
    routes_down(w, target);
    if (w->has_sideways)
        routes_sideways(w, n_switches);
    routes_up(w);
    w->target = target;
}

/* Writes the ports of the next hops; returns their number. */
static unsigned next_hops(const struct routes *w, fab_id u, fab_id *port)
{
    unsigned k = 0;

    for (unsigned i = w->first[u]; i < w->first[u + 1u] && w->kind[u] != NO_ROUTE; i++)
        if (is_next(w, u, w->peer[i]))
            port[k++] = w->port[i];
    return k;
}

/* ---- routes of a large fabric, on demand ---- */

/* Makes the network of a switch the current one. */
static void enter_network(const struct fabric *f, struct routes *w, fab_id node)
{
    const struct fab_node *n = &f->nodes[node];
    unsigned from = f->networks[n->network];

    w->mine = f->by_network + from;
    w->n_mine = f->networks[n->network + 1u] - from;
}

const fab_id *routes_find(const struct fabric *f, fab_id from, fab_id to)
{
    struct routes *w = f->routes;
    fab_id *set = w->set + w->first[from] + from;

    T_ASSERT_HOT(f->nodes[from].network == f->nodes[to].network,
                 "a route between networks is asked for");
    if (w->target != to) {
        enter_network(f, w, to);
        for (unsigned s = 0; s < w->n_mine; s++)
            w->set[w->first[w->mine[s]] + w->mine[s]] = FAB_NONE;
        routes_to(w, f->n_switches, to);
    }
    if (from != to && *set == FAB_NONE)
        *set = next_hops(w, from, set + 1);
    return from != to && *set ? set : NULL;
}

/* ---- tables ---- */

/* The set of ports; reuses the node's last one if it is equal. */
static const fab_id *intern(struct build *b, struct routes *w, fab_id u, const fab_id *port,
                            unsigned n)
{
    const fab_id *h = w->recent[u];
    fab_id *set;

    if (h && h[0] == n && !memcmp(h + 1, port, n * sizeof(*port)))
        return h;
    set = build_alloc(b, n + 1u, sizeof(*set));
    if (!set)
        return NULL;
    set[0] = (fab_id)n;
    memcpy(set + 1, port, n * sizeof(*port));
    w->recent[u] = set;
    return set;
}

/* Computes the network's routes to one of its switches. */
static void route_switch(struct build *b, struct routes *w, fab_id target)
{
    struct fabric *f = b->f;
    fab_id port[FAB_MAX_PORTS];

    routes_to(w, f->n_switches, target);
    for (unsigned s = 0; s < w->n_mine; s++) {
        fab_id u = w->mine[s];
        unsigned n = u == target ? 0 : next_hops(w, u, port);

        T_ASSERT((n != 0) == (u != target && w->kind[u] != NO_ROUTE),
                 "a switch with a route has no next hop, or the other way around");
        if (n)
            f->nodes[u].routes[f->nodes[target].network_index] = intern(b, w, u, port, n);
    }
}

static void route_all(struct build *b, struct routes *w)
{
    struct fabric *f = b->f;

    for (unsigned n = 0; n < f->n_networks; n++) {
        w->mine = f->by_network + f->networks[n];
        w->n_mine = f->networks[n + 1] - f->networks[n];
        for (unsigned s = 0; s < w->n_mine && !b->no_memory; s++)
            f->nodes[w->mine[s]].routes = build_alloc(b, w->n_mine, sizeof(fab_id *));
        for (unsigned s = 0; s < w->n_mine && !b->no_memory; s++)
            route_switch(b, w, w->mine[s]);
    }
}

static int by_network(const void *a, const void *z, void *f)
{
    fab_id i = *(const fab_id *)a, j = *(const fab_id *)z;
    const struct fab_node *nodes = ((const struct fabric *)f)->nodes;

    if (nodes[i].network != nodes[j].network)
        return nodes[i].network < nodes[j].network ? -1 : 1;
    if (nodes[i].tier != nodes[j].tier)
        return nodes[i].tier < nodes[j].tier ? -1 : 1;
    return i < j ? -1 : i > j;
}

/* Numbers the networks. */
static void find_networks(struct fabric *f, struct routes *w)
{
    f->n_networks = 0;
    for (unsigned i = 0; i < f->n_nodes; i++)
        f->nodes[i].network = FAB_NONE;
    for (unsigned s = 0; s < f->n_switches; s++) {
        unsigned n = 0;

        if (f->nodes[f->switches[s]].network != FAB_NONE)
            continue;
        w->queue[n++] = f->switches[s];
        f->nodes[f->switches[s]].network = f->n_networks;
        for (unsigned i = 0; i < n; i++) {
            for (unsigned k = w->first[w->queue[i]]; k < w->first[w->queue[i] + 1u]; k++) {
                fab_id v = w->peer[k];

                if (f->nodes[v].network != FAB_NONE)
                    continue;
                f->nodes[v].network = f->n_networks;
                w->queue[n++] = v;
            }
        }
        f->n_networks++;
    }
}

/* Lists the switches by network, lowest tier first, and where each network begins. */
static void index_networks(struct build *b)
{
    struct fabric *f = b->f;

    f->by_network = build_alloc(b, f->n_switches + 1u, sizeof(*f->by_network));
    f->networks = build_alloc(b, f->n_networks + 1u, sizeof(*f->networks));
    if (b->no_memory)
        return;
    memcpy(f->by_network, f->switches, f->n_switches * sizeof(*f->switches));
    qsort_r(f->by_network, f->n_switches, sizeof(*f->by_network), by_network, f);
    for (unsigned s = 0; s < f->n_switches; s++) {
        struct fab_node *n = &f->nodes[f->by_network[s]];

        if (!s || f->nodes[f->by_network[s - 1]].network != n->network)
            f->networks[n->network] = (fab_id)s;
        n->network_index = (fab_id)(s - f->networks[n->network]);
    }
    f->networks[f->n_networks] = f->n_switches;
    T_ASSERT(!f->n_switches || f->networks[0] == 0, "networks are not numbered from 0");
}

/* Neighbours in ascending order of ports. */
static int list_neighbours(const struct fabric *f, struct routes *w)
{
    unsigned n = 0;

    for (unsigned i = 0; i < f->n_links; i++)
        n += f->nodes[f->links[i].a].kind == FAB_SWITCH &&
             f->nodes[f->links[i].b].kind == FAB_SWITCH;
    w->peer = malloc((2 * n + 1) * sizeof(*w->peer));
    w->port = malloc((2 * n + 1) * sizeof(*w->port));
    w->set = malloc((2 * n + f->n_nodes + 1) * sizeof(*w->set));
    if (!w->peer || !w->port || !w->set)
        return -ENOMEM;
    n = 0;
    for (unsigned u = 0; u < f->n_nodes; u++) {
        w->first[u] = n;
        w->tier[u] = f->nodes[u].tier;
        for (unsigned p = 0; f->nodes[u].kind == FAB_SWITCH && p < f->nodes[u].n_ports; p++) {
            fab_id v = peer_switch(f, &f->nodes[u].ports[p]);

            if (v == FAB_NONE)
                continue;
            w->peer[n] = v;
            w->port[n++] = (fab_id)p;
            w->has_sideways |= f->nodes[v].tier == f->nodes[u].tier;
        }
    }
    w->first[f->n_nodes] = n;
    return 0;
}

static int alloc_routes(const struct fabric *f, struct routes *w)
{
    unsigned n = f->n_nodes + 1u;

    w->target = FAB_NONE;
    w->first = calloc(n, sizeof(*w->first));
    w->tier = calloc(n, sizeof(*w->tier));
    w->kind = calloc(n, sizeof(*w->kind));
    w->dist = calloc(n, sizeof(*w->dist));
    w->queue = calloc(n, sizeof(*w->queue));
    w->queued = calloc(n, sizeof(*w->queued));
    w->recent = calloc(n, sizeof(*w->recent));
    return w->first && w->tier && w->kind && w->dist && w->queue && w->queued && w->recent
               ? list_neighbours(f, w)
               : -ENOMEM;
}

void routes_free(struct routes *w)
{
    if (!w)
        return;
    free(w->first);
    free(w->peer);
    free(w->port);
    free(w->tier);
    free(w->kind);
    free(w->dist);
    free(w->queue);
    free(w->queued);
    free(w->recent);
    free(w->set);
    free(w);
}

void routes_build(struct build *b)
{
    struct fabric *f = b->f;
    struct routes *w = calloc(1, sizeof(*w));

    f->routes = NULL;
    if (!w || alloc_routes(f, w)) {
        b->no_memory = true;
    } else {
        find_networks(f, w);
        index_networks(b);
    }
    if (fabric_is_large(f)) {
        f->routes = w;
        return;
    }
    if (!b->no_memory)
        route_all(b, w);
    routes_free(w);
}
