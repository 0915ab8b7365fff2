/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fabric in virtual time: all its nodes in one net, a software HCA for each rank and port
 * attached to its host's NIC, and a clock that jumps from event to event. The same nodes, HCAs and
 * verbs calls as in real time; nothing here moves a frame.
 *
 * Order of things at one instant: the net's events (time, then link index), then the ranks whose
 * HCA has something new for them, by rank. Nothing depends on addresses, hash order or wall time.
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
    uint32_t an_mbufs; /* that each aggregation node may promise; 0: its share of the pool */
    net_tap_fn tap;    /* sees every frame of every link as it arrives; NULL: nobody looks */
    void *tap_ctx;
    bool trace_lengths; /* of frames the hash has time, link and length, not their bytes */
    unsigned threads;   /* that run slices at the same time, as far as the fabric goes into parts;
                           results are the same. 0: one */
};

int world_create(struct world **w, const struct world_cfg *cfg);
void world_destroy(struct world *w);
/* A rank's devices, in order of its host's ports. */
struct ibv_context *const *world_contexts(struct world *w, unsigned rank, unsigned *n);
struct ibv_context *world_context(struct world *w, unsigned rank,
                                  unsigned port); /* NULL: no such */
unsigned world_ports(const struct world *w, unsigned rank);
struct hca *world_hca(struct world *w, unsigned rank, unsigned port); /* NULL: no such port */
struct net *world_net(struct world *w);
unsigned world_ranks(const struct world *w);
int64_t world_now(const struct world *w);

/* Runs the next event if it is due by limit_ps, else moves the clock to limit_ps. Returns whether
 * there was one; what ranks have posted goes before it, and ranks that have news by that come
 * first, at the same instant. */
bool world_step(struct world *w, int64_t limit_ps);
/*
 * Instead of many steps: all events of the slice of time that has the next one, node by node
 * (net_apart()), run() being called for each rank whose HCA has news, at its host's time: by one
 * thread at a time for the ranks of a host, for those of others perhaps by another one meanwhile.
 * Where there are many, soon() before it, as net_turn's, in WORLD_SOON steps.
 * False: it cannot be done now (the slice may reach to limit_ps, an alarm is set, links have
 * faults, a tap, a fabric without lookahead); world_step() can. Slices are parts of a fixed grid,
 * which is the fabric's whatever is done to its links, one or two long, and who runs by slices
 * comes to rest at an end of one, the first after the last awaited rank is no more: whoever runs by
 * steps does the same things at the same times if it goes on to world_slice_end() - 1.
 */
struct world_turn {
    void (*run)(void *ctx, unsigned rank, int64_t now_ps);
    void (*soon)(void *ctx, unsigned rank, unsigned step);
    void *ctx;
};
#define WORLD_SOON (NET_SOON - 1)
bool world_slice(struct world *w, int64_t limit_ps, const struct world_turn *turn);
/* Somebody who runs the world waits for something that this rank does, or no more. Within a turn
 * for the rank whose turn it is. */
void world_await(struct world *w, unsigned rank, bool on);
/* Steps may follow, and whatever else a world can do. */
void world_join(struct world *w);
int64_t world_slice_end(const struct world *w, int64_t t_ps);
/* Next rank from `from` on whose HCA has news (hca_activity_epoch) since last asked; nranks when none. Clears
 * its mark. */
unsigned world_awake(struct world *w, unsigned from);
/* Of the rank's ports, a bit each: whether a completion queue has something to poll. */
const uint64_t *world_waiting(const struct world *w, unsigned rank);
/* The process of a rank dies: its NIC slot is detached, its HCA takes no more frames. */
void world_kill(struct world *w, unsigned rank);
bool world_dead(const struct world *w, unsigned rank);
/* The NIC of a rank's process takes and gives frames so many times slower than its port's rate; 1:
 * as fast as they come. */
void world_slow(struct world *w, unsigned rank, uint32_t times);
/* fn(ctx) at fabric time t, before whatever else happens then; PS_NEVER: not any more. One alarm a
 * world: fn sets the next. */
void world_alarm(struct world *w, int64_t t, void (*fn)(void *ctx), void *ctx);
/* Memory of ranks, to be unmapped by the caller: at addresses that are the same in every run, since
 * frames of multimem bear them. NULL: none. prot as of mmap. */
void *world_map(struct world *w, size_t bytes, int prot);
/* Verbs objects that ranks' programs still have. */
unsigned world_objects(struct world *w);
/* Running hash over every frame on every link: time, link, bytes. Equal hashes mean equal runs. */
uint64_t world_trace_hash(const struct world *w);
/* Events so far: arrivals, departures and timers of nodes. */
uint64_t world_events(const struct world *w);
uint64_t world_frames(const struct world *w);
unsigned world_threads(const struct world *w);
unsigned world_frames_used(const struct world *w); /* of the pool's */
/* Aggregation nodes that still hold a group, slot or frame. */
unsigned world_busy_ans(struct world *w);
bool world_ans_idle(struct world *w); /* none does; cheap to ask after each event */

#endif
