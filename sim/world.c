#include "sim/world.h"

#include "roce/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One HCA: of a rank at a port of its host. */
struct rank_port {
    struct world *w;
    struct hca *hca;
    struct ibv_context *ctx;
    struct endpoint ep; /* the HCA's own; the net sees the wrappers below */
    unsigned rank, slot;
    uint16_t node, port;
};

/* Marks of ports and ranks are bits, so that a step that kicked nobody looks at a few words. */
struct world {
    struct world_cfg cfg;
    struct net *net;
    struct rank_port *ports;  /* rank by rank */
    unsigned *first;          /* [nranks + 1] a rank's first in ports */
    uint64_t *kicked, *awake; /* bit per port, bit per rank */
    bool *dead;               /* [nranks] */
    bool any_kick;
    int64_t now;
    uint64_t hash, frames;
};

static void mark(uint64_t *bits, unsigned i)
{
    bits[i / 64] |= 1ull << (i % 64);
}

/* The first mark from `from` on, taken away; n: none. */
static unsigned take(uint64_t *bits, unsigned from, unsigned n)
{
    while (from < n) {
        uint64_t rest = bits[from / 64] >> (from % 64);

        if (rest) {
            from += (unsigned)__builtin_ctzll(rest);
            bits[from / 64] &= ~(1ull << (from % 64));
            return from;
        }
        from = (from / 64 + 1) * 64;
    }
    return n;
}

/* ---- what the net sees of a rank: its HCAs, watched
 * ------------------------------------------------- */

static uint16_t port_input(void *ctx, struct rte_mbuf **m, uint16_t n, int64_t now)
{
    struct rank_port *p = ctx;

    mark(p->w->awake, p->rank);
    return p->ep.input(p->ep.ctx, m, n, now);
}

static uint16_t port_output(void *ctx, enum endpoint_queue q, struct rte_mbuf **m, uint16_t n,
                            int64_t now)
{
    struct rank_port *p = ctx;

    return p->ep.output(p->ep.ctx, q, m, n, now);
}

static void port_tick(void *ctx, int64_t now)
{
    struct rank_port *p = ctx;

    mark(p->w->awake, p->rank);
    p->ep.tick(p->ep.ctx, now);
}

static int64_t port_next(void *ctx)
{
    struct rank_port *p = ctx;

    return p->ep.next(p->ep.ctx);
}

static void port_kick(void *ctx)
{
    struct rank_port *p = ctx;

    mark(p->w->kicked, (unsigned)(p - p->w->ports));
    p->w->any_kick = true;
}

/* ---- the run
 * ----------------------------------------------------------------------------------------- */

static void world_tap(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now)
{
    struct world *w = ctx;
    uint64_t h = w->hash ^ ((uint64_t)now * 0x9e3779b97f4a7c15ull) ^ dirlink;

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
    w->hash = h ^ (h >> 29);
    w->frames++;
}

/* What programs posted since the last event goes to their NICs at this instant. */
static void flush_kicks(struct world *w)
{
    unsigned n = w->first[w->cfg.nranks], i = 0;

    if (!w->any_kick)
        return;
    w->any_kick = false;
    while ((i = take(w->kicked, i, n)) < n) {
        struct rank_port *p = &w->ports[i];

        if (!w->dead[p->rank])
            net_kick(w->net, p->node, p->port, p->slot, w->now);
    }
}

bool world_step(struct world *w, int64_t limit_ps)
{
    int64_t t;

    flush_kicks(w);
    t = net_next(w->net);
    if (t == PS_NEVER || t > limit_ps) {
        w->now = limit_ps > w->now ? limit_ps : w->now;
        return false;
    }
    w->now = t > w->now ? t : w->now;
    net_advance(w->net, w->now);
    return true;
}

unsigned world_awake(struct world *w, unsigned from)
{
    return take(w->awake, from, w->cfg.nranks);
}

void world_kill(struct world *w, unsigned rank)
{
    w->dead[rank] = true;
    for (unsigned i = w->first[rank]; i < w->first[rank + 1]; i++)
        if (w->ports[i].ctx)
            net_detach(w->net, w->ports[i].node, w->ports[i].port, w->ports[i].slot, w->now);
}

unsigned world_busy_ans(struct world *w)
{
    unsigned busy = 0;

    for (unsigned i = 0; i < w->cfg.fab->n_nodes; i++) {
        if (w->cfg.fab->nodes[i].kind == FAB_SWITCH)
            busy += !net_an_idle(w->net, i);
    }
    return busy;
}

static const struct fab_node *host_of(const struct world *w, unsigned rank)
{
    return &w->cfg.fab->nodes[w->cfg.fab->hosts[w->cfg.host_of_rank[rank]]];
}

/* Ranks of a host take its process slots in order. */
static unsigned slot_of(const struct world *w, unsigned rank)
{
    unsigned slot = 0;

    for (unsigned j = 0; j < rank; j++)
        slot += w->cfg.host_of_rank[j] == w->cfg.host_of_rank[rank];
    return slot;
}

