/*
 * Forwarding tables: for every node and destination the set of equal-cost next hops.
 *
 * A path goes up, then perhaps sideways between switches of one tier, then down, and never up
 * again: that is what keeps a fabric with PFC free of circular waiting. Tables know the destination
 * alone, not where a frame came from, so the rule must hold whatever the way in. It does if every
 * switch takes the first of these kinds that it has, the shortest of that kind:
 *
 *   DOWN      to a lower switch that has a DOWN route (or is where the destination hangs)
 *   SIDEWAYS  to a switch of its tier that has a DOWN or SIDEWAYS route
 *   UP        to a higher switch that has any route
 *
 * because a frame that came from above was sent there for its DOWN route, which is then also the
 * kind that is taken next. Along a kind the distance falls by one per hop, so no loop exists. Hosts
 * do not forward.
 *
 * Shortest paths over the whole graph, the design not taken, would let a frame bounce off a leaf
 * where a spine has lost a link.
 *
 * All destinations that hang on one switch share their route there: the work is done once per such
 * switch.
 */
#include "fabric/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum kind { NO_ROUTE, DOWN, SIDEWAYS, UP };

struct work {
    uint16_t *by_tier; /* [n_switches] node index, lowest tier first */
    uint8_t *kind;     /* [n_nodes] route to the current switch */
    uint16_t *dist;    /* [n_nodes] */
    uint16_t *queue;   /* [n_switches] ring of switches whose neighbours want another look */
    bool *queued;      /* [n_nodes] */
    bool has_sideways; /* some link joins switches of one tier */
    struct fab_hops
        *recent; /* [n_nodes] last set of hops of each node, shared while it stays the same */
};

static int compare_tier(const void *a, const void *z, void *f)
{
    uint16_t i = *(const uint16_t *)a, j = *(const uint16_t *)z;
    const struct fab_node *nodes = ((const struct fabric *)f)->nodes;

    if (nodes[i].tier != nodes[j].tier)
        return nodes[i].tier < nodes[j].tier ? -1 : 1;
    return i < j ? -1 : i > j;
}

static void offer(struct work *w, uint16_t u, enum kind kind, unsigned dist)
{
    if (w->kind[u] == NO_ROUTE || (w->kind[u] == kind && dist < w->dist[u])) {
        w->kind[u] = (uint8_t)kind;
        w->dist[u] = (uint16_t)dist;
    }
}

/* Lowest tier first, so that everything below u is settled when u is looked at. */
static void routes_down(const struct fabric *f, struct work *w, uint16_t target)
{
    w->kind[target] = DOWN;
    w->dist[target] = 0;
    for (unsigned s = 0; s < f->n_switches; s++) {
        uint16_t u = w->by_tier[s];
        const struct fab_node *n = &f->nodes[u];

        for (unsigned p = 0; p < n->n_ports && u != target; p++) {
            uint16_t v = peer_switch(f, &n->ports[p]);

            if (v != FAB_NONE && f->nodes[v].tier < n->tier && w->kind[v] == DOWN)
                offer(w, u, DOWN, w->dist[v] + 1u);
        }
    }
}

/* From every switch that has a DOWN route outwards along its tier, again whenever a shorter way is
 * found. */
