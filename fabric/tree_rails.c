/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/tree_rails.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_HOPS 64u
#define ATTO     1000000000000000000ull /* attoseconds in a second */

struct rails_work {
    const struct fabric *f;
    fab_id *host;    /* [ranks] sorted by rail */
    unsigned *first; /* [ranks + 1] index of each rail's first host */
    uint32_t *load;  /* [2 * n_links] edges over each direction, of rails that have chosen */
    uint32_t *seen;  /* [n_nodes] the last turn in which a node was met */
    uint32_t turn;
};

/* A tree as seen by a rail. */
struct rail_way {
    fab_id top;    /* FAB_NONE: the tree does not reach the rail */
    uint64_t port; /* attoseconds a bit at the slowest member's port */
};

static bool work_new(struct rails_work *w, const struct fabric *f, const struct fab_rails *r)
{
    *w = (struct rails_work){.f = f,
                             .host = calloc(r->n + 1ul, sizeof(*w->host)),
                             .first = calloc(r->n + 2ul, sizeof(*w->first)),
                             .load = calloc(2ul * f->n_links + 1, sizeof(*w->load)),
                             .seen = calloc(f->n_nodes + 1ul, sizeof(*w->seen))};
    if (!w->host || !w->first || !w->load || !w->seen)
        return false;
    for (unsigned i = 0; i < r->n; i++)
        w->first[r->place[i] + 2u]++;
    for (unsigned p = 2; p < r->n + 2; p++)
        w->first[p] += w->first[p - 1];
    for (unsigned i = 0; i < r->n; i++)
        w->host[w->first[r->place[i] + 1u]++] = r->host[i];
    return true;
}

static void work_free(struct rails_work *w)
{
    free(w->host);
    free(w->first);
    free(w->load);
    free(w->seen);
}

static struct rail_way find_way(struct rails_work *w, const struct fab_tree *t, unsigned rail)
{
    const struct fabric *f = w->f;
    struct fab_members leaves = {.ranks_per_host = 1}; /* one member behind each leaf */
    struct rail_way way = {FAB_NONE, 0};

    w->turn++;
    for (unsigned i = w->first[rail]; i < w->first[rail + 1]; i++) {
        fab_id host = w->host[i], node = f->hosts[host], leaf = t->parent[node];
        uint64_t port;

        if (leaf == FAB_NONE)
            return way;
        port = ATTO / f->nodes[node].ports[fabric_tree_port(f, t, host)].rate_bps;
        way.port = port > way.port ? port : way.port;
        if (w->seen[leaf] != w->turn)
            fab_members_add(&leaves, host);
        w->seen[leaf] = w->turn;
    }
    way.top = fab_group_top(f, t, &leaves);
    return way;
}

/* Adds the rail's edges between switches to the load of links, or removes them. Returns for the busiest of
 * its links the time of a bit of each edge. */
static uint64_t rails_work_put(struct rails_work *w, const struct fab_tree *t, fab_id top,
                               unsigned rail, bool add)
{
    const struct fabric *f = w->f;
    uint64_t most = 0;

    w->turn++;
    for (unsigned i = w->first[rail]; i < w->first[rail + 1]; i++) {
        fab_id at = t->parent[f->hosts[w->host[i]]];

        for (; at != top && w->seen[at] != w->turn; at = t->parent[at]) {
            uint32_t d[MAX_HOPS];
            unsigned hops = fabric_path(f, at, t->parent[at], d, MAX_HOPS);

            w->seen[at] = w->turn;
            for (unsigned h = 0; h < hops; h++) {
                uint64_t now;

                w->load[d[h]] += add ? 1u : UINT32_MAX;
                now = w->load[d[h]] * (ATTO / f->links[d[h] / 2].rate_bps);
                most = now > most ? now : most;
            }
        }
    }
    return most;
}

static unsigned rails_work_choose(struct rails_work *w, const fab_id *tree, unsigned n,
                                  unsigned rail)
{
    struct rail_way way[FAB_JOB_TREES];
    uint64_t least = UINT64_MAX, best = UINT64_MAX;
    unsigned choice = n;

    for (unsigned i = 0; i < n; i++) {
        way[i] = find_way(w, &w->f->trees[tree[i]], rail);
        if (way[i].top != FAB_NONE && way[i].port < least)
            least = way[i].port;
    }
    for (unsigned i = 0; i < n && best > least; i++) {
        const struct fab_tree *t = &w->f->trees[tree[i]];
        uint64_t bit;

        if (way[i].top == FAB_NONE)
            continue;
        bit = rails_work_put(w, t, way[i].top, rail, true);
        rails_work_put(w, t, way[i].top, rail, false);
        bit = way[i].port > bit ? way[i].port : bit;
        if (bit < best)
            best = bit, choice = i;
    }
    if (choice < n)
        rails_work_put(w, &w->f->trees[tree[choice]], way[choice].top, rail, true);
    return choice;
}

int fabric_rail_trees(const struct fabric *f, const fab_id *tree, unsigned n_trees,
                      const struct fab_rails *r, unsigned n_rails, unsigned *choice)
{
    struct rails_work w;
    unsigned n = 0;
    int rc = work_new(&w, f, r) ? 0 : -ENOMEM;

    while (n < n_trees && n < FAB_JOB_TREES && tree[n] < f->n_trees)
        n++;
    for (unsigned p = 0; !rc && p < n_rails; p++) {
        choice[p] = p < r->n && w.first[p] < w.first[p + 1] ? rails_work_choose(&w, tree, n, p) : n;
        if (choice[p] == n)
            choice[p] = n_trees;
    }
    work_free(&w);
    return rc;
}

int fabric_rail_tree(const struct fabric *f, const fab_id *tree, unsigned n_trees,
                     const struct fab_rails *r, unsigned rail)
{
    unsigned *choice = calloc(rail + 1ul, sizeof(*choice));
    int rc = choice ? fabric_rail_trees(f, tree, n_trees, r, rail + 1, choice) : -ENOMEM;

    rc = rc ? rc : (int)choice[rail];
    free(choice);
    return rc;
}
