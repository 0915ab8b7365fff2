/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chaos: a case is a seed. Fabric, ranks, collectives, types, lengths, faults and their times all
 * come from it, and so does every byte of the run.
 *
 * The oracle: every rank that lives has the exact result or an error with its reason in words;
 * where the faults are such that the transports mend them, the result. Nothing is left in the
 * switches, of verbs objects or of frames; fabric time is bounded; with no faults nothing is sent
 * twice or dropped.
 */
#ifndef TRIB_SIM_CHAOS_CHAOS_H
#define TRIB_SIM_CHAOS_CHAOS_H

#include "fabric/conf/faults.h"

#include <rte_mempool.h>

#define CHAOS_TEXT   640
#define CHAOS_FRAMES 60000u /* that a pool should have */

struct chaos_cfg {
    uint64_t seed;
    const struct fabric *fab; /* NULL: drawn */
    const char *conf_dir;     /* where the presets are; fab NULL only */
    const char *faults;       /* a fault plan's file instead of what is drawn; NULL: drawn */
    struct rte_mempool *pool;
    void (*drawn)(void *ctx, const char *what); /* before it runs; may be NULL */
    /* With what faults, as drawn or given; may be NULL. */
    void (*planned)(void *ctx, const struct fault_plan *plan, const struct fabric *fab);
    void *ctx;
    FILE *plan; /* the faults are written to it as a plan; NULL: not */
};

struct chaos_report {
    bool ok;
    char what[CHAOS_TEXT];    /* what was drawn */
    char verdict[CHAOS_TEXT]; /* how it ended, or what is wrong */
    uint64_t trace_hash, frames;
    int64_t fabric_ps;
    bool fell_back, failed; /* ended without aggregation nodes; with errors, as it may */
};

void chaos_run(const struct chaos_cfg *cfg, struct chaos_report *rep);

#endif
