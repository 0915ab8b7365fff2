/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a world: its ranks and their ports; for sim/world*.c only. */
#ifndef TRIB_SIM_WORLD_WORLD_PRIV_H
#define TRIB_SIM_WORLD_WORLD_PRIV_H

#include "base/assert.h"
#include "base/cacheline.h"
#include "base/events.h"
#include "sim/world/worker_pool.h"
#include "sim/world/world.h"

#include <rte_lcore.h>
#include <stdatomic.h>

struct rank;

/* A port of the rank's host, with the software HCA on it. */
struct rank_port {
    struct endpoint ep; /* the HCA's own; the net sees the wrappers below */
    struct hca *hca;
    uint64_t seen; /* activity epoch of the HCA when last compared */
    bool kicked;   /* is in a lane's list of kicked ports */
    bool waits;    /* frames wait for a slow process */
    uint32_t slow; /* how many times slower than its port; 0: as fast as the port */
    struct rank *r;
    unsigned index; /* of the host's ports */
    /* A slow process: from when on it can take and give the next frame. */
    int64_t takes_ps, gives_ps;
} CACHELINE_ALIGNED;

struct rank {
    struct world *w;
    struct rank_port *port; /* [n_ports] */
    struct ibv_context **ctx;
    unsigned n_ports;
    uint16_t node;
    unsigned slot;
    unsigned index;
    bool dead, awaited, awake;
    int64_t late_ps;            /* world_late() */
    uint64_t waiting;           /* bit of each port: see world_waiting() */
    struct world_sleep *sleeps; /* of the rank's communicators: the first port wakes it */
    struct rank *next;          /* of its host */
};

/* Per-thread state of a world that several threads run. */
struct world_lane {
    struct rank_port **kicked; /* [max_kicked] in the order of the kicks */
    unsigned n_kicked, max_kicked;
    uint64_t hash, frames; /* of this slice; added to the first lane's at its end */
} CACHELINE_ALIGNED;

struct world {
    struct world_cfg cfg;
    struct net *net;
    struct rank *ranks;
    struct rank **of_node; /* [n_nodes] the first rank of each host; rank.next has the others */
    struct worker_pool *workers; /* NULL: the caller alone */
    struct world_lane *lane;     /* [RTE_MAX_LCORE] */
    struct world_lane *first;    /* the caller's */
    bool apart;                  /* partitions run in slices: each host has a time of its own */
    uint64_t *awake; /* [nranks / 64 + 1] a bit per rank that is awake; not used while apart */
    unsigned woken;  /* wake-ups so far; not counted while apart */
    bool woken_before_slice; /* a flush between slices woke ranks: they run first */
    uint64_t *wakers;        /* [nranks / 4096 + 1] a bit a word of awake that is not 0 */
    unsigned *awaited;       /* [n_nodes] awaited ranks of each host */
    atomic_uint all_awaited;
    int64_t now;
    uint64_t mapped;
    int64_t alarm_ps;
    void (*alarm)(void *ctx);
    void *alarm_ctx;
    unsigned busy_an;       /* a node that was busy at the last query */
    int64_t lookahead_ps;   /* of the net; 0: it has none */
    struct world_turn turn; /* of the running slice */
    struct events events;
};

/* What happens to a world, for its event ring. */
enum world_event {
    WORLD_CREATED,
    WORLD_RANK_KILLED,
    WORLD_RANK_SLOWED,
    WORLD_LINK_FAULTS,
    WORLD_LINKS_FAULTS,
    WORLD_LINK_DOWN,
    WORLD_LINK_UP,
    WORLD_NODE_DOWN,
    WORLD_NODE_UP,
    WORLD_NODE_RESTART,
    WORLD_AN_BUDGET,
    WORLD_DEATH_NOTIFIED,
    WORLD_APART,
    WORLD_TOGETHER,
    WORLD_EVENTS
};

/* The calling thread's lane. */
static inline struct world_lane *lane_of(const struct world *w)
{
    return &w->lane[rte_lcore_id()];
}

/* At the world's time; by the thread that runs the world. */
static inline void world_record(struct world *w, enum world_event kind, uint32_t a, uint32_t b)
{
    events_add(&w->events, w->now, (uint16_t)kind, a, b);
}

/* world_port.c: makes port i of the rank and attaches its HCA to the net. 0 or -errno. */
int world_open_port(struct rank *r, unsigned i);
/* Marks a rank whose HCA had activity; called by the thread that runs its host. */
void world_wake(struct rank *r);
/* The port is kicked before the next event of its host. */
void world_kick(struct rank_port *p);
/* world_sleep.c: sleeps that begin now, and those that are over; when the next is; PS_NEVER: none. */
void sleeps_begin(struct rank *r, int64_t now);
void sleeps_end(struct rank *r, int64_t now);
int64_t sleeps_next(const struct rank *r);
/* Kicks the NICs of all ports that programs posted to since the last event, in order of posting. */
void world_flush_kicks(struct world *w, int64_t now);

/* world_slice.c: the list of kicked ports of a thread; the other threads, if any */
int world_open_lane(struct world *w, unsigned lcore, size_t ports);
int world_gather_workers(struct world *w, size_t ports);

#endif
