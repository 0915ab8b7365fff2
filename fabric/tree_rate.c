/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/tree_rate.h"

#include <stdlib.h>

#define MAX_HOPS 64u

struct load {
    const struct fabric *f;
    uint32_t *edges; /* [2 * n_links] that cross a direction of a link */
    bool *seen;      /* [n_nodes] switches whose edge to the parent is counted */
    bool broken;
};

static void add_edge(struct load *l, uint16_t from, uint16_t port, uint16_t to)
{
    uint32_t d[MAX_HOPS];
    unsigned n = fabric_path_ports(l->f, from, port, to, 0, d, MAX_HOPS);

    l->broken |= !n;
    for (unsigned i = 0; i < n; i++)
        l->edges[d[i]]++;
}

static void add_member(struct load *l, const struct fab_tree *t, const struct fab_members *m,
                       unsigned id, uint16_t top, bool hosts)
{
    unsigned host = id / m->ranks_per_host;
    uint16_t at = fab_group_leaf(l->f, t, id, m);

    if (hosts && at != FAB_NONE)
        add_edge(l, l->f->hosts[host], fabric_tree_port(l->f, t, host), at);
    for (; at != top && at != FAB_NONE && !l->seen[at]; at = t->parent[at]) {
        l->seen[at] = true;
        if (t->parent[at] != FAB_NONE)
            add_edge(l, at, 0, t->parent[at]);
    }
}

uint64_t fabric_tree_bps(const struct fabric *f, const struct fab_tree *t,
                         const struct fab_members *m, bool hosts)
{
    struct load l = {.f = f,
                     .edges = calloc(2ul * f->n_links + 1, sizeof(*l.edges)),
                     .seen = calloc(f->n_nodes + 1ul, sizeof(*l.seen))};
    uint16_t top = fab_group_top(f, t, m);
    uint64_t least = 0;

    for (unsigned id = 0; l.edges && l.seen && top != FAB_NONE && id < FAB_MAX_MEMBERS; id++)
        if (fab_members_has(m, id))
            add_member(&l, t, m, id, top, hosts);
    for (uint32_t d = 0; l.edges && !l.broken && d < 2 * f->n_links; d++) {
        uint64_t rate = l.edges[d] ? f->links[d / 2].rate_bps / l.edges[d] : 0;

        least = rate && (!least || rate < least) ? rate : least;
    }
    free(l.edges);
    free(l.seen);
    return least;
}
