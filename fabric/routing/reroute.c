/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/routing/reroute.h"

#include "base/assert.h"
#include "fabric/build.h"
#include "fabric/routing/flood.h"

#include <stdlib.h>
#include <string.h>

/* Copies nodes and ports, which contain routes and the tree, and shares the rest. */
static void copy_nodes(struct build *b, const struct fabric *f)
{
    b->f->nodes = build_alloc(b, f->n_nodes + 1u, sizeof(*f->nodes));
    if (b->f->nodes)
        memcpy(b->f->nodes, f->nodes, f->n_nodes * sizeof(*f->nodes));
    for (unsigned i = 0; i < f->n_nodes && !b->no_memory; i++) {
        struct fab_node *n = &b->f->nodes[i];

        n->ports = build_alloc(b, n->n_ports + 1u, sizeof(*n->ports));
        if (n->ports)
            memcpy(n->ports, f->nodes[i].ports, n->n_ports * sizeof(*n->ports));
    }
}

static bool between_switches(const struct fabric *f, const struct fab_link *l)
{
    return f->nodes[l->a].kind == FAB_SWITCH && f->nodes[l->b].kind == FAB_SWITCH;
}

/* Removes links that are down, or puts them back: they are left out while routes are computed. */
static void set_links(struct fabric *f, const bool *down, bool there)
{
    for (unsigned i = 0; i < f->n_links; i++) {
        const struct fab_link *l = &f->links[i];

        if (!down[i] || !between_switches(f, l))
            continue;
        T_ASSERT((f->nodes[l->a].ports[l->a_port].link == FAB_NONE) == there,
                 "a link that is down is put back twice, or taken twice");
        f->nodes[l->a].ports[l->a_port].link = there ? (fab_id)i : FAB_NONE;
        f->nodes[l->b].ports[l->b_port].link = there ? (fab_id)i : FAB_NONE;
    }
}

struct fabric *fabric_without(const struct fabric *f, const bool *down)
{
    struct build b = {.path = f->path,
                      .f = malloc(sizeof(*f)),
                      .errs = calloc(1, sizeof(*b.errs)),
                      .node_line = calloc(f->n_nodes + 1u, sizeof(*b.node_line))};

    b.no_memory = !b.f || !b.errs || !b.node_line;
    if (b.f) {
        *b.f = *f;
        b.f->arena = NULL;
    }
    if (!b.no_memory)
        copy_nodes(&b, f);
    if (!b.no_memory) {
        set_links(b.f, down, false);
        routes_build(&b); /* its errors are ignored: cut-off hosts are no mistake here */
        b.no_memory |= flood_build(b.f) != 0;
        set_links(b.f, down, true);
    }
    free(b.errs);
    free(b.node_line);
    if (b.no_memory) {
        fabric_free(b.f);
        return NULL;
    }
    return b.f;
}
