/* SPDX-License-Identifier: BSD-3-Clause */
/* The trees of a communicator as schedules see them: a tree keeps its number, in use or not. */
#include "host/coll/comm.h"

#include <string.h>

unsigned agg_in_use(const struct comm *c)
{
    unsigned trees = 0;

    for (unsigned i = 0; i < c->n_aggs; i++)
        trees |= agg_is_out(&c->agg[i]) ? 0 : agg_bit(&c->agg[i]);
    return trees;
}

void agg_use_trees(struct comm *c, unsigned trees)
{
    struct sched_topo *t = &c->topo.sched;
    uint16_t tree[COLL_TREES] = {0};
    uint64_t bps[COLL_TREES] = {0};
    unsigned chan[COLL_TREES], n = 0;

    if (c->trees_shown == trees)
        return;
    c->trees_shown = trees;
    for (unsigned i = 0; i < c->n_aggs; i++)
        if (agg_bit(&c->agg[i]) & trees) {
            chan[n] = c->agg[i].chan;
            tree[n++] = c->agg[i].tree;
        }
    topo_use_trees(&c->topo, tree, n, &c->group[GROUP_ALL].members);
    if (!n || chan[n - 1] == n - 1)
        return;
    for (unsigned i = 0; i < n; i++) /* trees in between carry nothing */
        bps[chan[i]] = t->tree_bps[i] ? t->tree_bps[i] : 1;
    memcpy(t->tree_bps, bps, sizeof(bps));
    t->trees = chan[n - 1] + 1;
}

void agg_fails(struct comm *c, const struct agg *a)
{
    c->failover.lost |= agg_bit(a);
}
