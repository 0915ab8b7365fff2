/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions in switches: a group's tree of aggregation nodes, and the multimem of NVSwitches.
 */
#include "aggregation/narrow.h"
#include "aggregation/proto.h"
#include "collective/topo.h"
#include "host/bench/verify/expected_priv.h"
#include "host/bench/verify/rule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An aggregation node and its children in order: ranks, or nodes before it in the plan. */
struct plan_node {
    const struct fab_reduce *how;
    unsigned n;
    struct {
        bool is_rank;
        unsigned index; /* of the group's ranks, or of the node */
    } child[ARITH_MAX_INPUTS];
};
struct plan {
    struct plan_node *node; /* the last one is the top */
    unsigned n, room;
};
struct expected_group {
    unsigned n;
    uint16_t *rank, *member; /* [n] */
    struct fab_members members;
    struct plan plan[COLL_TREES];
    unsigned here[COLL_TREES]; /* ranks that have begun the channel's next step */
};

/* ---- arithmetic of a switch ---- */

/* Reduces as the switch does; elements of other roundings are numbered. */
static void expected_switch_reduce(struct expected *x, const struct fab_reduce *how, void *out,
                                   const void *const *v, unsigned n, size_t count, unsigned first,
                                   uint64_t index)
{
    const void *at[ARITH_MAX_INPUTS];

    if (how->rounding == FAB_ROUND_NEAREST) {
        rule_reduce(x->op, x->type, out, v, n, count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        for (unsigned k = 0; k < n; k++)
            at[k] = (const uint8_t *)v[k] + i * x->size;
        arith_rounded((enum rounding)how->rounding, how->seed, index + x->samples->at[first + i],
                      x->op, x->type, (uint8_t *)out + i * x->size, at, n, 1);
    }
}

/* ---- groups and their trees ---- */

static int plan_add(struct expected *x, struct expected_group *g, struct plan *p,
                    const struct fab_tree *t, uint16_t node)
{
    struct fab_child ch[ARITH_MAX_INPUTS];
    struct plan_node one = {.how = &x->job->fab->nodes[node].reduce};

    one.n = fab_group_children(x->job->fab, t, node, &g->members, ch, ARITH_MAX_INPUTS);
    if (one.how->arrival)
        return -ENODATA;
    if (!one.n || one.n > ARITH_MAX_INPUTS)
        return -ENOTSUP;
    for (unsigned i = 0; i < one.n; i++) {
        unsigned r = 0;

        one.child[i].is_rank = ch[i].is_member;
        if (!ch[i].is_member) {
            int rc = plan_add(x, g, p, t, ch[i].node);

            if (rc)
                return rc;
            one.child[i].index = p->n - 1;
            continue;
        }
        while (r < g->n && g->member[r] != ch[i].member)
            r++;
        one.child[i].index = r;
    }
    if (p->n == p->room) {
        unsigned room = 2 * p->room + 4;
        void *more = realloc(p->node, room * sizeof(*p->node));

        if (!more)
            return -ENOMEM;
        p->node = more;
        p->room = room;
    }
    p->node[p->n++] = one;
    return 0;
}

/* Makes the tree of a channel when it is first used. */
static int plan_make(struct expected *x, struct expected_group *g, unsigned chan)
{
    const struct expected_job *j = x->job;
    const struct fab_rails rails = {j->nranks, j->host_of_rank, x->local};
    bool all = g == x->group;
    int n = (int)(all ? j->n_trees : j->n_rail_trees), i = (int)chan;
    const struct fab_tree *t;
    uint16_t top;

    if (!all)
        i = fabric_rail_tree(j->fab, j->rail_tree, j->n_rail_trees, &rails,
                             (unsigned)(g - x->group) - 1);
    if (i < 0 || i >= n)
        return i < 0 ? i : -ENOTSUP;
    t = &j->fab->trees[all ? j->tree[i] : j->rail_tree[i]];
    top = fab_group_top(j->fab, t, &g->members);
    return top == FAB_NONE ? -ENOTSUP : plan_add(x, g, &g->plan[chan], t, top);
}

static int group_make(struct expected *x, struct expected_group *g, bool all, unsigned local)
{
    const struct expected_job *j = x->job;
    uint16_t *host = calloc(2ul * j->nranks, sizeof(*host));

    if (!host)
        return -ENOMEM;
    g->rank = calloc(j->nranks, sizeof(*g->rank));
    g->member = calloc(j->nranks, sizeof(*g->member));
    for (unsigned r = 0; g->rank && g->member && r < j->nranks; r++)
        if (x->local[r] == local || all) {
            host[g->n] = j->host_of_rank[r];
            g->rank[g->n++] = (uint16_t)r;
        }
    if (g->n && !topo_members(j->fab, g->n, host, &g->members, g->member))
        g->n = 0;
    free(host);
    return g->rank && g->member ? 0 : -ENOMEM;
}

/* Makes the groups: of all ranks, and of the ranks with each local rank. */
int expected_groups(struct expected *x)
{
    unsigned n = x->job->nranks;
    uint16_t *in_node = calloc(n, sizeof(*in_node));
    int rc = 0;

    x->local = calloc(n, sizeof(*x->local));
    for (unsigned r = 0; in_node && x->local && r < n; r++) {
        x->local[r] = in_node[x->topo.domain[r]]++;
        x->n_groups = x->local[r] + 2u > x->n_groups ? x->local[r] + 2u : x->n_groups;
    }
    free(in_node);
    x->group = calloc(x->n_groups + 1ul, sizeof(*x->group));
    if (!x->group || !x->n_groups)
        return -ENOMEM;
    for (unsigned i = 0; !rc && i < x->n_groups; i++)
        rc = group_make(x, &x->group[i], i == 0, i - 1);
    return rc;
}

void expected_groups_free(struct expected *x)
{
    for (unsigned i = 0; x->group && i < x->n_groups; i++) {
        free(x->group[i].rank);
        free(x->group[i].member);
        for (unsigned k = 0; k < COLL_TREES; k++)
            free(x->group[i].plan[k].node);
    }
    free(x->group);
    free(x->local);
}

/* ---- aggregation ---- */

static void reduce_tree(struct expected *x, const void *ctx, void *out, const void *const *v,
                        unsigned n, size_t count, unsigned first, uint64_t index)
{
    const struct plan *p = ctx;
    uint8_t *sum = arena_alloc(&x->arena, p->n, count * x->size);
    const void *in[ARITH_MAX_INPUTS];

    (void)n;
    for (unsigned i = 0; sum && i < p->n; i++) {
        const struct plan_node *node = &p->node[i];

        for (unsigned k = 0; k < node->n; k++)
            in[k] = node->child[k].is_rank ? v[node->child[k].index]
                                           : sum + node->child[k].index * count * x->size;
        expected_switch_reduce(x, node->how, i + 1 == p->n ? out : sum + i * count * x->size, in,
                               node->n, count, first, index);
    }
}

static const struct step *step_of(const struct expected *x, unsigned rank, const struct lane *like)
{
    const struct sched *s = &x->rank[rank].s;
    unsigned lane;

    if (!sched_has_lane(s, LANE_AGG, like->peer, like->chan, &lane) ||
        x->rank[rank].lane[lane].done >= s->lane[lane].n)
        return NULL;
    return lane_step(&s->lane[lane], x->rank[rank].lane[lane].done);
}

/* Sums what all ranks of the group send up. */
static int sum_up(struct expected *x, struct expected_group *g, const struct lane *lane,
                  const struct step *st, struct image *sum)
{
    struct image *in = calloc(g->n, sizeof(*in));
    int rc = in ? 0 : -ENOMEM;

    if (!rc && !g->plan[lane->chan].n)
        rc = plan_make(x, g, lane->chan);
    for (unsigned i = 0; !rc && i < g->n; i++)
        rc = expected_read(x, g->rank[i], &step_of(x, g->rank[i], lane)->a, st->len, &in[i]);
    if (!rc)
        rc = image_reduce(x, in, g->n, reduce_tree, &g->plan[lane->chan], st->off, sum);
    free(in);
    return rc;
}

/* Runs the step for all ranks: combines what goes up, and gives the result to each rank that gets
 * it. */
static int group_exchange(struct expected *x, struct expected_group *g, const struct lane *lane,
                          const struct step *st)
{
    struct image result = {0}, mean = {0};
    int rc = 0;

    if (st->agg == AGG_BROADCAST)
        rc = expected_read(x, st->root, &step_of(x, st->root, lane)->a, st->len, &result);
    else
        rc = sum_up(x, g, lane, st, &result);
    if (!rc && x->avg)
        rc = image_divide(x, &result, &mean);
    for (unsigned i = 0; !rc && i < g->n; i++) {
        const struct step *own = step_of(x, g->rank[i], lane);

        if (own->dst.buf != BUF_NONE)
            rc = expected_write(x, g->rank[i], &own->dst, own->last && x->avg ? &mean : &result);
    }
    return rc;
}

int expected_agg(struct expected *x, unsigned rank, unsigned lane, const struct step *st)
{
    const struct lane *l = &x->rank[rank].s.lane[lane];
    struct expected_group *g = &x->group[l->peer == GROUP_RAIL ? 1 + x->local[rank] : 0];
    int rc;

    if (l->chan >= COLL_TREES || !g->n)
        return -ENOTSUP;
    if (!x->rank[rank].lane[lane].here) {
        x->rank[rank].lane[lane].here = true;
        g->here[l->chan]++;
    }
    if (g->here[l->chan] < g->n)
        return 0;
    rc = st->len ? group_exchange(x, g, l, st) : 0;
    g->here[l->chan] = 0;
    for (unsigned i = 0; !rc && i < g->n; i++) {
        unsigned r = g->rank[i], at;

        sched_has_lane(&x->rank[r].s, LANE_AGG, l->peer, l->chan, &at);
        x->rank[r].lane[at].here = false;
        expected_done(x, r, at);
        expected_wake(x, r, at);
    }
    return rc;
}

/* ---- multimem ---- */

static void reduce_members(struct expected *x, const void *ctx, void *out, const void *const *v,
                           unsigned n, size_t count, unsigned first, uint64_t index)
{
    expected_switch_reduce(x, ctx, out, v, n, count, first, index);
}

static int mm_load(struct expected *x, unsigned rank, const struct fab_reduce *how,
                   const struct step *st)
{
    const struct ref from = {.buf = st->region, .off = st->off};
    struct image in[ARITH_MAX_INPUTS], out;
    unsigned n = 0;
    int rc = how->arrival ? -ENODATA : 0;

    for (unsigned r = 0; !rc && r < x->job->nranks; r++)
        if (x->topo.domain[r] == x->topo.domain[rank] && (st->self || r != rank))
            rc = n < ARITH_MAX_INPUTS ? expected_read(x, r, &from, st->len, &in[n++]) : -EINVAL;
    if (!rc)
        rc = image_reduce(x, in, n, reduce_members, how, st->off, &out);
    if (!rc && st->last && x->avg)
        rc = image_divide(x, &out, &out);
    return rc ? rc : expected_write(x, rank, &st->dst, &out);
}

static int mm_store(struct expected *x, unsigned rank, const struct step *st)
{
    const struct ref to = {.buf = st->region, .off = st->off};
    struct image what;
    int rc = expected_read(x, rank, &st->a, st->len, &what);

    for (unsigned r = 0; !rc && r < x->job->nranks; r++)
        if (x->topo.domain[r] == x->topo.domain[rank] && (st->self || r != rank))
            rc = expected_write(x, r, &to, &what);
    return rc;
}

int expected_mm(struct expected *x, unsigned rank, unsigned lane, const struct step *st)
{
    const struct expected_job *j = x->job;
    unsigned chan = x->rank[rank].s.lane[lane].chan;
    uint16_t plane[SCHED_MAX_CHANS];
    unsigned n = fabric_domain_planes(j->fab, fabric_domain(j->fab, j->host_of_rank[rank]), plane,
                                      SCHED_MAX_CHANS);
    int rc;

    if (chan >= n)
        return -ENOTSUP;
    if (!st->len)
        return 1;
    rc = st->op == STEP_MM_STORE ? mm_store(x, rank, st)
                                 : mm_load(x, rank, &j->fab->nodes[plane[chan]].reduce, st);
    return rc ? rc : 1;
}
