/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Number of buffers that aggregation nodes promise to the groups of jobs. A simulation's pool has
 * that many, so that no job's window depends on the jobs that joined before it.
 */
#ifndef TRIB_SIM_CAPACITY_GROUPS_H
#define TRIB_SIM_CAPACITY_GROUPS_H

#include "sim/jobs/jobs.h"

/* Buffers at the switch that promises most, if every job has the window that the quotas grant to it
 * alone. 0: no job reduces in leaves, spines or cores. */
uint64_t capacity_group_mbufs(const struct fabric *f, const struct jobs_plan *p);

#endif
