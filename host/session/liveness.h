/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether processes of other ranks still run. Connections find out by retries in fabric time
 * (minutes at a dilation of 100); /proc shows it at once. It works only for processes of the same
 * machine and PID namespace.
 */
#ifndef TRIB_HOST_SESSION_LIVENESS_H
#define TRIB_HOST_SESSION_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

/* Identity of a process, which it sends to other ranks. */
struct process_id {
    uint64_t space; /* inode of its PID namespace; 0: not known */
    uint64_t start; /* start time in clock ticks since boot; 0: not known */
    int32_t pid, pad;
};

struct process_id liveness_self(void);
/* Whether this process can see that one in /proc. */
bool liveness_sees(const struct process_id *p);
/* Whether a process that liveness_sees() has seen has ended. */
bool liveness_ended(const struct process_id *p);

#endif
