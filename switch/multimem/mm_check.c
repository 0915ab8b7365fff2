/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Invariants of multimem between two calls: compares members' states with their counts, and
 * reservations with groups; in checked builds also each slice with its caller.
 */
#include "switch/multimem/mm_priv.h"

void mm_check_group(const struct mm_group *g)
{
    unsigned bound = 0, ready = 0, left = 0;

    for (unsigned i = 0; i < g->n; i++) {
        const struct mm_edge *e = &g->edge[i];

        T_ASSERT(e->g == g && e->member == i, "a member's edge belongs to another group or place");
        T_ASSERT(e->state < MM_EDGE_STATES_N, "a member is in a state that does not exist");
        T_ASSERT((e->state == MM_BOUND || e->state == MM_READY) == (e->qp != NULL),
                 "a bound member has no queue pair, or one that is not bound has one");
        T_ASSERT(e->state == MM_NONE || (e->stores && e->stores <= g->window),
                 "a member's window of slices is none, or exceeds its group's");
        bound += e->state != MM_NONE;
        ready += e->state == MM_READY;
        left += e->state == MM_LEFT;
    }
    T_ASSERT(g->n && g->n <= MM_MAX_MEMBERS, "a group has no member, or more than can be reduced");
    T_ASSERT(g->n_bound == bound, "the count of bound members differs from their states");
    T_ASSERT(g->n_left == left, "the count of members that left differs from their states");
    T_ASSERT(g->n_ready >= ready && g->n_ready <= ready + left,
             "the count of ready members differs from their states");
    T_ASSERT(g->turn < g->n, "it is the turn of a member that does not exist");
    T_ASSERT(!g->failed || g->doomed, "a group has failed that nothing has doomed");
    T_ASSERT(!g->failed || g->deadline != PS_NEVER, "an ABORT is not repeated");
}

#ifdef TRIB_CHECKED

static unsigned issued_of(const struct mm_edge *e)
{
    const struct mm_load *l = NULL;
    unsigned n = 0;

    STAILQ_FOREACH(l, &e->loads, link)
    {
        T_ASSERT(l->caller == e, "a slice is in the list of a member that has not requested it");
        T_ASSERT(l->ready ? !l->waits && (l->virt || l->result) : l->waits > 0 || e->g->doomed,
                 "a slice is ready before all members have answered, or waits for no member");
        T_ASSERT(l->sent < l->n_pkts, "a slice was sent whole and is still in its caller's list");
        n++;
    }
    return n;
}

static void check_stores(const struct mm_edge *e)
{
    T_ASSERT(e->tail - e->head <= e->stores, "a member writes more slices than its window");
    for (uint32_t at = e->head; at != e->tail; at++) {
        const struct mm_store *s = &e->store[at % e->g->window];

        T_ASSERT(!s->open || at + 1 == e->tail, "a slice is open that is not the last");
        T_ASSERT(!s->m || s->virt || s->m->pkt_len == s->len,
                 "a slice's mbufs are not as long as the slice");
        T_ASSERT(!s->m || rte_mbuf_refcnt_read(s->m) >= 1, "a slice holds an mbuf that was freed");
        T_ASSERT(s->waits <= e->g->n, "a slice waits for more members than there are");
        T_ASSERT(s->n_pkts <= MM_SLICE / e->g->mtu, "a slice has more packets than fit into it");
    }
}

void mm_check_slices(const struct mm_group *g)
{
    unsigned issued = 0, idle = 0, dropped = 0, stores = 0;
    const struct mm_load *l = NULL;

    if (g->doomed)
        return;
    for (unsigned i = 0; i < g->n; i++) {
        issued += issued_of(&g->edge[i]);
        check_stores(&g->edge[i]);
        stores += g->edge[i].tail - g->edge[i].head;
    }
    STAILQ_FOREACH(l, &g->free, link)
    {
        T_ASSERT(!l->caller && !l->waits, "a free buffer belongs to a member, or waits for one");
        idle++;
    }
    for (unsigned i = 0; i < g->most_loads; i++)
        dropped += !g->load[i].caller && g->load[i].waits;
    T_ASSERT(idle + g->n_loads == g->most_loads,
             "buffers in use and free ones are not all that exist");
    T_ASSERT(issued + dropped == g->n_loads, "the count of slices being read differs from them");
    T_ASSERT(stores == g->n_stores, "the count of slices being written differs from them");
}

#endif

void mm_check_all(const struct mm *mm)
{
    uint64_t groups = 0, bytes = 0, mbufs = 0, loads = 0, stores = 0;
    const struct mm_counters *c = &mm->cnt;
    const struct mm_group *g = NULL;

    LIST_FOREACH(g, &mm->groups, link)
    {
        T_ASSERT(!g->doomed || g->failed, "a doomed group was not aborted after the callbacks");
        groups++;
        bytes += g->bytes;
        mbufs += g->mbufs;
        loads += g->n_loads;
        stores += g->n_stores;
#ifdef TRIB_CHECKED
        mm_check_group(g);
        mm_check_slices(g);
#endif
    }
    T_ASSERT(c->mm_groups == groups, "the count of multimem groups differs from their list");
    T_ASSERT(c->mm_bytes == bytes, "reserved buffers are not the sum of the groups'");
    T_ASSERT(c->mm_mbufs == mbufs, "reserved mbufs are not the sum of the groups'");
    T_ASSERT(c->mm_loads_used == loads, "slices being read are not the sum of the groups'");
    T_ASSERT(c->mm_stores_used == stores, "slices being written are not the sum of the groups'");
    T_ASSERT(groups <= mm->cfg.max_groups && bytes <= mm->cfg.max_bytes &&
                 mbufs <= mm->cfg.max_mbufs,
             "more is reserved than the quotas allow");
}
