/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interface of a simulation to a communicator, in addition to coll.h: memory that carries lengths
 * only, a hint which queues have completions, and the time before an operation. A process with one
 * rank uses none of it.
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
    /* Time before each operation, beside `launch`, for a rank that is late. NULL: none. */
    int64_t (*late)(const void *ctx);
    /* `launch` of the fabric's costs: sleep() asks for a call of comm_progress() after a time, and
     * asleep() tells whether that is still to come. NULL: operations start at once. */
    void (*sleep)(void *ctx, int64_t ps);
    bool (*asleep)(const void *ctx);
    void *ctx;
};

#endif
