/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles grants that are smaller than requested, because other jobs hold part of a switch's slots,
 * groups or buffers. The ranks agree on them in a round of failover.c: all use the same trees, with
 * the smallest window granted to any of them, which is the model's input.
 */
#include "collective/quota.h"
#include "host/coll/comm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool fit_known(const struct comm *c)
{
    for (unsigned i = 0; i < c->n_aggs; i++)
        if (c->agg[i].state == JOIN_ASKED && !(c->failover.stopped & agg_part(&c->agg[i])))
            return false;
    return true;
}

uint32_t fit_report(const struct comm *c, uint32_t window[COLL_TREES])
{
    uint32_t rail = 0;

    memset(window, 0, COLL_TREES * sizeof(*window));
    for (unsigned i = 0; i < c->n_aggs; i++) {
        const struct agg *a = &c->agg[i];

        if (a->out || (a->lost && !(c->failover.back & agg_bit(a))) || a->state != JOIN_GRANTED)
            continue;
        if (a->kind == GROUP_RAIL)
            rail = a->window;
        else
            window[a->chan] = a->window;
    }
    return rail;
}

/* One of the trees of all ranks, if every one of them was refused; else NULL. */
static const struct agg *all_refused(const struct comm *c)
{
    const struct agg *refused = NULL;

    for (unsigned i = 0; i < c->n_aggs; i++) {
        const struct agg *a = &c->agg[i];

        if (a->kind != GROUP_ALL || agg_is_out(a))
            continue;
        if (a->state != JOIN_REFUSED)
            return NULL;
        refused = a;
    }
    return refused;
}

void fit_answered(struct comm *c, const char *why)
{
    char why_not[COMM_TEXT];
    const struct agg *a;

    if (*why && !*c->fit.less)
        snprintf(c->fit.less, sizeof(c->fit.less), "%s", why);
    if (!fit_known(c))
        return;
    a = all_refused(c);
    if (a)
        failover_begin(c, PART_TREES, "%s",
                       agg_refusal(why_not, agg_leaf_name(c, a), a->refused, c->fit.less));
    else if (*c->fit.less)
        failover_begin(c, PART_FIT, "%s", c->fit.less);
    failover_fit_known(c);
}

int fit_apply(struct comm *c, const struct failover_round *f, const char *why, char *err)
{
    const struct failover_round all = {.parts = PART_TREES, .whole = true};
    bool dropped = false;

    snprintf(c->fit.why, sizeof(c->fit.why), "%.*s", (int)sizeof(c->fit.why) - 1, why);
    for (unsigned i = 0; i < c->n_aggs; i++) {
        struct agg *a = &c->agg[i];
        uint32_t w;

        if (agg_is_out(a))
            continue;
        w = a->kind == GROUP_ALL ? f->fit[a->chan] : f->rail;
        a->credit = w && w < a->credit ? w : a->credit;
        if (a->kind == GROUP_RAIL) {
            a->window = w && w < a->window ? w : a->window;
        } else if (w) {
            a->window = w < a->window ? w : a->window;
        } else {
            dropped = true;
            a->out = true;
            qp_stop(a->qp);
            join_leave_one(c, a);
        }
    }
    comm_event(c, COMM_EV_FIT, (unsigned)__builtin_popcount(agg_in_use(c)), f->fit[0]);
    if (!dropped)
        return 0;
    c->failover.first = c->failover.trees = agg_in_use(c);
    if (!c->failover.trees) {
        snprintf(err, COMM_TEXT, "rank 0 gives up every tree without their failure");
        return -EPROTO;
    }
    return op_recovery(c, &all, err);
}

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
