/* SPDX-License-Identifier: BSD-3-Clause */
/* What trib status says of a fabric, a line each. */
#ifndef TRIB_TRIB_STATUS_LINES_H
#define TRIB_TRIB_STATUS_LINES_H

#include "trib/run/words.h"

#include <jansson.h>
#include <stdbool.h>

/* A process as trib-keep lists it. */
struct status_process {
    const char *name, *how;
    int pid;     /* 0: none, or not of this PID namespace */
    bool silent; /* it does not answer */
};
struct status_processes {
    unsigned n;
    struct status_process *at;
};

struct status_processes status_lines_read(char *listed);
/* "trib-switch NAME: ..." of a process. */
char *status_lines_process(const struct status_process *p);
/* What a trunk's answer says of the machines, this one first. */
struct words status_lines_machines(const json_t *answer);
/* Counters that are not zero, "name: number", of all processes. */
struct words status_lines_counters(const json_t *answers);

#endif
