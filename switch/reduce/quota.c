/* SPDX-License-Identifier: BSD-3-Clause */
/* Quotas of an aggregation node: the window of slots and the mbufs that a group reserves. */
#include "switch/reduce/an_priv.h"

/* Mbufs that a group can hold: the children's in its slots, and unacknowledged ones each way. */
uint32_t group_mbufs(const struct an *a, const struct an_group *g, uint32_t window)
{
    uint32_t ways = g->top ? 1 : 2;

    return g->n * window + ways * (window + a->flight);
}

static uint32_t slots_left(const struct an *a)
{
    uint64_t have = a->me->reduce.max_slots;

    return have > a->cnt.slots_granted ? (uint32_t)(have - a->cnt.slots_granted) : 0;
}

/* The largest window that fits into so many mbufs; 0: none. */
static uint32_t window_of_mbufs(const struct an *a, const struct an_group *g, uint32_t mbufs)
{
    uint32_t ways = g->top ? 1 : 2, fixed = ways * a->flight;

    return mbufs > fixed ? (mbufs - fixed) / (g->n + ways) : 0;
}

/* Groups of the same job still expected here, including this one. A job has one key. */
static uint32_t still_to_come(const struct an *a, const struct an_group *g)
{
    const struct an_group *k;
    uint32_t here = 0;

    for (k = LIST_FIRST(&a->groups); k; k = LIST_NEXT(k, link))
        here += k->key == g->key && k != g;
    return (g->of_job & 0xff) > here ? (g->of_job & 0xff) - here : 1;
}

/*
 * A window that fits into the free slots and mbufs. If those are fewer than requested, the groups
 * of a job share them evenly. None gets less than a message needs: with a smaller window it could
 * never send one.
 */
static enum agg_status fit(struct an *a, struct an_group *g, char *text)
{
    uint32_t asked = g->window, least = RTE_MIN(asked, AGG_MSG_PKTS), share = still_to_come(a, g);
    uint32_t slots = slots_left(a), mbufs = an_mbufs_left(a);

    if (slots < least) {
        an_text(text, "%s has %u of %u slots left, %u needed", a->me->name, slots,
                a->me->reduce.max_slots, least);
        return AGG_E_QUOTA_SLOTS;
    }
    if (window_of_mbufs(a, g, mbufs) < least) {
        an_text(text, "%s has %u of %u buffers left, %u needed", a->me->name, mbufs,
                a->cfg.mbuf_budget, group_mbufs(a, g, least));
        return AGG_E_QUOTA_BUFFERS;
    }
    if (slots / share < g->window) {
        g->window = RTE_MAX(slots / share, least);
        an_text(g->limit, "%s has %u of %u slots left", a->me->name, slots,
                a->me->reduce.max_slots);
    }
    if (window_of_mbufs(a, g, mbufs / share) < g->window) {
        g->window = RTE_MAX(window_of_mbufs(a, g, mbufs / share), least);
        an_text(g->limit, "%s has %u of %u buffers left", a->me->name, mbufs, a->cfg.mbuf_budget);
    }
    return AGG_OK;
}

enum agg_status quota_reserve(struct an *a, struct an_group *g, char *text)
{
    const struct fab_reduce *q = &a->me->reduce;
    enum agg_status st;
    uint32_t mbufs;

    if (a->cnt.groups >= q->max_groups) {
        an_text(text, "%s has %u groups, at most %u", a->me->name, (unsigned)a->cnt.groups,
                q->max_groups);
        return AGG_E_QUOTA_GROUPS;
    }
    st = fit(a, g, text);
    if (st != AGG_OK)
        return st;
    mbufs = group_mbufs(a, g, g->window);
    g->promised = mbufs;
    a->cnt.mbufs_promised += mbufs;
    a->cnt.slots_granted += g->window;
    T_ASSERT(a->cnt.mbufs_promised <= a->cfg.mbuf_budget, "more mbufs are promised than there are");
    if (++a->cnt.groups > a->cnt.groups_peak)
        a->cnt.groups_peak = a->cnt.groups;
    return AGG_OK;
}

void quota_shrink(struct an_group *g, uint32_t window)
{
    struct an *a = g->a;

    T_ASSERT(window && window < g->window, "a window is made smaller by making it larger");
    T_ASSERT(!g->next && g->state == GROUP_ASKING, "a window shrinks while its slots are in use");
    a->cnt.slots_granted -= g->window - window;
    a->cnt.mbufs_promised -= g->promised;
    g->promised = group_mbufs(a, g, window);
    a->cnt.mbufs_promised += g->promised;
    g->window = window;
}

void quota_release(struct an_group *g)
{
    struct an *a = g->a;

    T_ASSERT(a->cnt.groups && a->cnt.slots_granted >= g->window &&
                 a->cnt.mbufs_promised >= g->promised,
             "a group gives back more than was granted");
    a->cnt.groups--;
    a->cnt.slots_granted -= g->window;
    a->cnt.mbufs_promised -= g->promised;
}
