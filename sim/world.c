#include "sim/world.h"

#include "roce/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rank {
    struct world *w;
    struct hca *hca;
    struct ibv_context *ctx;
    struct endpoint ep; /* the HCA's own; the net sees the wrappers below */
    uint16_t node;
    unsigned slot;
    bool awake, kicked, dead;
};

struct world {
    struct world_cfg cfg;
    struct net *net;
    struct rank *ranks;
    int64_t now;
    uint64_t hash, frames;
};

/* ---- what the net sees of a rank: its HCA, watched
 * -------------------------------------------------- */

static uint16_t rank_input(void *ctx, struct rte_mbuf **m, uint16_t n, int64_t now)
{
    struct rank *r = ctx;

    r->awake = true;
    return r->ep.input(r->ep.ctx, m, n, now);
}

static uint16_t rank_output(void *ctx, enum endpoint_queue q, struct rte_mbuf **m, uint16_t n,
                            int64_t now)
{
    struct rank *r = ctx;

    return r->ep.output(r->ep.ctx, q, m, n, now);
}

static void rank_tick(void *ctx, int64_t now)
{
    struct rank *r = ctx;

    r->awake = true;
    r->ep.tick(r->ep.ctx, now);
}

static int64_t rank_next(void *ctx)
{
    struct rank *r = ctx;

    return r->ep.next(r->ep.ctx);
}

static void rank_kick(void *ctx)
{
    struct rank *r = ctx;

    r->kicked = true;
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
    for (unsigned i = 0; i < w->cfg.nranks; i++) {
        struct rank *r = &w->ranks[i];

        if (r->kicked && !r->dead) {
            r->kicked = false;
            net_kick(w->net, r->node, 0, r->slot, w->now);
        }
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
    for (; from < w->cfg.nranks; from++) {
        if (w->ranks[from].awake) {
            w->ranks[from].awake = false;
            break;
        }
    }
    return from;
}

void world_kill(struct world *w, unsigned rank)
{
    struct rank *r = &w->ranks[rank];

    r->dead = true;
    net_detach(w->net, r->node, 0, r->slot, w->now);
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

struct ibv_context *world_context(struct world *w, unsigned rank)
{
    return w->ranks[rank].ctx;
}

struct hca *world_hca(struct world *w, unsigned rank)
{
    return w->ranks[rank].hca;
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

static int rank_create(struct world *w, unsigned i)
{
    const struct fabric *f = w->cfg.fab;
    struct rank *r = &w->ranks[i];
    uint16_t host = w->cfg.host_of_rank[i];
    const struct fab_node *nd = &f->nodes[f->hosts[host]];
    struct endpoint watched = {r, rank_input, rank_output, rank_tick, rank_next};
    struct hca_cfg hc = {.name = "trib0",
                         .ip = nd->ip_of_port[0],
                         .mtu = f->mtu,
                         .rate_bps = nd->ports[0].rate_bps,
                         .pool = w->cfg.pool,
                         .drv = {.kick = rank_kick, .ctx = r}};
    int rc;

    r->w = w;
    r->node = f->hosts[host];
    for (unsigned j = 0; j < i; j++)
        r->slot += w->cfg.host_of_rank[j] == host;
    if (r->slot >= f->slots_per_host)
        return -ENOSPC;
    hc.slot = r->slot;
    rc = hca_create(&r->hca, &hc);
    if (rc)
        return rc;
    r->ep = hca_endpoint(r->hca);
    r->ctx = ibv_open_device(hca_device(r->hca));
    if (!r->ctx)
        return -ENODEV;
    return net_attach(w->net, r->node, 0, r->slot, &watched);
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
    w->ranks = calloc(cfg->nranks, sizeof(*w->ranks));
    rc = w->ranks ? net_create(&w->net, &nc) : -ENOMEM;
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
    for (unsigned i = 0; w->ranks && i < w->cfg.nranks; i++) {
        struct rank *r = &w->ranks[i];

        if (r->ctx)
            ibv_close_device(r->ctx);
        if (r->hca)
            hca_destroy(r->hca);
    }
    free(w->ranks);
    free(w);
}
