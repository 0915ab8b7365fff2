/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPU nodes: hosts that share an NVSwitch, and the NVSwitches that they share.
 */
#include "fabric/build.h"

#include <stdlib.h>

/* Union-find: returns the first host of a GPU node, which represents the node. */
static fab_id first_of(fab_id *earlier, fab_id host)
{
    while (earlier[host] != host) {
        earlier[host] = earlier[earlier[host]];
        host = earlier[host];
    }
    return host;
}

static void domain_join(fab_id *earlier, fab_id a, fab_id z)
{
    a = first_of(earlier, a);
    z = first_of(earlier, z);
    if (a < z)
        earlier[z] = a;
    else
        earlier[a] = z;
}

/* The host_index at a port, FAB_NONE: no host. */
static fab_id host_at(const struct fabric *f, const struct fab_port *p)
{
    const struct fab_node *n = p->link == FAB_NONE ? NULL : &f->nodes[p->peer_node];

    return n && n->kind == FAB_HOST ? n->host_index : FAB_NONE;
}

/* Marks hosts that have an NVSwitch, and joins hosts that share one. */
static void join_hosts(struct fabric *f, fab_id *earlier)
{
    for (unsigned s = 0; s < f->n_switches; s++) {
        const struct fab_node *sw = &f->nodes[f->switches[s]];
        fab_id first = FAB_NONE;

        for (unsigned p = 0; sw->role == FAB_ROLE_NVSWITCH && p < sw->n_ports; p++) {
            fab_id h = host_at(f, &sw->ports[p]);

            if (h == FAB_NONE)
                continue;
            first = first == FAB_NONE ? h : first;
            domain_join(earlier, first, h);
            f->nodes[f->hosts[h]].domain = 0;
        }
    }
}

static void domain_number(struct fabric *f, fab_id *earlier)
{
    for (unsigned i = 0; i < f->n_hosts; i++) {
        struct fab_node *h = &f->nodes[f->hosts[i]];
        fab_id first = first_of(earlier, (fab_id)i);

        if (h->domain == FAB_NONE)
            continue;
        h->domain = first == i ? f->n_domains++ : f->nodes[f->hosts[first]].domain;
        for (unsigned p = 0; p < h->n_ports; p++) {
            fab_id v = peer_switch(f, &h->ports[p]);

            if (v != FAB_NONE && f->nodes[v].role == FAB_ROLE_NVSWITCH)
                f->nodes[v].domain = h->domain;
        }
    }
}

void domain_build(struct build *b)
{
    struct fabric *f = b->f;
    fab_id *earlier = calloc(f->n_hosts + 1u, sizeof(*earlier));

    if (!earlier) {
        b->no_memory = true;
        return;
    }
    for (unsigned i = 0; i < f->n_nodes; i++)
        f->nodes[i].domain = FAB_NONE;
    for (unsigned i = 0; i < f->n_hosts; i++)
        earlier[i] = (fab_id)i;
    join_hosts(f, earlier);
    domain_number(f, earlier);
    free(earlier);
}

fab_id fabric_domain(const struct fabric *f, unsigned host_index)
{
    return host_index < f->n_hosts ? f->nodes[f->hosts[host_index]].domain : FAB_NONE;
}

unsigned fabric_domain_planes(const struct fabric *f, fab_id domain, fab_id *node, unsigned max)
{
    unsigned n = 0;

    for (unsigned s = 0; s < f->n_switches && domain != FAB_NONE; s++) {
        if (f->nodes[f->switches[s]].domain != domain)
            continue;
        if (n < max)
            node[n] = f->switches[s];
        n++;
    }
    return n;
}
