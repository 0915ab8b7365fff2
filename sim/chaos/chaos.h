/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chaos: a case is drawn from a seed, or read from a file (case.h). It determines fabric, ranks,
 * collectives, types, lengths, faults and their times, and so every byte of the run.
 *
 * The oracle checks that every living rank has the exact result, or an error with its reason in
 * words; if transports recover from all faults, it must have the result. No state is left in
 * switches, no verbs object and no frame. Fabric time is bounded. Without faults nothing is
 * retransmitted or dropped.
 */
#ifndef TRIB_SIM_CHAOS_CHAOS_H
#define TRIB_SIM_CHAOS_CHAOS_H

#include "fabric/conf/faults.h"

#include <rte_mempool.h>

#define CHAOS_TEXT   640
#define CHAOS_FRAMES 60000u /* frame buffers that a pool should have */

struct chaos_cfg {
    uint64_t seed;
    const struct fabric *fab; /* NULL: drawn */
    const char *conf;         /* the file of fab */
    const char *conf_dir;     /* directory of the presets; used if fab is NULL */
    const char *faults;       /* file of a fault plan; NULL: drawn */
    int algo;                 /* a protocol that all jobs run (enum coll_algo); 0: drawn, none */
    const char *case_file;    /* file of a case; NULL: drawn from the seed */
    const char *save_file;    /* file for the case; NULL: none */
    struct rte_mempool *pool;
    void (*drawn)(void *ctx, const char *what); /* called before the run; may be NULL */
    /* Called before the run, with its faults; may be NULL. */
    void (*planned)(void *ctx, const struct fault_plan *plan, const struct fabric *fab);
    void *ctx;
    FILE *plan;   /* gets the faults, as a plan; NULL: none */
    FILE *events; /* gets the event rings of a run that fails; NULL: none */
};

struct chaos_report {
    bool ok;
    char what[CHAOS_TEXT];    /* what was drawn */
    char verdict[CHAOS_TEXT]; /* how it ended, or what is wrong */
    uint64_t trace_hash, frames;
    int64_t fabric_ps;
    bool fell_back,
        failed; /* ended without aggregation nodes; ended with errors that it may have */
};

void chaos_run(const struct chaos_cfg *cfg, struct chaos_report *rep);

#endif
