/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes are alike if their colours are equal: numbers that begin as a node's role and number of
 * ports and then take in, several times, those of its neighbours with the rates of the links there.
 * Keys are hashes of what nodes have to have in common.
 */
#include "fabric/report/fold.h"

#include "fabric/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 8 /* of colours: enough to pass through all tiers */

static uint64_t mixed(uint64_t x)
{
    x = (x + 1) * 0x9e3779b97f4a7c15ULL;
    x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9ULL;
    return (x ^ x >> 29) | 1; /* never 0 */
}

struct fold_work {
    const struct fabric *f;
    uint64_t *key;
    uint64_t *colour, *next; /* [n_nodes] */
    uint64_t *wires;         /* [n_domains] a sum over links, in which order does not count */
    uint64_t *sum;           /* [n_domains] of colours */
    fab_id *pod;             /* [n_nodes] the lowest node of its pod */
    fab_id *stack;           /* [n_nodes] */
};

/* For each GPU node sums the numbers of the switches to which it is attached. */
static void sum_wires(struct fold_work *w)
{
    const struct fabric *f = w->f;

    for (unsigned i = 0; i < f->n_links; i++) {
        const struct fab_link *l = &f->links[i];
        fab_id x = f->nodes[l->a].domain, z = f->nodes[l->b].domain;

        if (x != FAB_NONE && z != x)
            w->wires[x] += mixed(l->b);
        if (z != FAB_NONE && z != x)
            w->wires[z] += mixed(l->a);
    }
}

static uint64_t key_of_domain(const struct fold_work *w, fab_id domain)
{
    return w->f->n_domains > FOLD_DOMAINS ? mixed(w->wires[domain]) : mixed(~(uint64_t)domain);
}

/* The key of FOLD_NODES. */
static uint64_t key_of_node(const struct fold_work *w, unsigned i)
{
    const struct fab_node *n = &w->f->nodes[i];

    if (n->domain != FAB_NONE)
        return key_of_domain(w, n->domain);
    return n->kind == FAB_HOST && n->n_ports && n->ports[0].link != FAB_NONE
               ? mixed((uint64_t)n->ports[0].peer_node << 1)
               : 0;
}

/* The key of FOLD_TWINS: a switch by its neighbours. GPU nodes that share a box count once. */
static uint64_t key_of_twin(const struct fold_work *w, unsigned i)
{
    const struct fabric *f = w->f;
    const struct fab_node *n = &f->nodes[i];
    uint64_t sum = mixed(n->role), last = 0;

    if (n->kind == FAB_HOST || n->domain != FAB_NONE)
        return key_of_node(w, i);
    for (unsigned p = 0; p < n->n_ports; p++) {
        const struct fab_node *v =
            n->ports[p].link == FAB_NONE ? NULL : &f->nodes[n->ports[p].peer_node];
        uint64_t key = !v                      ? 0
                       : v->domain != FAB_NONE ? key_of_domain(w, v->domain)
                                               : mixed(n->ports[p].peer_node);

        if (v && !(v->domain != FAB_NONE && key == last))
            sum += mixed(key ^ n->ports[p].rate_bps);
        last = key;
    }
    return mixed(sum);
}

static void colour(struct fold_work *w)
{
    const struct fabric *f = w->f;

    for (unsigned i = 0; i < f->n_nodes; i++)
        w->colour[i] = mixed((uint64_t)f->nodes[i].role << 32 | f->nodes[i].n_ports);
    for (unsigned k = 0; k < ROUNDS; k++) {
        memcpy(w->next, w->colour, f->n_nodes * sizeof(*w->next));
        for (unsigned i = 0; i < f->n_links; i++) {
            const struct fab_link *l = &f->links[i];

            w->next[l->a] += mixed(w->colour[l->b] ^ l->rate_bps);
            w->next[l->b] += mixed(w->colour[l->a] ^ l->rate_bps);
        }
        for (unsigned i = 0; i < f->n_nodes; i++)
            w->colour[i] = mixed(w->next[i]);
    }
}

