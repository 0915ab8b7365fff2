/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes of a net run apart, a slice of time after the other (conservative lookahead). Each has a
 * heap of its own, of: the starts of its own queues, the arrivals on the links that lead to it, and
 * its timers. Their order within it is that of net.c: queues by link and direction, then the node.
 * So each node sees the same events in the same order as in net_advance(), and simulated times are
 * the same; only the order between nodes is another, which nothing depends on: frames that a node
 * starts arrive the lookahead, the least latency of a link, later at the earliest.
 *
 * So nodes whose neighbours have come to t may go to t + lookahead. Where hosts are an even number
 * of links from each other, and links lead from the side of the hosts to the other, far one only,
 * that gives slices of twice the lookahead: with all at 0, the far side goes to 1, hosts and
 * whoever is near them to 2, the far side to 3, and so on, in lookaheads. Elsewhere all go to 1.
 *
 * Why: events of a large fabric in lock-step go around all of its nodes, and each finds its node's
 * state in no cache. Apart, a node does some ten or twenty of them in a row.
 *
 * Rejected: one heap of all events, with what the next ones need prefetched: the state of an event
 * is found through chains of pointers that are themselves in no cache. Node by node, a node's
 * events are known long before its turn, and net_prefetch.c follows those chains meanwhile.
 */
#include "switch/net/net_priv.h"

#include "base/cacheline.h"

#include <errno.h>
#include <stdlib.h>

static inline void set(struct net *n, uint16_t node, uint32_t i, int64_t t)
{
    struct apart *a = n->apart;

    heap_set(&a->place[node].heap, i, t);
    if (t < a->due[node])
        a->due[node] = t;
}

void apart_set_tick(struct net *n, uint16_t node, int64_t t)
{
    set(n, node, n->apart->place[node].tick, t);
}

/* A frame came onto an empty link. Its peer may be somebody else's, who is told. */
static void first(void *ctx)
{
    struct source *s = ctx;
    struct share *mine = s->net->apart->place[s->node].share;
    int64_t t = egress_next_arrival(s->e);
    struct notes *l;

    if (likely(s->peer_share == mine->id)) {
        set(s->net, s->peer, s->arrives, t);
        return;
    }
    if (s->to_far)
        mine->noted_ps = RTE_MIN(mine->noted_ps, t);
    l = &(s->to_far ? mine->far_of : mine->near_of)[s->peer_share];
    l->a[l->n++] = (struct note){t, s->arrives, s->peer};
}

/* What others have noted. */
static void take_notes(struct net *n, const struct share *sh, bool of_far)
{
    struct apart *a = n->apart;

    for (unsigned k = 0; k < a->n_shares; k++) {
        struct notes *l = &(of_far ? a->share[k].far_of : a->share[k].near_of)[sh->id];

        for (uint32_t i = 0; i < l->n; i++)
            set(n, l->a[i].node, l->a[i].i, l->a[i].t);
        l->n = 0;
    }
}

static void earlier(void *ctx)
{
    struct source *s = ctx;

    set(s->net, s->node, s->starts, egress_next_start(s->e));
}

static void run_event(struct net *n, uint16_t node, uint32_t i)
{
    struct place *p = &n->apart->place[node];
    struct rte_mbuf *m[NODE_BURST];
    int64_t now = p->now_ps;
    struct source *s;

    if (i == p->tick) {
        p->share->events++;
        n->node[node]->ops->tick(n->node[node], now);
        net_refresh_node(n, node);
        return;
    }
    s = p->src[i];
    if (s->node == node) {
        p->share->events += egress_next_start(s->e) <= now;
        egress_start(s->e, now);
        heap_set(&p->heap, i, egress_next_start(s->e));
        net_refresh(n, s->nd);
    } else {
        uint16_t cnt = egress_take(s->e, m, NODE_BURST, now);

        p->share->events++;
        heap_set(&p->heap, i, egress_next_arrival(s->e));
        net_arrive(n, s, m, cnt);
        if (s->read)
            egress_prefetch_body(s->e);
    }
}

static void run_node(struct net *n, uint16_t node, int64_t end_ps, const struct net_turn *turn)
{
    struct place *p = &n->apart->place[node];
    struct heap *h = &p->heap;

    while (heap_time(h) < end_ps) {
        p->now_ps = heap_time(h);
        do
            run_event(n, node, heap_top(h));
        while (heap_time(h) <= p->now_ps);
        if (turn)
            turn->served(turn->ctx, node, p->now_ps);
    }
    n->apart->due[node] = heap_time(h);
}

/* turn: of hosts. */
static void run_side(struct net *n, struct share *sh, const struct side *side, int64_t end_ps,
                     const struct net_turn *turn)
{
    prefetch_begin(n, sh, side, end_ps);
    for (uint32_t k = 0; k < side->n; k++)
        if (n->apart->due[side->node[k]] < end_ps) {
            prefetch_turn(n, sh, side, end_ps);
            run_node(n, side->node[k], end_ps, turn);
        }
}

static void run_far(void *net, unsigned k)
{
    struct net *n = net;
    struct apart *a = n->apart;

    take_notes(n, &a->share[k], true);
    run_side(n, &a->share[k], &a->share[k].far, a->mid_ps, NULL);
}

