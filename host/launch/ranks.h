/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks of a sweep, seen from the launcher: processes of one job, connected once, that run,
 * time and check rows at its commands.
 */
#ifndef TRIB_HOST_LAUNCH_RANKS_H
#define TRIB_HOST_LAUNCH_RANKS_H

#include "host/bench/sweep.h"

/* Connects the ranks of s->job. 0 or -errno with the reason in job_cause(). */
int ranks_connect(struct sweep *s);
/* A sweep's `place`: at the smallest dilation that holds, where this job may choose it. */
int ranks_place(struct sweep *s, struct row *r, int place);
/* After the last row: sets a small dilation, so that the round trips of leaving the group are
 * quick. */
void ranks_leave(struct sweep *s);
#endif
