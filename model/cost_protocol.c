/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/cost_protocol.h"

#include "collective/in_flight.h"
#include "collective/protocol_trees.h"
#include "fabric/tree_rate.h"
#include "model/cost_exchange.h"
#include "model/cost_model.h"
#include "protocols/host/conf.h"
#include "protocols/host/protocol_wire.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* The input of a protocol's model, and the fabric for it. */
struct asked {
    struct trib_model m;
    struct proto_ways ways;
    struct exchange_on on;
    struct walked *walked;
};

/* Caches the last walked exchange and its time, because it is asked for repeatedly; and whether the
 * protocol's formula has paths from rank to rank. */
struct walked {
    bool between_ranks;
    struct trib_exchange x;
    int64_t ps;
    bool waited;
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
    ((const struct asked *)m)->walked->between_ranks = true;
    return proto_across_ps(&((const struct asked *)m)->ways, bytes);
}

static int64_t notice_every_ps(const struct trib_model *m, uint32_t bytes)
{
    int64_t every;

    proto_notice_ps(&((const struct asked *)m)->ways, bytes, &every);
    return every;
}

static double asked_busiest(const struct trib_model *m, unsigned servers, bool back, double *one)
{
    ((const struct asked *)m)->walked->between_ranks = true;
    return proto_busiest(&((const struct asked *)m)->ways, servers, back, m->rate_bps, one);
}

static double between(const struct trib_model *m, unsigned servers, double packets)
{
    ((const struct asked *)m)->walked->between_ranks = true;
    return proto_between(&((const struct asked *)m)->ways, servers, packets, m->rate_bps);
}

static int64_t asked_exchange(const struct trib_model *m, const struct trib_exchange *x)
{
    const struct asked *q = (const struct asked *)m;
    struct walked *w = q->walked;

    w->between_ranks = true;
    if (w->x.blocks != x->blocks || w->x.first != x->first || w->x.servers != x->servers ||
        w->x.window != x->window || w->x.bytes != x->bytes || w->x.last_bytes != x->last_bytes ||
        w->x.aggregators != x->aggregators) {
        *w = (struct walked){.between_ranks = true, .x = *x};
        w->ps = exchange_predict(&q->on, x, &w->waited);
    }
    return w->ps > 0 ? w->ps : 0;
}

#define UNKNOWN_PERCENT 100u /* least uncertainty if timeouts of ranks decide the time */
#define OTHERS          3u   /* other first blocks with which a prediction is compared */

/* Time in which GPUs notice data, in addition to a window's round trips: a rank notices its result,
 * and a rank that is a server notices parts. A walk includes it already. */
static int64_t noticed_ps(const struct asked *q)
{
    if (q->walked->ps > 0)
        return 0;
    return (q->walked->between_ranks ? 2 : 1) * q->m.notice_ps;
}

/*
 * Operations that follow each other overlap. Blocks are numbered through all of them, so the next
 * operation's blocks have other servers and aggregators. If there are so few blocks that this
 * matters, n operations need time + (n - 1) next. Returns by how many per cent this may be wrong,
 * for fewer operations or after others.
 */
static unsigned in_a_row(const struct asked *q, int64_t *next_ps)
{
    struct trib_exchange x = q->walked->x;
    int64_t end[EXCHANGE_OPS], first = q->walked->ps;
    double next = 0, most = 0;

    for (unsigned k = 0; k <= OTHERS; k++) {
        unsigned n;

        x.first = k * x.blocks; /* also changes the first server */
        x.first += (k + x.servers - x.first % x.servers) % x.servers;
        n = exchange_ops(&q->on, &x, end);
        if (!n)
            break;
        if (n > 1 && !k)
            next = (double)(end[n - 1] - first) / (n - 1);
        for (unsigned i = 0; i < n; i++)
            most = fmax(most, fabs((double)end[i] / ((double)first + i * next) - 1));
    }
    *next_ps = (int64_t)next;
    return (unsigned)ceil(100 * most);
}

/* The protocol's timeout, from the key of that name, which all protocols have; 0: it chooses
 * itself. */
static int64_t timeout_of(const struct trib_protocol *proto, const int64_t *key)
{
    for (unsigned i = 0; proto->keys && proto->keys[i].name; i++)
        if (!strcmp(proto->keys[i].name, "timeout_us") && key[i] > 0 &&
            key[i] < INT64_MAX / 1000000)
            return key[i] * 1000000;
    return 0;
}

/* A guess: a vector up and a vector down, doubled. */
static int64_t notice_guess(const struct asked *q)
{
    double bytes = (double)q->m.count * dtype_size((enum dtype)q->m.type) + q->m.overhead;

    return proto_round_trip_ps(&q->ways, q->m.payload) +
           (int64_t)(4 * bytes * 8e12 / (double)q->m.rate_bps);
}

/* Asks the protocol's model for the time and for its accuracy. */
static void protocol_ask(struct asked *q, const struct trib_protocol *proto,
                         const struct coll_args *a, struct coll_prediction *p)
{
    const struct walked *w = q->walked;
    unsigned percent = 0;

    if (proto->model && coll_protocol_does(proto, a->type, a->op))
        p->time_ps = proto->model(&q->m);
    p->guessed = p->time_ps <= 0;
    p->time_ps = p->guessed ? notice_guess(q) : p->time_ps + noticed_ps(q);
    if (!p->guessed && w->ps > 0 && !w->waited)
        percent = in_a_row(q, &p->next_ps);
    if (!p->guessed && proto->within)
        p->within_percent = proto->within(&q->m) + percent;
    if ((w->waited || w->ps == -EDEADLK) && p->within_percent < UNKNOWN_PERCENT)
        p->within_percent = UNKNOWN_PERCENT;
}

