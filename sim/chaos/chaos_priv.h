/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of chaos: what is drawn; for sim/chaos*.c only. */
#ifndef TRIB_SIM_CHAOS_CHAOS_PRIV_H
#define TRIB_SIM_CHAOS_CHAOS_PRIV_H

#include "base/random.h"
#include "sim/chaos/chaos.h"
#include "sim/job/sim_job.h"

#define CHAOS_RANKS  16u
#define CHAOS_BUFFER 262144u /* bytes of a rank's data at most */

/* Each kind of thing has a stream of draws of its own, so that one of them can be changed without
 * the others. */
enum chaos_stream { DRAW_FABRIC, DRAW_RANKS, DRAW_OPS, DRAW_FAULTS, DRAW_STREAMS };

struct chaos_case {
    const struct chaos_cfg *cfg;
    uint64_t rng[DRAW_STREAMS];
    const struct fabric *fab;
    struct fabric *own; /* the same, where it was drawn */
    char shape[96];
    unsigned nranks, ops;
    uint16_t host_of_rank[CHAOS_RANKS];
    uint16_t tree;
    unsigned n_trees;
    unsigned algos; /* that ranks and fabric have */
    uint32_t window;
    enum coll_algo policy[ALGO_COUNT];
    unsigned n_policy;
    bool goes_on; /* whatever of the switches is refused or fails, there is a way without */
    struct fault_plan plan;
};

static inline uint64_t below(struct chaos_case *k, enum chaos_stream s, uint64_t n)
{
    return random_next(&k->rng[s]) % n;
}

/* 0, or -errno with the reason in why (CHAOS_TEXT bytes). */
int chaos_draw_fabric(struct chaos_case *k, char *why);
int chaos_draw_ranks(struct chaos_case *k);
int chaos_draw_faults(struct chaos_case *k);
/* The next operation, of those that the communicator has; any, where it has failed and has none. */
void chaos_draw_op(struct chaos_case *k, struct comm *c, struct job_op *op);
const char *chaos_op_text(const struct job_op *op, char *buf, size_t size);

#endif
