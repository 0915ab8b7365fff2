/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launcher's side of a sweep's ranks. They are processes of one job, which are connected once
 * and then run, time and check rows.
 */
#ifndef TRIB_HOST_LAUNCH_RANKS_H
#define TRIB_HOST_LAUNCH_RANKS_H

#include "host/bench/sweep.h"

/* Connects the ranks of s->job. 0 or -errno with the reason in job_cause(). */
int ranks_connect(struct sweep *s);
/* Runs a row in or out of place (sweep's `place`). If this job may choose the dilation, it takes
 * the smallest one at which the emulation does not lag. */
int ranks_place(struct sweep *s, struct row *r, int place);
/* Call after the last row: sets a small dilation, so that ranks leave their group quickly. */
void ranks_leave(struct sweep *s);
#endif
