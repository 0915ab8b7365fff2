/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a world: its ranks and their ports; for sim/world*.c only. */
#ifndef TRIB_SIM_WORLD_WORLD_PRIV_H
#define TRIB_SIM_WORLD_WORLD_PRIV_H

#include "sim/world/worker_pool.h"
#include "sim/world/world.h"

#include <rte_lcore.h>
#include <stdatomic.h>

struct rank;

/* A port of the rank's host, with the software HCA on it. */
struct rank_port {
    struct endpoint ep; /* the HCA's own; the net sees the wrappers below */
    struct hca *hca;
    uint64_t seen; /* of its news */
    bool kicked;
    bool waits;    /* somebody waits for a slow one */
    uint32_t slow; /* so many times slower than its port; 0: not */
    struct rank *r;
    unsigned index; /* of the host's ports */
    /* A slow one: since when it can take and give the next frame. */
    int64_t takes_ps, gives_ps;
} __rte_cache_aligned;

struct rank {
    struct world *w;
    struct rank_port *port; /* [n_ports] */
    struct ibv_context **ctx;
    unsigned n_ports;
    uint16_t node;
    unsigned slot;
    unsigned index;
    bool dead, awaited, awake;
    uint64_t waiting;  /* bit of each port: see world_waiting() */
    struct rank *next; /* of its host */
};

/* What a thread has of its own while several run the world. */
struct lane {
    struct rank_port **kicked; /* in the order in which they were */
    unsigned n_kicked;
    uint64_t hash, frames; /* to be added to the first lane's */
} __rte_cache_aligned;

struct world {
    struct world_cfg cfg;
    struct net *net;
    struct rank *ranks;
    struct rank **of_node;       /* [n_nodes] the first; by rank */
    struct worker_pool *workers; /* NULL: the caller alone */
    struct lane *lane;           /* [RTE_MAX_LCORE] */
    struct lane *first;          /* the caller's */
    bool apart;                  /* hosts have their own time, and call their own ranks */
    uint64_t *awake;   /* [nranks / 64 + 1] a bit a rank, of those awake; not while apart */
    unsigned woken;    /* ranks, one after the other; not while apart */
    bool their_turn;   /* of some that were woken by what went before a slice */
    uint64_t *wakers;  /* [nranks / 4096 + 1] a bit a word of awake that is not 0 */
    unsigned *awaited; /* [n_nodes] ranks that are */
    atomic_uint all_awaited;
    int64_t now;
    uint64_t mapped;
    int64_t alarm_ps;
    void (*alarm)(void *ctx);
    void *alarm_ctx;
    unsigned busy_an;       /* a node that was busy when last asked */
    int64_t lookahead_ps;   /* of the net; 0: it has none */
    struct world_turn turn; /* of a slice: what ranks do */
};

/* The thread's own. */
static inline struct lane *lane_of(const struct world *w)
{
    return &w->lane[rte_lcore_id()];
}

/* The rank has news; to be called by the thread that runs its host. */
void world_wake(struct rank *r);
/* What programs posted since the last event goes to their NICs at this instant, in their order. */
void world_flush_kicks(struct world *w, int64_t now);

/* world_slice.c: room for ports that may be kicked; the threads, if any but the caller */
int world_open_lane(struct world *w, unsigned lcore, size_t ports);
int world_gather_workers(struct world *w, size_t ports);

#endif
