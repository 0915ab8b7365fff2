/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trib-switch processes of a run directory, watched: those that run when the job starts,
 * however the nodes were spread over them (the conf's processes, or --nodes by hand).
 */
#ifndef TRIB_HOST_LAUNCH_PROCESS_MONITOR_H
#define TRIB_HOST_LAUNCH_PROCESS_MONITOR_H

#include "io/rundir.h"

#include <stdbool.h>

struct process_monitor;

/* Finds them. 0; -ENOENT: none runs; -ENOMEM. */
int process_monitor_start(struct process_monitor **w, const struct rundir *rd,
                          const struct fabric *fab);
void process_monitor_stop(struct process_monitor *w);
/*
 * Whether one has died since last asked; text says which, with its nodes. *needed: a host or a
 * switch that hosts hang on is gone with it. Without other switches there may be other ways.
 */
bool process_monitor_died(struct process_monitor *w, char *text, size_t size, bool *needed);
/* Looks which of them are stopped; to be called now and then. */
void process_monitor_look(struct process_monitor *w, int64_t now_ms);
/* Whether one is, or was a moment ago (suspect.h); text says which. *stuck: a job need not wait any
 * longer for it. */
bool process_monitor_stopped(const struct process_monitor *w, int64_t now_ms, char *text,
                             size_t size, bool *stuck);

#endif
