/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lookups in a fabric: nodes and links by name, paths.
 */
#include "base/assert.h"
#include "fabric/build.h"

#include <errno.h>
#include <string.h>

const struct fab_node *fabric_node(const struct fabric *f, const char *name)
{
    for (unsigned i = 0; i < f->n_nodes; i++)
        if (!strcmp(f->nodes[i].name, name))
            return &f->nodes[i];
    return NULL;
}

fab_id fabric_node_index(const struct fabric *f, const struct fab_node *n)
{
    T_ASSERT_HOT(n >= f->nodes && n < f->nodes + f->n_nodes, "a node of another fabric");
    return (fab_id)(n - f->nodes);
}

/* Whether name names the link from one end to the other, with both ports or with none. */
static bool names_link(const struct fabric *f, const struct fab_link *l, bool from_a,
                       const char *name)
{
    const char *from = f->nodes[from_a ? l->a : l->b].name,
               *to = f->nodes[from_a ? l->b : l->a].name;
    unsigned from_port = from_a ? l->a_port : l->b_port, to_port = from_a ? l->b_port : l->a_port;
    char full[sizeof(l->name)], brief[sizeof(l->name)];

    snprintf(full, sizeof(full), "%s:%u-%s:%u", from, from_port, to, to_port);
    snprintf(brief, sizeof(brief), "%s-%s", from, to);
    return !strcmp(name, full) || !strcmp(name, brief);
}

int fabric_link_by_name(const struct fabric *f, const char *name)
{
    int found = -ENOENT;

    for (unsigned i = 0; i < f->n_links; i++) {
        if (!names_link(f, &f->links[i], true, name) && !names_link(f, &f->links[i], false, name))
            continue;
        if (found >= 0)
            return -EINVAL;
        found = (int)i;
    }
    return found;
}

/* The links from src_node to dests[dest] for frames with a source address. */
static unsigned path_walk(const struct fabric *f, fab_id src_node, int dest, uint32_t src_ip,
                          uint32_t *dirlinks, unsigned max)
{
    unsigned n = 0;

    for (fab_id at = src_node; at != f->dests[dest].node; n++) {
        fab_id port = ecmp_balanced_port(f, at, dest, src_ip);
        const struct fab_port *p;

        if (port == FAB_NONE || n == max)
            return 0;
        p = &f->nodes[at].ports[port];
        T_ASSERT(p->link != FAB_NONE, "a route leads to a port without a link");
        dirlinks[n] = p->link * 2u + (f->links[p->link].a == at ? 0 : 1);
        at = p->peer_node;
    }
    return n;
}

unsigned fabric_path(const struct fabric *f, fab_id src_node, fab_id dst_node, uint32_t *dirlinks,
                     unsigned max)
{
    const struct fab_node *src = &f->nodes[src_node], *dst = &f->nodes[dst_node];
    unsigned n = src_node == dst_node ? 0 : dst->kind == FAB_HOST ? dst->n_ports : 1;

    /* Goes to the first address that has a route. */
    for (unsigned q = 0; q < n; q++) {
        fab_id p;

        if (fabric_hops(f, src_node, dst->dest + q, &p, 1))
            return path_walk(f, src_node, (int)(dst->dest + q),
                             src->kind == FAB_HOST ? src->ip_of_port[p] : src->ip, dirlinks, max);
    }
    return 0;
}

unsigned fabric_path_ports(const struct fabric *f, fab_id src_node, fab_id src_port,
                           fab_id dst_node, fab_id dst_port, uint32_t *dirlinks, unsigned max)
{
    const struct fab_node *src = &f->nodes[src_node], *dst = &f->nodes[dst_node];
    unsigned dest = dst->dest + (dst->kind == FAB_HOST ? dst_port : 0u), n;
    fab_id port[FAB_MAX_HOST_PORTS];

    if (src_node == dst_node || (dst->kind == FAB_HOST && dst_port >= dst->n_ports))
        return 0;
    if (src->kind == FAB_SWITCH)
        return path_walk(f, src_node, (int)dest, src->ip, dirlinks, max);
    n = fabric_hops(f, src_node, dest, port, FAB_MAX_HOST_PORTS);
    for (unsigned i = 0; i < n; i++)
        if (port[i] == src_port)
            return path_walk(f, src_node, (int)dest, src->ip_of_port[src_port], dirlinks, max);
    return 0;
}
