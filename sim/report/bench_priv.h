/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a bench: its state; for sim/report/bench*.c only. */
#ifndef TRIB_SIM_REPORT_BENCH_PRIV_H
#define TRIB_SIM_REPORT_BENCH_PRIV_H

#include "host/bench/test_pattern.h"
#include "sim/job/sim_job.h"
#include "sim/report/bench.h"
#include "sim/world/fault_player.h"

struct bench {
    struct bench_cfg cfg;
    struct world *w;
    struct job *j;
    struct test_pattern val;
    struct faults *faults;              /* NULL: none */
    struct background_flow *background; /* NULL: none */
    bool background_flow_failed;
    unsigned aggregated; /* operations begun before that, of the running loop */
    /* the running loop */
    const struct row *row;
    int place;
    const char *what;
    unsigned ops;
    int64_t begun_ps;
    unsigned peak;
    uint64_t looked, asked; /* events when the pool, and the clock, were last looked at */
    uint64_t begun_events;
    double born_s, begun_s, shown_s;
    bool late; /* --max-wall is over */
    bool few;  /* frames */
    uint64_t shown_events;
    struct stopwatch timed;
};

/* Whether frame buffers ran short: what comes of that depends on threads and on who looks. Frames
 * that are taken between two looks at the pool's level are seen by those who got none. */
bool bench_too_few_frames(const struct bench *b);
/* Writes the reason to err (COMM_TEXT bytes); returns -ECANCELED. */
int bench_explain_too_few(const struct bench *b, char *err);

#endif
