/* SPDX-License-Identifier: BSD-3-Clause */
/* A world by slices of time: hosts have their own time, and threads share them out. */
#include "sim/world/world_priv.h"

#include <errno.h>
#include <stdlib.h>

#define SHARES_A_THREAD 4 /* who is done with his takes others' */

static bool some_awake(const struct rank *r)
{
    while (r && !r->awake)
        r = r->next;
    return r != NULL;
}

static void served(void *ctx, uint16_t node, int64_t now_ps)
{
    struct world *w = ctx;

    do {
        for (struct rank *r = w->of_node[node]; r; r = r->next)
            if (r->awake) {
                r->awake = false;
                w->turn.run(w->turn.ctx, r->index, now_ps);
            }
        world_flush_kicks(w, now_ps);
    } while (some_awake(w->of_node[node])); /* by what it sent */
}

static bool awaited(void *ctx, uint16_t node)
{
    struct world *w = ctx;

    return node == FAB_NONE ? w->all_awaited : w->awaited[node];
}

static void soon(void *ctx, uint16_t node, unsigned step)
{
    struct world *w = ctx;
    struct rank *r = w->of_node[node];

    if (step == 0)
        rte_prefetch0(r);
    for (; step && r; r = r->next)
        w->turn.soon(w->turn.ctx, r->index, step - 1);
}

static void together(void *ctx, void (*fn)(void *arg, unsigned k), void *arg)
{
    worker_pool_run(((struct world *)ctx)->workers, fn, arg);
}

void world_await(struct world *w, unsigned rank, bool on)
{
    struct rank *r = &w->ranks[rank];

    if (r->awaited == on)
        return;
    r->awaited = on;
    w->awaited[r->node] += on ? 1 : -1;
    w->all_awaited += on ? 1 : -1;
}

static int part(struct world *w)
{
    int rc = net_apart(w->net, true);

    w->apart = !rc;
    return rc;
}

void world_join(struct world *w)
{
    if (!w->apart)
        return;
    w->apart = false;
    net_apart(w->net, false);
    for (unsigned i = 0; i < w->cfg.nranks; i++)
        if (w->ranks[i].awake)
            world_wake(&w->ranks[i]);
}

/* What the threads have counted. */
static void gather(struct world *w)
{
    for (unsigned k = 1; k < world_threads(w); k++) {
        struct lane *l = &w->lane[worker_pool_lcore(w->workers, k)];

        w->first->hash += l->hash;
        w->first->frames += l->frames;
        l->hash = l->frames = 0;
    }
}

bool world_slice(struct world *w, int64_t limit_ps, const struct world_turn *turn)
{
    struct net_turn t = {together, served, awaited, soon, w};
    int64_t next;

    if (!w->lookahead_ps)
        return false;
    if (w->first->n_kicked) { /* posted by somebody between slices */
        unsigned woken;

        world_join(w);
        woken = w->woken;
        world_flush_kicks(w, w->now);
        w->their_turn |= w->woken != woken;
        if (w->their_turn) /* before anything else, as in world_step() */
            return false;
    }
    next = net_next(w->net);
    if (w->cfg.tap || w->alarm_ps != PS_NEVER || next >= limit_ps - 2 * w->lookahead_ps ||
        part(w)) {
        world_join(w);
        return false;
    }
    w->turn = *turn;
    w->now = net_slice(w->net, next - next % w->lookahead_ps, &t) - 1;
    gather(w);
    return true;
}

int64_t world_slice_end(const struct world *w, int64_t t_ps)
{
    return w->lookahead_ps ? (t_ps / w->lookahead_ps + 1) * w->lookahead_ps : t_ps + 1;
}

/* ---- set-up ---- */

int world_open_lane(struct world *w, unsigned lcore, size_t ports)
{
    w->lane[lcore].kicked = calloc(2 * ports + 1, sizeof(struct rank_port *));
    return w->lane[lcore].kicked ? 0 : -ENOMEM;
}

int world_gather_workers(struct world *w, size_t ports)
{
    int shares = net_share(w->net, w->cfg.threads * SHARES_A_THREAD), rc;

    if (shares <= 1)
        return RTE_MIN(shares, 0);
    rc = worker_pool_create(&w->workers, RTE_MIN(w->cfg.threads, (unsigned)shares),
                            (unsigned)shares);
    for (unsigned k = 1; !rc && k < worker_pool_size(w->workers); k++)
        rc = world_open_lane(w, worker_pool_lcore(w->workers, k), ports);
    return rc;
}
