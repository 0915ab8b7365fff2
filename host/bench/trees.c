/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/trees.h"

struct choice {
    const struct fabric *f;
    unsigned nranks, n;
    const uint16_t *host_of_rank;
    uint16_t *tree;
};

static bool reaches(const struct choice *c, const struct fab_tree *t)
{
    for (unsigned r = 0; r < c->nranks; r++)
        if (t->parent[c->f->hosts[c->host_of_rank[r]]] == FAB_NONE)
            return false;
    return true;
}

/* A group takes a place of an aggregation node's quota for each of its trees: no more trees than
 * there can be places. */
static bool fits(const struct choice *c, const struct fab_tree *t)
{
    const struct fabric *f = c->f;

    for (unsigned r = 0; c->n && r < c->nranks; r++)
        for (uint16_t u = t->parent[f->hosts[c->host_of_rank[r]]]; u != FAB_NONE; u = t->parent[u])
            if (f->nodes[u].reduce.max_groups <= c->n)
                return false;
    return true;
}

static void take(struct choice *c, bool all, bool scale_out)
{
    for (unsigned i = 0; i < c->f->n_trees && c->n < COLL_TREES; i++) {
        const struct fab_tree *t = &c->f->trees[i];

        if ((t->domain == FAB_NONE) == scale_out && (!all || reaches(c, t)) && (!all || fits(c, t)))
            c->tree[c->n++] = (uint16_t)i;
    }
}

unsigned trees_choose(const struct fabric *f, unsigned nranks, const uint16_t *host_of_rank,
                      uint16_t tree[COLL_TREES])
{
    struct choice c = {.f = f, .nranks = nranks, .host_of_rank = host_of_rank, .tree = tree};

    take(&c, true, true);
    if (!c.n)
        take(&c, true, false);
    if (!c.n)
        take(&c, false, true);
    return c.n;
}
