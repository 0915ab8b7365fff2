/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers that aggregation nodes promise to the groups of jobs: the pool of a simulation has as many,
 * so that no job's window depends on which jobs have joined before it.
 */
#ifndef TRIB_SIM_CAPACITY_GROUPS_H
#define TRIB_SIM_CAPACITY_GROUPS_H

#include "sim/jobs/jobs.h"

/* Of the switch that promises most, when all jobs have the windows that its quotas grant each of them
 * alone. 0 where no job reduces in leaves, spines or cores. */
uint64_t capacity_group_mbufs(const struct fabric *f, const struct jobs_plan *p);

#endif
