/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/quota.h"

#include "base/assert.h"
#include "aggregation/proto.h"
#include "collective/topo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two messages: one goes up while the result of the other comes down. */
#define USEFUL (2 * AGG_MSG_PKTS)

struct use {
    uint16_t trees; /* bits of the listed trees whose group of all ranks uses this switch */
    uint16_t rails, last_rail;
};

struct quota_work {
    const struct quota_request *j;
    struct use *use; /* [n_nodes] */
    unsigned used;   /* bits of the trees in use */
    uint16_t at;     /* the switch that gave the last least window */
    bool shared;     /* its slots are divided among groups; false: its limit per group is lower */
};

/* ---- which groups come to which switch ---- */

static void climb(struct quota_work *w, const struct fab_tree *t, uint16_t leaf, uint16_t top,
                  unsigned bit, uint16_t rail)
{
    T_ASSERT(bit < COLL_TREES, "a tree beyond those of a job");
    for (uint16_t u = leaf; u != FAB_NONE; u = t->parent[u]) {
        struct use *at = &w->use[u];

        if (rail ? at->last_rail == rail : at->trees >> bit & 1)
            break;
        at->trees |= rail ? 0 : (uint16_t)(1u << bit);
        at->rails += rail != 0;
        at->last_rail = rail ? rail : at->last_rail;
        if (u == top)
            break;
    }
}

/* Counts a group of these hosts' ranks on the tree. false: the tree does not reach them. */
static bool add_group(struct quota_work *w, unsigned bit, uint16_t rail, unsigned n,
                      const uint16_t *host)
{
    const struct fabric *f = w->j->fab;
    const struct fab_tree *t = &f->trees[w->j->tree[bit]];
    struct fab_members m;
    uint16_t top = FAB_NONE;

    if (w->j->tree[bit] < f->n_trees && topo_members(f, n, host, &m, NULL))
        top = fab_group_top(f, t, &m);
    for (unsigned k = 0; top != FAB_NONE && k < n; k++)
        climb(w, t, t->parent[f->hosts[host[k]]], top, bit, rail);
    return top != FAB_NONE;
}

/* Like join_rail(): the ranks of one local rank, on the tree that their rail takes. */
static int add_rails(struct quota_work *w)
{
    const struct quota_request *j = w->j;
    uint16_t *place = calloc(3u * j->nranks, sizeof(*place)), *count, *host;
    unsigned *choice = calloc(j->nranks, sizeof(*choice));
    unsigned most = 0;
    int rc = place && choice ? 0 : -ENOMEM;

    if (rc)
        goto out;
    count = place + j->nranks, host = count + j->nranks;
    for (unsigned r = 0; r < j->nranks; r++) {
        place[r] = count[j->domain[r]]++;
        most = count[j->domain[r]] > most ? count[j->domain[r]] : most;
    }
    rc = fabric_rail_trees(j->fab, j->tree, j->n_trees,
                           &(struct fab_rails){j->nranks, j->host_of_rank, place}, most, choice);
    for (unsigned p = 0; !rc && p < most; p++) {
        unsigned n = 0, alone = 0;

        for (unsigned r = 0; r < j->nranks; r++)
            if (place[r] == p) {
                host[n++] = j->host_of_rank[r];
                alone += count[j->domain[r]] < 2;
            }
        if (n > 1 && alone < n && choice[p] < j->n_trees)
            add_group(w, choice[p], (uint16_t)(p + 1), n, host);
    }
out:
    free(choice);
    free(place);
    return rc;
}

/* ---- windows ---- */

static unsigned groups_at(const struct quota_work *w, uint16_t u)
{
    return (unsigned)__builtin_popcount(w->use[u].trees & w->used) + w->use[u].rails;
}

/* The window of a group that uses the switches for which `mine` is true; notes the tightest one. */
static uint32_t least(struct quota_work *w, bool (*mine)(const struct use *u, unsigned bit),
                      unsigned bit)
{
    const struct fabric *f = w->j->fab;
    uint32_t window = w->j->asked;

    for (uint16_t u = 0; u < f->n_nodes; u++) {
        const struct fab_reduce *q = &f->nodes[u].reduce;
        unsigned n = groups_at(w, u);

        if (!n || !mine(&w->use[u], bit))
            continue;
        if (q->window < window)
            window = q->window, w->at = u, w->shared = false;
        if (q->max_slots / n < window)
            window = q->max_slots / n, w->at = u, w->shared = true;
        if (n > q->max_groups && window)
            window = 0, w->at = u, w->shared = true;
    }
    return window;
}

static bool by_tree(const struct use *u, unsigned bit)
{
    return u->trees >> bit & 1;
}

static bool by_rail(const struct use *u, unsigned bit)
{
    (void)bit;
    return u->rails;
}

/* The smallest window of the trees in use, and the last tree that has it. */
static uint32_t smallest(struct quota_work *w, unsigned *bit)
{
    uint32_t window = UINT32_MAX;

    for (unsigned i = 0; i < w->j->n_trees; i++)
        if (w->used >> i & 1) {
            uint32_t x = least(w, by_tree, i);

            if (x <= window)
                window = x, *bit = i;
        }
    return window;
}

