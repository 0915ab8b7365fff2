/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One row of results: a size, type and operation by one algorithm, run out of place and in place.
 */
#ifndef TRIB_HOST_BENCH_ROW_H
#define TRIB_HOST_BENCH_ROW_H

#include "host/bench/dilation_control.h"
#include "host/bench/verify/exact.h"
#include "host/bench/link_use.h"
#include "host/bench/op_times.h"
#include "host/bench/row_counters.h"

struct json_t;

/* A barrier is checked by letting one rank after the other enter late: this many ranks at most. */
#define ROW_LATE 32u
static inline unsigned row_late(unsigned nranks, unsigned k)
{
    return nranks <= ROW_LATE ? k : k * nranks / ROW_LATE;
}

/* Operations of a row at least: a warm-up and two or so in both places, a check. */
#define ROW_OPS 12

#define ROW_CUT 96
/* State of a row's ranks at the end of its timed operations. */
struct run_end {
    bool goes_on;     /* the row's algorithm would run the next one, SHARP even on fewer trees */
    bool lacks_trees; /* comm_lacks_trees() of the row's algorithm */
};

struct run_result {
    bool valid;
    double time_us;        /* fabric time of one operation, until the last rank */
    struct op_times times; /* of each; sweep_free() frees them */
    uint64_t wrong; /* elements of all ranks; barriers that a rank left before all had entered */
    bool checked;
    double staging_us; /* per operation: time in which copies to or from a GPU run */
    unsigned iters;    /* timed operations; fewer than requested if --max-wall requires it */
    uint32_t dilation;
    struct fidelity fid;
    struct link_use link;      /* of all iters; emulated rows only */
    char fell_back[COMM_TEXT]; /* why it ran by another algorithm, or by fewer trees, in part at
                                    least; "": not */
    uint32_t aggregated;       /* timed operations that the row's own algorithm completed */
    struct run_end end;
    struct row_counters counted; /* of a protocol */
    char cut[ROW_CUT];           /* what --max-wall left out of the run; "": nothing */
    struct json_t
        *links; /* for the report: bytes of links, owned by the one that measured; or NULL */
};

enum { OUT_OF_PLACE, IN_PLACE, PLACES };

struct row {
    enum coll_kind coll;
    enum coll_algo algo;
    bool chosen; /* ALGO_AUTO chose the algorithm; `why` has the comparison */
    char why[COLL_WHY];
    enum dtype type;
    enum redop op;
    unsigned root, nranks, sparse;
    bool staged;   /* buffers are in a GPU's memory */
    bool mm_self;  /* of multimem: as in coll_args */
    bool emulated; /* frames go through the fabric: the row has links, a dilation and fidelity */
    uint64_t count, bytes;
    uint64_t until; /* costs of switches are measured for vectors up to this; 0: for all */
    double bound;   /* of a protocol that quantises: the largest error of an element; 0: exact */
    struct coll_prediction pred;
    uint64_t link_bps;             /* of the link that the model calls the busiest */
    const struct sched_file *file; /* of ALGO_SCHEDULE */
    struct run_result run[PLACES];
    struct ulp ulp; /* out of place; n 0: not measured */
};

struct coll_args row_args(const struct row *r); /* its operation, without buffers */
/* The requested algorithm: algo, or ALGO_AUTO if that chose it. */
enum coll_algo row_asked(const struct row *r);
/* Name of the row's algorithm: a schedule from a file has its own. */
const char *row_algo_name(const struct row *r);
const char *row_asked_name(const struct row *r);
bool row_can_be_in_place(const struct row *r);
bool row_is_beyond(const struct row *r); /* longer than `until` */
bool row_is_rough(const struct row *r);  /* a protocol's formula holds within more than 5 % */
/* Names for people and programs; "none" where the collective has no such thing. */
const char *row_type(const struct row *r);
const char *row_op(const struct row *r);
int row_root(const struct row *r); /* -1: none */
double row_ulp_mean(const struct row *r);

/* GB/s (1e9 bytes) */
double row_algbw(const struct row *r, double time_us);
/* algbw times the collective's factor of nccl-tests, which makes figures of different rank counts
 * comparable */
double row_busbw(const struct row *r, double time_us);
/* Predicted time of one operation: the mean over the back-to-back operations of a run, or of a
 * single one if none has run. */
double row_predicted_us(const struct row *r);
/* By the model: how busy the busiest link is during the predicted time, 0..1. */
double row_predicted_utilisation(const struct row *r);
/* Measured bytes of the busiest link relative to the model's, both in link time, since the two may
 * be links of different rates; 0: one of them is not known. */
double row_link_ratio(const struct row *r, const struct run_result *run);
/* Asymptotic advantage of reduction in the switch over the ring, 2 (N - 1) / N (F25). */
double row_asymptote(unsigned nranks);
#endif
