/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fault plan as commands of telemetry, which a fabric that is up takes: those of `trib link` and
 * `trib node`. Without clock or IO; trib_faults.c sends them.
 */
#ifndef TRIB_IO_LIVE_FAULT_STEPS_H
#define TRIB_IO_LIVE_FAULT_STEPS_H

#include "fabric/conf/faults.h"

struct fault_step {
    int64_t at_ps; /* from the start; FAULT_ALWAYS: at once */
    unsigned line; /* of its entry */
    const char *command;
    char params[256]; /* "leaf0:4-spine0:0,loss=0.01,down" */
};

struct fault_steps {
    unsigned n;
    struct fault_step *a; /* in order of time; a switch that restarts has three */
};

/* 0, -ENOMEM, or -EINVAL: what programs and memory of a fabric that is up would have to do is refused
 * by line, in errs. machines: the fabric is of several, whose nodes change link by link. The caller
 * frees the steps. */
int fault_steps_make(struct fault_steps *s, const struct fault_plan *p, const struct fabric *f,
                     const char *path, bool machines, struct fab_errors *errs);
void fault_steps_free(struct fault_steps *s);

#endif
