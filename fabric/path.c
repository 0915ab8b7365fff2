/*
 * Looking things up in a fabric: nodes and links by name, paths.
 */
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

uint16_t fabric_node_index(const struct fabric *f, const struct fab_node *n)
{
    return (uint16_t)(n - f->nodes);
}

/* Whether name is that of the link from one end to the other, with both ports or without. */
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

/* The first address of dst that src has a route to. */
static int reachable_dest(const struct fabric *f, uint16_t src, uint16_t dst)
{
    const struct fab_node *d = &f->nodes[dst];
    unsigned n = d->kind == FAB_HOST ? d->n_ports : 1;

    for (unsigned p = 0; p < n; p++)
        if (f->nodes[src].hops[d->dest + p].n)
            return d->dest + (int)p;
    return -ENOENT;
}

unsigned fabric_path(const struct fabric *f, uint16_t src_node, uint16_t dst_node,
                     uint32_t *dirlinks, unsigned max)
{
    const struct fab_node *src = &f->nodes[src_node];
    int dest = src_node == dst_node ? -ENOENT : reachable_dest(f, src_node, dst_node);
    uint32_t src_ip = src->ip;
    unsigned n = 0;

    if (dest < 0)
        return 0;
    if (src->kind == FAB_HOST)
        src_ip = src->ip_of_port[src->hops[dest].port[0]];
    for (uint16_t at = src_node; at != dst_node; n++) {
        uint16_t port = ecmp_balanced_port(f, at, dest, src_ip);
        const struct fab_port *p;

        if (port == FAB_NONE || n == max)
            return 0;
        p = &f->nodes[at].ports[port];
        dirlinks[n] = p->link * 2u + (f->links[p->link].a == at ? 0 : 1);
        at = p->peer_node;
    }
    return n;
}
