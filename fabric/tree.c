/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Aggregation trees. A root is a reducing switch that no other one of its network surpasses: none is reached
 * (going up or sideways) by more hosts, and none of a higher tier by the same hosts. So the roots are all
 * spines of a leaf/spine fabric, all cores of a three-tier fabric, and the only switch of a small one.
 *
 * A tree is the union of its hosts' walks to the root. A walk goes from switch to switch by the forwarding
 * tables; of several equal next switches, the tree's number selects one, so that trees spread over them. Each
 * step depends on the switch alone and leads closer to the root, so the walks join and form a tree. Switches
 * that do not reduce are skipped.
 *
 * A host is on a tree by one port. A root that hosts reach by several ports has a tree for each of them: the
 * fastest ports of all hosts are on one tree, the next ones on another, so that no tree waits for a slow port
 * of one host behind fast ones of others. Roots with the same hosts begin with different ports: if there are
 * enough roots, their first trees alone use all ports.
 *
 * In a large fabric, a tree's parents and ports are computed on demand: those of 30,000 NVSwitches' trees
 * would take gigabytes.
 */
#include "fabric/routing/reach.h"
#include "fabric/tree_roots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_HOPS 64u

/* A tree under construction. */
struct tree_walk {
    const struct fabric *f;
    const struct reach *r;
    const struct fab_tree *t;
    fab_id *parent, *port; /* as in t; FAB_NONE at first */
    unsigned first;        /* selects the port with which the root begins */
    unsigned spread;       /* selects one of several equal next switches */
    unsigned ports;        /* most ports by which a host reaches the root */
};

/* The next switch from u towards the root; FAB_NONE: no route. */
static fab_id tree_walk_step(const struct tree_walk *w, fab_id u)
{
    const struct fabric *f = w->f;
    const struct fab_tree *t = w->t;
    const struct fab_node *n = &f->nodes[u];
    fab_id peers[FAB_MAX_PORTS], buf[FAB_MAX_HOST_PORTS];
    const fab_id *port;
    unsigned hops = hops_find(f, u, f->nodes[t->root].dest, buf, &port), k = 0;

    for (unsigned i = 0; i < hops; i++) {
        fab_id v = n->ports[port[i]].peer_node;
        unsigned j = 0;

        while (j < k && peers[j] != v)
            j++;
        if (j == k)
            peers[k++] = v;
    }
    return k ? peers[w->spread % k] : FAB_NONE;
}

/* The next reducing switch after u. */
static fab_id next_reducer(const struct tree_walk *w, fab_id u)
{
    do
        u = tree_walk_step(w, u);
    while (u != FAB_NONE && !w->f->nodes[u].reduce.on);
    return u;
}

/* A port by which a host reaches the root. */
struct tree_way {
    uint64_t rate_bps;
    unsigned hops;
    fab_id port, leaf;
};

/* Sorts the nearest first, then the fastest, then by the order of leaves: so, for hosts that are wired to
 * the same leaves in different order, one tree has the ports of one leaf. */
static int by_use(const void *a, const void *b)
{
    const struct tree_way *x = a, *y = b;

    if (x->hops != y->hops)
        return x->hops < y->hops ? -1 : 1;
    if (x->rate_bps != y->rate_bps)
        return x->rate_bps > y->rate_bps ? -1 : 1;
    if (x->leaf != y->leaf)
        return x->leaf < y->leaf ? -1 : 1;
    return (x->port > y->port) - (x->port < y->port);
}

/* The port by which a host joins. Roots begin with different ones of the nearest ports; farther ports come
 * last. FAB_NONE: no port reaches the root. */
static fab_id choose_port(struct tree_walk *w, fab_id host)
{
    const struct fabric *f = w->f;
    fab_id port[FAB_MAX_HOST_PORTS];
    struct tree_way way[FAB_MAX_HOST_PORTS];
    uint32_t path[MAX_HOPS];
    unsigned n = fabric_hops(f, host, f->nodes[w->t->root].dest, port, FAB_MAX_HOST_PORTS),
             near = 1, k;

    if (n > w->ports)
        w->ports = n;
    if (n < 2)
        return n ? port[0] : FAB_NONE;
    for (unsigned i = 0; i < n; i++) {
        const struct fab_port *p = &f->nodes[host].ports[port[i]];

        way[i] = (struct tree_way){
            .rate_bps = p->rate_bps,
            .hops = fabric_path_ports(f, host, port[i], w->t->root, 0, path, MAX_HOPS),
            .port = port[i],
            .leaf = p->peer_node};
    }
    qsort(way, n, sizeof(*way), by_use);
    while (near < n && way[near].hops == way[0].hops)
        near++;
    k = w->t->turn % n;
    return way[k < near ? (w->first + k) % near : k].port;
}

