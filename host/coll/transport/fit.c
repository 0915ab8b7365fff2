/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles grants that are smaller than requested, because other jobs hold part of a switch's slots,
 * groups or buffers. The ranks agree on them in a round of failover.c: all use the same trees, with
 * the smallest window granted to any of them, which is the model's input.
 */
#include "host/coll/comm.h"

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
        transport_failed(c, PART_TREES, "%s",
                         agg_refusal(why_not, agg_leaf_name(c, a), a->refused, c->fit.less));
    else if (*c->fit.less)
        transport_failed(c, PART_FIT, "%s", c->fit.less);
    c->tell->joins_answered(c);
}

bool fit_apply(struct comm *c, const uint32_t fit[COLL_TREES], uint32_t least_rail, const char *why)
{
    bool dropped = false;

    snprintf(c->fit.why, sizeof(c->fit.why), "%.*s", (int)sizeof(c->fit.why) - 1, why);
    for (unsigned i = 0; i < c->n_aggs; i++) {
        struct agg *a = &c->agg[i];
        uint32_t w;

        if (agg_is_out(a))
            continue;
        w = a->kind == GROUP_ALL ? fit[a->chan] : least_rail;
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
    comm_event(c, COMM_EV_FIT, (unsigned)__builtin_popcount(agg_in_use(c)), fit[0]);
    return dropped;
}
