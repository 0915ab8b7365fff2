/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Quotas of an aggregation node: the window of slots and the mbufs that a group reserves.
 *
 * - A host may hold a share of all resources alone, in groups that no other host has joined, so that
 *   others find room. Groups of several hosts do not count: one host cannot make them.
 * - If there are fewer mbufs than a group asks for, idle groups give back what they hold beyond an even
 *   share (window.c), and it gets an even share. Slots go to whoever comes first.
 * - If there is no room, groups that have waited for members for long are aborted, so that lists of
 *   members that never come reserve nothing that others need.
 */
#include "base/log.h"
#include "switch/reduce/an_priv.h"

#include <stdio.h>

uint32_t group_mbufs(const struct an_group *g, uint32_t window)
{
    return an_group_mbufs(g->n, g->top, window);
}

/* The largest window that needs no more than `mbufs`; 0: none. */
static uint32_t window_of_mbufs(const struct an_group *g, uint32_t mbufs)
{
    uint32_t ways = g->top ? 1 : 2, fixed = ways * AN_FLIGHT_MARGIN;

    return mbufs > fixed ? (mbufs - fixed) / (g->n + 2 * ways) : 0;
}

/* ---- free resources ---- */

/* Free slots and mbufs, of the AN or of the share of one host. */
struct room {
    uint32_t slots, mbufs;
};

static uint32_t minus(uint64_t have, uint64_t used)
{
    return have > used ? (uint32_t)(have - used) : 0;
}

static struct room room_left(const struct an *a)
{
    return (struct room){minus(a->me->reduce.max_slots, a->cnt.slots_granted), an_mbufs_left(a)};
}

/* Whether only processes of this host have joined. */
static bool is_alone(const struct an_group *g, uint16_t host)
{
    bool any = false;

    for (unsigned i = 0; i < g->n; i++) {
        const struct an_edge *e = &g->child[i];

        if (e->state != EDGE_PENDING && e->state != EDGE_JOINED)
            continue;
        if (!e->is_member || e->node != host)
            return false;
        any = true;
    }
    return any;
}

static unsigned children_of(const struct an_group *g, uint16_t host)
{
    unsigned n = 0;

    for (unsigned i = 0; i < g->n; i++)
        n += g->child[i].is_member && g->child[i].node == host;
    return n;
}

/* What a host holds alone. Of a group's mbufs only the part of its own children counts: the rest is for
 * members that will join in a moment, or the group will end. */
struct held {
    uint32_t groups, slots;
    uint64_t mbufs;
};

static struct held held_alone(const struct an *a, uint16_t host)
{
    const struct an_group *g;
    struct held h = {0, 0, 0};

    for (g = LIST_FIRST(&a->groups); g; g = LIST_NEXT(g, link))
        if (is_alone(g, host)) {
            h.groups++;
            h.slots += g->window;
            h.mbufs += (uint64_t)g->promised * children_of(g, host) / g->n;
        }
    return h;
}

static uint64_t share_of(const struct an *a, uint64_t all)
{
    return all * a->me->reduce.host_permille / 1000;
}

/* ---- the share of a host ---- */

/* What is left of the founder's share for this group. */
static struct room host_room(const struct an *a, const struct an_group *g, const struct held *h)
{
    const struct fab_reduce *q = &a->me->reduce;
    uint64_t slots = RTE_MAX(share_of(a, q->max_slots), (uint64_t)FAB_HOST_GROUPS * q->window);
    uint64_t mbufs = minus(share_of(a, a->cfg.mbuf_budget), h->mbufs);

    mbufs = mbufs * g->n / RTE_MAX(children_of(g, g->founder), 1u);
    return (struct room){minus(slots, h->slots), (uint32_t)RTE_MIN(mbufs, (uint64_t)UINT32_MAX)};
}