/* The port by which a host joins the tree; FAB_NONE: the root does not reach it, or it has no route to the
 * root. e: the first of its ports in the root's network. */
static fab_id entrance(struct tree_walk *w, const struct reach_host *e,
                       const struct reach_host *end)
{
    const uint64_t *down = reach_down(w->f, w->r, w->t->root);
    fab_id host = e->host;

    while (e < end && e->host == host && !reach_has(down, w->r->end[e->end]))
        e++;
    if (e == end || e->host != host)
        return FAB_NONE;
    if (e->several)
        return choose_port(w, host);
    w->ports = w->ports ? w->ports : 1;
    return e->port;
}

/* Adds a host's walk. Returns the number of its ANs. */
static unsigned add_host(struct tree_walk *w, fab_id host, fab_id port)
{
    const struct fabric *f = w->f;
    fab_id u = f->nodes[host].ports[port].peer_node;
    unsigned levels = 1;

    w->port[f->nodes[host].host_index] = port;
    if (!f->nodes[u].reduce.on)
        u = next_reducer(w, u);
    w->parent[host] = u;
    for (; u != w->t->root && u != FAB_NONE; levels++) {
        if (w->parent[u] == FAB_NONE)
            w->parent[u] = next_reducer(w, u);
        u = w->parent[u];
    }
    return levels;
}

/* Adds all hosts; returns the tree's depth. */
static fab_id find_parents(struct tree_walk *w)
{
    fab_id net = w->f->nodes[w->t->root].network;
    const struct reach_host *e = w->r->attached + w->r->first[net],
                            *end = w->r->attached + w->r->first[net + 1u];
    unsigned depth = 0;

    w->first = w->t->first;
    w->spread = w->t->nth + w->t->turn;
    for (fab_id last = FAB_NONE; e < end; last = e->host, e++) {
        fab_id port = e->host == last ? FAB_NONE : entrance(w, e, end);
        unsigned levels = port == FAB_NONE ? 0 : add_host(w, e->host, port);

        depth = levels > depth ? levels : depth;
    }
    return (fab_id)depth;
}

static fab_id *alloc_none(struct build *b, unsigned n)
{
    fab_id *of = build_alloc(b, n + 1u, sizeof(*of));

    if (of)
        memset(of, 0xff, n * sizeof(*of));
    return of;
}

/* ---- trees of a large fabric, on demand ---- */

/* The parents of one tree, and the ports of its hosts. */
struct tree_walks {
    const struct reach *r;
    fab_id *parent, *port; /* [n_nodes], [n_hosts] */
    fab_id id, root;       /* the tree; FAB_NONE: none */
};

static fab_id walk_again(const struct fabric *f, const struct fab_tree *t, unsigned *ports)
{
    struct tree_walks *k = f->walks;
    struct tree_walk w = {.f = f, .r = k->r, .t = t, .parent = k->parent, .port = k->port};
    fab_id net = k->id == FAB_NONE ? 0 : f->nodes[k->root].network, depth;

    for (size_t i = k->r->first[net]; k->id != FAB_NONE && i < k->r->first[net + 1u]; i++) {
        k->parent[k->r->attached[i].host] = FAB_NONE;
        k->port[f->nodes[k->r->attached[i].host].host_index] = FAB_NONE;
    }
    for (unsigned s = f->networks[net]; k->id != FAB_NONE && s < f->networks[net + 1u]; s++)
        k->parent[f->by_network[s]] = FAB_NONE;
    k->id = t->id;
    k->root = t->root;
    depth = find_parents(&w);
    if (ports)
        *ports = w.ports;
    return depth;
}

const fab_id *fabric_tree_parents(const struct fabric *f, const struct fab_tree *t)
{
    if (!fabric_is_large(f))
        return t->parent;
    if (f->walks->id != t->id)
        walk_again(f, t, NULL);
    return f->walks->parent;
}

const fab_id *fabric_tree_ports(const struct fabric *f, const struct fab_tree *t)
{
    fabric_tree_parents(f, t);
    return fabric_is_large(f) ? f->walks->port : t->port;
}

static unsigned walk_large(struct build *b, struct fab_tree *t)
{
    struct fabric *f = b->f;
    unsigned ports = 0;

    if (!f->walks) {
        f->walks = build_alloc(b, 1, sizeof(*f->walks));
        if (!f->walks)
            return 0;
        *f->walks = (struct tree_walks){.r = b->reach,
                                        .id = FAB_NONE,
                                        .parent = alloc_none(b, f->n_nodes),
                                        .port = alloc_none(b, f->n_hosts)};
    }
    if (!b->no_memory)
        t->depth = walk_again(f, t, &ports);
    return ports;
}

