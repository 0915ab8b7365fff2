/* SPDX-License-Identifier: BSD-3-Clause */
/* A port of a rank's host: the endpoint that the net sees is the rank's HCA, with its activity
 * observed and, for a slow process, held up. */
#include "sim/world/world_priv.h"

#include "base/cacheline.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MANY_RANKS 900 /* from here on ranks may need more queue pairs than an HCA has by default */

void world_wake(struct rank *r)
{
    unsigned word = r->index / 64;

    T_ASSERT_HOT(r->index < r->w->cfg.nranks, "a rank beyond the world's is woken");
    if (r->w->apart) {
        r->awake = true;
        return;
    }
    r->w->woken += !r->awake;
    r->awake = true;
    r->w->awake[word] |= 1ull << r->index % 64;
    r->w->wakers[word / 64] |= 1ull << word % 64;
}

/* Time that a slow process takes for a frame. */
static int64_t busy_ps(const struct rank_port *p, struct rte_mbuf *m)
{
    const struct fab_port *fp = &p->r->w->cfg.fab->nodes[p->r->node].ports[p->index];

    return (int64_t)((unsigned __int128)frame_wire_bytes(m) * 8 * PS_PER_S / fp->rate_bps) *
           p->slow;
}

/* Wakes the rank where its HCA had activity: most frames are none to a program. */
static void observe(struct rank_port *p)
{
    uint64_t epoch = hca_activity_epoch(p->hca);

    if (epoch != p->seen)
        world_wake(p->r);
    p->seen = epoch;
}

static uint16_t input(struct rank_port *p, struct rte_mbuf **m, uint16_t n, int64_t now)
{
    uint16_t k = p->ep.input(p->ep.ctx, m, n, now);

    observe(p);
    return k;
}

/* Sending completes datagrams, so it is activity too. */
static uint16_t output(struct rank_port *p, enum endpoint_queue q, struct rte_mbuf **m, uint16_t n,
                       int64_t now)
{
    /* Which queue pair sends is decided when the link is free: one data frame at a time. */
    uint16_t k = p->ep.output(p->ep.ctx, q, m, q == ENDPOINT_DATA ? RTE_MIN(n, 1) : n, now);

    observe(p);
    return k;
}

static uint16_t rank_input(void *ctx, struct rte_mbuf **m, uint16_t n, int64_t now)
{
    struct rank_port *p = ctx;

    if (likely(!p->slow))
        return input(p, m, n, now);
    if (!n || p->takes_ps > now) {
        p->waits = true;
        return 0;
    }
    p->takes_ps = now + busy_ps(p, m[0]);
    p->waits = n > 1;
    return input(p, m, 1, now);
}

static uint16_t rank_output(void *ctx, enum endpoint_queue q, struct rte_mbuf **m, uint16_t n,
                            int64_t now)
{
    struct rank_port *p = ctx;

    if (likely(!p->slow))
        return output(p, q, m, n, now);
    if (p->gives_ps > now) {
        p->waits = true;
        return 0;
    }
    n = output(p, q, m, RTE_MIN(n, 1), now);
    if (n)
        p->gives_ps = now + busy_ps(p, m[0]);
    p->waits |= n > 0;
    return n;
}

static void rank_kick(void *ctx);

static void rank_tick(void *ctx, int64_t now)
{
    struct rank_port *p = ctx;

    if (p->waits) {
        p->waits = false;
        rank_kick(p);
    }
    p->ep.tick(p->ep.ctx, now);
    observe(p);
    if (unlikely(p->r->sleeps && !p->index))
        sleeps_end(p->r, now);
}

static int64_t rank_deadline(void *ctx)
{
    struct rank_port *p = ctx;
    int64_t t = p->ep.deadline(p->ep.ctx);

    if (unlikely(p->r->sleeps && !p->index))
        t = RTE_MIN(t, sleeps_next(p->r));
    return t;
}

