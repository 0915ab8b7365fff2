/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/cost_bound.h"

#include <errno.h>
#include <stdlib.h>

/* Sets of nodes, which links join: at first each node is a set. A set is named by its lowest node.
 */
struct sets {
    const struct fabric *f;
    uint16_t *of;
    uint64_t *rate_bps; /* of all links that leave a set, in each direction */
    uint64_t *pairs;    /* messages that leave a set, for collectives between pairs */
    uint32_t *ranks;    /* ranks in a set */
};

static uint16_t find(const struct sets *s, uint16_t u)
{
    while (s->of[u] != u)
        u = s->of[u] = s->of[s->of[u]];
    return u;
}

static void unite(const struct sets *s, uint16_t a, uint16_t z)
{
    a = find(s, a);
    z = find(s, z);
    s->of[a > z ? a : z] = a > z ? z : a;
}

/* Number of ranks r + 1, r + 2, ... to which rank r sends blocks. 0: the collective sends to all,
 * or along some tree (crossing_bytes()). */
static unsigned peers(const struct coll_args *a, unsigned nranks)
{
    if (a->kind == COLL_SENDRECV)
        return 1;
    return a->kind == COLL_ALLTOALL && a->sparse && a->sparse <= nranks ? a->sparse - 1 : 0;
}

/* Least bytes between n ranks of a set and all others, in the direction that has more. */
static double crossing_bytes(const struct coll_args *a, double n, double all, bool has_root,
                             double pairs)
{
    double bytes = (double)a->count * dtype_size(a->type), others = all - n;

    switch (a->kind) {
    case COLL_ALLREDUCE: /* one vector must cross: a side's sum, or the root's data */
    case COLL_REDUCE:
    case COLL_BROADCAST:
        return bytes;
    case COLL_ALLGATHER:
    case COLL_REDUCE_SCATTER:
        return bytes * (n > others ? n : others);
    case COLL_ALLTOALL:
        return bytes * (a->sparse ? pairs : n * others);
    case COLL_GATHER:
    case COLL_SCATTER:
        return bytes * (has_root ? others : n);
    case COLL_SENDRECV:
        return bytes * pairs;
    default:
        return 0;
    }
}

static void count_sets(struct sets *s, const struct coll_args *a, unsigned nranks,
                       const uint16_t *host_of_rank)
{
    const struct fabric *f = s->f;
    unsigned to = peers(a, nranks);

    for (unsigned i = 0; i < f->n_nodes; i++)
        s->rate_bps[i] = s->pairs[i] = s->ranks[i] = 0;
    for (unsigned r = 0; r < nranks; r++) {
        uint16_t set = find(s, f->hosts[host_of_rank[r]]);

        s->ranks[set]++;
        for (unsigned k = 1; k <= to; k++)
            s->pairs[set] += find(s, f->hosts[host_of_rank[(r + k) % nranks]]) != set;
    }
    for (unsigned i = 0; i < f->n_links; i++) {
        uint16_t x = find(s, f->links[i].a), z = find(s, f->links[i].b);

        if (x == z)
            continue;
        s->rate_bps[x] += f->links[i].rate_bps;
        s->rate_bps[z] += f->links[i].rate_bps;
    }
}

static int64_t longest_ps(const struct sets *s, const struct coll_args *a, unsigned nranks,
                          const uint16_t *host_of_rank)
{
    uint16_t root = find(s, s->f->hosts[host_of_rank[a->root]]);
    double longest = 0;

    for (unsigned i = 0; i < s->f->n_nodes; i++) {
        double bytes, ps;

        if (!s->ranks[i] || s->ranks[i] == nranks || !s->rate_bps[i])
            continue;
        bytes = crossing_bytes(a, s->ranks[i], nranks, i == root, (double)s->pairs[i]);
        ps = bytes * 8e12 / (double)s->rate_bps[i];
        longest = ps > longest ? ps : longest;
    }
    return (int64_t)longest;
}

/* Unites the sets that links of one stage join. Stage 0: links within GPU nodes; then those up to
 * each tier. */
static void unite_stage(const struct sets *s, unsigned stage)
{
    const struct fabric *f = s->f;

    for (unsigned i = 0; i < f->n_links; i++) {
        const struct fab_node *a = &f->nodes[f->links[i].a], *z = &f->nodes[f->links[i].b];
        bool node = a->role == FAB_ROLE_NVSWITCH || z->role == FAB_ROLE_NVSWITCH;
        unsigned tier = a->tier > z->tier ? a->tier : z->tier;

        if (node ? !stage : stage && tier < stage)
            unite(s, f->links[i].a, f->links[i].b);
    }
}

int64_t bound_ps(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
                 const uint16_t *host_of_rank)
{
    struct sets s = {.f = fab,
                     .of = malloc(fab->n_nodes * sizeof(*s.of)),
                     .rate_bps = malloc(fab->n_nodes * sizeof(*s.rate_bps)),
                     .pairs = malloc(fab->n_nodes * sizeof(*s.pairs)),
                     .ranks = malloc(fab->n_nodes * sizeof(*s.ranks))};
    unsigned stages = 1;
    int64_t longest = 0;

    for (unsigned i = 0; i < fab->n_switches; i++)
        if (fab->nodes[fab->switches[i]].tier >= stages)
            stages = fab->nodes[fab->switches[i]].tier + 1u;
    if (!s.of || !s.rate_bps || !s.pairs || !s.ranks) {
        longest = -ENOMEM;
        stages = 0;
    } else {
        for (unsigned i = 0; i < fab->n_nodes; i++)
            s.of[i] = (uint16_t)i;
    }
    for (unsigned stage = 0; !(longest < 0) && stage <= stages; stage++) {
        int64_t ps;

        count_sets(&s, a, nranks, host_of_rank);
        ps = longest_ps(&s, a, nranks, host_of_rank);
        longest = ps > longest ? ps : longest;
        unite_stage(&s, stage);
    }
    free(s.of);
    free(s.rate_bps);
    free(s.pairs);
    free(s.ranks);
    return longest;
}
