/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The benchmark of trib sim: a world of the ranks, a communicator of all of them, and rows that run
 * on it as trib perf runs them: warm-up, timed operations back to back, check. One thread calls
 * these functions.
 */
#ifndef TRIB_SIM_REPORT_BENCH_H
#define TRIB_SIM_REPORT_BENCH_H

#include "sim/world/stopwatch.h"
#include "fabric/conf/faults.h"
#include "host/bench/perf_options.h"
#include "host/bench/row.h"
#include "sim/report/congestion.h"
#include "sim/report/link_counters.h"
#include "sim/report/net_timeline.h"
#include "sim/world/background_flow.h"

#include <rte_mempool.h>

struct bench;

struct bench_cfg {
    const struct fabric *fab;
    const struct perf_opts *o;
    unsigned nranks;
    const uint16_t *host_of_rank;
    unsigned algos, n_trees;
    const uint16_t *tree;
    uint64_t seed;
    const struct fault_plan *plan; /* NULL: none; its time 0 is when all ranks have connected */
    bool lengths;                  /* lengths without data; nothing is checked */
    struct rte_mempool *pool;      /* of all frames */
    unsigned frames;               /* that may be in use: all but those in caches of threads */
    unsigned threads;              /* as in world_cfg */
    net_tap_fn tap;                /* as in world_cfg */
    void *tap_ctx;
    struct counters *counters; /* NULL: none */
    struct net_timeline *line; /* NULL: no time line; its tap is among `tap` */
    unsigned line_row;         /* of this row of those that run, from 1; 0: the last */
    const struct background_hosts *background; /* NULL: no background flow */
    const volatile int *stop;                  /* not 0: end at the next event */
    bool terminal; /* stderr is one: progress is a line that is rewritten, else a line every 30 s */
};

struct bench_state {
    int64_t fabric_ps;
    uint64_t events, frames; /* frames: one per link that a frame crosses */
    uint64_t trace;          /* hash over time, link and length of every frame */
    unsigned pool_peak;
    struct stopwatch timed; /* wall and CPU time of timed operations */
    unsigned threads;
};

/* Creates the world and connects all ranks. 0, or -errno and err (COMM_TEXT bytes) says why. */
int bench_create(struct bench **b, const struct bench_cfg *cfg, char *err);
/* Fills r->run[place] and, where errors are asked for, r->ulp. 0 or -errno and err. */
int bench_place(struct bench *b, struct row *r, int place, char *err);
/* The algorithm that runs the row now; after a failover it may not be the row's own. */
enum coll_algo bench_runs_by(struct bench *b, const struct row *r);
int64_t bench_now(const struct bench *b); /* fabric time; b NULL: 0 */
struct net *bench_net(const struct bench *b);
/* As comm_granted(), of the first rank. */
void bench_granted(const struct bench *b, struct coll_grant *g);
const struct background_flow *bench_background_flow(const struct bench *b); /* NULL: none */
void bench_congestion(const struct bench *b, struct congestion *c);
/* Describes the recorded operation, for "otherData" of its time line. The caller frees it. NULL:
 * none was recorded. */
struct json_t *bench_timeline(struct bench *b);
void bench_state(const struct bench *b, struct bench_state *s);
/* Leaves all groups and lets links drain. 0, or -ETIME: a rank could not leave. */
int bench_leave(struct bench *b);
void bench_destroy(struct bench *b); /* leaves first, unless that is done */

/* Frame buffers that a pool needs for a job of nranks: in flight and in aggregation nodes, with a
 * margin. */
unsigned bench_frames(unsigned nranks);
#endif
