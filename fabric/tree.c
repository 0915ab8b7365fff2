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
 */
#include "fabric/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The next switch from u towards the root, FAB_NONE: no route. */
static uint16_t step(const struct fabric *f, const struct fab_tree *t, uint16_t u)
{
    const struct fab_node *n = &f->nodes[u];
    uint16_t peers[FAB_MAX_PORTS], buf[FAB_MAX_HOST_PORTS];
    const uint16_t *port;
    unsigned hops = hops_find(f, u, f->nodes[t->root].dest, buf, &port), k = 0;

    for (unsigned i = 0; i < hops; i++) {
        uint16_t v = n->ports[port[i]].peer_node;
        unsigned j = 0;

        while (j < k && peers[j] != v)
            j++;
        if (j == k)
            peers[k++] = v;
    }
    return k ? peers[t->id % k] : FAB_NONE;
}

/* The next reducing switch after u. */
static uint16_t next_reducer(const struct fabric *f, const struct fab_tree *t, uint16_t u)
{
    do
        u = step(f, t, u);
    while (u != FAB_NONE && !f->nodes[u].reduce.on);
    return u;
}

/* Adds a host's walk; returns the number of its ANs, 0: it does not reach the root. */
static unsigned add_host(const struct fabric *f, struct fab_tree *t, uint16_t host)
{
    unsigned levels = 1;
    uint16_t port, u;

    if (!fabric_hops(f, host, f->nodes[t->root].dest, &port, 1))
        return 0;
    u = f->nodes[host].ports[port].peer_node;
    if (!f->nodes[u].reduce.on)
        u = next_reducer(f, t, u);
    t->parent[host] = u;
    for (; u != t->root && u != FAB_NONE; levels++) {
        if (t->parent[u] == FAB_NONE)
            t->parent[u] = next_reducer(f, t, u);
        u = t->parent[u];
    }
    return levels;
}

static int add_tree(struct build *b, uint16_t root)
{
    struct fabric *f = b->f;
    struct fab_tree *t = &f->trees[f->n_trees];

    t->id = f->n_trees;
    t->root = root;
    t->domain = f->nodes[root].domain;
    t->parent = build_alloc(b, f->n_nodes, sizeof(*t->parent));
    if (!t->parent)
        return -ENOMEM;
    for (unsigned i = 0; i < f->n_nodes; i++)
        t->parent[i] = FAB_NONE;
    for (unsigned i = 0; i < f->n_hosts; i++) {
        unsigned levels = 0;

        if (b->reach[root][i / 64] >> (i % 64) & 1)
            levels = add_host(f, t, f->hosts[i]);
        if (levels > t->depth)
            t->depth = (uint16_t)levels;
    }
    f->n_trees++;
    return 0;
}

/* Whether z is the better root: it has all hosts of a and more, or the same and a higher tier. */
static bool surpasses(const struct build *b, uint16_t z, uint16_t a)
{
    bool more = false;

    for (unsigned w = 0; w < FAB_REACH_WORDS; w++) {
        if (b->reach[a][w] & ~b->reach[z][w])
            return false;
        more |= b->reach[z][w] != b->reach[a][w];
    }
    return more || b->f->nodes[z].tier > b->f->nodes[a].tier;
}

static bool is_root(const struct build *b, uint16_t a)
{
    static const uint64_t nobody[FAB_REACH_WORDS];
    const struct fabric *f = b->f;

    if (!f->nodes[a].reduce.on || !memcmp(b->reach[a], nobody, sizeof(nobody)))
        return false;
    for (unsigned s = 0; s < f->n_switches; s++) {
        uint16_t z = f->switches[s];

        if (z != a && f->nodes[z].reduce.on && f->nodes[z].network == f->nodes[a].network &&
            surpasses(b, z, a))
            return false;
    }
    return true;
}

void tree_build(struct build *b)
{
    struct fabric *f = b->f;

    f->trees = build_alloc(b, f->n_switches, sizeof(*f->trees));
    for (int inside = 0; inside < 2 && !b->no_memory; inside++)
        for (unsigned s = 0; s < f->n_switches; s++)
            if ((f->nodes[f->switches[s]].domain != FAB_NONE) == inside &&
                is_root(b, f->switches[s]) && add_tree(b, f->switches[s]))
                return;
}

uint16_t fabric_tree_port(const struct fabric *f, const struct fab_tree *t, unsigned host_index)
{
    uint16_t port;

    if (host_index >= f->n_hosts || t->parent[f->hosts[host_index]] == FAB_NONE ||
        !fabric_hops(f, f->hosts[host_index], f->nodes[t->root].dest, &port, 1))
        return FAB_NONE;
    return port;
}