/* Refuses a JOIN. Logs the first refusal of a host, and then each that doubles their number. */
static enum agg_status over_share(struct an *a, const struct an_group *g, const struct held *h,
                                  char *text)
{
    const struct fab_node *host = &a->cfg.fab->nodes[g->founder];
    uint32_t n = ++a->over_share[host->host_index];

    a->cnt.joins_over_share++;
    join_text(text, "%s alone has %u groups, %u slots, %u buffers at %s", host->name, h->groups,
              h->slots, (unsigned)h->mbufs, a->me->name);
    if (!(n & (n - 1)))
        T_LOG("switch", LOG_WARN,
              "%s: JOIN refused: %s alone has %u of %u groups, %u of %u slots, %u of %u buffers, "
              "and its share is %u.%u %% (refusal %u)",
              a->me->name, host->name, h->groups, a->me->reduce.max_groups, h->slots,
              a->me->reduce.max_slots, (unsigned)h->mbufs, a->cfg.mbuf_budget,
              a->me->reduce.host_permille / 10, a->me->reduce.host_permille % 10, n);
    return AGG_E_QUOTA_HOST;
}

/* ---- granting ---- */

/* Number of groups of the same job still expected here, including this one. A job has one key. */
static uint32_t still_to_come(const struct an *a, const struct an_group *g)
{
    const struct an_group *k;
    uint32_t here = 0;

    for (k = LIST_FIRST(&a->groups); k; k = LIST_NEXT(k, link))
        here += k->key == g->key && k != g;
    return (g->of_job & 0xff) > here ? (g->of_job & 0xff) - here : 1;
}

static uint32_t least_window(const struct an_group *g)
{
    return RTE_MIN(g->window, AGG_MSG_PKTS);
}

/* Fits the window into the free resources r. was: free mbufs including those kept for others. The window is
 * never less than a message, because a member could never send one otherwise. */
static void fit(const struct an *a, struct an_group *g, struct room r, uint32_t was, uint32_t share)
{
    uint32_t least = least_window(g), w = window_of_mbufs(g, r.mbufs / share);
    char kept[48] = "";

    if (r.slots / share < g->window) {
        g->window = RTE_MAX(r.slots / share, least);
        join_text(g->limit, "%s has %u of %u slots left", a->me->name, r.slots,
                  a->me->reduce.max_slots);
    }
    if (w < g->window) {
        g->window = RTE_MAX(w, least);
        if (r.mbufs < was)
            snprintf(kept, sizeof(kept), ", %u of them for others", was - r.mbufs);
        join_text(g->limit, "%s has %u of %u buffers left%s", a->me->name, RTE_MAX(r.mbufs, was),
                  a->cfg.mbuf_budget, kept);
    }
}

/*
 * Mbufs that a job may take if there are fewer than it asks for, or if a group has given some back for
 * that reason. The job's groups share them evenly. If there are other groups, each gets an even share of
 * all mbufs of the AN; if some busy group holds more than that, the job takes about half of the free
 * ones, so that later jobs find room as well.
 */
static uint32_t part_of(struct an *a, const struct an_group *g, uint32_t share)
{
    uint32_t job = RTE_MAX(g->of_job & 0xff, share), parts, left;
    bool kept, others = a->cnt.groups + share > job;

    parts = window_make_room(a, share, &kept);
    left = an_mbufs_left(a);
    if (!others)
        return left;
    return kept ? (uint32_t)((uint64_t)left * share / (job + share))
                : RTE_MIN(left, a->cfg.mbuf_budget / parts * share);
}

uint32_t quota_even_window(const struct an_group *g, uint32_t groups)
{
    return RTE_MAX(window_of_mbufs(g, g->a->cfg.mbuf_budget / groups), least_window(g));
}

uint32_t quota_most_window(const struct an_group *g)
{
    struct room r = room_left(g->a);

    return RTE_MIN(r.slots + g->window, window_of_mbufs(g, r.mbufs + g->promised));
}

static enum agg_status check_room(const struct an *a, const struct an_group *g, char *text)
{
    const struct fab_reduce *q = &a->me->reduce;
    uint32_t least = least_window(g);
    struct room r = room_left(a);

