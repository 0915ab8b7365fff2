/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The levels of a fabric, from a GPU node up to the highest switches: how many members a group of
 * each has, and with which bandwidth they reach it. The cost of a collective over several levels is
 * computed from them, and plans show them.
 *
 *   nvswitch   GPUs of a node on its planes
 *   leaf       GPU nodes (or hosts) on the leaves that they share: a scalable unit
 *   spine      units on the spines of a pod          core      pods on the cores
 *   mesh       hosts that are cabled to each other
 *
 * A group of a level is a set of switches up to its tier that links or GPU nodes join. All groups
 * are counted; properties are those of the first.
 */
#include "base/shortage/enough.h"
#include "fabric/build.h"

#include <stdlib.h>
#include <string.h>

struct level_sets {
    const struct fabric *f;
    fab_id *of;   /* [n_nodes] union-find; the lowest node stands for its set */
    fab_id *net;  /* [n_nodes] the same without the links of GPU nodes: islands */
    fab_id *list; /* [n_hosts] hosts of the first host's set */
    bool *seen;   /* [n_nodes] */
    unsigned n_list, n_sets;
};

static fab_id find_in(fab_id *of, fab_id u)
{
    while (of[u] != u)
        u = of[u] = of[of[u]];
    return u;
}

static fab_id sets_root(const struct level_sets *s, fab_id u)
{
    return find_in(s->of, u);
}

static void levels_unite(fab_id *of, fab_id a, fab_id z)
{
    a = find_in(of, a);
    z = find_in(of, z);
    of[a > z ? a : z] = a > z ? z : a;
}

static bool in_first(const struct level_sets *s, fab_id u)
{
    return sets_root(s, u) == sets_root(s, s->f->hosts[0]);
}

static bool in_island(const struct level_sets *s, fab_id u)
{
    return find_in(s->net, u) == find_in(s->net, s->f->hosts[0]);
}

/* Lists the hosts of the first set, and counts the sets that have hosts. */
static void count_sets(struct level_sets *s)
{
    const struct fabric *f = s->f;

    memset(s->seen, 0, f->n_nodes * sizeof(*s->seen));
    s->n_sets = s->n_list = 0;
    for (unsigned i = 0; i < f->n_hosts; i++) {
        fab_id set = sets_root(s, f->hosts[i]);

        s->n_sets += !s->seen[set];
        s->seen[set] = true;
        if (in_first(s, f->hosts[i]))
            s->list[s->n_list++] = (fab_id)i;
    }
}

/* Tier of the level that a link leads up to or stays in: 0 in a mesh, PLANES within a GPU node. */
#define PLANES 0xfffeu
static unsigned level_of(const struct fabric *f, const struct fab_link *l)
{
    const struct fab_node *a = &f->nodes[l->a], *z = &f->nodes[l->b];

    if (a->role == FAB_ROLE_NVSWITCH || z->role == FAB_ROLE_NVSWITCH)
        return PLANES;
    return a->tier > z->tier ? a->tier : z->tier;
}

/* Sets that are separate below a level and members of its first group. */
static unsigned count_members(struct level_sets *s, const fab_id *below)
{
    unsigned n = 0;

    memset(s->seen, 0, s->f->n_nodes * sizeof(*s->seen));
    for (unsigned i = 0; i < s->n_list; i++) {
        fab_id set = below[s->f->hosts[s->list[i]]];

        n += !s->seen[set];
        s->seen[set] = true;
    }
    return n;
}

static void add_links(const struct level_sets *s, unsigned level, struct fab_level *lv)
{
    const struct fabric *f = s->f;

    for (unsigned i = 0; i < f->n_links; i++) {
        const struct fab_link *l = &f->links[i];
        bool along = level && level != PLANES && f->nodes[l->a].tier == f->nodes[l->b].tier;

        if (level_of(f, l) != level || along)
            continue;
        lv->cables += l->lanes;
        if (in_first(s, l->a))
            lv->total_bps += l->rate_bps * (level ? 1 : 2); /* in a mesh both ends are members */
    }
}