static void explain(const struct quota_work *w, char *why, size_t size)
{
    const struct fab_node *n = &w->j->fab->nodes[w->at];
    unsigned groups = groups_at(w, w->at);

    if (!w->shared)
        snprintf(why, size, "%s has %u slots for a group", n->name, n->reduce.window);
    else if (groups > n->reduce.max_groups)
        snprintf(why, size, "%s has %u groups, %u needed", n->name, n->reduce.max_groups, groups);
    else
        snprintf(why, size, "%s has %u slots for %u %s%s", n->name, n->reduce.max_slots, groups,
                 w->use[w->at].rails ? "group" : "tree", groups == 1 ? "" : "s");
}

static void leave_out(struct quota_work *w, struct quota_grant *s)
{
    uint32_t useful = w->j->asked < USEFUL ? w->j->asked : USEFUL;
    unsigned bit = 0, other = 0;
    uint32_t now = smallest(w, &bit);

    while (now < useful && w->used & (w->used - 1)) {
        char why[sizeof(s->why)];
        uint32_t then;

        least(w, by_tree, bit);
        explain(w, why, sizeof(why));
        T_ASSERT(w->used >> bit & 1, "a tree is left out twice");
        w->used &= ~(1u << bit);
        then = smallest(w, &other);
        if (then <= now && now >= AGG_MSG_PKTS) { /* leaving it out makes no window larger */
            w->used |= 1u << bit;
            break;
        }
        if (!*s->why)
            memcpy(s->why, why, sizeof(s->why));
        now = then;
        bit = other;
    }
}

static void find_windows(struct quota_work *w, struct quota_grant *s)
{
    uint32_t window;

    if (w->j->all)
        leave_out(w, s);
    for (unsigned i = 0; w->j->all && i < w->j->n_trees; i++) {
        if (!(w->used >> i & 1))
            continue;
        window = least(w, by_tree, i);
        if (window < w->j->asked && !*s->why)
            explain(w, s->why, sizeof(s->why));
        T_ASSERT(window <= w->j->asked, "a window that is larger than what was asked for");
        s->window[s->n] = window;
        s->tree[s->n++] = w->j->tree[i];
    }
    s->rail = least(w, by_rail, 0);
    if (w->j->rails && s->rail < w->j->asked && !*s->why)
        explain(w, s->why, sizeof(s->why));
}

/* 8 bits for each level. */
static void more_of_job(uint32_t *job_groups, unsigned level, unsigned groups)
{
    unsigned shift = 8 * level, most = groups < 255 ? groups : 255;

    if (level < 4 && most > (*job_groups >> shift & 0xff))
        *job_groups = (*job_groups & ~(0xffu << shift)) | most << shift;
}

/* Counts, level by level, the most groups that members of a group meet on their path up. */
static void count_levels(const struct quota_work *w, struct quota_grant *s)
{
    const struct fabric *f = w->j->fab;

    for (unsigned r = 0; r < w->j->nranks; r++)
        for (unsigned i = 0; i < w->j->n_trees && w->j->tree[i] < f->n_trees; i++) {
            const struct fab_tree *t = &f->trees[w->j->tree[i]];
            uint16_t u = t->parent[f->hosts[w->j->host_of_rank[r]]];

            for (unsigned level = 0; u != FAB_NONE; u = t->parent[u], level++) {
                for (unsigned k = 0; k < s->n; k++)
                    if (s->tree[k] == w->j->tree[i] && w->use[u].trees >> i & 1)
                        more_of_job(&s->job_groups[k], level, groups_at(w, u));
                if (w->use[u].rails)
                    more_of_job(&s->rail_groups, level, groups_at(w, u));
            }
        }
}

/* Whether no switch's quota can limit any group, wherever they are: then the search is skipped. */
static bool plenty(const struct quota_request *j, unsigned groups)
{
    for (unsigned u = 0; u < j->fab->n_nodes; u++) {
        const struct fab_reduce *q = &j->fab->nodes[u].reduce;

        if (q->on &&
            (q->max_slots / groups < j->asked || q->window < j->asked || q->max_groups < groups))
            return false;
    }
    return true;
}

int quota_split(const struct quota_request *job, struct quota_grant *s)
{
    struct quota_request j = *job;
    struct quota_work w = {.j = &j, .used = 0};
    uint16_t *count = calloc(j.nranks, sizeof(*count));
    unsigned most = 0, groups;
    int rc = 0;

    if (!count)
        return -ENOMEM;
    for (unsigned r = 0; j.rails && r < j.nranks; r++)
        if (++count[j.domain[r]] > most)
            most = count[j.domain[r]];
    free(count);
    j.n_trees = j.n_trees < COLL_TREES ? j.n_trees : COLL_TREES;
    *s = (struct quota_grant){.rail = j.asked};
    groups = (j.all ? j.n_trees : 0) + most;
    if (!groups || plenty(&j, groups)) {
        s->n = j.all ? j.n_trees : 0;
        for (unsigned i = 0; i < s->n; i++)
            s->tree[i] = j.tree[i], s->window[i] = j.asked;
        for (unsigned level = 0; level < 4; level++) {
            for (unsigned i = 0; i < s->n; i++)
                more_of_job(&s->job_groups[i], level, groups);
            more_of_job(&s->rail_groups, level, groups);
        }
        return 0;
    }
    w.use = calloc(j.fab->n_nodes, sizeof(*w.use));
    if (!w.use)
        return -ENOMEM;
    for (unsigned i = 0; j.all && i < j.n_trees; i++) {
        add_group(&w, i, 0, j.nranks, j.host_of_rank);
        w.used |= 1u << i;
    }
    if (j.rails)
        rc = add_rails(&w);
    if (!rc) {
        find_windows(&w, s);
        count_levels(&w, s);
    }
    free(w.use);
    return rc;
}
