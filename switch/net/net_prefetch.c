/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Staged prefetch of the nodes that run next in a slice (net_logical_process.c). A node's events read
 * state through chains of pointers that are themselves in no cache. So each node goes through
 * PREFETCH_STEPS steps, one before each node that runs, and every step prefetches what the step before has
 * made reachable. Prefetches change no state: an event that was not foreseen also runs, only slower.
 *
 * The chain behind a host's port, from its slot to an HCA with its queue pairs, is too long for that: the
 * owners of that state list its cache lines (net_list_cachelines()), and all are prefetched at once.
 *
 * Left out, because the gain was below 1.1: the processes of hosts, rank by rank (0.93 to 1.01 with
 * vectors of 64 MiB and more, 1.06 with 16 MiB); the queue by which a switch will forward the next frame
 * (1.03 to 1.09).
 */
#include "switch/net/net_priv.h"

#include "base/cacheline.h"

static void net_prefetch_gather(struct prefetch *s, const struct logical_process *p, int64_t end_ps)
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

/* The transmitter of the port at which an event of the node happens. */
static const struct transmitter *port_of(const struct net *n, const struct node *nd,
                                         const struct transmitter *x)
{
    return x->node == nd->id ? x : &n->tx[x->id ^ 1];
}

/* Prefetches the queues of the port at which a frame arrives: a host answers by that port. */
static void prefetch_queues(const struct net *n, const struct node *nd, const struct transmitter *x,
                            bool host)
{
    const struct transmitter *own = port_of(n, nd, x);

    egress_prefetch(x->e, own == x);
    rte_prefetch0(&nd->egress[own->port]);
    rte_prefetch0(&nd->cnt[own->port]);
    rte_prefetch0(&nd->np[own->port]);
    if (host && own != x) {
        egress_prefetch(own->e, true);
        rte_prefetch0(&n->apart->process[nd->id].heap.place[own->starts]);
    }
    if (host && n->lines[own->id])
        cacheline_prefetch(n->lines[own->id], sizeof(struct cacheline_list));
}

static void prefetch_frame(const struct node *nd, const struct transmitter *x)
{
    struct rte_mbuf *m = egress_first(x->e, x->node == nd->id);

    if (m)
        frame_prefetch(m);
}

/* Prefetches the list behind each port of a host, once. */
static void prefetch_lists(const struct net *n, const struct node *nd, const struct prefetch *s)
{
    uint64_t seen = 0;

    for (uint32_t k = 0; k < s->n; k++) {
        const struct transmitter *own = port_of(n, nd, *s->at[k]);
        uint64_t bit = 1ull << own->port % 64;

        if (n->lines[own->id] && !(seen & bit))
            cacheline_list_prefetch(n->lines[own->id]);
        seen |= bit;
    }
}

static void run_step(struct net *n, struct prefetch *s, bool host, unsigned step, int64_t end_ps)
{
    struct logical_process *p = &n->apart->process[s->node];
    struct node *nd = n->node[s->node];

    switch (step) {
    case 0:
        rte_prefetch0(p);
        cacheline_prefetch(nd, PREFETCH_NODE);
        break;
    case 1:
        cacheline_prefetch(p->heap.a, p->heap.n * sizeof(*p->heap.a));
        break;
    case 2:
        net_prefetch_gather(s, p, end_ps);
        break;
    case 3:
        for (uint32_t k = 0; k < s->n; k++) {
            rte_prefetch0(*s->at[k]);
            rte_prefetch0(&n->tx[(*s->at[k] - n->tx) ^ 1]);
        }
        break;
    case 4:
        for (uint32_t k = 0; k < s->n; k++)
            prefetch_queues(n, nd, *s->at[k], host);
        break;
    case 5:
        for (uint32_t k = 0; k < s->n; k++)
            prefetch_frame(nd, *s->at[k]);
        if (host)
            prefetch_lists(n, nd, s);
        break;
    default: /* waits until the lines have arrived */
        break;
    }
}

void prefetch_turn(struct net *n, struct partition *part, const struct phase *phase, int64_t end_ps)
{
    const int64_t *due = n->apart->due;
    uint32_t i = part->look;

    while (i < phase->n && due[phase->node[i]] >= end_ps)
        i++;
    part->prefetch[part->turn % PREFETCH_STEPS].node = i < phase->n ? phase->node[i] : FAB_NONE;
    part->look = i + 1;
    for (unsigned step = 0; step < PREFETCH_STEPS; step++) {
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