    if (a->cnt.groups >= q->max_groups) {
        join_text(text, "%s has %u groups, at most %u", a->me->name, (unsigned)a->cnt.groups,
                  q->max_groups);
        return AGG_E_QUOTA_GROUPS;
    }
    if (r.slots < least) {
        join_text(text, "%s has %u of %u slots left, %u needed", a->me->name, r.slots, q->max_slots,
                  least);
        return AGG_E_QUOTA_SLOTS;
    }
    if (window_of_mbufs(g, r.mbufs) < least) {
        join_text(text, "%s has %u of %u buffers left, %u needed", a->me->name, r.mbufs,
                  a->cfg.mbuf_budget, group_mbufs(g, least));
        return AGG_E_QUOTA_BUFFERS;
    }
    return AGG_OK;
}

/* Of the groups that have waited for members for long, the one that holds most; NULL: none. */
static struct an_group *waiting_group(struct an *a)
{
    struct an_group *g, *most = NULL;

    for (g = LIST_FIRST(&a->groups); g; g = LIST_NEXT(g, link))
        if (!g->complete && !g->doomed && a->now - g->born >= AN_GIVES_WAY_PS &&
            (!most || g->promised > most->promised))
            most = g;
    return most;
}

/* Aborts a group that waits for members. False: there is none. Only here a group is aborted at once and
 * not by an_settle(): its place is needed now. */
static bool give_way(struct an *a, enum agg_status why)
{
    struct an_group *g = waiting_group(a);

    if (!g)
        return false;
    a->cnt.groups_gave_way++;
    group_doom(g, why, NULL, "gave way at %s: %u of %u had not joined", group_me(g),
               g->n - g->n_joined, g->n);
    group_abort(g);
    return true;
}

enum agg_status quota_reserve(struct an *a, struct an_group *g, char *text)
{
    uint32_t least = least_window(g), to_come = still_to_come(a, g);
    struct room r, share = {UINT32_MAX, UINT32_MAX};
    uint32_t part, left;
    enum agg_status st;

    if (g->founder != FAB_NONE) {
        struct held h = held_alone(a, g->founder);
        uint64_t groups = share_of(a, a->me->reduce.max_groups);

        share = host_room(a, g, &h);
        /* A host's first group is granted if there is room, if need be with the least window. */
        if (h.groups && (h.groups >= RTE_MAX(groups, (uint64_t)FAB_HOST_GROUPS) ||
                         share.slots < least || window_of_mbufs(g, share.mbufs) < least))
            return over_share(a, g, &h, text);
    }
    part = an_mbufs_left(a);
    if (window_of_mbufs(g, part / to_come) < g->window || window_any_gave(a))
        part = part_of(a, g, to_come);
    while ((st = check_room(a, g, text)) != AGG_OK) {
        if (!give_way(a, st))
            return st;
        part = an_mbufs_left(a);
    }
    r = room_left(a);
    left = r.mbufs;
    r = (struct room){RTE_MIN(r.slots, share.slots), RTE_MIN(part, share.mbufs)};
    fit(a, g, r, left, to_come);
    g->promised = group_mbufs(g, g->window);
    a->cnt.mbufs_promised += g->promised;
    a->cnt.slots_granted += g->window;
    T_ASSERT(a->cnt.mbufs_promised <= a->cfg.mbuf_budget, "more mbufs are promised than there are");
    if (++a->cnt.groups > a->cnt.groups_peak)
        a->cnt.groups_peak = a->cnt.groups;
    return AGG_OK;
}

void quota_resize(struct an_group *g, uint32_t window)
{
    struct an *a = g->a;

    T_ASSERT(window && window <= quota_most_window(g), "a window is larger than what is left");
    T_ASSERT(window > g->window || !group_in_operation(g),
             "a window shrinks while its slots are in use");
    a->cnt.slots_granted += (uint64_t)window - g->window;
    a->cnt.mbufs_promised += (uint64_t)group_mbufs(g, window) - g->promised;
    g->window = window;
    g->promised = group_mbufs(g, window);
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
