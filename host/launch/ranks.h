/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks of a sweep, as who commands them sees them: processes of one job, connected once, that
 * run, time and check what they are told.
 */
#ifndef TRIB_HOST_LAUNCH_RANKS_H
#define TRIB_HOST_LAUNCH_RANKS_H

#include "host/bench/sweep.h"

/* Connects the ranks of s->job. 0 or -errno; job_cause() says why. */
int ranks_connect(struct sweep *s);
/* A sweep's `place`: at the dilation that fits, where this job may choose it. */
int ranks_place(struct sweep *s, struct row *r, int place);
/* After the last row: leaving the group is round trips, quick ones. */
void ranks_leave(struct sweep *s);
#endif
