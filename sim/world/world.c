/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/world/world_priv.h"

#include "base/cacheline.h"
#include "roce/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY_RANKS 900 /* so many connections at least need more queue pairs than an HCA has */

/* ---- what the net sees of a rank: its HCA, watched ---- */

void world_wake(struct rank *r)
{
    unsigned word = r->index / 64;

    if (r->w->apart) {
        r->awake = true;
        return;
    }
    r->w->woken += !r->awake;
    r->awake = true;
    r->w->awake[word] |= 1ull << r->index % 64;
    r->w->wakers[word / 64] |= 1ull << word % 64;
}

/* How long a slow process is busy with a frame. */
static int64_t busy_ps(const struct rank_port *p, struct rte_mbuf *m)
{
    const struct fab_port *fp = &p->r->w->cfg.fab->nodes[p->r->node].ports[p->index];

    return (int64_t)((unsigned __int128)frame_wire_bytes(m) * 8 * PS_PER_S / fp->rate_bps) *
           p->slow;
}

/* A program that found nothing new would go back to sleep: it is not woken for each frame. */
static void look(struct rank_port *p)
{
    uint64_t news = hca_activity_epoch(p->hca);

    if (news != p->seen)
        world_wake(p->r);
    p->seen = news;
}

static uint16_t input(struct rank_port *p, struct rte_mbuf **m, uint16_t n, int64_t now)
{
    uint16_t k = p->ep.input(p->ep.ctx, m, n, now);

    look(p);
    return k;
}

/* Datagrams are complete when they are sent. */
static uint16_t output(struct rank_port *p, enum endpoint_queue q, struct rte_mbuf **m, uint16_t n,
                       int64_t now)
{
    uint16_t k = p->ep.output(p->ep.ctx, q, m, n, now);

    look(p);
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
    look(p);
}

static int64_t rank_next(void *ctx)
{
    struct rank_port *p = ctx;
    int64_t t = p->ep.next(p->ep.ctx), due;

    if (likely(!p->waits))
        return t;
    due = RTE_MAX(p->takes_ps, p->gives_ps);
    /* "Frames are ready" (0) is no deadline to the NIC, but here one must follow. */
    return t <= 0 || t > due ? RTE_MAX(due, 1) : t;
}

static void rank_kick(void *ctx)
{
    struct rank_port *p = ctx;
    struct lane *l = lane_of(p->r->w);

    if (p->kicked)
        return;
    p->kicked = true;
    l->kicked[l->n_kicked++] = p;
}

/* ---- the run ---- */

/* Frames of different links come in an order that means nothing: theirs are added up. */
static void tally(struct world *w, uint64_t h)
{
    struct lane *l = lane_of(w);

    h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
    l->hash += h ^ h >> 29;
    l->frames++;
}

static void world_tap(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now)
{
    struct world *w = ctx;
    uint64_t h = ((uint64_t)now * 0x9e3779b97f4a7c15ull) ^ dirlink;

    for (struct rte_mbuf *s = m; s; s = s->next) {
        const uint8_t *p = rte_pktmbuf_mtod(s, const uint8_t *);
        uint32_t i = 0;
        uint64_t v;

        for (; i + 8 <= s->data_len; i += 8) {
            memcpy(&v, p + i, 8);
            h = (h ^ v) * 0x100000001b3ull;
        }
        for (; i < s->data_len; i++)
            h = (h ^ p[i]) * 0x100000001b3ull;
    }
    tally(w, h);
    if (unlikely(w->cfg.tap != NULL))
        w->cfg.tap(w->cfg.tap_ctx, dirlink, m, now);
}

static void length_tap(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now)
{
    struct world *w = ctx;
    uint64_t h = ((uint64_t)now * 0x9e3779b97f4a7c15ull) ^ dirlink;

    h = (h ^ frame_bytes(m)) * 0x100000001b3ull;
    tally(w, h);
    if (unlikely(w->cfg.tap != NULL))
        w->cfg.tap(w->cfg.tap_ctx, dirlink, m, now);
}

void world_flush_kicks(struct world *w, int64_t now)
{
    struct lane *l = lane_of(w);
    unsigned n = l->n_kicked;

    for (unsigned i = 0; i < n; i++) {
        struct rank_port *p = l->kicked[i];

        p->kicked = false;
        if (!p->r->dead)
            net_kick(w->net, p->r->node, (uint16_t)p->index, p->r->slot, now);
    }
    l->n_kicked -= n;
    memmove(l->kicked, l->kicked + n, l->n_kicked * sizeof(struct rank_port *));
}

