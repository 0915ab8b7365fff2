/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/capacity_groups.h"

#include "collective/quota.h"
#include "host/coll/comm.h"
#include "host/coll/transport/agg.h"
#include "switch/reduce/an.h"

#include <stdlib.h>
#include <string.h>

/* Buffers promised to one job at one switch. */
struct at_switch {
    uint64_t all;
    uint32_t most; /* to one of its groups */
};

struct promised {
    const struct fabric *f;
    uint64_t *mbufs;       /* [n_nodes] promised to all jobs so far */
    struct at_switch *job; /* [n_nodes] promised to the job that is being added */
    uint32_t *last;        /* [n_nodes] the last group that was counted there */
    uint16_t *domain;      /* [nranks] GPU node of each rank */
    uint16_t *place;       /* [nranks] number of a rank within its GPU node */
    uint16_t *of_place;    /* [nranks] hosts of the ranks with one number */
    unsigned *choice;      /* [nranks] tree of each rail */
    uint32_t groups;
};

/* Counts a group of the ranks on these hosts, on a tree. False: the tree does not reach them. */
static bool add_group(struct promised *s, uint16_t tree, unsigned n, const uint16_t *host,
                      uint32_t window)
{
    const struct fab_tree *t = &s->f->trees[tree];
    struct fab_members m;
    uint16_t top;

    if (!topo_members(s->f, n, host, &m, NULL))
        return false;
    top = fab_group_top(s->f, t, &m);
    if (top == FAB_NONE)
        return false;
    s->groups++;
    for (unsigned k = 0; k < n; k++)
        for (uint16_t u = t->parent[s->f->hosts[host[k]]]; u != FAB_NONE; u = t->parent[u]) {
            const struct fab_node *node = &s->f->nodes[u];
            uint32_t mbufs;

            if (s->last[u] == s->groups)
                break;
            s->last[u] = s->groups;
            mbufs = an_group_mbufs(fab_group_children(s->f, t, u, &m, NULL, 0), u == top,
                                   RTE_MIN(window, node->reduce.window));
            s->job[u].all += mbufs;
            s->job[u].most = RTE_MAX(s->job[u].most, mbufs);
            if (u == top)
                break;
        }
    return true;
}

/* Counts a group for each rail, on the tree that it uses. Returns the number of rails. */
static unsigned add_rails(struct promised *s, const struct jobs_job *j, uint32_t window)
{
    const struct fab_rails rails = {j->nranks, j->host_of_rank, s->place};
    unsigned places = 0;

    memset(s->place, 0, j->nranks * sizeof(*s->place));
    for (unsigned r = 0; r < j->nranks; r++) {
        for (unsigned k = 0; k < r; k++)
            s->place[r] += s->domain[k] == s->domain[r];
        places = RTE_MAX(places, s->place[r] + 1u);
    }
    if (fabric_rail_trees(s->f, j->tree, j->n_trees, &rails, places, s->choice))
        return places;
    for (unsigned p = 0; p < places; p++) {
        unsigned n = 0;

        for (unsigned r = 0; r < j->nranks; r++)
            if (s->place[r] == p)
                s->of_place[n++] = j->host_of_rank[r];
        if (n > 1 && s->choice[p] < j->n_trees)
            add_group(s, j->tree[s->choice[p]], n, s->of_place, window);
    }
    return places;
}

/* A switch that expects further groups of a job reserves for each as much as it grants to one, even
 * if those groups then use other switches (quota_split()). */
static void add_job(struct promised *s, const struct jobs_job *j)
{
    struct quota_request q = {.fab = s->f,
                              .nranks = j->nranks,
                              .host_of_rank = j->host_of_rank,
                              .domain = s->domain,
                              .tree = j->tree,
                              .n_trees = j->n_trees,
                              .all = j->algos >> ALGO_SHARP & 1,
                              .rails = j->algos & COMM_RAIL_ALGOS,
                              .asked = agg_window(s->f, j->window)};
    struct quota_grant g;
    unsigned groups;

    for (unsigned r = 0; r < j->nranks; r++)
        s->domain[r] = fabric_domain(s->f, j->host_of_rank[r]);
    if ((!q.all && !q.rails) || quota_split(&q, &g))
        return;
    groups = g.n;
    for (unsigned i = 0; i < g.n; i++)
        add_group(s, g.tree[i], j->nranks, j->host_of_rank, g.window[i]);
    if (q.rails)
        groups += add_rails(s, j, g.rail);
    for (unsigned u = 0; u < s->f->n_nodes; u++) {
        s->mbufs[u] += RTE_MAX(s->job[u].all, (uint64_t)groups * s->job[u].most);
        s->job[u] = (struct at_switch){0};
    }
}

uint64_t capacity_group_mbufs(const struct fabric *f, const struct jobs_plan *p)
{
    struct promised s = {.f = f,
                         .mbufs = calloc(f->n_nodes + 1u, sizeof(*s.mbufs)),
                         .job = calloc(f->n_nodes + 1u, sizeof(*s.job)),
                         .last = calloc(f->n_nodes + 1u, sizeof(*s.last)),
                         .domain = calloc(p->nranks + 1u, sizeof(*s.domain)),
                         .place = calloc(p->nranks + 1u, sizeof(*s.place)),
                         .of_place = calloc(p->nranks + 1u, sizeof(*s.of_place)),
                         .choice = calloc(p->nranks + 1u, sizeof(*s.choice))};
    bool room = s.mbufs && s.job && s.last && s.domain && s.place && s.of_place && s.choice;
    uint64_t most = 0;

    for (unsigned i = 0; room && i < p->n; i++)
        add_job(&s, &p->job[i]);
    for (unsigned u = 0; s.mbufs && u < f->n_nodes; u++)
        most = s.mbufs[u] > most ? s.mbufs[u] : most;
    free(s.mbufs);
    free(s.job);
    free(s.last);
    free(s.domain);
    free(s.place);
    free(s.of_place);
    free(s.choice);
    return most;
}
