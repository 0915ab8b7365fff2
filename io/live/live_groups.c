/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/live/live.h"

#include <stdlib.h>

static struct live_group *group_of(struct live_look *k, const uint64_t *v)
{
    struct live_group *g;

    for (unsigned i = 0; i < k->n_groups; i++) {
        g = &k->group[i];
        if (g->kind == v[GROUP_kind] && g->tree == v[GROUP_tree] && g->id == v[GROUP_id] &&
            g->job == v[GROUP_job])
            return g;
    }
    g = reallocarray(k->group, k->n_groups + 1u, sizeof(*g));
    if (!g)
        return NULL;
    k->group = g;
    g += k->n_groups++;
    *g = (struct live_group){.kind = (unsigned)v[GROUP_kind],
                             .tree = v[GROUP_tree],
                             .id = v[GROUP_id],
                             .job = v[GROUP_job],
                             .open = true,
                             .owner = FAB_NONE,
                             .born_us = v[GROUP_born_us]};
    return g;
}

/* The aggregation node of a row. Rows are of children; each repeats its node's columns. */
static struct live_at *at_of(struct live_group *g, const uint64_t *v)
{
    struct live_at *at;

    for (unsigned i = 0; i < g->n_at; i++)
        if (g->at[i].node == v[GROUP_node])
            return &g->at[i];
    at = reallocarray(g->at, g->n_at + 1u, sizeof(*at));
    if (!at)
        return NULL;
    g->at = at;
    at += g->n_at++;
    *at = (struct live_at){.node = (uint16_t)v[GROUP_node],
                           .children = v[GROUP_children],
                           .slots = v[GROUP_slots],
                           .slots_used = v[GROUP_slots_used]};
    g->open &= v[GROUP_open] != 0;
    g->busy |= v[GROUP_busy] != 0;
    g->reduced = g->reduced > v[GROUP_reduced] ? g->reduced : v[GROUP_reduced];
    return at;
}

static void add_member(struct live_group *g, const uint64_t *v)
{
    struct live_member *m = reallocarray(g->member, g->n_members + 1u, sizeof(*m));
    unsigned at = g->n_members;

    if (!m)
        return;
    g->member = m;
    for (; at > 0 && m[at - 1].member > v[GROUP_member]; at--)
        m[at] = m[at - 1];
    m[at] = (struct live_member){.node = v[GROUP_child] ? (uint16_t)(v[GROUP_child] - 1) : FAB_NONE,
                                 .member = (uint16_t)v[GROUP_member],
                                 .joined = v[GROUP_joined] != 0,
                                 .left = v[GROUP_left] != 0};
    g->n_members++;
}

void live_group_row(struct live_look *k, const uint64_t *v)
{
    struct live_group *g = group_of(k, v);
    struct live_at *at = g ? at_of(g, v) : NULL;

    if (!at)
        return;
    at->joined += v[GROUP_joined] != 0;
    g->open &= v[GROUP_joined] || v[GROUP_left]; /* no member is missing */
    if (v[GROUP_founder] && (!g->founded || v[GROUP_born_us] < g->born_us)) {
        g->owner = (uint16_t)(v[GROUP_founder] - 1);
        g->founded = true;
    }
    if (v[GROUP_born_us] < g->born_us)
        g->born_us = v[GROUP_born_us];
    if (v[GROUP_is_member])
        add_member(g, v);
    if (!g->founded && g->n_members)
        g->owner = g->member[0].node;
}

void live_groups_free(struct live_look *k)
{
    for (unsigned i = 0; i < k->n_groups; i++) {
        free(k->group[i].member);
        free(k->group[i].at);
    }
    free(k->group);
    k->group = NULL;
    k->n_groups = 0;
}
