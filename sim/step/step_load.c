/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/step/step_load.h"

#include "collective/sched.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HOPS 32u

/* A switch of the scale-out network. */
static bool is_switch(const struct fabric *f, uint16_t node)
{
    return node != FAB_NONE && f->nodes[node].kind == FAB_SWITCH &&
           f->nodes[node].role != FAB_ROLE_NVSWITCH;
}

int step_load_init(struct step_load *l, const struct fabric *f)
{
    *l = (struct step_load){.f = f, .switches = 2u * f->n_dests};
    l->links = l->switches + 2u * f->n_nodes;
    l->n = l->links + 2u * f->n_links;
    l->s = calloc(l->n + 1, sizeof(*l->s));
    l->cap_bps = calloc(f->n_nodes + 1u, sizeof(*l->cap_bps));
    if (!l->s || !l->cap_bps)
        return -ENOMEM;
    for (unsigned i = 0; i < f->n_switches; i++) {
        const struct fab_node *n = &f->nodes[f->switches[i]];

        for (unsigned p = 0; p < n->n_ports && is_switch(f, f->switches[i]); p++)
            if (n->ports[p].link != FAB_NONE && is_switch(f, n->ports[p].peer_node))
                l->cap_bps[f->switches[i]] += (double)n->ports[p].rate_bps;
    }
    return 0;
}

void step_load_free(struct step_load *l)
{
    free(l->s);
    free(l->cap_bps);
    l->s = l->cap_bps = NULL;
}

void step_load_clear(struct step_load *l)
{
    memset(l->s, 0, l->n * sizeof(*l->s));
    l->striped = false;
}

double step_load_worst(const struct step_load *l, unsigned from, unsigned to, unsigned *at)
{
    double s = 0;

    for (unsigned i = from; i < to; i++)
        if (l->s[i] > s * (1 + 1e-9)) { /* of equal ones the first */
            s = l->s[i];
            if (at)
                *at = i;
        }
    return s;
}

/* Bits over the links of a fixed path. */
static void add_path(struct step_load *l, const struct fab_node *a, const struct fab_node *b,
                     const struct fab_channel *c, double bits)
{
    const struct fabric *f = l->f;
    uint32_t link[HOPS];
    unsigned n = fabric_path_ports(f, fabric_node_index(f, a), c->port_a, fabric_node_index(f, b),
                                   c->port_b, link, HOPS);

    for (unsigned i = 0; i < n; i++) {
        const struct fab_link *k = &f->links[link[i] / 2];

        if (is_switch(f, k->a) && is_switch(f, k->b) && k->rate_bps)
            l->s[l->links + link[i]] += bits / (double)k->rate_bps;
    }
}

/* Bits over one channel of two hosts. */
static void add_channel(struct step_load *l, const struct fab_node *a, const struct fab_node *b,
                        const struct fab_channel *c, double bits)
{
    const struct fab_port *out = &a->ports[c->port_a], *in = &b->ports[c->port_b];
    uint16_t first = out->peer_node, last = in->peer_node;

    if (out->rate_bps)
        l->s[a->dest + c->port_a] += bits / (double)out->rate_bps;
    if (in->rate_bps)
        l->s[l->f->n_dests + b->dest + c->port_b] += bits / (double)in->rate_bps;
    if (l->f->ecmp == FAB_ECMP_BALANCED)
        add_path(l, a, b, c, bits);
    if (first == last || !is_switch(l->f, first) || !is_switch(l->f, last))
        return;
    if (l->cap_bps[first] > 0)
        l->s[l->switches + first] += bits / l->cap_bps[first];
    if (l->cap_bps[last] > 0)
        l->s[l->switches + l->f->n_nodes + last] += bits / l->cap_bps[last];
}

static void add_message(struct step_load *l, unsigned from, unsigned to, double bytes)
{
    const struct fab_node *a = &l->f->nodes[l->f->hosts[from]], *b = &l->f->nodes[l->f->hosts[to]];
    struct fab_channel ch[SCHED_MAX_CHANS];
    unsigned n = from == to ? 0 : fabric_channels(l->f, from, to, ch, SCHED_MAX_CHANS);
    double rate = 0;

    n = n < SCHED_MAX_CHANS ? n : SCHED_MAX_CHANS;
    for (unsigned i = 0; i < n; i++)
        rate += (double)ch[i].rate_bps;
    if (n > 1 && !is_switch(l->f, a->ports[ch[0].port_a].peer_node))
        return; /* over the planes of a node, which nothing else shares */
    for (unsigned i = 0; i < n && rate > 0; i++)
        add_channel(l, a, b, &ch[i], 8 * bytes * (double)ch[i].rate_bps / rate);
    l->striped |= n > 1;
}

/* Nodes of a group's members, and their places in them. */
struct places {
    unsigned n;
    uint16_t *node, *place; /* [n] */
};

static void places_find(struct places *p, const struct fabric *f, unsigned first, unsigned stride)
{
    for (unsigned i = 0; i < p->n; i++) {
        p->node[i] = fabric_domain(f, first + i * stride);
        p->place[i] = 0;
        for (unsigned k = 0; k < i; k++)
            p->place[i] += p->node[k] == p->node[i];
    }
}

/* The member that sends on what i has for k; n: there is none, so the algorithm is not for these. */
static unsigned relay_of(const struct places *p, unsigned i, unsigned k)
{
    unsigned v = 0;

    if (p->node[i] == p->node[k])
        return i;
    while (v < p->n && (p->node[v] != p->node[i] || p->place[v] != p->place[k]))
        v++;
    return v;
}

/* In two hops: to the own node's member on the destination's rail, and along the rail. */
static void add_rails(struct step_load *l, unsigned first, unsigned stride, unsigned ranks,
                      double each)
{
    struct places p = {ranks, malloc(ranks * sizeof(uint16_t)), malloc(ranks * sizeof(uint16_t))};

    if (p.node && p.place)
        places_find(&p, l->f, first, stride);
    for (unsigned i = 0; p.node && p.place && i < ranks; i++)
        for (unsigned k = 0; k < ranks; k++) {
            unsigned v = relay_of(&p, i, k);

            if (v == ranks)
                continue;
            add_message(l, first + i * stride, first + v * stride, each);
            add_message(l, first + v * stride, first + k * stride, each);
        }
    free(p.node);
    free(p.place);
}

void step_load_add(struct step_load *l, const struct step_collective *u, enum coll_algo algo,
                   unsigned first, unsigned ranks, uint64_t bytes)
{
    unsigned stride = (unsigned)u->stride;
    double each = (double)bytes / ranks * (u->coll == COLL_ALLREDUCE ? 2 : 1);

    if (u->coll == COLL_SENDRECV)
        for (unsigned i = 0; i < ranks; i++)
            add_message(l, first + i * stride, first + (i + 1) % ranks * stride, (double)bytes);
    else if (algo == ALGO_RING)
        for (unsigned i = 0; i < ranks; i++)
            add_message(l, first + i * stride, first + (i + 1) % ranks * stride,
                        each * (ranks - 1));
    else if (algo == ALGO_DIRECT || algo == ALGO_PAIRWISE)
        for (unsigned i = 0; i < ranks * ranks; i++)
            add_message(l, first + i / ranks * stride, first + i % ranks * stride, each);
    else if (algo == ALGO_PXN)
        add_rails(l, first, stride, ranks, each);
}
