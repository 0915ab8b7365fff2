/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether processes of other ranks are still there. Connections find out by retries that last in
 * fabric time, minutes at a dilation of 100; the kernel knows at once. Only of processes that this
 * one can see in /proc: on the same machine, in the same PID namespace.
 */
#ifndef TRIB_HOST_SESSION_LIVENESS_H
#define TRIB_HOST_SESSION_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

/* A process, as it tells others who it is. */
struct process_id {
    uint64_t space; /* its PID namespace; 0: it does not know */
    uint64_t start; /* clock ticks since the machine's start */
    int32_t pid, pad;
};

struct process_id liveness_self(void);
/* This process can see that one. */
bool liveness_sees(const struct process_id *p);
/* One that was seen has ended. */
bool liveness_ended(const struct process_id *p);

#endif
