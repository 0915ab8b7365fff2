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
 * because a switch sends a frame down only to a switch with a DOWN route, which uses that one next.
 * Within a kind the distance falls by one per hop, so no loop exists. Hosts do not forward.
 *
 * Rejected: with shortest paths over the whole graph, a frame would bounce off a leaf if a spine
 * has lost a link.
 *
 * All destinations at one switch share the route to it, and no route leads from one network to
 * another: routes are computed once per pair of switches of a network (hops.c).
 */
#include "fabric/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum kind { NO_ROUTE, DOWN, SIDEWAYS, UP };

struct work {
    fab_id *order; /* [n_switches] node index: network by network, lowest tier first */
    fab_id *mine;  /* in order: the current network */
    unsigned n_mine;
    uint8_t *kind;         /* [n_nodes] route to the current switch */
    fab_id *dist;          /* [n_nodes] */
    fab_id *queue;         /* [n_switches] ring of switches whose neighbours must be visited
                                again */
    bool *queued;          /* [n_nodes] */
    bool has_sideways;     /* some link joins switches of one tier */
    const fab_id **recent; /* [n_nodes] last set of hops, shared while it stays the same */
};

static int compare_network_index(const void *a, const void *z, void *f)
{
    fab_id i = *(const fab_id *)a, j = *(const fab_id *)z;
    const struct fab_node *nodes = ((const struct fabric *)f)->nodes;

    if (nodes[i].network != nodes[j].network)
        return nodes[i].network < nodes[j].network ? -1 : 1;
    if (nodes[i].tier != nodes[j].tier)
        return nodes[i].tier < nodes[j].tier ? -1 : 1;
    return i < j ? -1 : i > j;
}

static void offer(struct work *w, fab_id u, enum kind kind, unsigned dist)
{
    if (w->kind[u] == NO_ROUTE || (w->kind[u] == kind && dist < w->dist[u])) {
        w->kind[u] = (uint8_t)kind;
        w->dist[u] = (fab_id)dist;
    }
}

/* Lowest tier first, so that everything below u is final when u is visited. */
static void routes_down(const struct fabric *f, struct work *w, fab_id target)
{
    w->kind[target] = DOWN;
    w->dist[target] = 0;
    for (unsigned s = 0; s < w->n_mine; s++) {
        fab_id u = w->mine[s];
        const struct fab_node *n = &f->nodes[u];

        for (unsigned p = 0; p < n->n_ports && u != target; p++) {
            fab_id v = peer_switch(f, &n->ports[p]);

            if (v != FAB_NONE && f->nodes[v].tier < n->tier && w->kind[v] == DOWN)
                offer(w, u, DOWN, w->dist[v] + 1u);
        }
    }
}

/* From every switch with a DOWN route outwards along its tier, again whenever a shorter route is
 * found. */
static void routes_sideways(const struct fabric *f, struct work *w)
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
        const struct fab_node *n = &f->nodes[u];

        head = (head + 1) % f->n_switches;
        count--;
        w->queued[u] = false;
        for (unsigned p = 0; p < n->n_ports; p++) {
            fab_id v = peer_switch(f, &n->ports[p]);

            if (v == FAB_NONE || f->nodes[v].tier != n->tier || w->kind[v] == DOWN ||
                (w->kind[v] == SIDEWAYS && w->dist[v] <= w->dist[u] + 1))
                continue;
            w->kind[v] = SIDEWAYS;
            w->dist[v] = w->dist[u] + 1;
            if (!w->queued[v]) {
                w->queued[v] = true;
                w->queue[(head + count++) % f->n_switches] = v;
            }
        }
    }
}

/* Highest tier first, so that everything above u is final when u is visited. */
static void routes_up(const struct fabric *f, struct work *w)
{
    for (unsigned s = w->n_mine; s-- > 0;) {
        fab_id u = w->mine[s];
        const struct fab_node *n = &f->nodes[u];

        if (w->kind[u] == DOWN || w->kind[u] == SIDEWAYS)
            continue;
        for (unsigned p = 0; p < n->n_ports; p++) {
            fab_id v = peer_switch(f, &n->ports[p]);

            if (v != FAB_NONE && f->nodes[v].tier > n->tier && w->kind[v] != NO_ROUTE)
                offer(w, u, UP, w->dist[v] + 1u);
        }
    }
}

/* Whether a switch with u's kind of route may forward to its neighbour v. */
static bool is_next(const struct fabric *f, const struct work *w, fab_id u, fab_id v)
{
    int up = (int)f->nodes[v].tier - (int)f->nodes[u].tier;

    if (w->kind[v] == NO_ROUTE || w->dist[v] + 1 != w->dist[u])
        return false;
    switch (w->kind[u]) {
    case DOWN:
        return up < 0 && w->kind[v] == DOWN;
    case SIDEWAYS:
        return up == 0; /* v has a route down or sideways itself: at least by u */
    default:
        return up > 0;
    }
}