/* Hosts of which nobody waits for anything stay in the middle. */
static void run_hosts(void *net, unsigned k)
{
    struct net *n = net;
    struct apart *a = n->apart;
    struct share *sh = &a->share[k];

    take_notes(n, sh, false);
    sh->noted_ps = PS_NEVER;
    sh->went = false;
    prefetch_begin(n, sh, &sh->hosts, a->end_ps);
    for (uint32_t h = 0; h < sh->hosts.n; h++) {
        uint16_t i = sh->hosts.node[h];

        if (a->due[i] >= a->end_ps)
            continue;
        prefetch_turn(n, sh, &sh->hosts, a->end_ps);
        run_node(n, i, a->mid_ps, a->turn);
        if (a->turn->awaited(a->turn->ctx, i)) {
            run_node(n, i, a->end_ps, a->turn);
            sh->went = true;
        }
    }
}

static void run_rest(void *net, unsigned k)
{
    struct net *n = net;
    struct apart *a = n->apart;
    struct share *sh = &a->share[k];

    run_side(n, sh, &sh->hosts, a->end_ps, a->turn);
    run_side(n, sh, &sh->near, a->end_ps, NULL);
}

/* Shares at the same time, if there is somebody who can. */
static void together(struct net *n, void (*fn)(void *net, unsigned k))
{
    const struct apart *a = n->apart;

    if (a->n_shares > 1 && a->turn->together) {
        a->turn->together(a->turn->ctx, fn, n);
        return;
    }
    for (unsigned k = 0; k < a->n_shares; k++)
        fn(n, k);
}

static bool nobody_went(const struct apart *a)
{
    for (unsigned k = 0; k < a->n_shares; k++)
        if (a->share[k].went)
            return false;
    return true;
}

int64_t net_slice(struct net *n, int64_t from_ps, const struct net_turn *turn)
{
    struct apart *a = n->apart;

    a->turn = turn;
    a->mid_ps = from_ps + n->lookahead_ps;
    a->end_ps = a->two ? a->mid_ps + n->lookahead_ps : a->mid_ps;
    n->in_event = true;
    if (a->two) {
        together(n, run_far);
        together(n, run_hosts);
        if (nobody_went(a) && !turn->awaited(turn->ctx, FAB_NONE))
            a->end_ps = a->mid_ps;
    }
    together(n, run_rest);
    n->in_event = false;
    a->far_end_ps = a->mid_ps;
    a->hosts_end_ps = a->end_ps;
    n->now_ps = a->end_ps - 1;
    return a->end_ps;
}

int64_t apart_next(const struct net *n)
{
    int64_t t = PS_NEVER;

    for (uint16_t i = 0; i < n->cfg.fab->n_nodes; i++)
        t = RTE_MIN(t, n->apart->due[i]);
    for (unsigned k = 0; k < n->apart->n_shares; k++)
        t = RTE_MIN(t, n->apart->share[k].noted_ps);
    return RTE_MAX(t, n->apart->hosts_end_ps);
}

uint64_t apart_events(const struct net *n)
{
    uint64_t sum = 0;

    for (unsigned k = 0; k < n->apart->n_shares; k++)
        sum += n->apart->share[k].events;
    return sum;
}

/* ---- control path ---- */

int64_t net_lookahead(const struct net *n)
{
    return n->lookahead_ps;
}

/* Frames that overtake each other arrive in an order that is known only when they have: no note of
 * the first on a link would hold. */
static bool in_order(const struct net *n)
{
    for (uint32_t i = 0; i < n->n_src; i++)
        if (n->src[i].e && !egress_is_in_order(n->src[i].e))
            return false;
    return true;
}

/* Far nodes to where hosts are. */
static void level(struct net *n)
{
    struct apart *a = n->apart;

    if (a->far_end_ps >= a->hosts_end_ps)
        return;
    a->mid_ps = a->hosts_end_ps;
    n->in_event = true;
    for (unsigned k = 0; k < a->n_shares; k++)
        run_far(n, k);
    n->in_event = false;
    n->now_ps = a->hosts_end_ps - 1;
}

static void part(struct net *n)
{
    struct apart *a = n->apart;

    n->is_apart = true;
    a->hosts_end_ps = a->far_end_ps = 0;
    for (uint16_t i = 0; i < n->cfg.fab->n_nodes; i++) {
        a->due[i] = PS_NEVER;
        a->place[i].now_ps = n->now_ps;
    }
    for (unsigned k = 0; k < a->n_shares; k++) {
        a->share[k].noted_ps = PS_NEVER;
        for (unsigned i = 0; i < a->n_shares; i++)
            a->share[k].near_of[i].n = a->share[k].far_of[i].n = 0;
    }
    for (uint32_t i = 0; i < n->n_src; i++) {
        struct source *s = &n->src[i];

        if (!s->e)
            continue;
        egress_on_earlier(s->e, earlier, s);
        egress_apart(s->e, first);
        earlier(s);
        set(n, s->peer, s->arrives, egress_next_arrival(s->e));
    }
}

static void join(struct net *n)
{
    n->is_apart = false;
    for (uint32_t i = 0; i < n->n_src; i++) {
        struct source *s = &n->src[i];

        if (!s->e)
            continue;
        egress_on_earlier(s->e, net_earlier, s);
        egress_apart(s->e, NULL);
        net_refresh_src(s);
    }
}

int net_apart(struct net *n, bool apart)
{
    if (apart == n->is_apart)
        return 0;
    if (apart && (!n->lookahead_ps || n->faulty || !in_order(n)))
        return -EAGAIN;
    if (apart && !n->apart) {
        int rc = net_share(n, 1);

        if (rc < 0)
            return rc;
    }
    if (apart) {
        part(n);
    } else {
        level(n);
        join(n);
    }
    for (uint16_t i = 0; i < n->cfg.fab->n_nodes; i++)
        if (n->node[i])
            net_refresh_node(n, i);
    return 0;
}