static int64_t rank_next(void *ctx)
{
    struct rank_port *p = ctx;
    int64_t t = p->ep.next(p->ep.ctx), due;

    if (unlikely(p->r->sleeps && !p->index))
        t = RTE_MIN(t, sleeps_next(p->r));
    if (likely(!p->waits))
        return t;
    /* "Frames are ready" (0) is no deadline to the NIC, but here one must follow. */
    due = RTE_MAX(RTE_MAX(p->takes_ps, p->gives_ps), 1);
    return RTE_MIN(due, t > 0 ? t : rank_deadline(p));
}

static void rank_kick(void *ctx)
{
    struct rank_port *p = ctx;
    struct world_lane *l = lane_of(p->r->w);

    if (p->kicked)
        return;
    T_ASSERT_HOT(l->n_kicked < l->max_kicked, "more ports are kicked than the lane has entries");
    p->kicked = true;
    l->kicked[l->n_kicked++] = p;
}

void world_kick(struct rank_port *p)
{
    rank_kick(p);
}

/* Where messages cost time, the port begins to fetch them now and not when its link is free. */
static void kick_nic(struct rank_port *p, int64_t now)
{
    struct world *w = p->r->w;

    if (unlikely(p->r->sleeps && !p->index))
        sleeps_begin(p->r, now);
    if (w->cfg.fab->costs.hca_ps) {
        p->ep.tick(p->ep.ctx, now);
        observe(p);
    }
    net_kick(w->net, p->r->node, (uint16_t)p->index, p->r->slot, now);
}

void world_flush_kicks(struct world *w, int64_t now)
{
    struct world_lane *l = lane_of(w);
    unsigned n = l->n_kicked;

    for (unsigned i = 0; i < n; i++) {
        struct rank_port *p = l->kicked[i];

        T_ASSERT_HOT(p && p->kicked,
                     "a port is in the list of kicked ports but not marked as kicked");
        p->kicked = false;
        if (!p->r->dead)
            kick_nic(p, now);
    }
    l->n_kicked -= n;
    memmove(l->kicked, l->kicked + n, l->n_kicked * sizeof(struct rank_port *));
}

int world_open_port(struct rank *r, unsigned i)
{
    struct world *w = r->w;
    struct rank_port *p = &r->port[i];
    const struct fab_node *nd = &w->cfg.fab->nodes[r->node];
    struct endpoint observed = {.ctx = p,
                                .input = rank_input,
                                .output = rank_output,
                                .tick = rank_tick,
                                .next = rank_next,
                                .deadline = rank_deadline};
    struct hca_cfg hc = {.ip = nd->ip_of_port[i],
                         .port = (uint8_t)i,
                         .slot = r->slot,
                         .mtu = w->cfg.fab->mtu,
                         .rate_bps = nd->ports[i].rate_bps,
                         .dcqcn = hca_dcqcn(&w->cfg.fab->dcqcn, nd->ports[i].rate_bps),
                         .window_pkts = w->cfg.fab->transport.window,
                         .early_slots = w->cfg.fab->transport.early_slots,
                         .notice = fabric_notice(w->cfg.fab, nd, i),
                         .message_ps = w->cfg.fab->costs.hca_ps,
                         .pool = w->cfg.pool,
                         .waiting = &r->waiting,
                         .max_qps = w->cfg.nranks < MANY_RANKS ? 0 : 2 * MANY_RANKS,
                         .no_async_fd = true,
                         .drv = {.kick = rank_kick, .ctx = p}};
    int rc;

    snprintf(hc.name, sizeof(hc.name), "trib%u", i);
    p->r = r;
    p->index = i;
    rc = hca_create(&p->hca, &hc);
    if (rc)
        return rc;
    p->ep = hca_endpoint(p->hca);
    cacheline_list_add(hca_cachelines(p->hca), p, sizeof(*p));
    r->ctx[i] = ibv_open_device(hca_device(p->hca));
    if (!r->ctx[i])
        return -ENODEV;
    if (r->slot == 0)
        net_list_cachelines(w->net, r->node, (uint16_t)i, hca_cachelines(p->hca));
    return net_attach(w->net, r->node, (uint16_t)i, r->slot, &observed);
}
