/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Staged prefetch of the nodes that run next in a slice (net_logical_process.c). The state that a
 * node's events read is found through chains of pointers that are in no cache themselves, so each
 * node goes through PREFETCH_STEPS steps, one before each node that runs, and every step prefetches
 * what the one before it has made reachable. Prefetches change no state: an event that was not
 * foreseen runs as well, only slower.
 *
 * The last two steps are for the endpoint on a host's port, an HCA with its queue pairs: its chain
 * is too long, so it keeps a list of its cache lines (struct cacheline_list), and all of them are
 * prefetched at once. At a switch those steps are for the egress queue of the first frame on a
 * link. The simulator prefetches the processes of hosts itself (net_turn.prefetch).
 */
#include "switch/net/net_priv.h"

#include "base/cacheline.h"

_Static_assert(NET_PREFETCH_STEPS < PREFETCH_STEPS,
               "processes are prefetched within the steps of a node");

static void gather(struct prefetch *s, const struct logical_process *p, int64_t end_ps)
{
    const struct heap *h = &p->heap;

    s->n = 0;
    for (uint32_t k = 0; k < h->n && s->n < PREFETCH_EVENTS; k++) {
        uint32_t i = h->a[k].i;

        if (h->a[k].t >= end_ps || i == p->tick)
            continue;
        s->at[s->n++] = &p->tx[i];
        rte_prefetch0(&p->tx[i]);
        rte_prefetch0(&h->place[i]);
    }
}

static void prefetch_port(struct node *nd, uint16_t port, unsigned within)
{
    if (within == 0) {
        rte_prefetch0(&nd->egress[port]);
        rte_prefetch0(&nd->cnt[port]);
        rte_prefetch0(&nd->np[port]);
    }
    nd->ops->prefetch(nd, port, NULL, within);
}

/* The endpoints behind the ports, once for each; at a switch only ports by which a frame
 * arrives. */
static void prefetch_endpoints(struct node *nd, bool host, const struct prefetch *s, unsigned step)
{
    uint64_t seen = 0;

    for (uint32_t k = 0; k < s->n; k++) {
        const struct transmitter *x = *s->at[k];
        bool starts = x->node == nd->id;
        uint16_t port = starts ? x->port : x->peer_port;

        if ((starts && !host) || seen >> port % 64 & 1)
            continue;
        seen |= 1ull << port % 64;
        nd->ops->prefetch(nd, port, starts ? NULL : egress_arriving(x->e), step);
    }
}

/* s: the transmitter of one of its events. A host answers by the port at which a frame arrives, on
 * the other direction of the link. */
static void prefetch_event(struct net *n, struct node *nd, const struct transmitter *s,
                           unsigned step)
{
    const struct transmitter *back = &n->tx[s->id ^ 1];
    bool starts = s->node == nd->id, answered = !starts && back->of_host;

    switch (step) {
    case 3:
        rte_prefetch0(s);
        rte_prefetch0(back);
        break;
    case 4:
        egress_prefetch(s->e, starts);
        prefetch_port(nd, starts ? s->port : s->peer_port, 0);
        if (answered) {
            egress_prefetch(back->e, true);
            rte_prefetch0(&n->apart->process[nd->id].heap.place[back->starts]);
        }
        break;
    default:
        egress_prefetch_frame(s->e, starts);
        prefetch_port(nd, starts ? s->port : s->peer_port, 1);
    }
}

static void run_step(struct net *n, struct prefetch *s, bool host, unsigned step, int64_t end_ps)
{
    struct logical_process *p = &n->apart->process[s->node];
    struct node *nd = n->node[s->node];

    if (host && n->attached >= PREFETCH_PROCESSES && step - 1 < NET_PREFETCH_STEPS)
        n->apart->turn->prefetch(n->apart->turn->ctx, s->node, step - 1);
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
        prefetch_endpoints(nd, host, s, step - 4);
        break;
    default:
        for (uint32_t k = 0; k < s->n; k++)
            prefetch_event(n, nd, *s->at[k], step);
    }
}

void prefetch_turn(struct net *n, struct partition *part, const struct phase *phase, int64_t end_ps)
{
    unsigned steps = n->attached < PREFETCH_MANY ? PREFETCH_NEAR : PREFETCH_STEPS;
    const int64_t *due = n->apart->due;
    uint32_t i = part->look;

    while (i < phase->n && due[phase->node[i]] >= end_ps)
        i++;
    part->prefetch[part->turn % PREFETCH_STEPS].node = i < phase->n ? phase->node[i] : FAB_NONE;
    part->look = i + 1;
    for (unsigned step = 0; step < steps; step++) {
        struct prefetch *s = &part->prefetch[(part->turn - step) % PREFETCH_STEPS];

        if (s->node != FAB_NONE)
            run_step(n, s, phase == &part->hosts, step, end_ps);
    }
    part->turn++;
}

void prefetch_begin(struct net *n, struct partition *part, const struct phase *phase,
                    int64_t end_ps)
{
    part->look = 0;
    part->turn = PREFETCH_STEPS;
    for (unsigned k = 0; k < PREFETCH_STEPS; k++)
        part->prefetch[k].node = FAB_NONE;
    for (unsigned k = 0; k + 1 < PREFETCH_STEPS; k++)
        prefetch_turn(n, part, phase, end_ps);
}
