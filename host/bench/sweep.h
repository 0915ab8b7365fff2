/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sweep: every row that the options ask for, run by the ranks of one job at a dilation that
 * holds, judged and printed.
 */
#ifndef TRIB_HOST_BENCH_SWEEP_H
#define TRIB_HOST_BENCH_SWEEP_H

#include "host/bench/perf_options.h"
#include "host/bench/row.h"
#include "host/bench/sampled.h"

struct job_processes;
struct ranks_timeline;

struct sweep {
    const struct perf_opts *o;
    const struct fabric *fab;
    struct rundir *rd;
    struct ranks_timeline
        *timeline; /* what the ranks record (host/launch/ranks_timeline.h); NULL: nothing */
    struct job_processes *job; /* its ranks run the rows; NULL: there are none */
    unsigned nranks;
    uint16_t host_of_rank[FAB_MAX_MEMBERS];
    /* plan.c */
    /* Bits of coll_algo: requested; supported by the collective and the fabric; required by the
     * communicator. */
    unsigned algos, exist, set_up;
    bool by_hw;          /* after the ranks, this machine's own GPUs run rows (nvls_hw.h) */
    char no_hw[OPT_ERR]; /* why they do not run all requested rows; "": they do */
    struct nvls_hw *hw;  /* not NULL: they run rows now */
    unsigned n_trees;
    uint16_t tree[COLL_TREES];
    struct coll_grant granted; /* once the ranks have connected; no trees before */
    unsigned last_trees;       /* of rank 0's last operation (comm_last_trees()); 0: none has run */
    uint16_t last_tree[COLL_TREES];
    struct dilation_control dilation;
    int64_t row_until, until; /* deadlines of the row, and of the place that runs: CLOCK_MONOTONIC
                                 ns (ranks.c) */
    double slow;         /* wall time of its operations, relative to the model at their dilation */
    unsigned unmeasured; /* runs that --max-wall left out, or left unchecked */
    int ended;           /* -errno of an early end: remaining rows are listed, but not run */
    struct dilation_tries tries; /* of the row that runs, by this algorithm */
    uint32_t tries_algo;
    struct row *rows; /* finished, in order; the last may be half done after a failure */
    unsigned n_rows, max_rows;
    uint64_t wrong;
    struct sampled sampled;      /* possible results of the present row's samples (ranks.c) */
    char fell_back[COMM_TEXT];   /* as comm_fell_back(); "": nothing has failed */
    char memory[COMM_TEXT + 80]; /* a GPU's memory, and comm_gpudirect(); "": in host memory */
    bool terminal;               /* stderr is one: show progress */
    /* Runs a row in one place, and fills its run: by the ranks of `job` (ranks.h), or in virtual
     * time. 0, or -errno with a sentence in cause, or job_cause(). */
    int (*place)(struct sweep *s, struct row *r, int place);
    void (*row_done)(struct sweep *s);                   /* may be NULL */
    void (*abort_job)(struct sweep *s, const char *why); /* for a job that cannot go on */
    void *ctx;
    char cause[OPT_ERR];
};

/*
 * Places ranks, and chooses trees and algorithms (plan.c). Rank r is on host r / R, where R is the
 * number of ranks a host, so that ranks fill a GPU node before the next. 0, or -EINVAL with a
 * sentence in err (OPT_ERR bytes).
 */
int sweep_plan(struct sweep *s, char *err);
/* Whether there are rows of this type and reduction. A collective that does not reduce has one row
 * for all reductions, a barrier one for all types and sizes. */
bool sweep_wants(const struct sweep *s, enum dtype t, enum redop op);
/* The row of most bytes, of the first type and reduction there is. */
struct row sweep_largest(const struct sweep *s);
/* Bits of the algorithms that auto chooses for the rows of the first type; runs nothing. */
unsigned sweep_chosen(struct sweep *s);
/* Runs all rows. 0 or -errno, see `place`. */
int sweep_run(struct sweep *s);
/*
 * Predicts the row for algorithm `now`, which replaced the row's own. Before the row's first run
 * this replaces the row's own prediction.
 */
int sweep_instead(struct sweep *s, struct row *r, enum coll_algo now, struct coll_prediction *p);
/* Applies the switches' grants to predictions, the table and the report. */
void sweep_granted(struct sweep *s, const struct coll_grant *g);
/* Whether the sweep ended before this place of a row; then notes that in the run. `place` calls it
 * first, once it knows that the place is wanted. */
bool sweep_left_out(const struct sweep *s, struct row *r, int place);
/* Shows progress on a terminal. */
void sweep_show(const struct sweep *s, const char *text);
void sweep_free(struct sweep *s);
#endif
