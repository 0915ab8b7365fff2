/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Aggregation trees. A root is a reducing switch that no other one of its network surpasses: none
 * is reached (going up or sideways) by more hosts, and none of a higher tier by the same hosts. So
 * the roots are all spines of a leaf/spine fabric, all cores of a three-tier fabric, and the only
 * switch of a small one.
 *
 * A tree is the union of its hosts' walks to the root. A walk goes from switch to switch by the
 * forwarding tables; of several equal next switches, the tree's number selects one, so that trees
 * spread over them. Each step depends on the switch alone and leads closer to the root, so the
 * walks join and form a tree. Switches that do not reduce are skipped.
 *
 * A host is on a tree by one port. A root that hosts reach by several ports has a tree for each of
 * them: the fastest ports of all hosts are on one tree, the next ones on another, so that no tree
 * waits for a slow port of one host behind fast ones of others. Roots of the same hosts begin with
 * different ports: their first trees alone use all ports where there are as many roots.
 */
#include "fabric/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_HOPS 64u

/* A tree that is being built. */
struct walk {
    const struct fabric *f;
    struct fab_tree *t;
    unsigned first;  /* selects the port with which the root begins */
    unsigned spread; /* selects one of several equal next switches */
    unsigned ports;  /* by which some host reaches the root, at most */
};

/* The next switch from u towards the root, FAB_NONE: no route. */
static fab_id step(const struct walk *w, fab_id u)
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
static fab_id next_reducer(const struct walk *w, fab_id u)
{
    do
        u = step(w, u);
    while (u != FAB_NONE && !w->f->nodes[u].reduce.on);
    return u;
}

/* A port of a host that reaches the root. */
struct way {
    uint64_t rate_bps;
    unsigned hops;
    fab_id port, leaf;
};

/* Nearest first, then fastest, then by the order of leaves: of hosts that are wired to the same
 * leaves in different order, one tree has the ports of one leaf. */
static int by_use(const void *a, const void *b)
{
    const struct way *x = a, *y = b;

    if (x->hops != y->hops)
        return x->hops < y->hops ? -1 : 1;
    if (x->rate_bps != y->rate_bps)
        return x->rate_bps > y->rate_bps ? -1 : 1;
    if (x->leaf != y->leaf)
        return x->leaf < y->leaf ? -1 : 1;
    return (x->port > y->port) - (x->port < y->port);
}

/* The port by which a host joins. Roots begin with different ones of the nearest ports; those that
 * are further away come last. FAB_NONE: no port reaches the root. */
