/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Invariants of an aggregation node between two calls: compares counters with lists, and promises
 * with groups; in checked builds also each slot with the children's streams.
 *
 * an_check_group() reads the edges of the group of a control message, an_check_all() a few words of
 * each group. an_check_slots() reads n x window entries, in checked builds only.
 */
#include "switch/reduce/an_priv.h"

static void check_edges(const struct an_group *g)
{
    unsigned joined = 0, left = 0;

    for (unsigned i = 0; i < g->n; i++) {
        const struct an_edge *e = &g->child[i];

        T_ASSERT(e->g == g, "a child's edge belongs to another group");
        T_ASSERT(e->state < EDGE_STATES_N, "a child's edge is in a state that does not exist");
        T_ASSERT((e->state == EDGE_PENDING || e->state == EDGE_JOINED) == (e->qp != NULL),
                 "a joined child has no queue pair, or one that has not joined has one");
        T_ASSERT(e->state != EDGE_JOINED || (e->window && e->window <= g->window),
                 "a child's credits are none, or exceed the slots of its group");
        T_ASSERT(e->state != EDGE_JOINED || e->window <= e->granted,
                 "a child's credits exceed what it was granted");
        joined += e->state == EDGE_PENDING || e->state == EDGE_JOINED;
        left += e->state == EDGE_LEFT;
    }
    T_ASSERT(g->n_joined == joined, "the count of joined children differs from their states");
    T_ASSERT(g->n_left == left, "the count of children that left differs from their states");
}

void an_check_group(const struct an_group *g)
{
    T_ASSERT(g->n && g->n <= AN_MAX_CHILDREN, "a group has no child, or more than can be reduced");
    T_ASSERT(g->window && g->window <= g->a->me->reduce.window,
             "a group has no slot, or more than one group may have");
    T_ASSERT(g->window <= g->n_slots, "a group has more slots than its ring");
    T_ASSERT(g->promised == group_mbufs(g, g->window),
             "a group's promised mbufs differ from those of its window");
    T_ASSERT(g->state < GROUP_STATES_N, "a group is in a state that does not exist");
    T_ASSERT(g->top || g->up.qp, "a group below the top has no queue pair to its parent");
    T_ASSERT(g->results <= g->next, "results were sent for slots that are not reduced");
    T_ASSERT(g->state == GROUP_OPEN || !g->next, "slots were reduced before the parent granted");
    check_edges(g);
}

#ifdef TRIB_CHECKED

/* A child has sent slot `at` if its stream has passed it. */
static void check_slot(const struct an_group *g, uint64_t at)
{
    uint32_t ring = (uint32_t)(at % g->n_slots);
    const struct an_input *in = &g->in[(size_t)ring * g->n];
    unsigned sent = 0, held = 0;

    for (unsigned i = 0; i < g->n; i++) {
        sent += g->child[i].rx.slots > at;
        held += in[i].m != NULL;
        T_ASSERT(!in[i].m || g->a->me->reduce.arrival || g->child[i].rx.slots > at,
                 "a slot holds the mbuf of a child that has not sent it");
        T_ASSERT(!in[i].m || rte_mbuf_refcnt_read(in[i].m) >= 1,
                 "a slot holds an mbuf that was freed");
    }
    T_ASSERT(g->slot[ring].have == sent, "a slot's count of children differs from their streams");
    T_ASSERT(held <= sent, "a slot holds more mbufs than children have sent");
}

void an_check_slots(const struct an_group *g)
{
    if (g->doomed)
        return;
    for (unsigned i = 0; i < g->n; i++) {
        const struct an_edge *e = &g->child[i];

        if (e->state != EDGE_PENDING && e->state != EDGE_JOINED)
            continue;
        T_ASSERT(e->rx.slots >= g->next, "a slot was reduced without one of its children");
        T_ASSERT(e->rx.slots - g->results <= g->window, "a child has sent beyond its credits");
        T_ASSERT(e->ring == e->rx.slots % g->n_slots, "a child's next slot is not where it sends");
    }
    T_ASSERT(g->top ? g->results == g->next : g->results == g->up.rx.slots,
             "results sent down differ from those that came");
    for (uint64_t at = g->next; at < g->next + g->n_slots; at++)
        check_slot(g, at);
}

static uint32_t slots_used(const struct an_group *g)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < g->n_slots; i++)
        n += g->slot[i].have > 0;
    return n;
}

#endif

void an_check_all(const struct an *a)
{
    uint64_t groups = 0, slots = 0, mbufs = a->mm ? mm_counters(a->mm)->mm_mbufs : 0;
#ifdef TRIB_CHECKED
    uint64_t used = 0;
#endif
    const struct an_group *g = NULL;

    LIST_FOREACH(g, &a->groups, link)
    {
        groups++;
        slots += g->window;
        mbufs += g->promised;
        T_ASSERT(!g->doomed, "a doomed group was not aborted when the callbacks had returned");
#ifdef TRIB_CHECKED
        an_check_group(g);
        an_check_slots(g);
        used += slots_used(g);
#endif
    }
#ifdef TRIB_CHECKED
    T_ASSERT(a->cnt.slots_used == used, "used slots are not the sum of the groups'");
#endif
    T_ASSERT(a->cnt.groups == groups, "the count of groups differs from their list");
    T_ASSERT(a->cnt.slots_granted == slots, "granted slots are not the sum of the groups' windows");
    T_ASSERT(a->cnt.mbufs_promised == mbufs, "promised mbufs are not the sum of the groups'");
    T_ASSERT(groups <= a->me->reduce.max_groups, "there are more groups than the quota");
    T_ASSERT(slots <= a->me->reduce.max_slots, "more slots are granted than the quota");
    T_ASSERT(a->inbox_head == a->inbox_tail, "a control message was left in the inbox");
    if (a->mm)
        mm_check_all(a->mm);
}
