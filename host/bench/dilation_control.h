/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How slowly the fabric's clock must run for a row to be believed, and whether the row was. Pure
 * arithmetic: the rule is that the p99 lateness of a hand-off, in fabric time, times the hand-offs
 * on the critical path is at most 2 % of the predicted time.
 */
#ifndef TRIB_HOST_BENCH_DILATION_CONTROL_H
#define TRIB_HOST_BENCH_DILATION_CONTROL_H

#include "host/coll/coll.h"

#include <stdbool.h>
#include <stdint.h>

#define DILATION_TOLERANCE    0.02
#define DILATION_MAX_DILATION 1000000u
#define DILATION_CONTROL                                                                           \
    1000u /* while ranks connect or wait: round trips are milliseconds, timers are rare */

struct dilation_control {
    bool adaptive;   /* dilation is "auto" and this job holds the fabric's auto.lock */
    double lag_ns;   /* p99 of lateness to expect, wall time */
    double rate_Bps; /* bytes of all ranks that this machine moves in a second of wall time */
    double max_wall; /* seconds a timed run may last */
    double max_op;   /* and an operation, where its dilation may be chosen; 0: three max_wall */
};

struct fidelity {
    bool ok;
    double p99_lag_us; /* fabric time */
    uint32_t needed;   /* the dilation that would have held */
};

void dilation_init(struct dilation_control *p, bool adaptive, double max_wall);
/* The smallest dilation at which a row is expected to hold. */
uint32_t dilation_first(const struct dilation_control *p, const struct coll_prediction *pr,
                        unsigned nranks);
/* Iterations that fit max_wall: want, or fewer, but at least 2 (or want, when that is less). */
unsigned dilation_iters(const struct dilation_control *p, unsigned want,
                        const struct coll_prediction *pr, uint32_t dilation);
/* slow: of the row's warm-ups, see struct dilation_tries; 0: not known. */
struct fidelity dilation_judge(const struct coll_prediction *pr, int64_t lag_p99_ns, uint32_t slow,
                               uint32_t dilation);
/*
 * Warm-ups of a row at several dilations, {0} before the first. Each shows by its lateness what it
 * needs, which differs from one to the next by a third. What the machine does beside handing frames
 * over (ranks that copy at once what their windows hold) is late nowhere, but it is paid in fabric
 * time, 1 / dilation of it: a line through the times shows how much that is.
 */
#define DILATION_WARM_UPS 7 /* at most, to find a dilation, */
#define DILATION_OPS      2 /* of so many operations at least, where one fits max_wall, */
#define DILATION_MORE     3 /* and for another run like it */
struct dilation_tries {
    unsigned n, most; /* most 0: DILATION_WARM_UPS */
    bool settled;     /* the last answer is the dilation to run at */
    bool warm;        /* the first one of a run has been: memory is touched for the first time */
    uint32_t
        slow; /* the dilation at which the machine's own work is 2 % of the time; 0: not known */
    struct dilation_try {
        double d, needed, us;
        bool cold; /* its time is longer than what follows */
    } at[DILATION_WARM_UPS + DILATION_MORE];
};
/*
 * After a warm-up at d that took so many us of fabric time an operation and showed by its lateness
 * what it `needed`: what to warm up at next, or run at, once it is settled: some more than the
 * median needs, and no less than `slow`.
 */
uint32_t dilation_settle(const struct dilation_control *p, struct dilation_tries *t,
                         const struct coll_prediction *pr, uint32_t d, uint32_t needed, double us);
/* Operations of such a warm-up: want, or more. */
unsigned dilation_warm_up(const struct dilation_control *p, unsigned want,
                          const struct coll_prediction *pr, uint32_t dilation);
/* For want of time no other warm-up follows the last one, at d: what those so far tell to run at.
 */
uint32_t dilation_end(const struct dilation_control *p, struct dilation_tries *t,
                      const struct coll_prediction *pr, uint32_t d);
/* For another run like the one that these found the dilation of: a few more, from there on. */
void dilation_again(struct dilation_tries *t);
/*
 * For another try of a row whose runs so far lagged, the last one at d: what at least one of them
 * needed and some, at most 8 times d; after the first no more than a quarter, since something else
 * may have interrupted it. d itself when an operation would last longer than three max_wall.
 */
uint32_t dilation_retry(const struct dilation_control *p, const struct coll_prediction *pr,
                        uint32_t d, uint32_t least_needed, unsigned runs);
/* After a run at `dilation` with this lag: what to expect of the next. */
void dilation_learn(struct dilation_control *p, const struct coll_prediction *pr, unsigned nranks,
                    int64_t lag_p99_ns, uint32_t dilation, bool ok);
#endif
