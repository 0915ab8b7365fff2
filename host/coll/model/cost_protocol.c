/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/coll/model/cost_protocol.h"

#include "fabric/tree_rate.h"
#include "host/coll/transport/protocol.h"
#include "protocols/host/conf.h"
#include "protocols/host/wire.h"

#include <errno.h>

/* What a protocol's model is given, and the fabric behind it. */
struct asked {
    struct trib_model m;
    struct proto_ways ways;
};

static int64_t up_ps(const struct trib_model *m, uint32_t bytes)
{
    return proto_up_ps(&((const struct asked *)m)->ways, bytes);
}

static int64_t down_ps(const struct trib_model *m, uint32_t bytes)
{
    return proto_down_ps(&((const struct asked *)m)->ways, bytes);
}

static int64_t across_ps(const struct trib_model *m, uint32_t bytes)
{
    return proto_across_ps(&((const struct asked *)m)->ways, bytes);
}

static double busiest(const struct trib_model *m, unsigned servers, bool back, double *one)
{
    return proto_busiest(&((const struct asked *)m)->ways, servers, back, m->rate_bps, one);
}

static double between(const struct trib_model *m, unsigned servers, double packets)
{
    return proto_between(&((const struct asked *)m)->ways, servers, packets, m->rate_bps);
}

/* A vector up, a vector down, and as much again for what is not known. */
static int64_t guess(const struct asked *q)
{
    double bytes = (double)q->m.count * dtype_size((enum dtype)q->m.type) + q->m.overhead;

    return proto_round_trip_ps(&q->ways, q->m.payload) +
           (int64_t)(4 * bytes * 8e12 / (double)q->m.rate_bps);
}

int protocol_predict(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
                     const uint16_t *host_of_rank, const uint16_t *tree, unsigned n_trees,
                     struct coll_prediction *p)
{
    const struct trib_protocol *proto = coll_protocol(a->algo);
    struct fab_members members;
    struct asked q = {.ways = {.fab = fab, .members = &members}};
    int64_t key[TRIB_KEYS];

    if (!proto || a->kind != COLL_ALLREDUCE || nranks > TRIB_RANKS)
        return -ENOTSUP;
    if (!comm_members(fab, nranks, host_of_rank, &members, NULL))
        return -EINVAL;
    if (n_trees && tree[0] < fab->n_trees &&
        fab_group_top(fab, &fab->trees[tree[0]], &members) != FAB_NONE)
        q.ways.tree = &fab->trees[tree[0]];
    if ((proto->sw && !q.ways.tree) || !proto_all_reach(&q.ways))
        return -ENOTSUP;
    proto_conf(fab, proto, key);
    q.m = (struct trib_model){.key = key,
                              .nranks = nranks,
                              .count = a->count,
                              .type = (enum trib_type)a->type,
                              .payload = PROTO_PAYLOAD(fab->mtu),
                              .overhead = PROTO_OVERHEAD,
                              .levels = proto_levels(&q.ways),
                              .leaves = proto_leaves(&q.ways),
                              .window = PROTOCOL_WINDOW,
                              .up_ps = up_ps,
                              .down_ps = down_ps,
                              .across_ps = across_ps,
                              .busiest = busiest,
                              .between = between};
    if (q.ways.tree)
        q.m.tree_bps = fabric_tree_bps(fab, q.ways.tree, &members, false);
    q.m.rate_bps = proto_rate_bps(&q.ways, &q.m.ranks_a_link);
    *p = (struct coll_prediction){.handoffs = 2 + 2 * q.m.levels, .busiest_dirlink = UINT32_MAX};
    if (proto->model && coll_protocol_does(proto, a->type, a->op))
        p->time_ps = proto->model(&q.m);
    p->guessed = p->time_ps <= 0;
    if (!p->guessed && proto->within)
        p->within_percent = proto->within(&q.m);
    if (p->guessed)
        p->time_ps = guess(&q);
    return 0;
}
