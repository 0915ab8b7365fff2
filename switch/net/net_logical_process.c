/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each node of a net is a logical process that runs one slice of time after the other (conservative
 * parallel simulation with lookahead). It has a heap of its own: the starts of its queues, the
 * arrivals on the links that lead to it, and its timers. Their order is that of net.c: queues by
 * link and direction, then the node. So each node sees the same events in the same order as in
 * net_advance(), and simulated times are the same. Only the order between nodes differs, and
 * nothing depends on it: a frame that a node starts arrives at least the lookahead later, which is
 * the least latency of a link.
 *
 * A node whose neighbours have reached t may therefore run to t + lookahead. Where every link joins
 * a near node (an even number of links from the hosts) and a far one, a slice has two phases and
 * lasts two lookaheads: with all nodes at 0, far nodes run to 1, hosts and near nodes to 2, far
 * nodes to 3, and so on, in lookaheads. Elsewhere there is one phase of one lookahead.
 *
 * Why: events of a large fabric in one order visit all of its nodes in turn, and each visit misses
 * the caches. A logical process runs some ten or twenty of its events in a row.
 *
 * Rejected: one heap of all events that prefetches the state of the next ones. That state is found
 * through chains of pointers that are themselves in no cache. Node by node, a node's events are
 * known long before its turn, and net_prefetch.c follows the chains meanwhile.
 */
#include "switch/net/net_priv.h"

#include "base/cacheline.h"

#include <errno.h>
#include <stdlib.h>

static inline void event_set(struct net *n, uint16_t node, uint32_t i, int64_t t)
{
    struct apart *a = n->apart;

    T_ASSERT_HOT(i <= a->process[node].tick, "an event's index is not one of its node's");
    heap_set(&a->process[node].heap, i, t);
    if (t < a->due[node])
        a->due[node] = t;
}

void apart_set_tick(struct net *n, uint16_t node, int64_t t)
{
    event_set(n, node, n->apart->process[node].tick, t);
}

/* A frame starts on an empty link: tells the peer, by a message if another partition runs it. */
static void first_on_link(void *ctx)
{
    struct transmitter *s = ctx;
    struct partition *mine = s->net->apart->process[s->node].partition;
    int64_t t = egress_next_arrival(s->e);
    struct mailbox *l;

    if (likely(s->peer_partition == mine->id)) {
        event_set(s->net, s->peer, s->arrives, t);
        return;
    }
    if (s->peer_is_far)
        mine->sent_ps = RTE_MIN(mine->sent_ps, t);
    l = &(s->peer_is_far ? mine->to_far : mine->to_near)[s->peer_partition];
    T_ASSERT_HOT(l->n < l->room, "a link has sent more than one message to another partition");
    l->a[l->n++] = (struct cross_partition_message){t, s->arrives, s->peer};
}

/* Takes the messages of other partitions for one phase of this one. */
static void take_messages(struct net *n, const struct partition *part, bool of_far)
{
    struct apart *a = n->apart;

    for (unsigned k = 0; k < a->n_partitions; k++) {
        struct mailbox *l = &(of_far ? a->partition[k].to_far : a->partition[k].to_near)[part->id];

        T_ASSERT(l->n <= l->room, "a mailbox holds more messages than links lead there");
        for (uint32_t i = 0; i < l->n; i++) {
            T_ASSERT_HOT(a->process[l->a[i].node].partition == part,
                         "a message reached a partition that does not run its node");
            T_ASSERT_HOT(l->a[i].t >= a->process[l->a[i].node].now_ps,
                         "a frame arrives in the past of its receiver: the lookahead is broken");
            event_set(n, l->a[i].node, l->a[i].i, l->a[i].t);
        }
        l->n = 0;
    }
}

static void start_is_earlier(void *ctx)
{
    struct transmitter *s = ctx;

    event_set(s->net, s->node, s->starts, egress_next_start(s->e));
}

/* Prefetches a frame whose headers are already in the caches. */
static void prefetch_body(const struct rte_mbuf *m)
{
    for (uint32_t i = CACHELINE; m && i < m->data_len; i += CACHELINE)
        rte_prefetch1(rte_pktmbuf_mtod_offset(m, const char *, i));
}

static void run_event(struct net *n, uint16_t node, uint32_t i)
{
    struct logical_process *p = &n->apart->process[node];
    struct rte_mbuf *m[NODE_BURST];
    int64_t now = p->now_ps;
    struct transmitter *s;

    if (i == p->tick) {
        p->partition->events++;
        n->node[node]->ops->tick(n->node[node], now);
        net_refresh_node(n, node);
        return;
    }
    s = p->tx[i];
    if (s->node == node) {
        p->partition->events += egress_next_start(s->e) <= now;
        egress_start(s->e, now);
        heap_set(&p->heap, i, egress_next_start(s->e));
        net_refresh(n, s->nd);
    } else {
        uint16_t cnt = egress_take(s->e, m, NODE_BURST, now);

        p->partition->events++;
        heap_set(&p->heap, i, egress_next_arrival(s->e));
        net_arrive(n, s, m, cnt);
        if (s->reads_body)
            prefetch_body(egress_first(s->e, false));
    }
}