/* With the first use of a port, as in real time: what nobody opens costs nothing. */
static int port_open(struct world *w, struct rank_port *p)
{
    const struct fab_node *nd = host_of(w, p->rank);
    struct endpoint watched = {p, port_input, port_output, port_tick, port_next};
    struct hca_cfg hc = {.ip = nd->ip_of_port[p->port],
                         .port = (uint8_t)p->port,
                         .slot = p->slot,
                         .mtu = (uint16_t)w->cfg.fab->mtu,
                         .rate_bps = nd->ports[p->port].rate_bps,
                         .pool = w->cfg.pool,
                         .drv = {.kick = port_kick, .ctx = p}};
    int rc;

    snprintf(hc.name, sizeof(hc.name), "trib%u", p->port);
    rc = hca_create(&p->hca, &hc);
    if (rc)
        return rc;
    p->ep = hca_endpoint(p->hca);
    rc = net_attach(w->net, p->node, p->port, p->slot, &watched);
    if (!rc && !(p->ctx = ibv_open_device(hca_device(p->hca)))) {
        net_detach(w->net, p->node, p->port, p->slot, w->now);
        rc = -ENODEV;
    }
    if (rc) {
        hca_destroy(p->hca);
        p->hca = NULL;
    }
    return rc;
}

unsigned world_ports(const struct world *w, unsigned rank)
{
    return w->first[rank + 1] - w->first[rank];
}

struct ibv_context *world_context(struct world *w, unsigned rank, unsigned port)
{
    struct rank_port *p = &w->ports[w->first[rank] + port];

    if (port >= world_ports(w, rank) || w->dead[rank] || (!p->ctx && port_open(w, p)))
        return NULL;
    return p->ctx;
}

struct hca *world_hca(struct world *w, unsigned rank, unsigned port)
{
    return port < world_ports(w, rank) ? w->ports[w->first[rank] + port].hca : NULL;
}

struct net *world_net(struct world *w)
{
    return w->net;
}

int64_t world_now(const struct world *w)
{
    return w->now;
}

uint64_t world_trace_hash(const struct world *w)
{
    return w->hash;
}

uint64_t world_frames(const struct world *w)
{
    return w->frames;
}

/* ---- set-up
 * ------------------------------------------------------------------------------------------ */

static int rank_create(struct world *w, unsigned rank)
{
    const struct fab_node *nd = host_of(w, rank);
    unsigned slot = slot_of(w, rank);

    if (slot >= w->cfg.fab->slots_per_host)
        return -ENOSPC;
    for (unsigned p = 0; p < nd->n_ports; p++)
        w->ports[w->first[rank] + p] =
            (struct rank_port){.w = w,
                               .rank = rank,
                               .slot = slot,
                               .node = w->cfg.fab->hosts[w->cfg.host_of_rank[rank]],
                               .port = (uint16_t)p};
    return 0;
}

/* Room for all ports of all ranks. */
static int alloc_ranks(struct world *w)
{
    unsigned n = w->cfg.nranks, total = 0;

    w->first = calloc(n + 1, sizeof(*w->first));
    w->dead = calloc(n + 1, sizeof(*w->dead));
    w->awake = calloc(n / 64 + 1, sizeof(*w->awake));
    if (!w->first || !w->dead || !w->awake)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++) {
        w->first[i] = total;
        total += host_of(w, i)->n_ports;
    }
    w->first[n] = total;
    w->ports = calloc(total + 1, sizeof(*w->ports));
    w->kicked = calloc(total / 64 + 1, sizeof(*w->kicked));
    return w->ports && w->kicked ? 0 : -ENOMEM;
}

int world_create(struct world **out, const struct world_cfg *cfg)
{
    struct world *w = calloc(1, sizeof(*w));
    struct net_cfg nc = {.fab = cfg->fab, .pool = cfg->pool, .seed = cfg->seed};
    int rc;

    if (!w)
        return -ENOMEM;
    w->cfg = *cfg;
    w->hash = 0xcbf29ce484222325ull;
    rc = alloc_ranks(w);
    if (!rc)
        rc = net_create(&w->net, &nc);
    for (unsigned i = 0; !rc && i < cfg->nranks; i++)
        rc = rank_create(w, i);
    if (rc) {
        world_destroy(w);
        return rc;
    }
    net_tap(w->net, world_tap, w);
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
    for (unsigned i = 0; w->ports && i < w->first[w->cfg.nranks]; i++) {
        struct rank_port *p = &w->ports[i];

        if (p->ctx)
            ibv_close_device(p->ctx);
        if (p->hca)
            hca_destroy(p->hca);
    }
    free(w->ports);
    free(w->first);
    free(w->kicked);
    free(w->awake);
    free(w->dead);
    free(w);
}