bool world_step(struct world *w, int64_t limit_ps)
{
    unsigned woken = w->woken;
    int64_t t;

    world_flush_kicks(w, w->now);
    if (unlikely(w->woken != woken || w->their_turn)) { /* by what went: at this instant */
        w->their_turn = false;
        return true;
    }
    t = net_next(w->net);
    if (unlikely(w->alarm_ps <= limit_ps && w->alarm_ps <= t)) {
        w->now = RTE_MAX(w->now, w->alarm_ps);
        w->alarm_ps = PS_NEVER;
        w->alarm(w->alarm_ctx);
        return true;
    }
    if (t == PS_NEVER || t > limit_ps) {
        w->now = limit_ps > w->now ? limit_ps : w->now;
        return false;
    }
    w->now = t > w->now ? t : w->now;
    net_advance(w->net, w->now);
    return true;
}

/* The first of n bits from `from` on that is set; n: none. */
static unsigned next_bit(const uint64_t *bits, unsigned from, unsigned n)
{
    uint64_t mask = ~0ull << from % 64;

    for (unsigned i = from / 64; i * 64 < n; i++, mask = ~0ull)
        if (bits[i] & mask)
            return i * 64 + (unsigned)__builtin_ctzll(bits[i] & mask);
    return n;
}

unsigned world_awake(struct world *w, unsigned from)
{
    unsigned words = w->cfg.nranks / 64 + 1, i = from / 64;
    uint64_t b = i < words ? w->awake[i] & ~0ull << from % 64 : 0;

    if (!b) {
        i = next_bit(w->wakers, i + 1, words);
        b = i < words ? w->awake[i] : 0;
    }
    if (!b)
        return w->cfg.nranks;
    w->awake[i] &= ~(b & -b);
    if (!w->awake[i])
        w->wakers[i / 64] &= ~(1ull << i % 64);
    i = i * 64 + (unsigned)__builtin_ctzll(b);
    w->ranks[i].awake = false;
    return i;
}

const uint64_t *world_waiting(const struct world *w, unsigned rank)
{
    return &w->ranks[rank].waiting;
}

void world_kill(struct world *w, unsigned rank)
{
    struct rank *r = &w->ranks[rank];

    r->dead = true;
    for (unsigned p = 0; p < r->n_ports; p++)
        net_detach(w->net, r->node, (uint16_t)p, r->slot, w->now);
}

bool world_dead(const struct world *w, unsigned rank)
{
    return w->ranks[rank].dead;
}

void world_slow(struct world *w, unsigned rank, uint32_t times)
{
    struct rank *r = &w->ranks[rank];

    for (unsigned p = 0; p < r->n_ports; p++) {
        r->port[p].slow = times > 1 ? times : 0;
        if (!r->dead)
            rank_kick(&r->port[p]);
    }
}

void world_alarm(struct world *w, int64_t t, void (*fn)(void *ctx), void *ctx)
{
    w->alarm_ps = t;
    w->alarm = fn;
    w->alarm_ctx = ctx;
}

/* ---- set-up ---- */

