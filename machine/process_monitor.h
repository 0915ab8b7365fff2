/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Watches the trib-switch processes of a run directory: those that run when the job starts, however
 * the nodes are divided among them (the conf's processes, or --nodes by hand).
 */
#ifndef TRIB_MACHINE_PROCESS_MONITOR_H
#define TRIB_MACHINE_PROCESS_MONITOR_H

#include "machine/rundir.h"

#include <stdbool.h>

struct process_monitor;

/* In the environment of programs whose launcher says what has died: they need not say it too. */
#define PROCESS_MONITOR_ENV "TRIB_DEATHS_TOLD"

/* Finds them, for a job whose ranks are on these hosts (indices into fab->hosts, read now). rd and fab
 * stay the caller's until process_monitor_stop(), which takes what this has put into *w whatever it
 * returns. 0; -ENOENT: none runs; -ENOMEM. */
int process_monitor_start(struct process_monitor **w, const struct rundir *rd,
                          const struct fabric *fab, const uint16_t *host_of_rank, unsigned nranks);
void process_monitor_stop(struct process_monitor *w);
/*
 * Whether a process has died since the last call, or one of the conf's machines that were there at the
 * start is gone; text names it and its nodes. *needed: it ran a host of the job's or a switch next to
 * one. The loss of other switches may leave other paths.
 */
bool process_monitor_died(struct process_monitor *w, char *text, size_t size, bool *needed);
/* Whether one has died that process_monitor_died() has not reported yet: how it ended is still
 * unknown. */
bool process_monitor_waits(const struct process_monitor *w);
/* Checks which of them are stopped; call it every 100 ms or so. */
void process_monitor_look(struct process_monitor *w, int64_t now_ms);
/* Whether one is stopped, or was a moment ago (suspect.h); text names it. *stuck: the job gives up
 * waiting for it. */
bool process_monitor_stopped(const struct process_monitor *w, int64_t now_ms, char *text,
                             size_t size, bool *stuck);

#endif
