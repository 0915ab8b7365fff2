/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Follows the rule of routes.c: a switch reaches an end downwards, or sideways by a switch of its tier that
 * reaches it downwards, or upwards by a higher switch that reaches it at all. So the sets of a network are
 * unions over its links, first with the lowest tier first, then with the highest tier first. Rejected: a
 * bit for each host in every switch takes gigabytes for 65,536 hosts.
 */
#include "fabric/routing/reach.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

static uint64_t *row(const struct fabric *f, const struct reach *r, uint64_t *sets, fab_id node)
{
    const struct fab_node *n = &f->nodes[node];

    return sets + r->at[n->network] + (size_t)n->network_index * r->words[n->network];
}

const uint64_t *reach_down(const struct fabric *f, const struct reach *r, fab_id node)
{
    return row(f, r, r->down, node);
}

const uint64_t *reach_all(const struct fabric *f, const struct reach *r, fab_id node)
{
    return row(f, r, r->all, node);
}

static bool reach_unite(uint64_t *to, const uint64_t *from, unsigned words)
{
    bool more = false;

    for (unsigned w = 0; w < words; w++) {
        more |= (from[w] & ~to[w]) != 0;
        to[w] |= from[w];
    }
    return more;
}

/* Adds the sets of u's neighbours above (1), below (-1) or beside it (0) to its own. Returns whether that
 * added anything. */
static bool reach_collect(const struct fabric *f, const struct reach *r, uint64_t *sets, fab_id u,
                          int above)
{
    const struct fab_node *n = &f->nodes[u];
    bool more = false;

    for (unsigned p = 0; p < n->n_ports; p++) {
        fab_id v = peer_switch(f, &n->ports[p]);
        int up = v == FAB_NONE ? 0 : (int)f->nodes[v].tier - (int)n->tier;

        if (v != FAB_NONE && (up > 0) - (up < 0) == above)
            more |= reach_unite(row(f, r, sets, u), row(f, r, sets, v), r->words[n->network]);
    }
    return more;
}

static void reach_network(const struct fabric *f, const struct reach *r, unsigned net)
{
    const fab_id *mine = f->by_network + f->networks[net];
    unsigned n = f->networks[net + 1u] - f->networks[net];
    size_t size = (size_t)n * r->words[net];
    bool more;

    for (unsigned s = 0; s < n; s++) {
        if (r->end[mine[s]] != FAB_NONE)
            row(f, r, r->down, mine[s])[r->end[mine[s]] / 64] |= 1ull << (r->end[mine[s]] % 64);
        reach_collect(f, r, r->down, mine[s], -1);
    }
    do {
        more = false;
        for (unsigned s = 0; s < n; s++)
            more |= reach_collect(f, r, r->down, mine[s], 0);
    } while (more);
    memcpy(r->all + r->at[net], r->down + r->at[net], size * sizeof(*r->all));
    for (unsigned s = n; s-- > 0;)
        reach_collect(f, r, r->all, mine[s], 1);
}

/* Numbers the ends. Returns the words that all sets take. */
static size_t number_ends(const struct fabric *f, struct reach *r)
{
    size_t sum = 0;

    for (unsigned net = 0; net < f->n_networks; net++) {
        unsigned ends = 0, n = f->networks[net + 1u] - f->networks[net];

        for (unsigned s = f->networks[net]; s < f->networks[net + 1u]; s++) {
            fab_id u = f->by_network[s];

            r->end[u] = f->nodes[u].n_hosts ? (fab_id)ends++ : FAB_NONE;
        }
        T_ASSERT(ends <= n, "a network with more ends than switches");
        r->words[net] = ends / 64 + 1;
        r->at[net] = sum;
        sum += (size_t)n * r->words[net];
    }
    return sum;
}

/* Lists the attached hosts by network. */
static void list_attached(struct build *b, struct reach *r)
{
    const struct fabric *f = b->f;
    size_t *next = calloc(f->n_networks + 1u, sizeof(*next));

    for (unsigned d = 0; next && d < f->n_dests; d++) {
        const struct fab_node *n = &f->nodes[f->dests[d].node];
        fab_id v = n->kind == FAB_HOST ? peer_switch(f, &n->ports[f->dests[d].port]) : FAB_NONE;

        if (v != FAB_NONE)
            r->first[f->nodes[v].network + 1u]++;
    }
    for (unsigned net = 0; next && net < f->n_networks; net++) {
        r->first[net + 1u] += r->first[net];
        next[net] = r->first[net];
    }
    r->attached = build_alloc(b, r->first[f->n_networks] + 1, sizeof(*r->attached));
    for (unsigned i = 0; next && r->attached && i < f->n_hosts; i++) {
        const struct fab_node *n = &f->nodes[f->hosts[i]];

        for (unsigned p = 0; p < n->n_ports; p++) {
            fab_id v = peer_switch(f, &n->ports[p]);
            struct reach_host *last;

            if (v == FAB_NONE)
                continue;
            T_ASSERT(next[f->nodes[v].network] < r->first[f->nodes[v].network + 1u],
                     "more host ports in a network than were counted");
            last = &r->attached[next[f->nodes[v].network]++];
            *last = (struct reach_host){.host = f->hosts[i], .end = v, .port = (fab_id)p};
            if (last > r->attached + r->first[f->nodes[v].network] && last[-1].host == last->host)
                last->several = last[-1].several = true;
        }
    }
    b->no_memory |= !next;
    free(next);
}

void reach_build(struct build *b)
{
    const struct fabric *f = b->f;
    struct reach *r = build_alloc(b, 1, sizeof(*r));
    size_t size;

    b->reach = r;
    if (!r)
        return;
    r->words = build_alloc(b, f->n_networks + 1u, sizeof(*r->words));
    r->at = build_alloc(b, f->n_networks + 1u, sizeof(*r->at));
    r->end = build_alloc(b, f->n_nodes + 1u, sizeof(*r->end));
    r->first = build_alloc(b, f->n_networks + 2u, sizeof(*r->first));
    if (b->no_memory)
        return;
    size = number_ends(f, r);
    r->down = build_alloc(b, size + 1, sizeof(*r->down));
    r->all = build_alloc(b, size + 1, sizeof(*r->all));
    if (b->no_memory)
        return;
    for (unsigned net = 0; net < f->n_networks; net++)
        reach_network(f, r, net);
    list_attached(b, r);
    if (!b->no_memory)
        reach_check(b);
}