/* Returns the most ports by which a host reaches the root. */
static unsigned walk_tree(struct build *b, struct fab_tree *t)
{
    struct tree_walk w = {.f = b->f, .r = b->reach, .t = t};

    if (fabric_is_large(b->f))
        return walk_large(b, t);
    t->parent = w.parent = alloc_none(b, b->f->n_nodes);
    t->port = w.port = alloc_none(b, b->f->n_hosts);
    if (!b->no_memory)
        t->depth = find_parents(&w);
    return w.ports;
}

/* ---- roots ---- */

struct root {
    fab_id node;
    unsigned ports; /* most ports by which a host reaches it: the number of its trees */
    fab_id alike;   /* number of earlier roots that the same hosts reach */
    uint64_t hosts; /* identifies these hosts: a sum of hashes, never 0 */
};

static int add_tree(struct build *b, struct root *root, unsigned number, unsigned turn)
{
    struct fabric *f = b->f;
    struct fab_tree *t = &f->trees[f->n_trees];

    t->id = f->n_trees;
    t->root = root->node;
    t->nth = (fab_id)number;
    t->first = root->alike;
    t->turn = (fab_id)turn;
    t->domain = f->nodes[root->node].domain;
    root->ports = walk_tree(b, t);
    if (b->no_memory)
        return -ENOMEM;
    f->n_trees++;
    return 0;
}

/* Adds the trees of each root beyond its first, one for each port. */
static int add_turns(struct build *b, struct root *root, unsigned n)
{
    struct fabric *f = b->f;
    struct fab_tree *first = f->trees;
    unsigned total = 0, most = 1;

    for (unsigned i = 0; i < n; i++) {
        total += root[i].ports > 1 ? root[i].ports : 1;
        most = root[i].ports > most ? root[i].ports : most;
    }
    if (total == n)
        return 0;
    f->trees = build_alloc(b, total, sizeof(*f->trees));
    if (!f->trees)
        return -ENOMEM;
    memcpy(f->trees, first, n * sizeof(*first));
    for (unsigned turn = 1; turn < most; turn++)
        for (unsigned i = 0; i < n && f->n_trees < FAB_MAX_TREES; i++)
            if (turn < root[i].ports && add_tree(b, &root[i], i, turn))
                return -ENOMEM;
    return 0;
}

static int by_hosts(const void *a, const void *b)
{
    const struct root *x = *(const struct root *const *)a, *y = *(const struct root *const *)b;

    if (x->hosts != y->hosts)
        return x->hosts < y->hosts ? -1 : 1;
    return (x > y) - (x < y);
}

/* Numbers roots with the same hosts, so that they begin with different ports; a single root, as of a rail,
 * begins with the fastest. */
static void count_alike(struct build *b, struct root *root, unsigned n)
{
    struct root **sorted = calloc(n + 1u, sizeof(*sorted));

    b->no_memory |= !sorted;
    for (unsigned i = 0; sorted && i < n; i++)
        sorted[i] = &root[i];
    if (sorted && n)
        qsort(sorted, n, sizeof(*sorted), by_hosts);
    for (unsigned i = 1; sorted && i < n; i++)
        if (sorted[i]->hosts == sorted[i - 1]->hosts)
            sorted[i]->alike = sorted[i - 1]->alike + 1;
    free(sorted);
}

/* Lists the roots in the order of their trees. Returns their number. */
static unsigned list_roots(struct build *b, struct root *root)
{
    const struct fabric *f = b->f;
    uint64_t *hosts = tree_roots(b);
    unsigned n = 0;

    for (int inside = 0; inside < 2 && !b->no_memory; inside++)
        for (unsigned s = 0; s < f->n_switches; s++)
            if ((f->nodes[f->switches[s]].domain != FAB_NONE) == inside && hosts[f->switches[s]])
                root[n++] = (struct root){.node = f->switches[s], .hosts = hosts[f->switches[s]]};
    free(hosts);
    count_alike(b, root, n);
    return n;
}

void tree_build(struct build *b)
{
    struct fabric *f = b->f;
    struct root *root = calloc(f->n_switches + 1u, sizeof(*root));
    unsigned n = root ? list_roots(b, root) : 0;

    f->trees = build_alloc(b, f->n_switches, sizeof(*f->trees));
    b->no_memory |= !root;
    for (unsigned i = 0; i < n && !b->no_memory; i++)
        add_tree(b, &root[i], i, 0);
    if (!b->no_memory)
        add_turns(b, root, n);
    free(root);
}

fab_id fabric_tree_port(const struct fabric *f, const struct fab_tree *t, unsigned host_index)
{
    return host_index < f->n_hosts && fabric_tree_parents(f, t)[f->hosts[host_index]] != FAB_NONE
               ? fabric_tree_ports(f, t)[host_index]
               : FAB_NONE;
}