static int port_create(struct rank *r, unsigned i)
{
    struct world *w = r->w;
    struct rank_port *p = &r->port[i];
    const struct fab_node *nd = &w->cfg.fab->nodes[r->node];
    struct endpoint watched = {p, rank_input, rank_output, rank_tick, rank_next};
    struct hca_cfg hc = {.ip = nd->ip_of_port[i],
                         .port = (uint8_t)i,
                         .slot = r->slot,
                         .mtu = w->cfg.fab->mtu,
                         .rate_bps = nd->ports[i].rate_bps,
                         .dcqcn = hca_dcqcn(&w->cfg.fab->dcqcn, nd->ports[i].rate_bps),
                         .gpu_ps = w->cfg.fab->costs.gpu_ps,
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
    cacheline_list_add(hca_lines(p->hca), p, sizeof(*p));
    r->ctx[i] = ibv_open_device(hca_device(p->hca));
    if (!r->ctx[i])
        return -ENODEV;
    rc = net_attach(w->net, r->node, (uint16_t)i, r->slot, &watched);
    if (!rc)
        net_list_lines(w->net, r->node, (uint16_t)i, r->slot, hca_lines(p->hca));
    return rc;
}

/* taken: process slots of each host that have somebody. */
static int rank_create(struct world *w, unsigned i, uint16_t *taken)
{
    const struct fabric *f = w->cfg.fab;
    struct rank *r = &w->ranks[i];
    uint16_t host = w->cfg.host_of_rank[i];
    struct rank **at;
    int rc = 0;

    r->w = w;
    r->index = i;
    r->node = f->hosts[host];
    at = &w->of_node[r->node];
    while (*at)
        at = &(*at)->next;
    *at = r;
    r->n_ports = f->nodes[r->node].n_ports;
    r->port = cacheline_alloc(r->n_ports * sizeof(*r->port));
    r->ctx = calloc(r->n_ports, sizeof(*r->ctx));
    if (!r->port || !r->ctx)
        return -ENOMEM;
    r->slot = taken[host]++;
    if (r->slot >= f->slots_per_host)
        return -ENOSPC;
    for (unsigned p = 0; !rc && p < r->n_ports; p++)
        rc = port_create(r, p);
    return rc;
}

int world_create(struct world **out, const struct world_cfg *cfg)
{
    struct world *w = calloc(1, sizeof(*w));
    struct net_cfg nc = {
        .fab = cfg->fab, .pool = cfg->pool, .seed = cfg->seed, .an_mbufs = cfg->an_mbufs};
    uint16_t *taken = calloc(cfg->fab->n_hosts + 1u, sizeof(*taken));
    size_t ports = 0;
    int rc;

    if (!w || !taken) {
        free(w);
        free(taken);
        return -ENOMEM;
    }
    w->cfg = *cfg;
    w->alarm_ps = PS_NEVER;
    w->ranks = calloc(cfg->nranks, sizeof(*w->ranks));
    for (unsigned i = 0; i < cfg->nranks; i++)
        ports += cfg->fab->nodes[cfg->fab->hosts[cfg->host_of_rank[i]]].n_ports;
    w->of_node = calloc(cfg->fab->n_nodes, sizeof(*w->of_node));
    w->lane = cacheline_alloc(RTE_MAX_LCORE * sizeof(*w->lane));
    w->awake = calloc(cfg->nranks / 64 + 1, sizeof(*w->awake));
    w->wakers = calloc(cfg->nranks / 4096 + 1, sizeof(*w->wakers));
    w->awaited = calloc(cfg->fab->n_nodes, sizeof(*w->awaited));
    rc = w->ranks && w->of_node && w->lane && w->awake && w->wakers && w->awaited
             ? net_create(&w->net, &nc)
             : -ENOMEM;
    if (!rc)
        rc = world_open_lane(w, rte_lcore_id(), ports);
    for (unsigned i = 0; !rc && i < cfg->nranks; i++)
        rc = rank_create(w, i, taken);
    if (!rc && cfg->threads > 1)
        rc = world_gather_workers(w, ports);
    free(taken);
    if (rc) {
        world_destroy(w);
        return rc;
    }
    w->first = &w->lane[rte_lcore_id()];
    w->first->hash = 0xcbf29ce484222325ull;
    w->lookahead_ps = net_lookahead(w->net);
    net_tap(w->net, cfg->trace_lengths ? length_tap : world_tap, w);
    *out = w;
    return 0;
}

void world_destroy(struct world *w)
{
    if (!w)
        return;
    /* Nodes first: the NICs give back what they hold before the HCAs go. */
    if (w->net)
        net_destroy(w->net);
    for (unsigned i = 0; w->ranks && i < w->cfg.nranks; i++) {
        struct rank *r = &w->ranks[i];

        for (unsigned p = 0; r->port && r->ctx && p < r->n_ports; p++) {
            if (r->ctx[p])
                ibv_close_device(r->ctx[p]);
            if (r->port[p].hca)
                hca_destroy(r->port[p].hca);
        }
        free(r->port);
        free(r->ctx);
    }
    worker_pool_destroy(w->workers);
    for (unsigned i = 0; w->lane && i < RTE_MAX_LCORE; i++)
        free(w->lane[i].kicked);
    free(w->lane);
    free(w->ranks);
    free(w->of_node);
    free(w->awake);
    free(w->wakers);
    free(w->awaited);
    free(w);
}
