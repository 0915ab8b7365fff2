/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/trees.h"

#include "collective/topo.h"
#include "fabric/tree_rate.h"

struct trees_choice {
    const struct fabric *f;
    unsigned nranks, n;
    const uint16_t *host_of_rank;
    uint16_t *tree;
};

static bool trees_choice_reaches(const struct trees_choice *c, const struct fab_tree *t)
{
    for (unsigned r = 0; r < c->nranks; r++)
        if (t->parent[c->f->hosts[c->host_of_rank[r]]] == FAB_NONE)
            return false;
    return true;
}

/* Whether one more tree fits: each tree of a group takes one group of an aggregation node's quota.
 */
static bool tree_fits(const struct trees_choice *c, const struct fab_tree *t)
{
    const struct fabric *f = c->f;

    for (unsigned r = 0; c->n && r < c->nranks; r++)
        for (uint16_t u = t->parent[f->hosts[c->host_of_rank[r]]]; u != FAB_NONE; u = t->parent[u])
            if (f->nodes[u].reduce.max_groups <= c->n)
                return false;
    return true;
}

static uint64_t rate_of(const struct trees_choice *c, unsigned n, const struct fab_members *m)
{
    uint64_t bps[COLL_TREES], sum = 0;

    if (!n || !fabric_tree_rates(c->f, c->tree, n, m, bps))
        return 0;
    for (unsigned i = 0; i < n; i++)
        sum += bps[i];
    return sum;
}

/* Whether to select another tree of a root that has one already: only if all trees together carry
 * more with it, as it takes slots from them. */
static bool choice_gains(struct trees_choice *c, unsigned tree)
{
    struct fab_members m;
    uint64_t before, with;

    if (!topo_members(c->f, c->nranks, c->host_of_rank, &m, NULL))
        return false;
    before = rate_of(c, c->n, &m);
    c->tree[c->n] = (uint16_t)tree;
    with = rate_of(c, c->n + 1, &m);
    return with > before + before / 64;
}

static void trees_choice_take(struct trees_choice *c, bool all, bool scale_out)
{
    for (unsigned i = 0; i < c->f->n_trees && c->n < COLL_TREES; i++) {
        const struct fab_tree *t = &c->f->trees[i];

        if ((t->domain == FAB_NONE) == scale_out && (!all || trees_choice_reaches(c, t)) &&
            (!all || tree_fits(c, t)) && (!t->turn || (all && choice_gains(c, i))))
            c->tree[c->n++] = (uint16_t)i;
    }
}

unsigned trees_choose(const struct fabric *f, unsigned nranks, const uint16_t *host_of_rank,
                      uint16_t tree[COLL_TREES])
{
    struct trees_choice c = {.f = f, .nranks = nranks, .host_of_rank = host_of_rank, .tree = tree};

    trees_choice_take(&c, true, true);
    if (!c.n)
        trees_choice_take(&c, true, false);
    if (!c.n)
        trees_choice_take(&c, false, true);
    return c.n;
}
