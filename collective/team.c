/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams of ranks: all, a GPU node, a rail. */
#include "collective/alg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t rate_of(const struct stripes *p)
{
    uint64_t rate = 0;

    for (unsigned i = 0; i < p->n; i++)
        rate += p->weight[i];
    return rate;
}

/* Of ALG_SLICES, rounded up. */
static unsigned slices_of(uint64_t part, uint64_t whole)
{
    return whole ? (unsigned)(((unsigned __int128)ALG_SLICES * part + whole - 1) / whole)
                 : ALG_SLICES;
}

void alg_edges_add(const struct alg *a, struct alg_edges *e, unsigned from, unsigned to)
{
    struct stripes p;

    alg_stripes(a, from, to, &p);
    if (p.n > e->wide.n)
        e->wide = p;
    if (!e->slow.n || rate_of(&p) < rate_of(&e->slow))
        e->slow = p;
}

unsigned alg_edges_slices(const struct alg_edges *e)
{
    unsigned slices = slices_of(e->slow.n, e->wide.n);
    unsigned fast = slices_of(rate_of(&e->slow), rate_of(&e->wide));

    return slices > fast ? slices : fast;
}

void alg_ring_of(const struct alg *a, struct team *t)
{
    struct alg_edges e = {0};

    for (unsigned i = 0; i < t->n; i++)
        alg_edges_add(a, &e, t->rank[i], t->rank[(i + 1) % t->n]);
    t->ring = e.wide;
    t->slices = alg_edges_slices(&e);
}

int alg_everybody(struct alg *a, struct nodes *g)
{
    unsigned n = a->s->in.nranks;

    memset(g, 0, sizeof(*g));
    g->mem = malloc(n * sizeof(*g->mem));
    if (!g->mem)
        return -ENOMEM;
    for (unsigned r = 0; r < n; r++)
        g->mem[r] = (uint16_t)r;
    g->all = (struct team){.n = n,
                           .me = a->s->in.rank,
                           .rank = g->mem,
                           .steps = a->s->in.topo && a->s->in.topo->steps};
    alg_ring_of(a, &g->all);
    return 0;
}

/* Sets place[r] to the local rank of r. Returns the ranks per node; 0: nodes differ in size, or
 * there is nothing to gain. */
static unsigned local_ranks(const struct sched_in *in, uint16_t *place, unsigned *n_nodes)
{
    uint16_t size[FAB_MAX_MEMBERS] = {0};

    *n_nodes = 0;
    for (unsigned r = 0; r < in->nranks; r++) {
        uint16_t d = in->topo->domain[r];

        if (d >= in->nranks)
            return 0;
        place[r] = size[d]++;
        *n_nodes = d + 1u > *n_nodes ? d + 1u : *n_nodes;
    }
    for (unsigned d = 1; d < *n_nodes; d++)
        if (size[d] != size[0])
            return 0;
    return size[0];
}

int alg_nodes(struct alg *a, struct nodes *g)
{
    const struct sched_in *in = &a->s->in;
    unsigned n = in->nranks, at = 0;
    uint16_t *place, *node, *rail;

    memset(g, 0, sizeof(*g));
    if (!in->topo || !in->topo->domain)
        return -ENOTSUP;
    g->mem = malloc(4u * n * sizeof(*g->mem));
    if (!g->mem)
        return -ENOMEM;
    place = g->mem, node = place + n, rail = node + n, g->at = rail + n;
    g->local = local_ranks(in, place, &g->n);
    if (g->local < 2 || g->n < 2)
        return -ENOTSUP;
    g->node = (struct team){.n = g->local, .rank = node};
    g->rail = (struct team){.n = g->n, .me = in->topo->domain[in->rank], .rank = rail};
    for (unsigned r = 0; r < n; r++) {
        g->at[in->topo->domain[r] * g->local + place[r]] = (uint16_t)r;
        if (in->topo->domain[r] == in->topo->domain[in->rank])
            node[at++] = (uint16_t)r;
        if (place[r] == place[in->rank])
            rail[in->topo->domain[r]] = (uint16_t)r;
    }
    g->node.me = place[in->rank];
    alg_ring_of(a, &g->node);
    alg_ring_of(a, &g->rail);
    return 0;
}

void alg_nodes_free(struct nodes *g)
{
    free(g->mem);
}
