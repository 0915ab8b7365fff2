/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interface of a simulation to a communicator, in addition to coll.h: memory that carries lengths
 * only, a hint which queues have completions, and prefetch of the next turn's working set. A
 * process with one rank uses none of it.
 */
#ifndef TRIB_HOST_COLL_COMM_SIM_H
#define TRIB_HOST_COLL_COMM_SIM_H

#include "host/coll/coll.h"

/* comm_cfg.sim; comm_create() copies it. Zero: real data, every queue is polled. */
struct comm_sim {
    /*
     * Marks a registered region as unbacked (hca_mr_unback): payload is carried as a length and
     * never read, so its memory need not exist. comm_create() and comm_register() call it for every
     * region of data. 0 or -errno. NULL: payload is real.
     */
    int (*unback)(struct ibv_mr *mr);
    /* Bit i: ctx[i] has completions to poll, kept by its owner (hca_cfg.waiting). NULL: all are
     * polled. */
    const uint64_t *waiting;
};

/*
 * Staged prefetch of the working set of the next comm_progress(), for a thread that runs thousands
 * of ranks in turn. Call with step 0 to COMM_PREFETCH_STEPS - 1: each step follows pointers that
 * the step before has brought into the CPU's caches (prefetch.c).
 */
#define COMM_PREFETCH_STEPS 4u
void comm_prefetch(const struct comm *c, unsigned step);

#endif
