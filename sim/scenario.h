/*
 * A scenario is a seed: topology, ranks, size, type, operation, faults and timing all come from it,
 * and so does every byte of the run.
 */
#ifndef TRIB_SIM_SCENARIO_H
#define TRIB_SIM_SCENARIO_H

#include <rte_mempool.h>
#include <stdbool.h>
#include <stdint.h>

#define SCENARIO_TEXT 640

struct scenario_report {
    bool ok;
    char what[SCENARIO_TEXT]; /* the scenario, for people */
    char why[SCENARIO_TEXT];  /* empty when ok */
    uint64_t trace_hash, frames;
    int64_t fabric_ps;
};

/* Runs seed's scenario. The oracle: exact results on every rank, nothing leaked, fabric time
 * bounded, and with no faults no retransmission, RNR NAK or drop. */
void scenario_run(uint64_t seed, struct rte_mempool *pool, struct scenario_report *rep);

#endif