/* The set of ports; reuses the node's last one if it is equal. */
static const fab_id *intern(struct build *b, struct work *w, fab_id u, const fab_id *port,
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

static const fab_id *next_hops(struct build *b, struct work *w, fab_id u)
{
    const struct fab_node *n = &b->f->nodes[u];
    fab_id port[FAB_MAX_PORTS];
    unsigned k = 0;

    for (unsigned p = 0; p < n->n_ports && w->kind[u] != NO_ROUTE; p++) {
        fab_id v = peer_switch(b->f, &n->ports[p]);

        if (v != FAB_NONE && is_next(b->f, w, u, v))
            port[k++] = (fab_id)p;
    }
    return k ? intern(b, w, u, port, k) : NULL;
}

/* Records the hosts of `target` at u, which reaches them without going up. */
static void add_reach(struct build *b, fab_id u, fab_id target)
{
    const struct fab_node *t = &b->f->nodes[target];

    for (unsigned p = 0; p < t->n_ports; p++) {
        fab_id host = t->ports[p].link == FAB_NONE ? FAB_NONE : t->ports[p].peer_node;
        unsigned i = host == FAB_NONE ? 0 : b->f->nodes[host].host_index;

        if (host != FAB_NONE && b->f->nodes[host].kind == FAB_HOST)
            b->reach[u][i / 64] |= 1ull << (i % 64);
    }
}

/* Computes the network's routes to one of its switches. */
static void route_switch(struct build *b, struct work *w, fab_id target)
{
    struct fabric *f = b->f;

    for (unsigned s = 0; s < w->n_mine; s++)
        w->kind[w->mine[s]] = NO_ROUTE;
    routes_down(f, w, target);
    if (w->has_sideways)
        routes_sideways(f, w);
    routes_up(f, w);
    for (unsigned s = 0; s < w->n_mine; s++) {
        fab_id u = w->mine[s];

        if (u != target)
            f->nodes[u].routes[f->nodes[target].network_index] = next_hops(b, w, u);
        if (f->nodes[target].n_hosts && (w->kind[u] == DOWN || w->kind[u] == SIDEWAYS))
            add_reach(b, u, target);
    }
}

/* Numbers the networks and lists their switches in w->order. */
static void find_networks(struct fabric *f, struct work *w)
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
            const struct fab_node *u = &f->nodes[w->queue[i]];

            for (unsigned p = 0; p < u->n_ports; p++) {
                fab_id v = peer_switch(f, &u->ports[p]);

                if (v == FAB_NONE || f->nodes[v].network != FAB_NONE)
                    continue;
                f->nodes[v].network = f->n_networks;
                w->queue[n++] = v;
            }
        }
        f->n_networks++;
    }
    memcpy(w->order, f->switches, f->n_switches * sizeof(*w->order));
    qsort_r(w->order, f->n_switches, sizeof(*w->order), compare_network_index, f);
}

/* Computes all routes of the network order[from..]; returns where the next one begins. */
static unsigned route_network(struct build *b, struct work *w, unsigned from)
{
    struct fabric *f = b->f;
    fab_id number = f->nodes[w->order[from]].network;

    w->mine = w->order + from;
    for (w->n_mine = 0; from + w->n_mine < f->n_switches; w->n_mine++) {
        struct fab_node *n = &f->nodes[w->mine[w->n_mine]];

        if (n->network != number)
            break;
        n->network_index = (fab_id)w->n_mine;
    }
    for (unsigned s = 0; s < w->n_mine && !b->no_memory; s++)
        f->nodes[w->mine[s]].routes = build_alloc(b, w->n_mine, sizeof(fab_id *));
    for (unsigned s = 0; s < w->n_mine && !b->no_memory; s++)
        route_switch(b, w, w->mine[s]);
    return from + w->n_mine;
}

static int alloc_work(struct build *b, struct work *w)
{
    unsigned n = b->f->n_nodes + 1u;

    w->order = calloc(n, sizeof(*w->order));
    w->kind = calloc(n, sizeof(*w->kind));
    w->dist = calloc(n, sizeof(*w->dist));
    w->queue = calloc(n, sizeof(*w->queue));
    w->queued = calloc(n, sizeof(*w->queued));
    w->recent = calloc(n, sizeof(*w->recent));
    b->reach = build_alloc(b, n, sizeof(*b->reach));
    if (!w->order || !w->kind || !w->dist || !w->queue || !w->queued || !w->recent)
        b->no_memory = true;
    return b->no_memory ? -ENOMEM : 0;
}

static void free_work(struct work *w)
{
    free(w->order);
    free(w->kind);
    free(w->dist);
    free(w->queue);
    free(w->queued);
    free(w->recent);
}

void routes_build(struct build *b)
{
    struct fabric *f = b->f;
    struct work w = {0};

    if (!alloc_work(b, &w)) {
        find_networks(f, &w);
        for (unsigned i = 0; i < f->n_links; i++)
            w.has_sideways |= f->nodes[f->links[i].a].kind == FAB_SWITCH &&
                              f->nodes[f->links[i].a].tier == f->nodes[f->links[i].b].tier;
        for (unsigned s = 0; s < f->n_switches && !b->no_memory;)
            s = route_network(b, &w, s);
        if (!b->no_memory)
            reach_check(b);
    }
    free_work(&w);
}
