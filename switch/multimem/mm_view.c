/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/multimem/mm_priv.h"

void mm_view(const struct mm *mm, group_view_fn *fn, void *ctx)
{
    const struct mm_group *g = NULL;

    LIST_FOREACH(g, &mm->groups, link)
    {
        struct group_view v = {.kind = GROUP_VIEW_MULTIMEM,
                               .id = g->id,
                               .key = g->key,
                               .open = g->n_ready == g->n && !g->failed,
                               .busy = mm_group_busy(g),
                               .founder = FAB_NONE,
                               .slots = g->most_loads + (uint32_t)g->window * g->n,
                               .used = g->n_loads + g->n_stores,
                               .children = g->n};

        for (unsigned i = 0; i < g->n; i++) {
            const struct mm_edge *e = &g->edge[i];

            v.node = e->node;
            v.member = e->member;
            v.is_member = true;
            v.joined = e->state == MM_READY;
            v.left = e->state == MM_LEFT;
            fn(ctx, &v);
        }
    }
}
