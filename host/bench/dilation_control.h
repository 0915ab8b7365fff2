/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chooses the dilation: how much slower than wall time the fabric's clock must run for a row to
 * hold; and judges whether it held. Pure arithmetic. A row holds if the p99 lateness of a hand-off,
 * in fabric time, times the number of hand-offs on the critical path, is at most 2 % of the
 * predicted time, and own work is, too.
 */
#ifndef TRIB_HOST_BENCH_DILATION_CONTROL_H
#define TRIB_HOST_BENCH_DILATION_CONTROL_H

#include "host/coll/coll.h"
#include "model/predict.h"

#include <stdbool.h>
#include <stdint.h>

#define DILATION_TOLERANCE    0.02
#define DILATION_MAX_DILATION 1000000u
/* While ranks connect or wait: round trips are milliseconds then, and timers are rare. */
#define DILATION_CONTROL 1000u

struct dilation_control {
    bool adaptive;   /* the dilation is "auto", and this job holds the fabric's auto.lock */
    double lag_ns;   /* expected p99 lateness, wall time */
    double rate_Bps; /* bytes of all ranks that this machine copies in a second of wall time */
    double max_wall; /* seconds that a timed run may last */
    double max_op;   /* seconds that an operation may last if the dilation may be chosen; 0: three
                        max_wall */
};

struct fidelity {
    bool ok;
    double p99_lag_us; /* fabric time */
    uint32_t needed;   /* the dilation that would have held */
    bool blind;        /* own work is unknown, so it is unknown whether the row held */
};

void dilation_init(struct dilation_control *p, bool adaptive, double max_wall);
/* The smallest dilation at which a row is expected to hold. */
uint32_t dilation_first(const struct dilation_control *p, const struct coll_prediction *pr,
                        unsigned nranks);
/* Iterations that fit max_wall: want, or fewer, but at least 2 (or want, when that is less). */
unsigned dilation_iters(const struct dilation_control *p, unsigned want,
                        const struct coll_prediction *pr, uint32_t dilation);
/* Judges a run by its lateness and by own work. slow: see struct dilation_tries; 0: not known. */
struct fidelity dilation_judge(const struct coll_prediction *pr, int64_t lag_p99_ns, uint32_t slow,
                               uint32_t dilation);
/*
 * The search for a row's dilation by warm-ups at several of them; {0} before the first. The
 * lateness of each shows what it needs, which differs from one to the next by a third. Own work,
 * which is all work except handing over frames (at the start, all ranks copy the contents of their
 * windows), causes no lateness but costs fabric time, 1 / dilation of it: a line through the times
 * shows how much it is.
 */
#define DILATION_WARM_UPS 7 /* at most, to find a dilation */
#define DILATION_OPS      2 /* operations of a warm-up at least, if one fits max_wall */
#define DILATION_MORE     3 /* warm-ups for another run like it, which starts near its result */
#define DILATION_RUNS     3 /* attempts of a run at most, each a sample as well */
struct dilation_tries {
    unsigned n, most; /* samples; most 0: DILATION_WARM_UPS */
    bool settled;     /* the search has ended: the last answer is the dilation to run at */
    bool warm;        /* memory has been touched: the first warm-up of a run is over */
    uint32_t slow;    /* the dilation at which own work is 2 % of the time; 0: not known */
    double least_us;  /* the shortest time of an operation, of warm-ups and runs; 0: none yet */
    struct dilation_try {
        double d, needed, us;
        bool cold; /* the first of a row or place: its time is too long */
    } at[DILATION_WARM_UPS + DILATION_MORE + 2 * DILATION_RUNS];
};
/*
 * Adds the sample of a warm-up at d, whose operations took us of fabric time and whose lateness
 * asks for `needed`. Returns the dilation of the next warm-up, or, once the search is settled, of
 * the run: a margin above the median of what warm-ups needed, and no less than `slow`.
 */
uint32_t dilation_settle(const struct dilation_control *p, struct dilation_tries *t,
                         const struct coll_prediction *pr, uint32_t d, uint32_t needed, double us);
/* Operations of such a warm-up: want, or more. */
unsigned dilation_warm_up(const struct dilation_control *p, unsigned want,
                          const struct coll_prediction *pr, uint32_t dilation);
/* Ends the search for lack of time after the warm-up at d; returns the dilation that its samples
 * suggest. */
uint32_t dilation_end(const struct dilation_control *p, struct dilation_tries *t,
                      const struct coll_prediction *pr, uint32_t d);
/*
 * Also judges a run at dilation d by its time, which is added to the samples. Whatever its lateness
 * is, it did not hold
 *   if it took over DILATION_APART longer than the fastest run or warm-up, because an operation takes
 *   the same time whenever the machine keeps up;
 *   if own work was more than DILATION_APART of its time;
 *   if own work is not known, because there was no time for samples a factor of two apart.
 * For fabrics without faults, whose times vary by themselves.
 */
#define DILATION_APART 0.025
void dilation_compare(struct fidelity *f, struct dilation_tries *t, uint32_t d, double us);
/* Reopens the search for another run of the same row: DILATION_MORE more, starting from its end. */
void dilation_again(struct dilation_tries *t);
/*
 * The dilation of the next attempt, after `runs` attempts that lagged, the last one at d. It is a
 * margin above the least that one of them needed, and at most 8 d. After the first run it is at
 * most 1.25 d, because something may have interrupted that run, unless it was blind. d itself: an
 * operation would last longer than three max_wall.
 */
uint32_t dilation_retry(const struct dilation_control *p, const struct coll_prediction *pr,
                        uint32_t d, uint32_t least_needed, unsigned runs, bool blind);
/* Updates the expected lag or rate by a run at `dilation` with this lag. */
void dilation_learn(struct dilation_control *p, const struct coll_prediction *pr, unsigned nranks,
                    int64_t lag_p99_ns, uint32_t dilation, bool ok);
#endif
