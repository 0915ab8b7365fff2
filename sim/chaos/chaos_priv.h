/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of chaos: a case and its draws; for sim/chaos/ and its tests only. */
#ifndef TRIB_SIM_CHAOS_CHAOS_PRIV_H
#define TRIB_SIM_CHAOS_CHAOS_PRIV_H

#include "base/assert.h"
#include "base/random.h"
#include "sim/chaos/chaos.h"
#include "sim/job/sim_job.h"

#define CHAOS_RANKS  16u
#define CHAOS_BUFFER 262144u /* bytes of a rank's data, at most */
#define CHAOS_OPS    16u     /* operations of a case, at most */

/* One stream of draws for each kind of draw, so that one kind can change without the others. */
enum chaos_stream { DRAW_FABRIC, DRAW_RANKS, DRAW_OPS, DRAW_FAULTS, DRAW_STREAMS };

struct chaos_case {
    const struct chaos_cfg *cfg;
    uint64_t rng[DRAW_STREAMS];
    const struct fabric *fab;
    struct fabric *own; /* the same where it was drawn or loaded; freed with the case */
    char conf[512];     /* name of a preset, or path (with a '/') of a conf file */
    char *conf_text;    /* contents of a conf file, if it was made up; freed with the case */
    char shape[96];
    char found[256]; /* of a file: what the case once found */
    struct chaos_report *rep;
    uint64_t seed; /* of the links' draws */
    unsigned nranks, ops;
    uint16_t host_of_rank[CHAOS_RANKS];
    uint16_t tree;
    unsigned n_trees;
    uint32_t group;
    uint64_t key;
    unsigned algos; /* bit of each algorithm that ranks and fabric have */
    uint32_t window;
    enum coll_algo policy[ALGO_COUNT];
    unsigned n_policy;
    bool goes_on; /* an algorithm without switches is left whatever switches refuse or fail */
    struct fault_plan plan;
    struct job_op op[CHAOS_OPS]; /* read from a file, or drawn so far */
    unsigned n_ops;
};

static inline uint64_t below(struct chaos_case *k, enum chaos_stream s, uint64_t n)
{
    return random_next(&k->rng[s]) % n;
}

/* 0, or -errno with the reason in why (CHAOS_TEXT bytes). */
int chaos_draw_fabric(struct chaos_case *k, char *why);
int chaos_draw_ranks(struct chaos_case *k);
int chaos_draw_faults(struct chaos_case *k);
/* Draws an operation that the communicator supports, or any where it has failed and supports
 * none. */
void chaos_draw_op(struct chaos_case *k, struct comm *c, struct job_op *op);
/* False: the communicator does not support the operation, but others; no draw gives it. */
bool chaos_op_runs(const struct chaos_case *k, struct comm *c, const struct job_op *op);
const char *chaos_op_text(const struct job_op *op, char *buf, size_t size);

#endif
