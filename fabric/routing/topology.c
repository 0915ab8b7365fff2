/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Computes from the graph: lists of hosts and switches, their tiers and ordinals, and the tree on
 * which frames are flooded.
 *
 * Tiers order the switches, so that no route goes down and up again (routes.c). A role determines the tier.
 * The tier of a plain "switch" is its distance from the nearest host or port to the outside, behind which
 * there are hosts, too.
 */
#include "base/assert.h"
#include "fabric/build.h"
#include "fabric/routing/flood.h"

#include <stdlib.h>

static int list_nodes(struct build *b)
{
    struct fabric *f = b->f;

    T_ASSERT(f->n_hosts <= f->n_nodes, "more hosts than nodes");
    f->n_switches = f->n_nodes - f->n_hosts;
    f->hosts = build_alloc(b, f->n_hosts, sizeof(*f->hosts));
    f->switches = build_alloc(b, f->n_switches, sizeof(*f->switches));
    if (!f->hosts || !f->switches)
        return -1;
    for (unsigned i = 0, s = 0; i < f->n_nodes; i++) {
        if (f->nodes[i].kind == FAB_HOST)
            f->hosts[f->nodes[i].host_index] = (fab_id)i;
        else
            f->switches[s++] = (fab_id)i;
    }
    return 0;
}

/* Whether hosts can be linked to this switch. */
static bool touches_host(const struct fabric *f, const struct fab_node *n)
{
    for (unsigned p = 0; p < n->n_ports; p++)
        if (n->ports[p].external[0] ||
            (n->ports[p].link != FAB_NONE && peer_switch(f, &n->ports[p]) == FAB_NONE))
            return true;
    return false;
}

/* Breadth-first search over switches from queue[0..n), whose dist is set; that of the others is FAB_NONE. */
static void topology_spread(const struct fabric *f, fab_id *dist, fab_id *queue, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct fab_node *u = &f->nodes[queue[i]];

        for (unsigned p = 0; p < u->n_ports; p++) {
            fab_id w = peer_switch(f, &u->ports[p]);

            if (w != FAB_NONE && dist[w] == FAB_NONE) {
                dist[w] = dist[queue[i]] + 1;
                T_ASSERT(n < f->n_switches, "a switch is visited twice");
                queue[n++] = w;
            }
        }
    }
}

static uint16_t tier_of_role(enum fab_role role)
{
    switch (role) {
    case FAB_ROLE_LEAF:
    case FAB_ROLE_NVSWITCH:
        return 1;
    case FAB_ROLE_SPINE:
        return 2;
    case FAB_ROLE_CORE:
        return 3;
    default:
        return 0;
    }
}

static void set_tiers(struct build *b, fab_id *dist, fab_id *queue)
{
    struct fabric *f = b->f;
    unsigned n = 0;

    for (unsigned i = 0; i < f->n_nodes; i++) {
        dist[i] = FAB_NONE;
        if (f->nodes[i].kind == FAB_SWITCH && touches_host(f, &f->nodes[i])) {
            dist[i] = 1;
            queue[n++] = (fab_id)i;
        }
    }
    topology_spread(f, dist, queue, n);
    for (unsigned s = 0; s < f->n_switches; s++) {
        fab_id i = f->switches[s];
        struct fab_node *sw = &f->nodes[i];

        if (dist[i] == FAB_NONE) {
            build_error(b, b->node_line[i],
                        "found switch \"%s\" without a path to any host, expected one", sw->name);
            b->graph_broken = true;
        }
        sw->tier = (uint16_t)(tier_of_role(sw->role) ? tier_of_role(sw->role) : dist[i]);
    }
}

/* A host has an ordinal at each of its switches. */
static void set_ordinals(struct fabric *f)
{
    for (unsigned s = 0; s < f->n_switches; s++) {
        struct fab_node *sw = &f->nodes[f->switches[s]];

        sw->ordinal = (fab_id)s;
        for (unsigned p = 0; p < sw->n_ports; p++) {
            struct fab_node *peer =
                sw->ports[p].link == FAB_NONE ? NULL : &f->nodes[sw->ports[p].peer_node];

            if (!peer || peer->kind != FAB_HOST)
                continue;
            if (sw->ports[p].peer_port == 0)
                peer->ordinal = sw->n_hosts;
            sw->ports[p].ordinal = sw->n_hosts++;
        }
    }
}

void topology_build(struct build *b)
{
    struct fabric *f = b->f;
    fab_id *dist = calloc(f->n_nodes + 1u, sizeof(*dist)),
           *queue = calloc(f->n_nodes + 1u, sizeof(*queue));

    if (!dist || !queue)
        b->no_memory = true;
    else if (!list_nodes(b)) {
        set_tiers(b, dist, queue);
        set_ordinals(f);
        b->no_memory |= flood_build(f) != 0;
    }
    free(dist);
    free(queue);
}
