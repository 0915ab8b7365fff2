/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/routing/flood.h"

#include "base/assert.h"
#include "fabric/build.h"

#include <errno.h>
#include <stdlib.h>

/* Adds the ports that are always in the tree: to hosts and to the outside. */
static void leaves_of_tree(struct fabric *f)
{
    for (unsigned i = 0; i < f->n_nodes; i++) {
        struct fab_node *n = &f->nodes[i];

        for (unsigned p = 0; p < n->n_ports; p++)
            n->ports[p].flood = n->ports[p].external[0] ||
                                (n->ports[p].link != FAB_NONE &&
                                 (n->kind == FAB_HOST || peer_switch(f, &n->ports[p]) == FAB_NONE));
    }
}

/* Adds the tree of the switches that are joined to the root. */
static void flood_from(struct fabric *f, fab_id root, bool *seen, fab_id *queue)
{
    seen[root] = true;
    queue[0] = root;
    for (unsigned i = 0, n = 1; i < n; i++) {
        struct fab_node *u = &f->nodes[queue[i]];

        for (unsigned p = 0; p < u->n_ports; p++) {
            fab_id w = peer_switch(f, &u->ports[p]);

            if (w == FAB_NONE || seen[w])
                continue;
            seen[w] = true;
            T_ASSERT(n < f->n_switches, "a switch is on the flooding tree twice");
            u->ports[p].flood = f->nodes[w].ports[u->ports[p].peer_port].flood = true;
            queue[n++] = w;
        }
    }
}

/* Makes the trees; the highest switches are roots. */
int flood_build(struct fabric *f)
{
    bool *seen = calloc(f->n_nodes + 1u, sizeof(*seen));
    fab_id *queue = calloc(f->n_nodes + 1u, sizeof(*queue));
    unsigned top = 0;

    if (!seen || !queue) {
        free(seen);
        free(queue);
        return -ENOMEM;
    }
    leaves_of_tree(f);
    for (unsigned s = 0; s < f->n_switches; s++)
        if (f->nodes[f->switches[s]].tier > top)
            top = f->nodes[f->switches[s]].tier;
    for (unsigned tier = top + 1; tier-- > 0;)
        for (unsigned s = 0; s < f->n_switches; s++)
            if (!seen[f->switches[s]] && f->nodes[f->switches[s]].tier == tier)
                flood_from(f, f->switches[s], seen, queue);
    free(seen);
    free(queue);
    return 0;
}