static void routes_sideways(const struct fabric *f, struct work *w)
{
    unsigned head = 0, count = 0;

    for (unsigned s = 0; s < f->n_switches; s++) {
        uint16_t u = w->by_tier[s];

        w->queued[u] = w->kind[u] == DOWN;
        if (w->queued[u])
            w->queue[count++] = u;
    }
    while (count) {
        uint16_t u = w->queue[head];
        const struct fab_node *n = &f->nodes[u];

        head = (head + 1) % f->n_switches;
        count--;
        w->queued[u] = false;
        for (unsigned p = 0; p < n->n_ports; p++) {
            uint16_t v = peer_switch(f, &n->ports[p]);

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

/* Highest tier first, so that everything above u is settled when u is looked at. */
static void routes_up(const struct fabric *f, struct work *w)
{
    for (unsigned s = f->n_switches; s-- > 0;) {
        uint16_t u = w->by_tier[s];
        const struct fab_node *n = &f->nodes[u];

        if (w->kind[u] == DOWN || w->kind[u] == SIDEWAYS)
            continue;
        for (unsigned p = 0; p < n->n_ports; p++) {
            uint16_t v = peer_switch(f, &n->ports[p]);

            if (v != FAB_NONE && f->nodes[v].tier > n->tier && w->kind[v] != NO_ROUTE)
                offer(w, u, UP, w->dist[v] + 1u);
        }
    }
}

/* Whether a switch with u's kind of route may go on to its neighbour v. */
static bool is_next(const struct fabric *f, const struct work *w, uint16_t u, uint16_t v)
{
    int up = (int)f->nodes[v].tier - (int)f->nodes[u].tier;

    if (w->kind[v] == NO_ROUTE || w->dist[v] + 1 != w->dist[u])
        return false;
    switch (w->kind[u]) {
    case DOWN:
        return up < 0 && w->kind[v] == DOWN;
    case SIDEWAYS:
        return up == 0; /* which has a way down or sideways itself: at least by u */
    default:
        return up > 0;
    }
}

/* The set of ports, as the node's last one if it is the same again. */
static struct fab_hops intern(struct build *b, struct work *w, uint16_t u, const uint16_t *port,
                              unsigned n)
{
    struct fab_hops *h = &w->recent[u];

    if (h->n == n && !memcmp(h->port, port, n * sizeof(*port)))
        return *h;
    h->port = build_alloc(b, n, sizeof(*port));
    h->n = h->port ? (uint16_t)n : 0;
    if (h->port)
        memcpy(h->port, port, n * sizeof(*port));
    return *h;
}

static struct fab_hops switch_hops(struct build *b, struct work *w, uint16_t u)
{
    const struct fab_node *n = &b->f->nodes[u];
    uint16_t port[FAB_MAX_PORTS];
    unsigned k = 0;

    for (unsigned p = 0; p < n->n_ports && w->kind[u] != NO_ROUTE; p++) {
        uint16_t v = peer_switch(b->f, &n->ports[p]);

        if (v != FAB_NONE && is_next(b->f, w, u, v))
            port[k++] = (uint16_t)p;
    }
    return k ? intern(b, w, u, port, k) : (struct fab_hops){0, NULL};
}

/* A host's ports to a switch that is the target or has a route there. */
static struct fab_hops host_hops(struct build *b, struct work *w, uint16_t u)
{
    const struct fab_node *n = &b->f->nodes[u];
    uint16_t port[FAB_MAX_HOST_PORTS];
    unsigned k = 0;

    for (unsigned p = 0; p < n->n_ports; p++) {
        uint16_t v = peer_switch(b->f, &n->ports[p]);

        if (v != FAB_NONE && w->kind[v] != NO_ROUTE)
            port[k++] = (uint16_t)p;
    }
    return k ? intern(b, w, u, port, k) : (struct fab_hops){0, NULL};
}

static void set_hops(struct build *b, uint16_t u, unsigned dest, struct fab_hops h)
{
    b->f->nodes[u].hops[dest] = h;
}

/* Everything that hangs on switch `target`: its own address and its hosts' ports. */
static void route_switch(struct build *b, struct work *w, uint16_t target)
{
    struct fabric *f = b->f;
    const struct fab_node *t = &f->nodes[target];

    memset(w->kind, NO_ROUTE, f->n_nodes);
    routes_down(f, w, target);
    if (w->has_sideways)
        routes_sideways(f, w);
    routes_up(f, w);
    for (uint16_t u = 0; u < f->n_nodes; u++) {
        struct fab_hops h =
            f->nodes[u].kind == FAB_HOST ? host_hops(b, w, u) : switch_hops(b, w, u);
        bool climbs = w->kind[u] == DOWN || w->kind[u] == SIDEWAYS;

        if (u != target)
            set_hops(b, u, t->dest, h);
        for (uint16_t p = 0; p < t->n_ports; p++) {
            uint16_t host = t->ports[p].link == FAB_NONE ? FAB_NONE : t->ports[p].peer_node;
            const struct fab_node *hn = host == FAB_NONE ? NULL : &f->nodes[host];

            if (!hn || hn->kind != FAB_HOST)
                continue;
            if (u != host)
                set_hops(b, u, hn->dest + t->ports[p].peer_port,
                         u == target ? intern(b, w, u, &p, 1) : h);
            if (climbs && f->nodes[u].kind == FAB_SWITCH)
                b->reach[u][hn->host_index / 64] |= 1ull << (hn->host_index % 64);
        }
    }
}

/* Two hosts back to back. */
static void route_direct(struct build *b, struct work *w, uint16_t i)
{
    const struct fab_node *n = &b->f->nodes[i];

    for (uint16_t p = 0; p < n->n_ports; p++) {
        const struct fab_node *peer = &b->f->nodes[n->ports[p].peer_node];

        if (peer->kind == FAB_HOST)
            set_hops(b, i, peer->dest + n->ports[p].peer_port, intern(b, w, i, &p, 1));
    }
}

static bool reaches(const struct fabric *f, uint16_t from, uint16_t to)
{
    const struct fab_node *a = &f->nodes[from], *z = &f->nodes[to];

    for (unsigned p = 0; p < z->n_ports; p++)
        if (a->hops[z->dest + p].n)
            return true;
    return false;
}

/* Every host against the first one, then, if those are fine, against each other; the first of each
 * is enough to act on. */
static void check_reach(struct build *b)
{
    const struct fabric *f = b->f;
    bool bad = false;

    for (unsigned i = 0; i < f->n_hosts && !bad; i++) {
        for (unsigned j = i + 1; j < f->n_hosts; j++) {
            if (reaches(f, f->hosts[i], f->hosts[j]) && reaches(f, f->hosts[j], f->hosts[i]))
                continue;
            build_error(
                b, b->node_line[f->hosts[j]],
                "found no path between \"%s\" and \"%s\", expected one that goes up and then down",
                f->nodes[f->hosts[i]].name, f->nodes[f->hosts[j]].name);
            bad = true;
        }
    }
}

static int alloc_work(struct build *b, struct work *w)
{
    struct fabric *f = b->f;
    unsigned n = f->n_nodes + 1u;

    w->by_tier = calloc(n, sizeof(*w->by_tier));
    w->kind = calloc(n, sizeof(*w->kind));
    w->dist = calloc(n, sizeof(*w->dist));
    w->queue = calloc(n, sizeof(*w->queue));
    w->queued = calloc(n, sizeof(*w->queued));
    w->recent = calloc(n, sizeof(*w->recent));
    b->reach = build_alloc(b, n, sizeof(*b->reach));
    for (unsigned i = 0; i < f->n_nodes && !b->no_memory; i++)
        f->nodes[i].hops = build_alloc(b, f->n_dests, sizeof(struct fab_hops));
    if (!w->by_tier || !w->kind || !w->dist || !w->queue || !w->queued || !w->recent)
        b->no_memory = true;
    return b->no_memory ? -ENOMEM : 0;
}

static void free_work(struct work *w)
{
    free(w->by_tier);
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
        memcpy(w.by_tier, f->switches, f->n_switches * sizeof(*w.by_tier));
        qsort_r(w.by_tier, f->n_switches, sizeof(*w.by_tier), compare_tier, f);
        for (unsigned i = 0; i < f->n_links; i++)
            w.has_sideways |= f->nodes[f->links[i].a].kind == FAB_SWITCH &&
                              f->nodes[f->links[i].a].tier == f->nodes[f->links[i].b].tier;
        for (unsigned s = 0; s < f->n_switches && !b->no_memory; s++)
            route_switch(b, &w, f->switches[s]);
        for (unsigned i = 0; i < f->n_hosts; i++)
            route_direct(b, &w, f->hosts[i]);
        check_reach(b);
    }
    free_work(&w);
}
