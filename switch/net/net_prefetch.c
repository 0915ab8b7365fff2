/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes that come soon in a slice (net_apart.c): what their events begin with is on its way into
 * the CPU's caches while those of others run. It is found through chains of pointers that are in no
 * cache themselves, so each node goes through SOON_STEPS steps, one before each node that runs, and
 * every step asks for what the one before it has made known. Nothing is changed, and whatever
 * happens otherwise than foreseen is served as well.
 *
 * The last two steps are for what hangs on a host's port, an HCA with its queue pairs: that is too
 * long a chain, so the endpoint keeps a list of its lines (struct cacheline_list), and all of them are
 * asked for at once. At a switch they are for where the first frame of a link goes. Processes of
 * hosts are asked for by whoever has them (net_turn.soon).
 */
#include "switch/net/net_priv.h"

#include "base/cacheline.h"

_Static_assert(NET_SOON < SOON_STEPS, "processes are asked for within a node's steps");

static void gather(struct soon *s, const struct place *p, int64_t end_ps)
{
    const struct heap *h = &p->heap;

    s->n = 0;
    for (uint32_t k = 0; k < h->n && s->n < SOON_EVENTS; k++) {
        uint32_t i = h->a[k].i;

        if (h->a[k].t >= end_ps || i == p->tick)
            continue;
        s->at[s->n++] = &p->src[i];
        rte_prefetch0(&p->src[i]);
        rte_prefetch0(&h->place[i]);
    }
}

static void ask_port(struct node *nd, uint16_t port, unsigned within)
{
    if (within == 0) {
        rte_prefetch0(&nd->egress[port]);
        rte_prefetch0(&nd->cnt[port]);
        rte_prefetch0(&nd->np[port]);
    }
    nd->ops->soon(nd, port, NULL, within);
}

/* What hangs on the ports, once for each; at a switch of those only by which a frame comes. */
static void ask_behind(struct node *nd, bool host, const struct soon *s, unsigned step)
{
    uint64_t seen = 0;

    for (uint32_t k = 0; k < s->n; k++) {
        const struct source *x = *s->at[k];
        bool starts = x->node == nd->id;
        uint16_t port = starts ? x->port : x->peer_port;

        if ((starts && !host) || seen >> port % 64 & 1)
            continue;
        seen |= 1ull << port % 64;
        nd->ops->soon(nd, port, starts ? NULL : egress_arriving(x->e), step);
    }
}

/* s: the source of one of its events. What comes to a host is answered by the same port, on the
 * link's other direction. */
static void ask(struct net *n, struct node *nd, const struct source *s, unsigned step)
{
    const struct source *back = &n->src[s->id ^ 1];
    bool starts = s->node == nd->id, answered = !starts && back->of_host;

    switch (step) {
    case 3:
        rte_prefetch0(s);
        rte_prefetch0(back);
        break;
    case 4:
        egress_prefetch(s->e, starts);
        ask_port(nd, starts ? s->port : s->peer_port, 0);
        if (answered) {
            egress_prefetch(back->e, true);
            rte_prefetch0(&n->apart->place[nd->id].heap.place[back->starts]);
        }
        break;
    default:
        egress_prefetch_frame(s->e, starts);
        ask_port(nd, starts ? s->port : s->peer_port, 1);
    }
}

static void run_step(struct net *n, struct soon *s, bool host, unsigned step, int64_t end_ps)
{
    struct place *p = &n->apart->place[s->node];
    struct node *nd = n->node[s->node];

    if (host && n->attached >= SOON_PROCESSES && step - 1 < NET_SOON)
        n->apart->turn->soon(n->apart->turn->ctx, s->node, step - 1);
    switch (step) {
    case 0:
        rte_prefetch0(p);
        rte_prefetch0(nd);
        rte_prefetch0((char *)nd + RTE_CACHE_LINE_SIZE);
        break;
    case 1:
        cacheline_prefetch(p->heap.a, p->heap.n * sizeof(*p->heap.a));
        break;
    case 2:
        gather(s, p, end_ps);
        break;
    case 6:
    case 7:
        ask_behind(nd, host, s, step - 4);
        break;
    default:
        for (uint32_t k = 0; k < s->n; k++)
            ask(n, nd, *s->at[k], step);
    }
}

void prefetch_turn(struct net *n, struct share *sh, const struct side *side, int64_t end_ps)
{
    unsigned steps = n->attached < SOON_MANY ? SOON_NEAR : SOON_STEPS;
    const int64_t *due = n->apart->due;
    uint32_t i = sh->look;

    while (i < side->n && due[side->node[i]] >= end_ps)
        i++;
    sh->soon[sh->turn % SOON_STEPS].node = i < side->n ? side->node[i] : FAB_NONE;
    sh->look = i + 1;
    for (unsigned step = 0; step < steps; step++) {
        struct soon *s = &sh->soon[(sh->turn - step) % SOON_STEPS];

        if (s->node != FAB_NONE)
            run_step(n, s, side == &sh->hosts, step, end_ps);
    }
    sh->turn++;
}

void prefetch_begin(struct net *n, struct share *sh, const struct side *side, int64_t end_ps)
{
    sh->look = 0;
    sh->turn = SOON_STEPS;
    for (unsigned k = 0; k < SOON_STEPS; k++)
        sh->soon[k].node = FAB_NONE;
    for (unsigned k = 0; k + 1 < SOON_STEPS; k++)
        prefetch_turn(n, sh, side, end_ps);
}