/* Describes the first island; call it before the links of the level are united. */
static void add_island(const struct level_sets *s, unsigned level, struct fab_level *lv)
{
    const struct fabric *f = s->f;
    fab_id node = fabric_domain(f, 0);

    lv->island_stride = 1;
    for (unsigned i = 0; i < f->n_hosts; i++) {
        if (!in_island(s, f->hosts[i]))
            continue;
        lv->island_hosts++;
        if (i && (node == FAB_NONE || fabric_domain(f, i) != node))
            continue;
        if (++lv->island_local == 2)
            lv->island_stride = i;
    }
    for (unsigned i = 0; i < f->n_links; i++) {
        const struct fab_link *l = &f->links[i];

        if (level_of(f, l) == level && in_island(s, l->a) != in_island(s, l->b))
            lv->island_bps += l->rate_bps;
    }
}

static void add_switches(const struct fabric *f, unsigned level, struct fab_level *lv)
{
    for (unsigned i = 0; i < f->n_switches; i++) {
        const struct fab_node *n = &f->nodes[f->switches[i]];

        if (level == PLANES ? n->role != FAB_ROLE_NVSWITCH
                            : n->tier != level || n->role == FAB_ROLE_NVSWITCH)
            continue;
        if (!lv->switches++)
            lv->role = n->role;
    }
}

/* Adds one level above the sets joined so far. Returns whether it exists. */
static bool add_level(struct level_sets *s, unsigned level, fab_id *below, struct fab_level *lv)
{
    const struct fabric *f = s->f;
    bool there = false;

    *lv = (struct fab_level){.role = FAB_ROLE_HOST, .tier = level == PLANES ? 0 : level};
    add_island(s, level, lv);
    for (unsigned i = 0; i < f->n_nodes; i++)
        below[i] = sets_root(s, (fab_id)i);
    for (unsigned i = 0; i < f->n_links; i++) {
        if (level_of(f, &f->links[i]) != level)
            continue;
        levels_unite(s->of, f->links[i].a, f->links[i].b);
        if (level != PLANES)
            levels_unite(s->net, f->links[i].a, f->links[i].b);
        there = true;
    }
    if (!there)
        return false;
    count_sets(s);
    add_switches(f, level, lv);
    add_links(s, level, lv);
    lv->groups = s->n_sets;
    lv->hosts = s->n_list;
    lv->members = count_members(s, below);
    lv->member_bps = lv->total_bps / lv->members;
    lv->bisection_bps = 2 * fabric_bisection(f, s->list, s->n_list, level == PLANES);
    return true;
}

unsigned fabric_levels(const struct fabric *f, struct fab_level *lv, unsigned max)
{
    struct level_sets s = {.f = f,
                           .of = enough_memory(f->n_nodes + 1u, sizeof(*s.of)),
                           .net = enough_memory(f->n_nodes + 1u, sizeof(*s.net)),
                           .list = enough_memory(f->n_hosts + 1u, sizeof(*s.list)),
                           .seen = enough_memory(f->n_nodes + 1u, sizeof(*s.seen))};
    fab_id *below = enough_memory(f->n_nodes + 1u, sizeof(*below));
    unsigned n = 0, top = 0;

    for (unsigned i = 0; i < f->n_switches; i++)
        if (f->nodes[f->switches[i]].tier > top)
            top = f->nodes[f->switches[i]].tier;
    if (f->n_hosts) {
        for (unsigned i = 0; i < f->n_nodes; i++)
            s.of[i] = s.net[i] = (fab_id)i;
        n += n < max && add_level(&s, PLANES, below, &lv[n]);
        for (unsigned t = 0; t <= top; t++)
            n += n < max && add_level(&s, t, below, &lv[n]);
    }
    free(s.of);
    free(s.net);
    free(s.list);
    free(s.seen);
    free(below);
    return n;
}
