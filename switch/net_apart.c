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

static void run_node(struct net *n, uint16_t node, int64_t end_ps, const struct net_turn *turn)
{
    struct heap *h = &n->apart->place[node].heap;

    while (heap_time(h) < end_ps) {
        n->now_ps = heap_time(h);
        do
            run_event(n, node, heap_top(h));
        while (heap_time(h) <= n->now_ps);
        if (turn)
            turn->served(turn->ctx, n->now_ps);
    }
    n->apart->due[node] = heap_time(h);
}

/* turn: of hosts. */
static void run_side(struct net *n, struct side *side, int64_t end_ps, const struct net_turn *turn)
{
    soon_begin(n, side, end_ps);
    for (uint32_t k = 0; k < side->n; k++)
        if (n->apart->due[side->node[k]] < end_ps) {
            soon_turn(n, side, end_ps);
            run_node(n, side->node[k], end_ps, turn);
        }
    side->end_ps = end_ps;
}

/* As that, but hosts of which nobody waits for anything stay at mid_ps; whether none has gone on.
 */
static bool run_hosts(struct net *n, int64_t mid_ps, int64_t end_ps, const struct net_turn *turn)
{
    struct side *side = &n->apart->hosts;
    bool none = true;

    soon_begin(n, side, end_ps);
    for (uint32_t k = 0; k < side->n; k++) {
        uint16_t i = side->node[k];

        if (n->apart->due[i] >= end_ps)
            continue;
        soon_turn(n, side, end_ps);
        run_node(n, i, mid_ps, turn);
        if (turn->awaited(turn->ctx, i)) {
            run_node(n, i, end_ps, turn);
            none = false;
        }
    }
    side->end_ps = mid_ps;
    return none;
}

int64_t net_slice(struct net *n, int64_t from_ps, const struct net_turn *turn)
{
    struct apart *a = n->apart;
    int64_t mid = from_ps + a->lookahead_ps, end = a->two ? mid + a->lookahead_ps : mid;

    n->in_event = true;
    run_side(n, &a->far, mid, NULL);
    if (a->two && run_hosts(n, mid, end, turn) && !turn->awaited(turn->ctx, FAB_NONE))
        end = mid;
    run_side(n, &a->hosts, end, turn);
    run_side(n, &a->near, end, NULL);
    n->in_event = false;
    n->now_ps = end - 1;
    return end;
}

int64_t apart_next(const struct net *n)
{
    int64_t t = PS_NEVER;

    for (uint16_t i = 0; i < n->cfg.fab->n_nodes; i++)
        t = RTE_MIN(t, n->apart->due[i]);
    return RTE_MAX(t, n->apart->hosts.end_ps);
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
    free(a->order);
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
            n->src[i].of_host = n->cfg.fab->nodes[n->src[i].node].kind == FAB_HOST;
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

enum { UNKNOWN, NEAR, FAR };

/* Those an odd number of links away from a host are far. queue: room for all nodes. False: some
 * neighbours are of one side, or a node is not connected to any host. */
static bool find_far(const struct fabric *f, uint8_t *side, uint16_t *queue)
{
    uint32_t n = 0, next = 0;

    for (uint16_t i = 0; i < f->n_nodes; i++)
        if (f->nodes[i].kind == FAB_HOST) {
            side[i] = NEAR;
            queue[n++] = i;
        }
    for (; next < n; next++) {
        const struct fab_node *nd = &f->nodes[queue[next]];
        uint8_t mine = side[queue[next]];

        for (uint16_t p = 0; p < nd->n_ports; p++) {
            uint16_t peer = nd->ports[p].peer_node;

            if (nd->ports[p].link == FAB_NONE)
                continue;
            if (side[peer] == mine)
                return false;
            if (side[peer] == UNKNOWN) {
                side[peer] = mine == NEAR ? FAR : NEAR;
                queue[n++] = peer;
            }
        }
    }
    return n == f->n_nodes;
}

static int fill_sides(struct net *n)
{
    const struct fabric *f = n->cfg.fab;
    struct apart *a = n->apart;
    uint8_t *side = calloc(f->n_nodes + 1u, sizeof(*side));
    uint16_t *at = a->order;

    if (!side)
        return -ENOMEM;
    a->two = find_far(f, side, a->order);
    a->hosts.node = at;
    for (uint16_t i = 0; i < f->n_nodes; i++)
        if (f->nodes[i].kind == FAB_HOST)
            at[a->hosts.n++] = i;
    a->near.node = at += a->hosts.n;
    for (uint16_t i = 0; i < f->n_nodes; i++)
        if (f->nodes[i].kind != FAB_HOST && !(a->two && side[i] == FAR))
            at[a->near.n++] = i;
    a->far.node = at += a->near.n;
    for (uint16_t i = 0; i < f->n_nodes; i++)
        if (a->two && side[i] == FAR)
            at[a->far.n++] = i;
    free(side);
    return 0;
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
        a->order = calloc(nodes + 1u, sizeof(*a->order));
    }
    if (a && a->due && a->place && a->all && a->order)
        rc = fill_places(n);
    if (!rc)
        rc = fill_sides(n);
    if (rc)
        apart_destroy(n);
    else
        a->lookahead_ps = net_lookahead(n);
    return rc;
}

/* Far nodes to where hosts are. */
static void level(struct net *n)
{
    struct apart *a = n->apart;

    if (a->far.end_ps >= a->hosts.end_ps)
        return;
    n->in_event = true;
    run_side(n, &a->far, a->hosts.end_ps, NULL);
    n->in_event = false;
    n->now_ps = a->hosts.end_ps - 1;
}

static void part(struct net *n)
{
    n->is_apart = true;
    n->apart->hosts.end_ps = n->apart->far.end_ps = 0;
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
