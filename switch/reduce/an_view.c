/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/reduce/an_priv.h"

/* Number of slots that have some child's packet and wait for another's. */
static uint32_t slots_used(const struct an_group *g)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < g->n_slots; i++)
        n += g->slot[i].have > 0;
    return n;
}

void an_view(const struct an *a, group_view_fn *fn, void *ctx)
{
    const struct an_group *g = NULL;

    LIST_FOREACH(g, &a->groups, link)
    {
        struct group_view v = {.kind = GROUP_VIEW_TREE,
                               .tree = g->tree->id,
                               .id = g->id,
                               .key = g->key,
                               .open = g->state == GROUP_OPEN,
                               .busy = group_in_operation(g),
                               .founder = g->founder,
                               .slots = g->window,
                               .used = g->slot ? slots_used(g) : 0,
                               .reduced = g->next,
                               .born_ps = g->born,
                               .children = g->n};

        for (unsigned i = 0; i < g->n; i++) {
            const struct an_edge *e = &g->child[i];

            v.node = e->node;
            v.member = e->member;
            v.is_member = e->is_member;
            v.joined = e->state == EDGE_JOINED;
            v.left = e->state == EDGE_LEFT;
            fn(ctx, &v);
        }
    }
    if (a->mm)
        mm_view(a->mm, fn, ctx);
}