static void run_node(struct net *n, uint16_t node, int64_t end_ps, const struct net_turn *turn)
{
    struct logical_process *p = &n->apart->process[node];
    struct heap *h = &p->heap;

    T_ASSERT_HOT(n->apart->due[node] <= heap_time(h), "a node has an event before it is due");
    while (heap_time(h) < end_ps) {
        T_ASSERT_HOT(heap_time(h) >= p->now_ps, "the time of a node runs backwards");
        p->now_ps = heap_time(h);
        do
            run_event(n, node, heap_top(h));
        while (heap_time(h) <= p->now_ps);
        if (turn)
            turn->served(turn->ctx, node, p->now_ps);
    }
    n->apart->due[node] = heap_time(h);
}

/* Whether every event of the phase before end_ps has run. */
static __rte_unused bool phase_is_done(const struct net *n, const struct phase *phase,
                                       int64_t end_ps)
{
    for (uint32_t k = 0; k < phase->n; k++)
        if (heap_time(&n->apart->process[phase->node[k]].heap) < end_ps)
            return false;
    return true;
}

/* Runs the nodes of a phase up to `end`. turn: for hosts. */
static void run_phase(struct net *n, struct partition *part, const struct phase *phase,
                      int64_t end_ps, const struct net_turn *turn)
{
    prefetch_begin(n, part, phase, end_ps);
    for (uint32_t k = 0; k < phase->n; k++)
        if (n->apart->due[phase->node[k]] < end_ps) {
            prefetch_turn(n, part, phase, end_ps);
            run_node(n, phase->node[k], end_ps, turn);
        }
    T_ASSERT_HOT(phase_is_done(n, phase, end_ps), "a phase has left an event of its time undone");
}

static void run_far(void *net, unsigned k)
{
    struct net *n = net;
    struct apart *a = n->apart;

    take_messages(n, &a->partition[k], true);
    run_phase(n, &a->partition[k], &a->partition[k].far, a->mid_ps, NULL);
}

/* Runs a host to the end of the slice if the caller awaits its processes, else to the middle. */
static void run_hosts(void *net, unsigned k)
{
    struct net *n = net;
    struct apart *a = n->apart;
    struct partition *part = &a->partition[k];

    take_messages(n, part, false);
    part->sent_ps = PS_NEVER;
    part->ran_on = false;
    prefetch_begin(n, part, &part->hosts, a->end_ps);
    for (uint32_t h = 0; h < part->hosts.n; h++) {
        uint16_t i = part->hosts.node[h];

        if (a->due[i] >= a->end_ps)
            continue;
        prefetch_turn(n, part, &part->hosts, a->end_ps);
        run_node(n, i, a->mid_ps, a->turn);
        if (a->turn->awaited(a->turn->ctx, i)) {
            run_node(n, i, a->end_ps, a->turn);
            part->ran_on = true;
        }
    }
}

static void run_rest(void *net, unsigned k)
{
    struct net *n = net;
    struct apart *a = n->apart;
    struct partition *part = &a->partition[k];

    run_phase(n, part, &part->hosts, a->end_ps, a->turn);
    run_phase(n, part, &part->near, a->end_ps, NULL);
}

/* Runs all partitions, concurrently if the caller has threads. */
static void run_partitions(struct net *n, void (*fn)(void *net, unsigned k))
{
    const struct apart *a = n->apart;

    if (a->n_partitions > 1 && a->turn->together) {
        a->turn->together(a->turn->ctx, fn, n);
        return;
    }
    for (unsigned k = 0; k < a->n_partitions; k++)
        fn(n, k);
}

static bool no_host_ran_on(const struct apart *a)
{
    for (unsigned k = 0; k < a->n_partitions; k++)
        if (a->partition[k].ran_on)
            return false;
    return true;
}

int64_t net_slice(struct net *n, int64_t from_ps, const struct net_turn *turn)
{
    struct apart *a = n->apart;

    T_ASSERT(n->is_apart, "net_slice() of a net whose nodes do not run apart");
    T_ASSERT(!n->in_event, "net_slice() from within an event");
    T_ASSERT(turn->served && turn->awaited, "net_slice() without served() or awaited()");
    T_ASSERT(from_ps >= 0 && from_ps + n->lookahead_ps >= a->far_end_ps,
             "a slice begins before the end of the one before it");
    T_ASSERT_HOT(from_ps <= apart_next(n), "a slice begins later than the next event");
    a->turn = turn;
    a->mid_ps = from_ps + n->lookahead_ps;
    a->end_ps = a->two_phases ? a->mid_ps + n->lookahead_ps : a->mid_ps;
    n->in_event = true;
    if (a->two_phases) {
        run_partitions(n, run_far);
        run_partitions(n, run_hosts);
        if (no_host_ran_on(a) && !turn->awaited(turn->ctx, FAB_NONE))
            a->end_ps = a->mid_ps;
    }
    run_partitions(n, run_rest);
    n->in_event = false;
    a->far_end_ps = a->mid_ps;
    a->hosts_end_ps = a->end_ps;
    n->now_ps = a->end_ps - 1;
    a->turn = NULL; /* the caller's, for this call only */
    return a->end_ps;
}

