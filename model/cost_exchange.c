/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Predicts exchanges by walking their packets (cost_exchange_ends.c). Of long ones it walks a part
 * and extrapolates.
 *
 * Rejected: closed forms only. In the first windows results wait behind parts, in an order that
 * depends on every link that they share: runs took 0.7 to 1.4 times the time of the steady state.
 */
#include "model/cost_exchange_priv.h"
#include "protocols/host/protocol_wire.h"

#include <errno.h>
#include <stdlib.h>

#define WALK_HOPS  (1ull << 20) /* most packets, times the links that each passes, of a walk */
#define WALK_SIZES (1u << 20)   /* most aggregators of all switches */
#define LONGEST_PS 1e18         /* 11 days */
#define STEADY     2u           /* windows after which time is linear in blocks */

static void exchange_free(struct model *m)
{
    struct model_exchange *e = m->exchange;
    size_t ends = e->on->nranks + e->n_leaves;

    for (unsigned r = 0; e->rank && r < e->on->nranks; r++) {
        free(e->rank[r].parts.block);
        free(e->rank[r].owed.block);
        free(e->rank[r].of);
        free(e->rank[r].lane);
        free(e->rank[r].flight);
    }
    for (unsigned i = 0; e->leaf && i < e->n_leaves; i++)
        free(e->leaf[i].slot);
    for (size_t i = 0; e->path && i < ends * ends; i++)
        free(e->path[i]);
    free(e->rank);
    free(e->leaf);
    free(e->seen);
    free(e->path);
    free(e->fetch);
    free(e->fetched);
    free(e->posted);
    nic_free(m);
    queue_free(m);
    free(m->free_ps);
    free(m->bytes);
    free(m->heap);
}

static int ring_init(struct exchange_ring *r, uint32_t room)
{
    r->room = room;
    r->block = calloc(room, sizeof(*r->block));
    return r->block ? 0 : -ENOMEM;
}

/* Finds the ranks' first switches, in order of their lowest ranks. */
static int find_leaves(struct model *m)
{
    struct model_exchange *e = m->exchange;
    const struct proto_ways *w = e->on->ways;
    unsigned n = e->on->nranks;
    uint16_t *id = calloc(n, sizeof(*id));
    struct fab_members members;
    int rc = id ? 0 : -ENOMEM;

    if (!rc && !topo_members(m->fab, n, e->on->host_of_rank, &members, id))
        rc = -EINVAL;
    for (unsigned r = 0; !rc && w->tree && r < n; r++) {
        uint16_t node = fab_group_leaf(m->fab, w->tree, id[r], &members);
        unsigned i = 0;

        while (i < e->n_leaves && e->leaf[i].node != node)
            i++;
        if (node == FAB_NONE)
            rc = -ENOTSUP;
        else if (i == e->n_leaves)
            e->leaf[e->n_leaves++] = (struct exchange_leaf){.node = node, .first = r};
        e->leaf[i].n++;
        e->rank[r].leaf = i;
    }
    free(id);
    return rc ? rc : e->x->aggregators && !e->n_leaves ? -ENOTSUP : 0;
}

static int rank_init(const struct model_exchange *e, unsigned rank)
{
    struct exchange_rank *k = &e->rank[rank];
    const struct trib_exchange *x = e->x;
    const struct proto_ways *w = e->on->ways;
    unsigned host = e->on->host_of_rank[rank];
    int rc;

    k->timer_ps = k->quick_ps[1] = TRIB_NEVER;
    if (e->on->notice_ps)
        k->notice =
            fabric_notice(w->fab, &w->fab->nodes[w->fab->hosts[host]], proto_host_port(w, host));
    k->of = calloc(x->blocks, 1);
    if (!k->of)
        return -ENOMEM;
    if (x->aggregators) {
        k->lane = calloc(x->servers, sizeof(*k->lane));
        k->flight = calloc(e->in_flight, sizeof(*k->flight));
        if (!k->lane || !k->flight)
            return -ENOMEM;
        for (uint32_t i = 0; i < x->servers; i++)
            k->lane[i].oldest = i;
    }
    rc = ring_init(&k->parts, e->in_flight + 1);
    return rc ? rc : ring_init(&k->owed, e->in_flight / x->servers + 2);
}

static int tables_init(struct model *m)
{
    struct model_exchange *e = m->exchange;
    const struct trib_exchange *x = e->x;
    size_t n = e->on->nranks, ends = n + e->n_leaves;
    int rc = 0;

    e->seen = calloc(x->blocks, sizeof(*e->seen));
    e->path = calloc(ends * ends, sizeof(*e->path));
    e->fetched = calloc(n, sizeof(*e->fetched));
    e->posted = calloc(n, sizeof(*e->posted));
    if (m->fab->costs.hca_ps)
        e->fetch = calloc(n * PROTOCOL_SENDS, sizeof(*e->fetch));
    if (!e->seen || !e->path || !e->fetched || !e->posted || (m->fab->costs.hca_ps && !e->fetch))
        return -ENOMEM;
    for (unsigned i = 0; x->aggregators && i < e->n_leaves; i++) {
        e->leaf[i].slot = calloc(x->aggregators, sizeof(*e->leaf[i].slot));
        rc = e->leaf[i].slot ? rc : -ENOMEM;
    }
    for (unsigned r = 0; r < n && !rc; r++)
        rc = rank_init(e, r);
    return rc;
}

