/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of a world: its parts, what it still holds, and totals. */
#include "sim/world/world_priv.h"

#include <errno.h>
#include <sys/mman.h>

#ifdef __SANITIZE_THREAD__
#define MAP_BASE 0x1000000000ull /* a range that the sanitizer leaves to programs */
#else
#define MAP_BASE 0x200000000000ull /* a range that no program uses by itself */
#endif
#define MAP_ALIGN 65536ull

void *world_map(struct world *w, size_t bytes, int prot)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *at = (void *)(MAP_BASE + w->mapped), *p;

    w->mapped += (bytes + MAP_ALIGN) / MAP_ALIGN * MAP_ALIGN;
    p = mmap(at, bytes, prot, flags | MAP_FIXED_NOREPLACE, -1, 0);
    if (p == MAP_FAILED && errno == EEXIST) /* another world has this range: any other */
        p = mmap(NULL, bytes, prot, flags, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

unsigned world_objects(struct world *w)
{
    unsigned n = 0;

    for (unsigned i = 0; i < w->cfg.nranks; i++)
        for (unsigned p = 0; p < w->ranks[i].n_ports; p++)
            n += hca_objects(w->ranks[i].port[p].hca);
    return n;
}

bool world_ans_idle(struct world *w)
{
    const struct fabric *f = w->cfg.fab;

    if (!net_an_idle(w->net, (uint16_t)w->busy_an))
        return false;
    for (unsigned i = 0; i < f->n_nodes; i++)
        if (f->nodes[i].kind == FAB_SWITCH && !net_an_idle(w->net, (uint16_t)i)) {
            w->busy_an = i;
            return false;
        }
    return true;
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

struct ibv_context *const *world_contexts(struct world *w, unsigned rank, unsigned *n)
{
    *n = w->ranks[rank].n_ports;
    return w->ranks[rank].ctx;
}

struct ibv_context *world_context(struct world *w, unsigned rank, unsigned port)
{
    return port < w->ranks[rank].n_ports ? w->ranks[rank].ctx[port] : NULL;
}

unsigned world_ports(const struct world *w, unsigned rank)
{
    return w->ranks[rank].n_ports;
}

struct hca *world_hca(struct world *w, unsigned rank, unsigned port)
{
    return port < w->ranks[rank].n_ports ? w->ranks[rank].port[port].hca : NULL;
}

struct net *world_net(struct world *w)
{
    return w->net;
}

unsigned world_ranks(const struct world *w)
{
    return w->cfg.nranks;
}

int64_t world_now(const struct world *w)
{
    return w->now;
}

uint64_t world_trace_hash(const struct world *w)
{
    return w->first->hash;
}

uint64_t world_events(const struct world *w)
{
    return net_events(w->net);
}

uint64_t world_frames(const struct world *w)
{
    return w->first->frames;
}

unsigned world_threads(const struct world *w)
{
    return w->workers ? worker_pool_size(w->workers) : 1;
}

/* rte_mempool_in_use_count() reads the caches of all 128 lcores; only the world's threads have
 * one. */
unsigned world_frames_used(const struct world *w)
{
    struct rte_mempool *pool = w->cfg.pool;
    unsigned unused = rte_mempool_ops_get_count(pool);

    for (unsigned k = 0; k < world_threads(w); k++) {
        unsigned lcore = w->workers ? worker_pool_lcore(w->workers, k) : rte_lcore_id();
        const struct rte_mempool_cache *c = rte_mempool_default_cache(pool, lcore);

        unused += c ? c->len : 0;
    }
    T_ASSERT_HOT(unused <= pool->size, "the pool has more free frames than frames");
    return pool->size - unused;
}
