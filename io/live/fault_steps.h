/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fault plan as the telemetry commands of `trib link` and `trib node`, for a fabric that is up. No
 * clock, no IO; trib_faults.c sends them.
 */
#ifndef TRIB_IO_LIVE_FAULT_STEPS_H
#define TRIB_IO_LIVE_FAULT_STEPS_H

#include "fabric/conf/faults.h"

struct fault_step {
    int64_t at_ps; /* since the start; FAULT_ALWAYS: at once */
    unsigned line; /* of its entry in the plan */
    const char *command;
    char params[256]; /* "leaf0:4-spine0:0,loss=0.01,down" */
};

struct fault_steps {
    unsigned n;
    struct fault_step *a; /* sorted by time; a switch that restarts has three steps */
};

/* 0, -ENOMEM, or -EINVAL: the plan asks for something that a fabric that is up cannot do (ranks, hosts,
 * buffers); errs names the line. machines: the fabric spans several machines, whose nodes change link
 * by link. The caller frees the steps. */
int fault_steps_make(struct fault_steps *s, const struct fault_plan *p, const struct fabric *f,
                     const char *path, bool machines, struct fab_errors *errs);
void fault_steps_free(struct fault_steps *s);

#endif