static int walk_init(struct model *m)
{
    struct model_exchange *e = m->exchange;
    int rc;

    m->n_dir = 2u * m->fab->n_links + m->fab->n_hosts;
    m->free_ps = calloc(m->n_dir + 1, sizeof(*m->free_ps));
    m->bytes = calloc(m->n_dir + 1, sizeof(*m->bytes));
    e->rank = calloc(e->on->nranks, sizeof(*e->rank));
    e->leaf = calloc(e->on->nranks + 1ul, sizeof(*e->leaf));
    if (!m->free_ps || !m->bytes || !e->rank || !e->leaf)
        return -ENOMEM;
    rc = find_leaves(m);
    rc = rc ? rc : tables_init(m);
    rc = rc ? rc : queue_init(m);
    return rc ? rc : nic_init(m);
}

/* Four times the time of a full window, as in protocols/atp_rank.c. */
static int64_t timeout_ps(const struct exchange_on *on, const struct trib_exchange *x)
{
    double window = 16e12 * x->window * x->bytes / (double)(on->rate_bps ? on->rate_bps : 1);

    if (on->timeout_ps)
        return on->timeout_ps;
    return window < LONGEST_PS ? 4 * (2 * (on->round_trip_ps + on->notice_ps) + (int64_t)window)
                               : (int64_t)LONGEST_PS;
}

/* Walks `ops` operations, one after the other. Returns their time, or -errno; -EDEADLK: they do not
 * end. end_ps: NULL, or gets the end of each. */
static int64_t exchange_walk(const struct exchange_on *on, const struct trib_exchange *one,
                             uint32_t ops, int64_t *end_ps, bool *waited)
{
    struct trib_exchange all = *one;
    struct model_exchange e = {.x = &all,
                               .op_blocks = (uint32_t)one->blocks,
                               .op_end_ps = end_ps,
                               .on = on,
                               .timeout_ps = timeout_ps(on, one),
                               .most_resends = one->blocks * ops * on->nranks};
    struct model m = {.fab = on->ways->fab,
                      .host_of_rank = on->host_of_rank,
                      .in = {.nranks = on->nranks},
                      .exchange = &e};
    struct cost_event ev;

    all.blocks = one->blocks * ops;
    e.in_flight = (uint32_t)(all.window < all.blocks ? all.window : all.blocks);
    m.rc = walk_init(&m);
    if (!m.rc)
        exchange_begin(&m);
    while (!m.rc && e.ended < on->nranks && run_next(&m, &ev)) {
        if (ev.kind == EV_TRY && ev.lane == EXCHANGE_TIMER)
            exchange_timer(&m, ev.rank, ev.at);
        else if (ev.kind == EV_TRY)
            exchange_fetched(&m, ev.rank, ev.at);
        else
            queue_event(&m, &ev);
    }
    if (!m.rc && e.ended < on->nranks)
        m.rc = -EDEADLK;
    *waited |= e.resends > 0;
    exchange_free(&m);
    return m.rc ? m.rc : m.end;
}

/* Approximate number of hops of all packets of a block. */
static uint64_t hops_of(const struct exchange_on *on, const struct trib_exchange *x)
{
    const struct proto_ways *w = on->ways;
    uint64_t levels = proto_levels(w), leaves = proto_leaves(w), n = on->nranks;
    uint64_t far = levels ? 2 * levels : 4;

    return x->aggregators ? 2 * n + 2 * leaves * far : 2 * n * far;
}

/* As exchange_walk(), of the last blocks only. */
static int64_t walk_some(const struct exchange_on *on, const struct trib_exchange *x,
                         uint64_t blocks, bool *waited)
{
    struct trib_exchange some = *x;

    some.blocks = blocks;
    return exchange_walk(on, &some, 1, NULL, waited);
}

/* Checks values that protocols pass (which may be plug-ins) and that a walk divides by or
 * allocates. */
static bool can_walk(const struct exchange_on *on, const struct trib_exchange *x)
{
    uint64_t tables = (uint64_t)x->aggregators * proto_leaves(on->ways);
    uint32_t most = PROTO_PAYLOAD(on->ways->fab->mtu);

    return x->blocks && x->servers && x->servers <= on->nranks && x->window >= x->servers &&
           x->window % x->servers == 0 && x->bytes <= most && x->last_bytes <= most &&
           tables <= WALK_SIZES && on->nranks <= TRIB_RANKS / 8;
}

int64_t exchange_predict(const struct exchange_on *on, const struct trib_exchange *x, bool *waited)
{
    uint64_t most = WALK_HOPS / hops_of(on, x), windows, many, few;
    int64_t t, less;
    double all;

    *waited = false;
    if (!can_walk(on, x))
        return 0;
    if (x->blocks <= most)
        return exchange_walk(on, x, 1, NULL, waited);
    windows = most / x->window;
    if (windows < 2 * STEADY + 1)
        return 0;
    many = x->blocks % x->window + (windows - 1) * x->window;
    few = many - (windows - 1) / 2 * x->window;
    t = walk_some(on, x, many, waited);
    less = t > 0 ? walk_some(on, x, few, waited) : 0;
    if (t <= 0 || less <= 0)
        return t < 0 ? t : less;
    all = (double)t + (double)(x->blocks - many) * (double)(t - less) / (double)(many - few);
    return all >= (double)t && all < LONGEST_PS ? (int64_t)all : 0;
}

unsigned exchange_ops(const struct exchange_on *on, const struct trib_exchange *x,
                      int64_t end_ps[EXCHANGE_OPS])
{
    uint64_t most = WALK_HOPS / hops_of(on, x), ops;
    bool waited = false;

    if (!can_walk(on, x) || x->blocks > most || x->blocks >= (uint64_t)STEADY * x->window)
        return 0;
    ops = most / 4 / x->blocks;
    ops = ops < 1 ? 1 : ops > EXCHANGE_OPS ? EXCHANGE_OPS : ops;
    return exchange_walk(on, x, (uint32_t)ops, end_ps, &waited) > 0 ? (unsigned)ops : 0;
}
