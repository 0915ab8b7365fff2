/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks that all hosts reach each other. In most fabrics one network has a port of every host, and
 * all of its switches with hosts reach each other. If there is no such network, every pair of hosts
 * is checked.
 */
#include "fabric/build.h"

#include <stdlib.h>

/* [n_networks] all switches with hosts have routes to each other. */
static void find_whole(const struct fabric *f, bool *whole)
{
    for (unsigned i = 0; i < f->n_networks; i++)
        whole[i] = true;
    for (unsigned s = 0; s < f->n_switches; s++) {
        const struct fab_node *u = &f->nodes[f->switches[s]];

        for (unsigned z = 0; z < f->n_switches && u->n_hosts && whole[u->network]; z++) {
            const struct fab_node *v = &f->nodes[f->switches[z]];

            if (z != s && v->network == u->network && v->n_hosts && !u->routes[v->network_index])
                whole[u->network] = false;
        }
    }
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
static bool all_in_one(const struct fabric *f, const bool *whole)
{
    const struct fab_node *first = &f->nodes[f->hosts[0]];

    for (unsigned p = 0; p < first->n_ports; p++) {
        fab_id v = peer_switch(f, &first->ports[p]);
        unsigned i = 0;

        if (v == FAB_NONE || !whole[f->nodes[v].network])
            continue;
        while (i < f->n_hosts && in_network(f, f->hosts[i], f->nodes[v].network))
            i++;
        if (i == f->n_hosts)
            return true;
    }
    return false;
}

static bool reaches(const struct fabric *f, fab_id from, fab_id to)
{
    const struct fab_node *z = &f->nodes[to];

    for (unsigned p = 0; p < z->n_ports; p++)
        if (fabric_hops(f, from, z->dest + p, NULL, 0))
            return true;
    return false;
}

void reach_check(struct build *b)
{
    const struct fabric *f = b->f;
    bool *whole = calloc(f->n_networks + 1u, sizeof(*whole)), done;

    if (!whole) {
        b->no_memory = true;
        return;
    }
    find_whole(f, whole);
    done = f->n_hosts && all_in_one(f, whole);
    /* Checks every host against the first one, then all pairs; reports the first pair of each. */
    for (unsigned i = 0; i < f->n_hosts && !done; i++) {
        for (unsigned j = i + 1; j < f->n_hosts; j++) {
            if (reaches(f, f->hosts[i], f->hosts[j]) && reaches(f, f->hosts[j], f->hosts[i]))
                continue;
            build_error(
                b, b->node_line[f->hosts[j]],
                "found no path between \"%s\" and \"%s\", expected one that goes up and then down",
                f->nodes[f->hosts[i]].name, f->nodes[f->hosts[j]].name);
            done = true;
        }
    }
    free(whole);
}
