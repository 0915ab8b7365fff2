/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of trib sim: a world with a rank on each place, a communicator of all of them, and one row
 * after the other run on it as trib perf runs it: warm-up, timed operations back to back, check.
 */
#ifndef TRIB_SIM_REPORT_BENCH_H
#define TRIB_SIM_REPORT_BENCH_H

#include "base/stopwatch.h"
#include "fabric/conf/faults.h"
#include "host/bench/options.h"
#include "host/bench/row.h"
#include "sim/report/congestion.h"
#include "sim/report/link_counters.h"
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
    const struct fault_plan *plan; /* NULL: none; time 0 is when everybody is connected */
    bool lengths;                  /* no data, only its lengths; nothing is checked */
    struct rte_mempool *pool;      /* of all frames */
    unsigned frames;               /* that may be in use: all, but those that threads hoard */
    unsigned threads;              /* as in world_cfg */
    net_tap_fn tap;                /* as in world_cfg */
    void *tap_ctx;
    struct counters *counters;                 /* NULL: nobody counts */
    const struct background_hosts *background; /* NULL: nobody sends beside */
    const volatile int *stop;                  /* not 0: end soon */
    bool terminal; /* stderr is one: progress is one line, else one now and then */
};

struct bench_state {
    int64_t fabric_ps;
    uint64_t events, frames; /* frames: each link that one takes counts */
    uint64_t trace;          /* hash over time, link and length of every frame */
    unsigned pool_peak;
    struct stopwatch timed; /* of the machine */
    unsigned threads;
};

/* Everybody connected. 0 or -errno; err (COMM_TEXT bytes) says why. */
int bench_create(struct bench **b, const struct bench_cfg *cfg, char *err);
/* Fills r->run[place] and, where errors are asked for, r->ulp. 0 or -errno and err. */
int bench_place(struct bench *b, struct row *r, int place, char *err);
/* The algorithm that does the row by now: another than its own after a fall. */
enum coll_algo bench_runs_by(struct bench *b, const struct row *r);
struct net *bench_net(const struct bench *b);
/* As comm_granted(), of the first rank. */
void bench_granted(const struct bench *b, struct coll_grant *g);
const struct background_flow *bench_background_flow(const struct bench *b); /* NULL: none */
void bench_congestion(const struct bench *b, struct congestion *c);
void bench_state(const struct bench *b, struct bench_state *s);
/* All groups are given back, so that nothing is on any link any more. 0 or -ETIME: not everybody
 * could leave. */
int bench_leave(struct bench *b);
void bench_destroy(struct bench *b); /* leaves where that has not been done */

/* What a job of so many ranks may have on its way and in aggregation nodes at once, with room to
 * spare: frames that a pool should have. */
unsigned bench_frames(unsigned nranks);
#endif
