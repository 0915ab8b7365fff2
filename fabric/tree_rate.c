/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/tree_rate.h"

#include <stdlib.h>
#include <string.h>

#define MAX_HOPS 64u

/* Edges of trees in each direction of a link. */
struct load {
    const struct fabric *f;
    unsigned trees, tree; /* number of trees, and the one whose edges are being counted */
    uint32_t *edges;      /* [2 * n_links][trees] */
    bool *seen;           /* [n_nodes] switches whose edge to the parent is already counted */
    bool broken;
};

static void add_edge(struct load *l, fab_id from, fab_id port, fab_id to)
{
    uint32_t d[MAX_HOPS];
    unsigned n = fabric_path_ports(l->f, from, port, to, 0, d, MAX_HOPS);

    l->broken |= !n;
    for (unsigned i = 0; i < n; i++)
        l->edges[(size_t)d[i] * l->trees + l->tree]++;
}

static void add_member(struct load *l, const struct fab_tree *t, const struct fab_members *m,
                       unsigned id, fab_id top, bool hosts)
{
    unsigned host = id / m->ranks_per_host;
    fab_id at = fab_group_leaf(l->f, t, id, m);

    if (hosts && at != FAB_NONE)
        add_edge(l, l->f->hosts[host], fabric_tree_port(l->f, t, host), at);
    for (; at != top && at != FAB_NONE && !l->seen[at]; at = t->parent[at]) {
        l->seen[at] = true;
        if (t->parent[at] != FAB_NONE)
            add_edge(l, at, 0, t->parent[at]);
    }
}

static bool load_new(struct load *l, const struct fabric *f, unsigned trees)
{
    *l = (struct load){.f = f,
                       .trees = trees,
                       .edges = calloc(2ul * f->n_links * trees + 1, sizeof(*l->edges)),
                       .seen = calloc(f->n_nodes + 1ul, sizeof(*l->seen))};
    return l->edges && l->seen;
}

static void load_free(struct load *l)
{
    free(l->edges);
    free(l->seen);
}

/* Adds the edges of a tree. False: it does not reach all members. */
static bool add_tree(struct load *l, unsigned k, const struct fab_tree *t,
                     const struct fab_members *m, bool hosts)
{
    fab_id top = fab_group_top(l->f, t, m);

    if (top == FAB_NONE)
        return false;
    l->tree = k;
    memset(l->seen, 0, l->f->n_nodes * sizeof(*l->seen));
    for (unsigned id = 0; id < FAB_MAX_MEMBERS; id++)
        if (fab_members_has(m, id))
            add_member(l, t, m, id, top, hosts);
    return !l->broken;
}

uint64_t fabric_tree_bps(const struct fabric *f, const struct fab_tree *t,
                         const struct fab_members *m, bool hosts)
{
    struct load l;
    uint64_t least = 0;
    bool known = load_new(&l, f, 1) && add_tree(&l, 0, t, m, hosts);

    for (uint32_t d = 0; known && d < 2 * f->n_links; d++) {
        uint64_t rate = l.edges[d] ? f->links[d / 2].rate_bps / l.edges[d] : 0;

        least = rate && (!least || rate < least) ? rate : least;
    }
    load_free(&l);
    return least;
}

/* ---- several trees ---- */

/* The rate that each open tree may have in this direction of a link: an even part of what the other trees
 * leave. UINT64_MAX: any rate. */
static uint64_t leaves(const struct load *l, uint32_t d, uint32_t open, const uint64_t *bps)
{
    const uint32_t *edges = &l->edges[(size_t)d * l->trees];
    uint64_t rate = l->f->links[d / 2].rate_bps;
    uint32_t n = 0;

    for (unsigned k = 0; k < l->trees; k++)
        if (open >> k & 1)
            n += edges[k];
        else
            rate -= edges[k] * bps[k];
    return n ? rate / n : UINT64_MAX;
}

/* The open trees that cross this direction of a link. */
static uint32_t trees_crossing(const struct load *l, uint32_t d, uint32_t open)
{
    uint32_t set = 0;

    for (unsigned k = 0; k < l->trees; k++)
        if (l->edges[(size_t)d * l->trees + k])
            set |= 1u << k;
    return set & open;
}

/* Lets the rates of all open trees grow alike until a link is full; trees that cross it keep their rate, the
 * others continue to grow. used: [n_used] directions of links that some tree crosses. */
static bool load_fill(const struct load *l, const uint32_t *used, unsigned n_used, uint64_t *bps)
{
    uint32_t open = (uint32_t)((1ull << l->trees) - 1);

    while (open) {
        uint64_t least = UINT64_MAX;
        uint32_t full = 0;

        for (unsigned i = 0; i < n_used; i++) {
            uint64_t most = leaves(l, used[i], open, bps);

            if (most < least)
                least = most, full = 0;
            if (most == least)
                full |= trees_crossing(l, used[i], open);
        }
        if (!full || !least)
            return false;
        for (unsigned k = 0; k < l->trees; k++)
            if (full >> k & 1)
                bps[k] = least;
        open &= ~full;
    }
    return true;
}

bool fabric_tree_rates(const struct fabric *f, const fab_id *tree, unsigned n,
                       const struct fab_members *m, uint64_t *bps)
{
    struct load l;
    uint32_t *used = malloc((2ul * f->n_links + 1) * sizeof(*used));
    unsigned n_used = 0;
    bool known = n && n <= FAB_TREES_AT_ONCE;

    known &= load_new(&l, f, n) && used;
    for (unsigned k = 0; known && k < n; k++)
        known = tree[k] < f->n_trees && add_tree(&l, k, &f->trees[tree[k]], m, true);
    for (uint32_t d = 0; known && d < 2 * f->n_links; d++)
        if (trees_crossing(&l, d, UINT32_MAX))
            used[n_used++] = d;
    known = known && load_fill(&l, used, n_used, bps);
    free(used);
    load_free(&l);
    return known;
}
