/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time that the switch's arithmetic takes (fabric `costs.aggregate`): it reduces pieces of a fixed
 * size one after another, of all groups, in the order in which their last operand arrived. Without the
 * cost a slot is reduced as soon as it is complete.
 *
 * A group's slots complete in order and therefore are due in order: the first that waits is the first
 * that is not reduced.
 */
#include "switch/reduce/an_priv.h"

bool engine_takes(struct an_group *g, struct an_slot *s)
{
    struct an *a = g->a;
    int64_t ps = fab_aggregate_ps(&a->cfg.fab->costs, s->len - (s->head ? AGG_HDR_BYTES : 0));

    if (!ps)
        return false;
    a->engine_ps = RTE_MAX(a->engine_ps, a->now) + ps;
    s->due_ps = a->engine_ps;
    g->n_due++;
    a->engine_due = RTE_MIN(a->engine_due, s->due_ps);
    return true;
}

static int64_t due_of(const struct an_group *g)
{
    return g->n_due && !g->doomed ? g->slot[g->next % g->window].due_ps : PS_NEVER;
}

void engine_tick(struct an *a)
{
    struct an_group *g;

    if (a->engine_due > a->now)
        return;
    a->engine_due = PS_NEVER;
    for (g = LIST_FIRST(&a->groups); g; g = LIST_NEXT(g, link)) {
        while (due_of(g) <= a->now) {
            T_ASSERT_HOT(g->n_due <= g->window, "more slots wait than the group has");
            g->n_due--;
            slot_reduce(g);
        }
        a->engine_due = RTE_MIN(a->engine_due, due_of(g));
    }
}
