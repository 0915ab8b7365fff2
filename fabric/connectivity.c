/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks that all hosts reach each other. In most fabrics one network has a port of every host, and
 * all of its switches with hosts reach each other. If there is no such network, every pair of hosts
 * is checked.
 */
#include "fabric/routing/reach.h"

#include <string.h>

/* Whether all switches of a network that have hosts reach each other. */
static bool is_whole(const struct fabric *f, const struct reach *r, unsigned net)
{
    const uint64_t *first = NULL;
    unsigned ends = 0, n = 0;

    for (unsigned s = f->networks[net]; s < f->networks[net + 1u]; s++)
        ends += r->end[f->by_network[s]] != FAB_NONE;
    for (unsigned s = f->networks[net]; s < f->networks[net + 1u]; s++) {
        const uint64_t *all = reach_all(f, r, f->by_network[s]);

        if (r->end[f->by_network[s]] == FAB_NONE)
            continue;
        if (first && memcmp(first, all, r->words[net] * sizeof(*all)))
            return false;
        first = all;
    }
    for (unsigned w = 0; first && w < r->words[net]; w++)
        n += (unsigned)__builtin_popcountll(first[w]);
    return n == ends;
}

static bool in_network(const struct fabric *f, fab_id host, unsigned network)
{
    const struct fab_node *n = &f->nodes[host];

    for (unsigned p = 0; p < n->n_ports; p++) {
        fab_id v = peer_switch(f, &n->ports[p]);

        if (v != FAB_NONE && f->nodes[v].network == network)
            return true;
    }
    return false;
}

/* Whether some network of the first host joins all hosts. */
static bool all_in_one(const struct fabric *f, const struct reach *r)
{
    const struct fab_node *first = &f->nodes[f->hosts[0]];

    for (unsigned p = 0; p < first->n_ports; p++) {
        fab_id v = peer_switch(f, &first->ports[p]);
        unsigned i = 0;

        if (v == FAB_NONE || !is_whole(f, r, f->nodes[v].network))
            continue;
        while (i < f->n_hosts && in_network(f, f->hosts[i], f->nodes[v].network))
            i++;
        if (i == f->n_hosts)
            return true;
    }
    return false;
}

/* Whether a cable joins the two hosts, or one switch of each reaches one of the other's. */
static bool connectivity_reaches(const struct fabric *f, const struct reach *r, fab_id from,
                                 fab_id to)
{
    const struct fab_node *a = &f->nodes[from], *z = &f->nodes[to];

    for (unsigned p = 0; p < a->n_ports; p++) {
        fab_id v = peer_switch(f, &a->ports[p]);

        if (a->ports[p].peer_node == to)
            return true;
        for (unsigned q = 0; v != FAB_NONE && q < z->n_ports; q++) {
            fab_id t = peer_switch(f, &z->ports[q]);

            if (t != FAB_NONE && f->nodes[t].network == f->nodes[v].network &&
                reach_has(reach_all(f, r, v), r->end[t]))
                return true;
        }
    }
    return false;
}

void reach_check(struct build *b)
{
    const struct fabric *f = b->f;
    const struct reach *r = b->reach;
    bool done = f->n_hosts && all_in_one(f, r);

    /* Checks every host against the first one, then all pairs; reports the first pair of each. */
    for (unsigned i = 0; i < f->n_hosts && !done; i++) {
        for (unsigned j = i + 1; j < f->n_hosts; j++) {
            if (connectivity_reaches(f, r, f->hosts[i], f->hosts[j]) &&
                connectivity_reaches(f, r, f->hosts[j], f->hosts[i]))
                continue;
            build_error(
                b, b->node_line[f->hosts[j]],
                "found no path between \"%s\" and \"%s\", expected one that goes up and then down",
                f->nodes[f->hosts[i]].name, f->nodes[f->hosts[j]].name);
            done = true;
        }
    }
}