static fab_id choose_port(struct walk *w, fab_id host)
{
    const struct fabric *f = w->f;
    fab_id port[FAB_MAX_HOST_PORTS];
    struct way way[FAB_MAX_HOST_PORTS];
    uint32_t path[MAX_HOPS];
    unsigned n = fabric_hops(f, host, f->nodes[w->t->root].dest, port, FAB_MAX_HOST_PORTS),
             near = 1, k;

    if (n > w->ports)
        w->ports = n;
    if (n < 2)
        return n ? port[0] : FAB_NONE;
    for (unsigned i = 0; i < n; i++) {
        const struct fab_port *p = &f->nodes[host].ports[port[i]];

        way[i] =
            (struct way){.rate_bps = p->rate_bps,
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

/* Adds a host's walk; returns the number of its ANs, 0: it does not reach the root. */
static unsigned add_host(struct walk *w, unsigned host_index)
{
    const struct fabric *f = w->f;
    struct fab_tree *t = w->t;
    fab_id host = f->hosts[host_index], port = choose_port(w, host), u;
    unsigned levels = 1;

    if (port == FAB_NONE)
        return 0;
    t->port[host_index] = port;
    u = f->nodes[host].ports[port].peer_node;
    if (!f->nodes[u].reduce.on)
        u = next_reducer(w, u);
    t->parent[host] = u;
    for (; u != t->root && u != FAB_NONE; levels++) {
        if (t->parent[u] == FAB_NONE)
            t->parent[u] = next_reducer(w, u);
        u = t->parent[u];
    }
    return levels;
}

/* ---- roots ---- */

struct root {
    fab_id node;
    unsigned ports; /* of a host that reach it, at most: it has as many trees */
    unsigned alike; /* roots before it that the same hosts reach */
};

static int add_tree(struct build *b, struct root *root, unsigned number, unsigned turn)
{
    struct fabric *f = b->f;
    struct fab_tree *t = &f->trees[f->n_trees];
    struct walk w = {.f = f, .t = t, .first = root->alike, .spread = number + turn};

    t->id = f->n_trees;
    t->root = root->node;
    t->turn = (fab_id)turn;
    t->domain = f->nodes[root->node].domain;
    t->parent = build_alloc(b, f->n_nodes, sizeof(*t->parent));
    t->port = build_alloc(b, f->n_hosts, sizeof(*t->port));
    if (!t->parent || !t->port)
        return -ENOMEM;
    for (unsigned i = 0; i < f->n_nodes; i++)
        t->parent[i] = FAB_NONE;
    for (unsigned i = 0; i < f->n_hosts; i++) {
        unsigned levels = 0;

        t->port[i] = FAB_NONE;
        if (b->reach[root->node][i / 64] >> (i % 64) & 1)
            levels = add_host(&w, i);
        if (levels > t->depth)
            t->depth = (fab_id)levels;
    }
    root->ports = w.ports;
    f->n_trees++;
    return 0;
}

/* Whether z is the better root: it has all hosts of a and more, or the same and a higher tier. */
static bool surpasses(const struct build *b, fab_id z, fab_id a)
{
    bool more = false;

    for (unsigned w = 0; w < FAB_REACH_WORDS; w++) {
        if (b->reach[a][w] & ~b->reach[z][w])
            return false;
        more |= b->reach[z][w] != b->reach[a][w];
    }
    return more || b->f->nodes[z].tier > b->f->nodes[a].tier;
}

static bool is_root(const struct build *b, fab_id a)
{
    static const uint64_t nobody[FAB_REACH_WORDS];
    const struct fabric *f = b->f;

    if (!f->nodes[a].reduce.on || !memcmp(b->reach[a], nobody, sizeof(nobody)))
        return false;
    for (unsigned s = 0; s < f->n_switches; s++) {
        fab_id z = f->switches[s];

        if (z != a && f->nodes[z].reduce.on && f->nodes[z].network == f->nodes[a].network &&
            surpasses(b, z, a))
            return false;
    }
    return true;
}

/* Trees beyond the first of each root, one for each port. */
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

/* Those of the same hosts begin with different ports; a rail's only root begins with the fastest. */
static void count_alike(const struct build *b, struct root *root, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        root[n].alike += !memcmp(b->reach[root[i].node], b->reach[root[n].node], sizeof(*b->reach));
}

void tree_build(struct build *b)
{
    struct fabric *f = b->f;
    struct root *root = calloc(f->n_switches + 1u, sizeof(*root));
    unsigned n = 0;

    f->trees = build_alloc(b, f->n_switches, sizeof(*f->trees));
    b->no_memory |= !root;
    for (int inside = 0; inside < 2 && !b->no_memory; inside++)
        for (unsigned s = 0; s < f->n_switches && !b->no_memory; s++)
            if ((f->nodes[f->switches[s]].domain != FAB_NONE) == inside &&
                is_root(b, f->switches[s])) {
                root[n].node = f->switches[s];
                count_alike(b, root, n);
                if (!add_tree(b, &root[n], n, 0))
                    n++;
            }
    if (!b->no_memory)
        add_turns(b, root, n);
    free(root);
}

fab_id fabric_tree_port(const struct fabric *f, const struct fab_tree *t, unsigned host_index)
{
    return host_index < f->n_hosts && t->parent[f->hosts[host_index]] != FAB_NONE
               ? t->port[host_index]
               : FAB_NONE;
}
