/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hooks of a program that runs many ranks in one process, on a clock of its own: memory that
 * carries lengths only, a hint at the queues that have completions, and the time before an
 * operation. A process with one rank uses none of them.
 */
#ifndef TRIB_HOST_COLL_COMM_HOOKS_H
#define TRIB_HOST_COLL_COMM_HOOKS_H

#include "host/coll/coll.h"

/* comm_cfg.hooks; comm_create() copies it. Zero: real data, every queue is polled, operations begin
 * at once. */
struct comm_hooks {
    /*
     * Marks a registered region as unbacked (hca_mr_unback): payload is carried as a length and
     * never read, so its memory need not exist. comm_create() and comm_register() call it for every
     * region of data. 0 or -errno. NULL: payload is real.
     */
    int (*unback)(struct ibv_mr *mr);
    /* Bit i: ctx[i] has completions to poll, kept by its owner (hca_cfg.waiting). NULL: all are
     * polled. */
    const uint64_t *waiting;
    /* Called once for each operation that may begin, with `launch` of the fabric's costs.
     * launched() tells whether that time is over; the program then calls comm_progress(). NULL:
     * operations begin at once. */
    void (*launch)(void *ctx, int64_t ps);
    bool (*launched)(const void *ctx);
    void *ctx;
};

#endif
