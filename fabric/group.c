/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups on a tree: the aggregation nodes of a set of members, and their children.
 */
#include "base/assert.h"
#include "fabric/build.h"

#include <string.h>

void fab_members_add(struct fab_members *m, unsigned id)
{
    if (id < FAB_MAX_MEMBERS)
        m->bits[id / 64] |= 1ull << (id % 64);
}

bool fab_members_has(const struct fab_members *m, unsigned id)
{
    return id < FAB_MAX_MEMBERS && (m->bits[id / 64] >> (id % 64) & 1);
}

unsigned fab_members_count(const struct fab_members *m)
{
    unsigned n = 0;

    for (unsigned w = 0; w < FAB_MAX_MEMBERS / 64; w++)
        n += (unsigned)__builtin_popcountll(m->bits[w]);
    return n;
}

/* The first member with an id of at least `from`, FAB_MAX_MEMBERS: none. */
static unsigned next_member(const struct fab_members *m, unsigned from)
{
    while (from < FAB_MAX_MEMBERS) {
        uint64_t rest = m->bits[from / 64] >> (from % 64);

        if (rest)
            return from + (unsigned)__builtin_ctzll(rest);
        from = (from / 64 + 1) * 64;
    }
    return FAB_MAX_MEMBERS;
}

/* The AN that a member's host joins, FAB_NONE: no such host, or it is not in the tree. */
static fab_id leaf_of(const struct fabric *f, const struct fab_tree *t, unsigned member,
                      const struct fab_members *m)
{
    unsigned host = m->ranks_per_host ? member / m->ranks_per_host : f->n_hosts;

    return host < f->n_hosts ? t->parent[f->hosts[host]] : FAB_NONE;
}

static unsigned height(const struct fab_tree *t, fab_id u)
{
    unsigned n = 0;

    for (; u != t->root; u = t->parent[u], n++)
        T_ASSERT(t->parent[u] != FAB_NONE && n < FAB_MAX_NODES,
                 "the way up a tree does not end at its root");
    return n;
}

/* The lowest AN above both a and z. */
static fab_id group_meet(const struct fab_tree *t, fab_id a, fab_id z)
{
    unsigned na = height(t, a), nz = height(t, z);

    for (; na > nz; na--)
        a = t->parent[a];
    for (; nz > na; nz--)
        z = t->parent[z];
    while (a != z) {
        a = t->parent[a];
        z = t->parent[z];
    }
    return a;
}

fab_id fab_group_top(const struct fabric *f, const struct fab_tree *t, const struct fab_members *m)
{
    fab_id top = FAB_NONE;

    for (unsigned id = next_member(m, 0); id < FAB_MAX_MEMBERS; id = next_member(m, id + 1)) {
        fab_id leaf = leaf_of(f, t, id, m);

        if (leaf == FAB_NONE)
            return FAB_NONE;
        top = top == FAB_NONE ? leaf : group_meet(t, top, leaf);
    }
    return top;
}

fab_id fab_group_leaf(const struct fabric *f, const struct fab_tree *t, unsigned member,
                      const struct fab_members *m)
{
    return fab_members_has(m, member) ? leaf_of(f, t, member, m) : FAB_NONE;
}

unsigned fab_group_children(const struct fabric *f, const struct fab_tree *t, fab_id node,
                            const struct fab_members *m, struct fab_child *out, unsigned max)
{
    uint64_t seen[(FAB_MAX_NODES + 63) / 64] = {0};
    fab_id top = fab_group_top(f, t, m);
    unsigned n = 0;

    if (top == FAB_NONE)
        return 0;
    /* Members are in ascending order, so a child is first reached by its lowest member. */
    for (unsigned id = next_member(m, 0); id < FAB_MAX_MEMBERS; id = next_member(m, id + 1)) {
        struct fab_child c = {.member = (uint16_t)id, .first_member = (uint16_t)id};
        fab_id at = leaf_of(f, t, id, m), below = FAB_NONE;

        for (; at != node && at != top; at = t->parent[at])
            below = at;
        if (at != node)
            continue;
        c.is_member = below == FAB_NONE;
        c.node = c.is_member ? f->hosts[id / m->ranks_per_host] : below;
        if (!c.is_member) {
            if (seen[below / 64] >> (below % 64) & 1)
                continue;
            seen[below / 64] |= 1ull << (below % 64);
            c.member = FAB_NONE;
        }
        if (n < max)
            out[n] = c;
        n++;
    }
    return n;
}
