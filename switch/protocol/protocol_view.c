/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/protocol/protocol_priv.h"

void protocol_node_view(const struct protocol_node *p, group_view_fn *fn, void *ctx)
{
    const struct pn_job *j = NULL;

    LIST_FOREACH(j, &p->jobs, link)
    {
        struct group_view v = {.kind = GROUP_VIEW_PROTOCOL + j->seat,
                               .tree = j->tree->id,
                               .id = j->id,
                               .key = j->key,
                               .open = j->job,
                               .founder = FAB_NONE,
                               .born_ps = j->born_ps,
                               .children = (uint16_t)j->n};

        for (unsigned i = 0; i < j->n; i++) {
            const struct pn_child *c = &j->child[i];

            v.node = c->who.node;
            v.member = c->who.is_member ? c->who.member : c->who.first_member;
            v.is_member = c->who.is_member;
            v.joined = c->joined && !c->left;
            v.left = c->left;
            fn(ctx, &v);
        }
    }
}