/* Predicts an instance on one tree. most_bps: the rate that other trees leave to it on shared
 * links; 0: all. */
static int predict_on(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
                      const uint16_t *host_of_rank, const uint16_t *tree, unsigned n_trees,
                      uint64_t most_bps, struct coll_prediction *p)
{
    const struct trib_protocol *proto = coll_protocol(a->algo);
    struct fab_members members;
    struct walked walked = {.ps = 0};
    struct asked q = {.ways = {.fab = fab, .members = &members}, .walked = &walked};
    int64_t key[TRIB_KEYS];

    if (!proto || a->kind != COLL_ALLREDUCE || nranks > TRIB_RANKS)
        return -ENOTSUP;
    if (!topo_members(fab, nranks, host_of_rank, &members, NULL))
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
                              .busiest = asked_busiest,
                              .between = between,
                              .message_ps = fab->costs.hca_ps,
                              .exchange = asked_exchange,
                              .notice_every_ps = notice_every_ps};
    q.m.notice_ps = proto_notice_ps(&q.ways, q.m.payload, NULL);
    if (q.ways.tree)
        q.m.tree_bps = fabric_tree_bps(fab, q.ways.tree, &members, false);
    if (most_bps && (!q.m.tree_bps || most_bps < q.m.tree_bps))
        q.m.tree_bps = most_bps;
    q.m.rate_bps = proto_rate_bps(&q.ways, &q.m.ranks_a_link);
    q.on = (struct exchange_on){
        .ways = &q.ways,
        .host_of_rank = host_of_rank,
        .nranks = nranks,
        .rate_bps = q.m.tree_bps && q.m.tree_bps < q.m.rate_bps ? q.m.tree_bps : q.m.rate_bps,
        .timeout_ps = timeout_of(proto, key),
        .notice_ps = q.m.notice_ps,
        .round_trip_ps = proto_round_trip_ps(&q.ways, q.m.payload)};
    *p = (struct coll_prediction){.handoffs = 2 + 2 * q.m.levels, .busiest_dirlink = UINT32_MAX};
    protocol_ask(&q, proto, a, p);
    p->hashed = walked.between_ranks && model_is_hashed(fab, nranks, host_of_rank);
    return 0;
}

/* The rate that a tree gets on links that it shares with other trees; 0: it shares none. */
static uint64_t most_of(const struct fabric *fab, uint16_t tree, const struct fab_members *m,
                        uint64_t bps)
{
    return fabric_tree_bps(fab, &fab->trees[tree], m, true) > bps + bps / 64 ? bps : 0;
}

/*
 * How far the time of several trees may exceed that of the slowest one, in percent, if they share
 * hosts' ports. Each tree is predicted alone, but packets of all wait for each other at the ports,
 * and an HCA with `costs.hca` fetches them one after the other.
 */
static unsigned shared_percent(const struct fabric *fab, const struct protocol_trees *t,
                               const struct sched_trees *s)
{
    bool equal = true;

    for (unsigned k = 1; k < t->n; k++)
        equal &= s->bps[k] == s->bps[0];
    if (!t->climbs)
        return 0;
    return fab->costs.hca_ps ? 100 * (t->n - 1) : equal ? 0 : 20;
}

/* All trees begin at the same time; the operation ends with the last one. */
int protocol_predict(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
                     const uint16_t *host_of_rank, const uint16_t *tree, unsigned n_trees,
                     struct coll_prediction *p)
{
    const struct trib_protocol *proto = coll_protocol(a->algo);
    struct coll_prediction most = {0};
    struct fab_members members;
    struct protocol_trees t;
    struct sched_trees s;
    int rc = 0;

    if (n_trees < 2 || !proto || !topo_members(fab, nranks, host_of_rank, &members, NULL))
        return predict_on(fab, a, nranks, host_of_rank, tree, n_trees, 0, p);
    t = protocol_choose_trees(fab, proto, tree, n_trees, &members, COLL_TREES);
    if (t.n < 2)
        return predict_on(fab, a, nranks, host_of_rank, t.tree, t.n, 0, p);
    s = protocol_shares(fab, &t, &members, 0);
    for (unsigned k = 0; !rc && k < t.n; k++) {
        struct coll_args share = *a;
        uint64_t off, count;

        sched_share(a->count, 1, s.bps, t.n, k, &off, &count);
        share.count = count;
        if (!count)
            continue;
        rc = predict_on(fab, &share, nranks, host_of_rank, &t.tree[k], 1,
                        t.climbs ? most_of(fab, t.tree[k], &members, s.bps[k]) : 0, p);
        most.guessed |= p->guessed;
        if (p->time_ps > most.time_ps)
            most = (struct coll_prediction){.time_ps = p->time_ps,
                                            .next_ps = p->next_ps,
                                            .guessed = most.guessed,
                                            .within_percent = p->within_percent,
                                            .hashed = p->hashed,
                                            .handoffs = p->handoffs,
                                            .busiest_dirlink = UINT32_MAX};
    }
    most.within_percent += shared_percent(fab, &t, &s);
    *p = most;
    return rc;
}
