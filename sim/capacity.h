/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One run of trib-sim, and what it takes: frame buffers, threads, memory.
 */
#ifndef TRIB_SIM_CAPACITY_H
#define TRIB_SIM_CAPACITY_H

#include "host/bench/sweep.h"
#include "sim/jobs/jobs.h"
#include "sim/report/bench.h"
#include "sim/sim_options.h"
#include "sim/world/sim_memory.h"

struct sim {
    struct perf_opts o;
    struct sim_opts own;
    struct sweep *s;
    struct bench *b;
    struct trace *trace;       /* NULL: none */
    struct counters *counters; /* NULL: none */
    struct timeline *timeline; /* NULL: none */
    struct net_timeline *line;
    struct fault_plan plan;
    struct background_hosts background;
    unsigned frames, threads;
    struct sim_need need;
    double begun_s;
};

/* Frame buffers: as --frames says, or by ports and ranks. */
unsigned capacity_frames(const struct sim *m);
/* The same of several jobs, for all of their ranks. */
unsigned capacity_frames_of_jobs(const struct fabric *f, const struct jobs_plan *p);
/* Threads: at most one a core, unless --threads says otherwise, and no more than there is work for.
 * One where frames of traces are to come in the order of time. */
unsigned capacity_threads(const struct sim *m);
/*
 * Lays memory out for speed below a number of ranks and where there is room. What needs more than
 * there is however it is laid out is refused, since it would be killed in the middle of the run.
 * auto: of all algorithms that it may choose, or, where these are too much, of those that it does
 * choose. Needs m->frames and m->threads. 0, or -errno with a sentence in m->s->cause.
 */
int capacity_check(struct sim *m);
/* Refuses jobs whose frames and data do not fit into the memory there is. */
int capacity_check_jobs(struct sim *m, const struct jobs_plan *p, unsigned frames);

#endif
