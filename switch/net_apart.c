/*
 * Nodes of a net run apart, a slice of time after the other (conservative lookahead). Each has a
 * heap of its own, of: the starts of its own queues, the arrivals on the links that lead to it, and
 * its timers. Their order within it is that of net.c: queues by link and direction, then the node.
 * So each node sees the same events in the same order as in net_advance(), and simulated times are
 * the same; only the order between nodes is another, which nothing depends on: frames that a node
 * starts in a slice arrive after it.
 *
 * Why: events of a large fabric in lock-step go around all of its nodes, and each finds its node's
 * state in no cache. Apart, a node does some ten of them in a row.
 *
 * Rejected: one heap of all events, with what the next ones need prefetched: the state of an event
 * is found through chains of pointers that are themselves in no cache. Node by node, a node's
 * events are known long before its turn, and net_soon.c follows those chains meanwhile.
 */
#include "switch/net_priv.h"

#include "roce/lines.h"

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

/* A frame came onto an empty link. */
static void first(void *ctx)
{
    struct source *s = ctx;

    set(s->net, s->peer, s->arrives, egress_next_arrival(s->e));
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
    struct source *s;

    if (i == p->tick) {
        n->events++;
        n->node[node]->ops->tick(n->node[node], n->now_ps);
        net_refresh_node(n, node);
        return;
    }
    s = p->src[i];
    if (s->node == node) {
        n->events += egress_next_start(s->e) <= n->now_ps;
        egress_start(s->e, n->now_ps);
        heap_set(&p->heap, i, egress_next_start(s->e));
        net_refresh(n, s->nd);
    } else {
        uint16_t cnt = egress_take(s->e, m, NODE_BURST, n->now_ps);

        n->events++;
        heap_set(&p->heap, i, egress_next_arrival(s->e));
        net_arrive(n, s, m, cnt);
    }
}

void net_slice(struct net *n, int64_t end_ps, void (*served)(void *ctx, int64_t now_ps), void *ctx)
{
    struct apart *a = n->apart;

    n->in_event = true;
    soon_begin(n, end_ps);
    for (uint16_t i = 0; i < n->cfg.fab->n_nodes; i++) {
        struct heap *h = &a->place[i].heap;
        bool host = n->cfg.fab->nodes[i].kind == FAB_HOST;

        if (a->due[i] >= end_ps)
            continue;
        soon_turn(n, end_ps);
        while (heap_time(h) < end_ps) {
            n->now_ps = heap_time(h);
            do
                run_event(n, i, heap_top(h));
            while (heap_time(h) <= n->now_ps);
            if (host)
                served(ctx, n->now_ps);
        }
        a->due[i] = heap_time(h);
    }
    n->in_event = false;
    n->now_ps = end_ps - 1;
}

int64_t apart_next(const struct net *n)
{
    int64_t t = PS_NEVER;

    for (uint16_t i = 0; i < n->cfg.fab->n_nodes; i++)
        t = RTE_MIN(t, n->apart->due[i]);
    return t;
}

/* ---- control path ---- */

int64_t net_lookahead(const struct net *n)
{
    int64_t least = PS_NEVER;

    for (uint32_t i = 0; i < n->n_src; i++) {
        const struct source *s = &n->src[i];

        if (!s->e)
            continue;
        if (s->peer == FAB_NONE || s->peer == s->node || !egress_is_plain(s->e))
            return 0;
        least = RTE_MIN(least, n->cfg.fab->nodes[s->node].ports[s->port].latency_ps);
    }
    return least == PS_NEVER ? 0 : least;
}

void apart_destroy(struct net *n)
{
    struct apart *a = n->apart;

    if (!a)
        return;
    for (uint16_t i = 0; a->place && i < n->cfg.fab->n_nodes; i++)
        heap_fini(&a->place[i].heap);
    free(a->due);
    free(a->place);
    free(a->all);
    free(a);
    n->apart = NULL;
}

/* Sources are gone through by their number, so a place has them in order. */
static int fill_places(struct net *n)
{
    struct apart *a = n->apart;
    uint32_t at = 0;
    int rc = 0;

    for (uint32_t i = 0; i < n->n_src; i++)
        if (n->src[i].e) {
            n->src[i].starts = a->place[n->src[i].node].tick++;
            n->src[i].arrives = a->place[n->src[i].peer].tick++;
        }
    for (uint16_t i = 0; i < n->cfg.fab->n_nodes && !rc; i++) {
        struct place *p = &a->place[i];

        p->src = a->all + at;
        at += p->tick;
        rc = heap_init(&p->heap, p->tick + 1);
    }
    for (uint32_t i = 0; i < n->n_src && !rc; i++) {
        struct source *s = &n->src[i];

        if (s->e)
            a->place[s->node].src[s->starts] = a->place[s->peer].src[s->arrives] = s;
    }
    return rc;
}

static int apart_create(struct net *n)
{
    struct apart *a = n->apart = calloc(1, sizeof(*a));
    uint16_t nodes = n->cfg.fab->n_nodes;
    int rc = -ENOMEM;

    if (a) {
        a->due = calloc(nodes + 1u, sizeof(*a->due));
        a->place = lines_alloc((nodes + 1u) * sizeof(*a->place));
        a->all = calloc(2u * n->n_src + 1u, sizeof(struct source *));
    }
    if (a && a->due && a->place && a->all)
        rc = fill_places(n);
    if (rc)
        apart_destroy(n);
    return rc;
}

static void part(struct net *n)
{
    n->is_apart = true;
    for (uint16_t i = 0; i < n->cfg.fab->n_nodes; i++)
        n->apart->due[i] = PS_NEVER;
    for (uint32_t i = 0; i < n->n_src; i++) {
        struct source *s = &n->src[i];

        if (!s->e)
            continue;
        egress_on_earlier(s->e, earlier, s);
        egress_apart(s->e, first);
        earlier(s);
        first(s);
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
    if (apart && !n->apart) {
        int rc = apart_create(n);

        if (rc)
            return rc;
    }
    if (apart)
        part(n);
    else
        join(n);
    for (uint16_t i = 0; i < n->cfg.fab->n_nodes; i++)
        if (n->node[i])
            net_refresh_node(n, i);
    return 0;
}
