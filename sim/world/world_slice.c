/* SPDX-License-Identifier: BSD-3-Clause */
/* Slices of time: partitions of the world run apart, each host at its own time, on several
 * threads. */
#include "sim/world/world_priv.h"

#include <errno.h>
#include <stdlib.h>

#define PARTITIONS_PER_THREAD 4 /* an idle thread takes over those of others */

static bool some_awake(const struct rank *r)
{
    while (r && !r->awake)
        r = r->next;
    return r != NULL;
}

/* Runs the ranks of a host until none of them is awake. */
static void run_host(void *ctx, uint16_t node, int64_t now_ps)
{
    struct world *w = ctx;

    do {
        for (struct rank *r = w->of_node[node]; r; r = r->next)
            if (r->awake) {
                r->awake = false;
                w->turn.run(w->turn.ctx, r->index, now_ps);
            }
        world_flush_kicks(w, now_ps);
    } while (some_awake(w->of_node[node])); /* what they sent may have woken them */
}

static bool awaited(void *ctx, uint16_t node)
{
    struct world *w = ctx;

    return node == FAB_NONE ? w->all_awaited : w->awaited[node];
}

static void run_partitions(void *ctx, void (*fn)(void *arg, unsigned k), void *arg)
{
    worker_pool_run(((struct world *)ctx)->workers, fn, arg);
}

void world_await(struct world *w, unsigned rank, bool on)
{
    struct rank *r = &w->ranks[rank];

    T_ASSERT(rank < w->cfg.nranks, "a rank beyond the world's is awaited");
    if (r->awaited == on)
        return;
    T_ASSERT(on || (w->awaited[r->node] && w->all_awaited),
             "fewer ranks are awaited than marked so");
    r->awaited = on;
    w->awaited[r->node] += on ? 1 : -1;
    w->all_awaited += on ? 1 : -1;
}

static int run_apart(struct world *w)
{
    int rc = net_apart(w->net, true);

    if (!rc && !w->apart)
        world_record(w, WORLD_APART, world_threads(w), (uint32_t)w->lookahead_ps);
    w->apart = !rc;
    return rc;
}

void world_join(struct world *w)
{
    unsigned dead = 0;

    if (!w->apart)
        return;
    for (unsigned i = 0; i < w->cfg.nranks; i++)
        dead += w->ranks[i].dead;
    world_record(w, WORLD_TOGETHER, w->cfg.nranks, dead);
    w->apart = false;
    net_apart(w->net, false);
    for (unsigned i = 0; i < w->cfg.nranks; i++)
        if (w->ranks[i].awake)
            world_wake(&w->ranks[i]);
}

/* Adds what the other threads have counted to the first lane. */
static void sum_lanes(struct world *w)
{
    for (unsigned k = 1; k < world_threads(w); k++) {
        struct world_lane *l = &w->lane[worker_pool_lcore(w->workers, k)];

        w->first->hash += l->hash;
        w->first->frames += l->frames;
        l->hash = l->frames = 0;
    }
}

bool world_slice(struct world *w, int64_t limit_ps, const struct world_turn *turn)
{
    struct net_turn t = {run_partitions, run_host, awaited, w};
    int64_t begun = w->now, next;

    if (!w->lookahead_ps)
        return false;
    if (w->first->n_kicked) { /* somebody has posted between slices */
        unsigned woken;

        world_join(w);
        woken = w->woken;
        world_flush_kicks(w, w->now);
        w->woken_before_slice |= w->woken != woken;
        if (w->woken_before_slice) /* before anything else, as in world_step() */
            return false;
    }
    next = net_next(w->net);
    if (w->cfg.tap || w->alarm_ps != PS_NEVER || next >= limit_ps - 2 * w->lookahead_ps ||
        run_apart(w)) {
        world_join(w);
        return false;
    }
    w->turn = *turn;
    w->now = net_slice(w->net, next - next % w->lookahead_ps, &t) - 1;
    T_ASSERT(w->now >= begun, "a slice ends before it began");
    sum_lanes(w);
    return true;
}

int64_t world_slice_end(const struct world *w, int64_t t_ps)
{
    return w->lookahead_ps ? (t_ps / w->lookahead_ps + 1) * w->lookahead_ps : t_ps + 1;
}

/* ---- set-up ---- */

int world_open_lane(struct world *w, unsigned lcore, size_t ports)
{
    T_ASSERT(lcore < RTE_MAX_LCORE, "a thread without an lcore id has no lane");
    T_ASSERT(!w->lane[lcore].kicked, "two threads share a lane");
    w->lane[lcore].max_kicked = (unsigned)(2 * ports + 1);
    w->lane[lcore].kicked = calloc(w->lane[lcore].max_kicked, sizeof(struct rank_port *));
    return w->lane[lcore].kicked ? 0 : -ENOMEM;
}

int world_gather_workers(struct world *w, size_t ports)
{
    int shares = net_partition(w->net, w->cfg.threads * PARTITIONS_PER_THREAD), rc;

    if (shares <= 1)
        return RTE_MIN(shares, 0);
    rc = worker_pool_create(&w->workers, RTE_MIN(w->cfg.threads, (unsigned)shares),
                            (unsigned)shares);
    for (unsigned k = 1; !rc && k < worker_pool_size(w->workers); k++)
        rc = world_open_lane(w, worker_pool_lcore(w->workers, k), ports);
    return rc;
}
