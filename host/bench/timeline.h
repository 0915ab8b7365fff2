/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time line of an operation (--timeline): what each rank's lanes did and when, in the Trace
 * Event Format (system/trace_events.h). A rank is a process there, its lanes are threads; nodes,
 * whose events others add, come behind the ranks. Times are fabric time since the operation's
 * start.
 *
 * Each step is kept as two times until its rank's operation ends, at most TIMELINE_STEPS for all
 * ranks. Beyond that ranks are left out, and the file says how many.
 */
#ifndef TRIB_HOST_BENCH_TIMELINE_H
#define TRIB_HOST_BENCH_TIMELINE_H

#include "system/trace_events.h"
#include "host/bench/perf_options.h"
#include "host/bench/row.h"
#include "host/coll/comm_watch.h"

#define TIMELINE_STEPS  300000u
#define TIMELINE_EVENTS 1500000u /* in the file */

struct timeline;

struct timeline_cfg {
    const struct fabric *fab;
    unsigned nranks;
    const uint16_t *host_of_rank;
    int64_t (*now_ps)(void *ctx); /* fabric time */
    void *ctx;
};

int timeline_create(struct timeline **t, const struct timeline_cfg *cfg); /* 0 or -errno */
void timeline_destroy(struct timeline *t);                                /* NULL: nothing */
/* For comm_cfg.watch of the rank. */
const struct comm_watch *timeline_watch(struct timeline *t, unsigned rank);

/* Forgets what was recorded. Skips each rank's next `skip` operations, and records the one after
 * them. */
void timeline_begin(struct timeline *t, unsigned skip);
/* As timeline_begin(), for the next operation, with a time 0 that other processes share. */
void timeline_begin_at(struct timeline *t, int64_t origin_ps);
/* What another process recorded of a rank; its events are added separately. INT64_MIN: not known.
 */
struct timeline_span {
    int64_t begin_ps, end_ps;
    enum coll_algo algo;
    unsigned schedules; /* schedules that the operation ran; 0: the rank has not begun it */
    int64_t slow_ps,
        slow_of_ps; /* for how much of what its host's process did not run; 0: not known */
};
void timeline_set_span(struct timeline *t, unsigned rank, const struct timeline_span *s);
struct timeline_span timeline_span(const struct timeline *t, unsigned rank);
/* No operation is recorded until timeline_begin(). */
void timeline_end(struct timeline *t);
/* Start of the operation, which is time 0 of the file. PS_NEVER: it has not begun, or is over. */
int64_t timeline_origin(const struct timeline *t);
/* Adds an event; e.ps is fabric time, which the file has relative to its time 0. */
void timeline_add(struct timeline *t, struct trace_event e, struct json_t *args);
struct trace_events *timeline_events(struct timeline *t);
/* Numbers of the processes that stand for a rank, and for a node. */
uint32_t timeline_rank_pid(unsigned rank);
uint32_t timeline_node_pid(const struct timeline *t, unsigned node);

/* Counters of a rank's queue pairs during the operation. */
struct timeline_counts {
    uint64_t retransmits, timeouts, rnr_naks, seq_naks, duplicates, icrc_errors, rate_cuts;
};
void timeline_count(struct timeline *t, unsigned rank, const struct timeline_counts *c);
/* JSON of the operation and its ranks, for "otherData"; the caller adds what else was measured, and
 * frees it. NULL: out of memory. */
struct json_t *timeline_about(const struct timeline *t, const struct row *r, int place);
/* Writes o->timeline. other: data beside the events, which it takes over; NULL: no row was
 * recorded. 0, or -errno with a message in the name of `program`. */
int timeline_write(struct timeline *t, const struct perf_opts *o, const char *program, bool real,
                   const struct coll_grant *g, struct json_t *other);

#endif