/* Finds pods: nodes that are joined without the switches of the highest tier. */
static void find_pods(struct fold_work *w)
{
    const struct fabric *f = w->f;
    unsigned top = 0;

    for (unsigned i = 0; i < f->n_nodes; i++) {
        if (f->nodes[i].tier > top)
            top = f->nodes[i].tier;
        w->pod[i] = FAB_NONE;
    }
    for (unsigned i = 0; i < f->n_nodes; i++) {
        unsigned n = 0;

        if (w->pod[i] != FAB_NONE || f->nodes[i].tier == top)
            continue;
        w->pod[i] = (fab_id)i;
        w->stack[n++] = (fab_id)i;
        while (n) {
            const struct fab_node *u = &f->nodes[w->stack[--n]];

            for (unsigned p = 0; p < u->n_ports; p++) {
                fab_id v = u->ports[p].link == FAB_NONE ? FAB_NONE : u->ports[p].peer_node;

                if (v == FAB_NONE || w->pod[v] != FAB_NONE || f->nodes[v].tier == top)
                    continue;
                w->pod[v] = (fab_id)i;
                w->stack[n++] = v;
            }
        }
    }
}

/* The keys of FOLD_PODS and FOLD_ALIKE: a GPU node as a whole. */
static void keys_by_colour(struct fold_work *w, bool pods)
{
    const struct fabric *f = w->f;

    colour(w);
    if (pods)
        find_pods(w);
    for (unsigned i = 0; i < f->n_nodes; i++)
        if (f->nodes[i].domain != FAB_NONE)
            w->sum[f->nodes[i].domain] += mixed(w->colour[i]);
    for (unsigned h = f->n_hosts; h-- > 0;) {
        const struct fab_node *n = &f->nodes[f->hosts[h]];

        if (n->domain != FAB_NONE && pods)
            w->wires[n->domain] = w->pod[f->hosts[h]];
    }
    for (unsigned i = 0; i < f->n_nodes; i++) {
        fab_id d = f->nodes[i].domain;
        uint64_t pod = !pods ? 0 : d != FAB_NONE ? w->wires[d] : w->pod[i];

        w->key[i] = mixed((d != FAB_NONE ? w->sum[d] : w->colour[i]) ^ mixed(pod));
    }
}

static void find_keys(struct fold_work *w, enum fold fold)
{
    const struct fabric *f = w->f;

    if (fold == FOLD_PODS || fold == FOLD_ALIKE) {
        keys_by_colour(w, fold == FOLD_PODS);
        return;
    }
    sum_wires(w);
    for (unsigned i = 0; i < f->n_nodes; i++) {
        const struct fab_node *n = &f->nodes[i];

        w->key[i] = fold == FOLD_NODES   ? key_of_node(w, i)
                    : fold == FOLD_TWINS ? key_of_twin(w, i)
                    : fold == FOLD_ROLES ? mixed(n->domain != FAB_NONE ? FAB_ROLE_HOST : n->role)
                                         : 0;
    }
}

int fold_keys(const struct fabric *f, enum fold fold, uint64_t *key)
{
    struct fold_work w = {.f = f,
                          .key = key,
                          .colour = calloc(f->n_nodes + 1u, sizeof(*w.colour)),
                          .next = calloc(f->n_nodes + 1u, sizeof(*w.next)),
                          .wires = calloc(f->n_domains + 1u, sizeof(*w.wires)),
                          .sum = calloc(f->n_domains + 1u, sizeof(*w.sum)),
                          .pod = calloc(f->n_nodes + 1u, sizeof(*w.pod)),
                          .stack = calloc(f->n_nodes + 1u, sizeof(*w.stack))};
    int rc = w.colour && w.next && w.wires && w.sum && w.pod && w.stack ? 0 : -ENOMEM;

    if (!rc)
        find_keys(&w, fold);
    free(w.colour);
    free(w.next);
    free(w.wires);
    free(w.sum);
    free(w.pod);
    free(w.stack);
    return rc;
}
