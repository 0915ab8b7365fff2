/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of trib-perf. Names and defaults follow nccl-tests where possible. */
#ifndef TRIB_HOST_BENCH_PERF_OPTIONS_H
#define TRIB_HOST_BENCH_PERF_OPTIONS_H

#include "base/options.h"
#include "host/coll/coll.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PERF_MAX_SIZES 512
#define PERF_MAX_ITERS 1000000u
#define OPT_ERR        256
#define PERF_ROW_WALL  60.0  /* default of --max-wall: seconds of a row */
#define PERF_RUN_WALL  2.0   /* seconds of a timed run without --max-wall */
#define PERF_RUNS      5     /* timed runs for which --max-wall has time */
#define PERF_TREES     (~0u) /* all trees that reach the ranks */

/* Requested algorithms are a bit mask over coll_algo, auto included. 0: none requested. */
#define ALGOS_ASKED ((int)ALGO_AUTO + 1)
/* All algorithms that collective and fabric support, without protocols, which must be named. */
#define ALGOS_ALL (((1u << ALGO_COUNT) - 1) & ~COLL_PROTOCOLS)
/* Requested and reported like an algorithm, but run by this machine's own GPUs (nvls_hw.h). */
#define PERF_NVLS_HW ((enum coll_algo)ALGOS_ASKED)
#define PERF_ALGOS   (ALGOS_ASKED + 1)

struct perf_opts {
    const char *conf;
    enum coll_kind coll;
    unsigned ranks; /* 0: one on every host */
    uint64_t min_bytes, max_bytes, step_bytes;
    unsigned factor; /* of one size to the next; 0: steps of step_bytes */
    unsigned iters, warmup, check, root;
    unsigned sparse;            /* blocks of a sparse alltoall; 0: not sparse */
    bool mm_self;               /* as in coll_args */
    unsigned types, ops, algos; /* bit masks over dtype, redop, coll_algo (and PERF_NVLS_HW) */
    struct option_order type_order, op_order, algo_order; /* as given */
    unsigned tree, window;
    bool error;        /* measure ULP */
    unsigned n_policy; /* 0: the default policy */
    enum coll_algo policy[ALGO_COUNT];
    bool forced;             /* algos came from the environment */
    unsigned place;          /* PLACE_BOTH, ... */
    double max_wall;         /* seconds that a row may last */
    double run_wall;         /* seconds that one timed run of it may last */
    const char *json, *csv;  /* files of results; NULL: none */
    bool wide;               /* every column, on lines of any length */
    const char *timeline;    /* file of a time line; NULL: none */
    unsigned timeline_row;   /* the row to record; 0: the last */
    struct provenance *from; /* origin of the results; NULL: not reported */
    const char *rsh;         /* command that starts ranks on hosts outside */
    const char *schedule;    /* --schedule; NULL: none */
    struct sched_file *file; /* its contents (schedule_option.h) */
    const char *mem;         /* --mem; NULL: host */
    int gpu;                 /* BUFFER_HOST, or the GPU whose memory buffers are in */
};

enum { OPT_OK = 0, OPT_BAD = 2 };
enum { PLACE_BOTH, PLACE_OUT, PLACE_IN };

/* The tables of trib-perf, which trib-sim takes too. */
extern const struct option_program perf_program;

/* Sets defaults that are not in the table; before options_parse(). */
void perf_options_init(struct perf_opts *o);
/* Checks combinations of options; after options_parse(). On OPT_BAD err (OPT_ERR bytes) has what
 * was found and what is expected. */
int perf_options_check(struct perf_opts *o, char *err);
/* Calls all three. With --help or --version, o has the options read so far. */
int perf_options_parse(struct perf_opts *o, int argc, char **argv, char *err);
/* Bytes of each of the two buffers of a rank. */
size_t options_buffer(const struct perf_opts *o, unsigned nranks);
/* Writes the sizes of the sweep in bytes, ascending. Returns their number, at most max. */
unsigned options_sizes(const struct perf_opts *o, uint64_t *bytes, unsigned max);

/* TRIB_ALGO is the default of --algo; NULL or "": none. */
int options_force_algo(struct perf_opts *o, const char *name, char *err);

const char *perf_algo_name(enum coll_algo a); /* sched_algo_name(), and "nvls-hw" */
bool coll_can_be_in_place(enum coll_kind k);
bool options_has_error(enum coll_kind k, enum dtype t, enum redop op); /* --error measures it */
#endif
