/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a bench: its state; for sim/report/bench*.c only. */
#ifndef TRIB_SIM_REPORT_BENCH_PRIV_H
#define TRIB_SIM_REPORT_BENCH_PRIV_H

#include "base/assert.h"
#include "host/bench/sampled.h"
#include "host/bench/verify/test_pattern.h"
#include "sim/job/sim_job.h"
#include "sim/report/bench.h"
#include "sim/world/fault_player.h"

struct bench {
    struct bench_cfg cfg;
    struct world *w;
    struct job *j;
    struct test_pattern val;
    struct sampled sampled;
    struct coll_grant grant;            /* once connected */
    char fell_back[COMM_TEXT];          /* comm_fell_back() when the buffers were filled; "": not */
    struct faults *faults;              /* NULL: none */
    struct background_flow *background; /* NULL: none */
    bool background_flow_failed;
    uint64_t *sent, *sent_before; /* [2 * n_links] bytes on each direction; before the timed part */
    unsigned aggregated; /* operations of the loop that rank 0 started by the row's own algorithm */
    unsigned cut;        /* comm_cut() before it */
    /* the running loop */
    const struct row *row;
    int place;
    const char *what;
    unsigned ops;
    int64_t begun_ps;
    unsigned peak;
    uint64_t pool_read, clock_read; /* events at the last reading of the pool's level, the clock */
    uint64_t begun_events;
    double born_s, begun_s, shown_s;
    bool late; /* --max-wall is exceeded */
    bool few;  /* frame buffers ran short */
    uint64_t shown_events;
    struct stopwatch timed;
    bool recorded;             /* the running loop, for a time line */
    unsigned rows;             /* begun so far, in any place */
    struct json_t *about_line; /* bench_timeline() */
};

/* Around the timed operations of a row, and when it is known how they went (bench_line.c); error: "" or
 * why not. */
void bench_line_begin(struct bench *b);
void bench_line_end(struct bench *b);
void bench_line_about(struct bench *b, const char *error);
/* Whether frame buffers ran short: results then depend on threads. A shortage between two readings
 * of the pool's level shows as allocations that failed. */
bool bench_too_few_frames(const struct bench *b);
/* Writes the reason to err (COMM_TEXT bytes); returns -ECANCELED. */
int bench_explain_too_few(const struct bench *b, char *err);

#endif