int64_t apart_next(const struct net *n)
{
    int64_t t = PS_NEVER;

    for (uint16_t i = 0; i < n->cfg.fab->n_nodes; i++)
        t = RTE_MIN(t, n->apart->due[i]);
    for (unsigned k = 0; k < n->apart->n_partitions; k++)
        t = RTE_MIN(t, n->apart->partition[k].sent_ps);
    return RTE_MAX(t, n->apart->hosts_end_ps);
}

uint64_t apart_events(const struct net *n)
{
    uint64_t sum = 0;

    for (unsigned k = 0; k < n->apart->n_partitions; k++)
        sum += n->apart->partition[k].events;
    return sum;
}

/* ---- control path ---- */

int64_t net_lookahead(const struct net *n)
{
    return n->lookahead_ps;
}

/* Whether frames in flight are in order. If they overtake each other, the first arrival is known only
 * when it happens, and a message about the first frame on a link could be wrong. */
static bool in_order(const struct net *n)
{
    for (uint32_t i = 0; i < n->n_tx; i++)
        if (n->tx[i].e && !egress_is_in_order(n->tx[i].e))
            return false;
    return true;
}

/* Whether the lookahead, computed from the conf, holds for the present latencies of links. */
static bool lookahead_holds(const struct net *n)
{
    for (uint32_t i = 0; i < n->n_tx; i++)
        if (n->tx[i].e && egress_latency_ps(n->tx[i].e) < n->lookahead_ps)
            return false;
    return true;
}

/* Runs far nodes up to the hosts' time. */
static void catch_up_far(struct net *n)
{
    struct apart *a = n->apart;

    if (a->far_end_ps >= a->hosts_end_ps)
        return;
    a->mid_ps = a->hosts_end_ps;
    n->in_event = true;
    for (unsigned k = 0; k < a->n_partitions; k++)
        run_far(n, k);
    n->in_event = false;
    n->now_ps = a->hosts_end_ps - 1;
}

static void net_split(struct net *n)
{
    struct apart *a = n->apart;

    events_add(&n->ev, n->now_ps, NET_EV_APART, a->n_partitions, a->two_phases ? 2 : 1);
    n->is_apart = true;
    a->hosts_end_ps = a->far_end_ps = 0;
    for (uint16_t i = 0; i < n->cfg.fab->n_nodes; i++) {
        a->due[i] = PS_NEVER;
        a->process[i].now_ps = n->now_ps;
    }
    for (unsigned k = 0; k < a->n_partitions; k++) {
        a->partition[k].sent_ps = PS_NEVER;
        for (unsigned i = 0; i < a->n_partitions; i++)
            a->partition[k].to_near[i].n = a->partition[k].to_far[i].n = 0;
    }
    for (uint32_t i = 0; i < n->n_tx; i++) {
        struct transmitter *s = &n->tx[i];

        if (!s->e)
            continue;
        egress_on_earlier(s->e, start_is_earlier, s);
        egress_apart(s->e, first_on_link);
        start_is_earlier(s);
        event_set(n, s->peer, s->arrives, egress_next_arrival(s->e));
    }
}

static void merge(struct net *n)
{
    events_add(&n->ev, n->now_ps, NET_EV_TOGETHER, n->apart->n_partitions, n->heap.n);
    n->is_apart = false;
    for (uint32_t i = 0; i < n->n_tx; i++) {
        struct transmitter *s = &n->tx[i];

        if (!s->e)
            continue;
        egress_on_earlier(s->e, net_earlier, s);
        egress_apart(s->e, NULL);
        net_refresh_tx(s);
    }
}

int net_apart(struct net *n, bool apart)
{
    T_ASSERT(!n->in_event, "net_apart() from within an event");
    if (apart == n->is_apart)
        return 0;
    if (apart && (!n->lookahead_ps || n->faulty || !in_order(n) || !lookahead_holds(n)))
        return -EAGAIN;
    if (apart && !n->apart) {
        int rc = net_partition(n, 1);

        if (rc < 0)
            return rc;
    }
    if (apart) {
        net_split(n);
    } else {
        catch_up_far(n);
        merge(n);
    }
    for (uint16_t i = 0; i < n->cfg.fab->n_nodes; i++)
        if (n->node[i])
            net_refresh_node(n, i);
    return 0;
}
