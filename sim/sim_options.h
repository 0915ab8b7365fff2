/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options of trib-sim: its own, and those of trib-perf, which it accepts too.
 */
#ifndef TRIB_SIM_SIM_OPTIONS_H
#define TRIB_SIM_SIM_OPTIONS_H

#include "host/bench/perf_options.h"

enum { PAYLOAD_DATA, PAYLOAD_NONE };

struct sim_opts {
    uint64_t seed, frames, threads; /* the last two: 0: as many as it takes */
    unsigned payload;               /* PAYLOAD_DATA, ... */
    bool counters;
    const char *trace;           /* file; NULL: none */
    const char *faults;          /* a fault plan's file; NULL: none */
    const char *background_flow; /* "A:B": a flow between these hosts; NULL: none */
    const char *chaos;           /* a seed, or FIRST-LAST; NULL: rows as trib perf has them */
    const char *chaos_case;      /* file of a case to replay; NULL: none */
    const char *save_case;       /* of chaos: file that gets the seed's case; NULL: none */
    const char *conf;            /* of chaos: the fabric; NULL: drawn */
    int chaos_algo;              /* of chaos: the protocol that jobs run; 0: none */
    double seed_wall;            /* of chaos: seconds a seed may take; 0: the usual */
    const char *links;           /* names, of the trace and the counters; NULL: all */
    const char *workload;        /* a training step's file instead of a collective; NULL: none */
    const char *jobs;            /* a file of several jobs instead; NULL: none */
};

extern const struct option_program sim_program;

/* Fills both from argv and TRIB_ALGO. Returns true where the simulation is to run; else the program
 * must exit with *code: a mistake was reported, or the requested text printed. */
bool sim_options_begin(struct sim_opts *own, struct perf_opts *o, int argc, char **argv, int *code);

#endif
