/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One run of trib-sim, and the frame buffers, threads and memory that it needs.
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

/* Number of frame buffers: --frames, or by ports and ranks. */
unsigned capacity_frames(const struct sim *m);
/* As capacity_frames(), for all ranks of several jobs. */
unsigned capacity_frames_of_jobs(const struct fabric *f, const struct jobs_plan *p);
/* Number of threads: --threads, or at most one per core, and no more than there is work for. One,
 * if traces must have their frames in order of time. */
unsigned capacity_threads(const struct sim *m);
/*
 * Chooses the layout of memory: the fast one, unless there are too many ranks or too little memory.
 * Refuses a run that does not fit in either layout, since it would be killed in the middle. With
 * auto it counts all algorithms that auto may choose, or, if these do not fit, those that it does
 * choose. Needs m->frames and m->threads. 0, or -errno with a sentence in m->s->cause.
 */
int capacity_check(struct sim *m);
/* Refuses jobs whose frames and data do not fit into memory. */
int capacity_check_jobs(struct sim *m, const struct jobs_plan *p, unsigned frames);

#endif
