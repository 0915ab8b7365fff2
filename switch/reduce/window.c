/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows of groups after their JOIN. An idle group gives back mbufs when another one finds less than it
 * asks for, so that no group is refused because of one that does nothing.
 *
 *   full --another group needs it, this one is idle--> an even share, at least a message
 *     ^                                                   |
 *     +--------------- groups have ended -----------------+
 *
 * - The AN decides alone and at once: it waits for nobody, so a member that is gone, or does not listen
 *   between two operations, holds nothing back. WINDOW tells the children. A child that does not know yet
 *   sends beyond its window; the AN refuses the packet by an RNR NAK, after which RC repeats it, and
 *   repeats WINDOW. So a lost or doubled WINDOW costs time and never a result.
 * - Other ANs of the group keep their windows; a member that is held back holds back the others.
 * - The number of shares is a power of two, so windows change only when the number of groups doubles.
 * - The ring keeps its length: slots are counted since JOIN, and only those in flight are limited.
 */
#include "switch/reduce/an_priv.h"

/* Whether nothing is in flight, in slots or in queue pairs. */
static bool is_idle(const struct an_group *g)
{
    if (g->state != GROUP_OPEN || !g->complete || g->doomed || group_in_operation(g))
        return false;
    for (unsigned i = 0; i < g->n; i++)
        if (g->child[i].qp && qp_sq_used(g->child[i].qp))
            return false;
    return !g->up.qp || !qp_sq_used(g->up.qp);
}

void window_limit(struct an_group *g)
{
    for (unsigned i = 0; i < g->n; i++)
        if (g->child[i].qp)
            qp_set_window(g->child[i].qp, g->window + AN_FLIGHT_MARGIN);
    if (g->up.qp)
        qp_set_window(g->up.qp, g->window + AN_FLIGHT_MARGIN);
}

void window_tell(struct an_edge *e)
{
    struct an_group *g = e->g;
    struct agg_ctl c = {.xid = rte_cpu_to_be_32(g->resizes),
                        .tree = rte_cpu_to_be_16(g->tree->id),
                        .mtu = rte_cpu_to_be_16(g->mtu),
                        .group = rte_cpu_to_be_32(g->id),
                        .key = rte_cpu_to_be_64(g->key),
                        .member = rte_cpu_to_be_32(e->member),
                        .window = rte_cpu_to_be_32(e->window)};

    an_send_control(g->a, &e->addr, AGG_WINDOW, &c);
}

void window_tell_all(struct an_group *g)
{
    for (unsigned i = 0; i < g->n; i++)
        if (g->child[i].state == EDGE_JOINED)
            window_tell(&g->child[i]);
}

/* Tells children their windows after a change of the group's window or of what the parent takes. */
static void window_offer(struct an_group *g)
{
    uint32_t most = g->credit ? RTE_MIN(g->credit, g->window) : g->window;

    g->resizes++;
    for (unsigned i = 0; i < g->n; i++)
        g->child[i].window = RTE_MIN(g->child[i].granted, most);
    window_limit(g);
    window_tell_all(g);
}

static void window_resize(struct an_group *g, uint32_t window)
{
    an_event(g->a, AN_EV_WINDOW, g->id, window);
    quota_resize(g, window);
    window_offer(g);
}

static uint32_t window_shares(uint32_t groups)
{
    return groups < 2 ? 1 : rte_align32pow2(groups);
}

uint32_t window_make_room(struct an *a, uint32_t joining, bool *kept)
{
    uint32_t n = window_shares((uint32_t)a->cnt.groups + joining);
    struct an_group *g = NULL;

    *kept = false;
    LIST_FOREACH(g, &a->groups, link)
    {
        uint32_t even = quota_even_window(g, n);

        if (g->window <= even)
            continue;
        if (is_idle(g)) {
            a->cnt.windows_smaller++;
            window_resize(g, even);
        } else {
            *kept = true;
        }
    }
    return n;
}

bool window_any_gave(const struct an *a)
{
    const struct an_group *g = NULL;

    LIST_FOREACH(g, &a->groups, link)
    if (g->window < g->full)
        return true;
    return false;
}

void window_restore(struct an *a)
{
    uint32_t n = window_shares((uint32_t)a->cnt.groups);
    struct an_group *g = NULL;

    if (!a->room_back)
        return;
    a->room_back = false;
    LIST_FOREACH(g, &a->groups, link)
    {
        uint32_t window = RTE_MIN(g->full, quota_even_window(g, n));

        window = RTE_MIN(window, quota_most_window(g));
        if (g->state != GROUP_OPEN || window <= g->window)
            continue;
        a->cnt.windows_larger++;
        window_resize(g, window);
    }
}

void window_of_parent(struct an_group *g, uint32_t window, uint32_t number)
{
    if (!window || (int32_t)(number - g->up.xid) < 0)
        return;
    g->up.xid = number;
    if (g->credit == window)
        return;
    g->credit = window;
    window_offer(g);
}
