/* SPDX-License-Identifier: BSD-3-Clause */
/* What callers see of trees and windows that the switches granted. */
#include "host/coll/comm.h"

#include <stdio.h>
#include <string.h>

/* Slots that the tree's switch takes now, of those that it granted. */
static uint32_t now_of(const struct agg *a)
{
    return a->credit < a->window ? a->credit : a->window;
}

unsigned comm_last_trees(const struct comm *c, uint16_t *tree)
{
    unsigned trees = failover_trees(c, exec_seq(c)), n = 0;

    for (unsigned i = 0; i < c->n_aggs; i++)
        if (agg_bit(&c->agg[i]) & trees)
            tree[n++] = c->agg[i].tree;
    return n;
}

void comm_granted(const struct comm *c, struct coll_grant *g)
{
    uint32_t asked = agg_window(c->cfg.fab, c->cfg.window);
    const struct agg *lends = NULL;
    unsigned failed = 0;

    *g = (struct coll_grant){.asked = asked};
    if (c->protocols)
        memcpy(g->protocol, c->protocols->lost, sizeof(g->protocol));
    if (comm_has(c, ALGO_SHARP) && c->cfg.nranks > 1)
        g->trees_asked = c->cfg.n_trees ? c->cfg.n_trees : 1;
    for (unsigned i = 0; i < c->n_aggs; i++) {
        const struct agg *a = &c->agg[i];

        g->rail_asked |= a->kind == GROUP_RAIL;
        failed |= a->lost || c->failover.stopped & agg_part(a);
        if (agg_is_out(a) || c->failover.stopped & agg_part(a))
            continue;
        lends = now_of(a) < a->window ? a : lends;
        if (a->kind == GROUP_RAIL) {
            g->rail = now_of(a);
            continue;
        }
        g->window = g->trees && g->window < now_of(a) ? g->window : now_of(a);
        T_ASSERT(g->trees < COLL_TREES, "the group of all ranks has more trees than there are");
        g->tree[g->trees++] = a->tree;
    }
    if (g->trees == g->trees_asked && (!g->trees || g->window >= asked) &&
        (!g->rail_asked || g->rail >= asked))
        return;
    snprintf(g->why, sizeof(g->why), "%.*s", (int)sizeof(g->why) - 1,
             failed ? c->failover.text : c->fit.why);
    if (lends && !failed)
        snprintf(g->why, sizeof(g->why), "%s needs the buffers for other groups",
                 agg_leaf_name(c, lends));
}
