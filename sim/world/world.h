/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fabric in virtual time: all its nodes in one net, a software HCA for each rank and port
 * attached to its host's NIC, and a clock that jumps from event to event. Nodes, HCAs and verbs
 * calls are those of real time; nothing here moves a frame.
 *
 * Order at one instant: the net's events (time, then link index), then the ranks whose HCA had
 * activity, by rank. Nothing depends on addresses, hash order or wall time.
 *
 * Threads: one thread calls these functions; a world starts the threads of its slices itself.
 */
#ifndef TRIB_SIM_WORLD_WORLD_H
#define TRIB_SIM_WORLD_WORLD_H

#include "fabric/fabric.h"
#include "host/hca/hca.h"
#include "switch/net/net.h"

struct world;

struct world_cfg {
    const struct fabric *fab;
    unsigned nranks;
    const uint16_t *host_of_rank; /* host_index; ranks of a host take its process slots in order;
                                     read by world_create() only */
    struct rte_mempool *pool;     /* of every node and HCA */
    uint64_t seed;                /* of the links' faults */
    uint32_t
        an_mbufs;   /* buffers that each aggregation node may promise; 0: its share of the pool */
    net_tap_fn tap; /* called for every frame of every link as it arrives; NULL: none */
    void *tap_ctx;
    bool trace_lengths; /* the trace hash covers time, link and length of frames, not their bytes */
    unsigned threads;   /* that run slices, at most as many as the fabric has partitions; results
                           do not depend on it. 0: one */
};

int world_create(struct world **w, const struct world_cfg *cfg);
void world_destroy(struct world *w);
/* A rank's devices, in order of its host's ports. */
struct ibv_context *const *world_contexts(struct world *w, unsigned rank, unsigned *n);
struct ibv_context *world_context(struct world *w, unsigned rank,
                                  unsigned port); /* NULL: no such port */
unsigned world_ports(const struct world *w, unsigned rank);
struct hca *world_hca(struct world *w, unsigned rank, unsigned port); /* NULL: no such port */
struct net *world_net(struct world *w);
unsigned world_ranks(const struct world *w);
int64_t world_now(const struct world *w);

/* Runs the next event if it is due by limit_ps, else moves the clock to limit_ps. Returns whether
 * there was one. What ranks have posted is sent before it; ranks that this wakes run first, at the
 * same instant. */
bool world_step(struct world *w, int64_t limit_ps);
/*
 * Replaces many steps: runs all events of the slice of time that has the next one, node by node
 * (net_apart()), and calls run() for each rank whose HCA had activity, at its host's time. One
 * thread at a time runs the ranks of a host; other threads may run those of other hosts meanwhile.
 * False: not possible now (the slice may reach to limit_ps, an alarm is set, links have faults, a
 * tap, a fabric without lookahead); world_step() is. Slices lie on a grid that follows from the
 * fabric alone, whatever is done to its links, and are one or two cells long. A run by slices rests
 * at the end of one, the first after the last awaited rank is awaited no more; a run by steps does
 * the same things at the same times if it goes on to world_slice_end() - 1.
 */
struct world_turn {
    void (*run)(void *ctx, unsigned rank, int64_t now_ps);
    void *ctx;
};
bool world_slice(struct world *w, int64_t limit_ps, const struct world_turn *turn);
/* Whether the caller waits for something that this rank does. Within run() only for its rank. */
void world_await(struct world *w, unsigned rank, bool on);
/* Ends running apart: steps and all other calls may follow. Nothing where it is not apart. */
void world_join(struct world *w);
int64_t world_slice_end(const struct world *w, int64_t t_ps);
/* Next rank from `from` on whose HCA had activity (hca_activity_epoch) since the last call, which
 * is cleared; nranks: none. */
unsigned world_awake(struct world *w, unsigned from);
/* A bit per port of the rank: a completion queue has something to poll. */
const uint64_t *world_waiting(const struct world *w, unsigned rank);
/* A time for which something of a rank sleeps, at zero first; it stays where it is until
 * world_wake_up() or the world's end. */
struct world_sleep {
    struct world *w;
    unsigned rank;
    bool on;
    int64_t left_ps, end_ps; /* left: not begun */
    struct world_sleep *next;
};
/* Wakes the rank, as activity does, so long after the present of its host. */
void world_sleep(struct world_sleep *s, int64_t ps);
void world_wake_up(struct world_sleep *s); /* at once, without waking the rank; or it is awake */
/* Kills the process of a rank, once: its NIC slot is detached, its HCA takes no more frames. */
void world_kill(struct world *w, unsigned rank);
bool world_dead(const struct world *w, unsigned rank);
/* The rank's process takes and gives frames this many times slower than its port's rate; 1: as fast
 * as they arrive. */
void world_slow(struct world *w, unsigned rank, uint32_t times);
/* The rank's operations begin so much later than it starts them; 0: at once. */
void world_late(struct world *w, unsigned rank, int64_t ps);
int64_t world_late_ps(const struct world *w, unsigned rank);
/* Calls fn(ctx) at fabric time t >= now, before all else at that time; PS_NEVER: cancels. A world
 * has one alarm: fn sets the next. */
void world_alarm(struct world *w, int64_t t, void (*fn)(void *ctx), void *ctx);
/* Memory of ranks, which the caller unmaps: at addresses that are the same in every run, since
 * frames of multimem carry them. prot as in mmap(). NULL: out of memory. */
void *world_map(struct world *w, size_t bytes, int prot);
/* Verbs objects that ranks still have. */
unsigned world_objects(struct world *w);
/* Running hash over every frame on every link: time, link, bytes. Equal hashes mean equal runs. */
uint64_t world_trace_hash(const struct world *w);
/* Events so far: arrivals, departures and timers of nodes. */
uint64_t world_events(const struct world *w);
uint64_t world_frames(const struct world *w);
unsigned world_threads(const struct world *w);
unsigned world_frames_used(const struct world *w); /* frame buffers of the pool in use */
/* Aggregation nodes that still hold a group, slot or frame. */
unsigned world_busy_ans(struct world *w);
bool world_ans_idle(struct world *w); /* none does; cheap enough for a call per event */

#endif
