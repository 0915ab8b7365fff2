/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/world/world_priv.h"

#include "base/cacheline.h"
#include "roce/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const event_names[] = {
    [WORLD_CREATED] = "created: %u ranks, %u nodes",
    [WORLD_RANK_KILLED] = "rank %u is killed (host node %u)",
    [WORLD_RANK_SLOWED] = "rank %u is %u times slower than its ports (0: as fast)",
    [WORLD_LINK_FAULTS] = "link %u: fault rates change (plan entry %u)",
    [WORLD_LINKS_FAULTS] = "all %u links: fault rates change (plan entry %u)",
    [WORLD_LINK_DOWN] = "link %u goes down (plan entry %u)",
    [WORLD_LINK_UP] = "link %u comes up (plan entry %u)",
    [WORLD_NODE_DOWN] = "node %u goes down (plan entry %u)",
    [WORLD_NODE_UP] = "node %u comes up (plan entry %u)",
    [WORLD_NODE_RESTART] = "node %u restarts without its state (plan entry %u)",
    [WORLD_AN_BUDGET] = "aggregation node %u may promise %u buffers",
    [WORLD_DEATH_NOTIFIED] = "death of rank %u is notified (plan entry %u)",
    [WORLD_APART] = "partitions run apart, %u threads (lookahead %u ps)",
    [WORLD_TOGETHER] = "partitions run together again (%u ranks, %u killed)",
};
_Static_assert(sizeof(event_names) / sizeof(event_names[0]) == WORLD_EVENTS, "a name for each");
static const struct event_kinds event_kinds = {"sim", event_names, WORLD_EVENTS};

/* ---- the run ---- */

/* The order of frames of different links has no meaning, so their hashes are summed. */
static void tally(struct world *w, uint64_t h)
{
    struct world_lane *l = lane_of(w);

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

bool world_step(struct world *w, int64_t limit_ps)
{
    unsigned woken = w->woken;
    int64_t t;

    T_ASSERT_HOT(!w->apart, "a single step while partitions run apart");
    world_flush_kicks(w, w->now);
    /* The flush has woken ranks: they run at this instant, before the next event. */
    if (unlikely(w->woken != woken || w->woken_before_slice)) {
        w->woken_before_slice = false;
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
    T_ASSERT_HOT(w->wakers[i / 64] >> i % 64 & 1,
                 "a word of awake ranks has no bit in the summary");
    w->awake[i] &= ~(b & -b);
    if (!w->awake[i])
        w->wakers[i / 64] &= ~(1ull << i % 64);
    i = i * 64 + (unsigned)__builtin_ctzll(b);
    T_ASSERT_HOT(i < w->cfg.nranks, "a bit is set beyond the world's ranks");
    T_ASSERT_HOT(w->ranks[i].awake, "a rank has its bit set but is not awake");
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

    T_ASSERT(rank < w->cfg.nranks, "a rank beyond the world's is killed");
    T_ASSERT(!r->dead, "a rank is killed twice: its NIC slot may be another's by now");
    world_record(w, WORLD_RANK_KILLED, rank, r->node);
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

    T_ASSERT(rank < w->cfg.nranks, "a rank beyond the world's is slowed");
    world_record(w, WORLD_RANK_SLOWED, rank, times > 1 ? times : 0);
    for (unsigned p = 0; p < r->n_ports; p++) {
        r->port[p].slow = times > 1 ? times : 0;
        if (!r->dead)
            world_kick(&r->port[p]);
    }
}

void world_alarm(struct world *w, int64_t t, void (*fn)(void *ctx), void *ctx)
{
    T_ASSERT(t == PS_NEVER || fn, "an alarm is set that calls nothing");
    T_ASSERT(t >= w->now, "an alarm is set in the past");
    w->alarm_ps = t;
    w->alarm = fn;
    w->alarm_ctx = ctx;
}

/* ---- set-up ---- */

/* taken: [n_hosts] process slots in use. */
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
        rc = world_open_port(r, p);
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
    events_init(&w->events, &event_kinds, cfg->fab->name);
    world_record(w, WORLD_CREATED, cfg->nranks, cfg->fab->n_nodes);
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
    events_fini(&w->events);
    /* Nodes first: NICs return the frames that they hold before the HCAs are destroyed. */
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
