/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Watches the trib-switch processes of a run directory that run when the job starts, whether nodes are
 * divided among them by the conf (`procs`) or by --nodes.
 */
#ifndef TRIB_MACHINE_PROCESS_MONITOR_H
#define TRIB_MACHINE_PROCESS_MONITOR_H

#include "machine/rundir.h"

#include <stdbool.h>

struct process_monitor;

/* Set in the environment of programs whose launcher reports deaths, so that they need not. */
#define PROCESS_MONITOR_ENV "TRIB_DEATHS_TOLD"

/* Finds the processes, for a job whose ranks are on these hosts (indices into fab->hosts; only read
 * now). The caller keeps rd and fab until process_monitor_stop(), and passes *w to it whatever this
 * returns. 0; -ENOENT: no process runs; -ENOMEM. */
int process_monitor_start(struct process_monitor **w, const struct rundir *rd,
                          const struct fabric *fab, const uint16_t *host_of_rank, unsigned nranks);
void process_monitor_stop(struct process_monitor *w);
/*
 * Whether, since the last call, a process has died, or a machine of the conf is gone that was there at
 * the start; text names it and its nodes. *needed: it ran a host of the job or a switch next to one. The
 * loss of other switches may leave other paths.
 */
bool process_monitor_died(struct process_monitor *w, char *text, size_t size, bool *needed);
/* Whether a process has died that process_monitor_died() has not reported yet, because it is not known
 * how it ended. */
bool process_monitor_waits(const struct process_monitor *w);
/* Checks which processes are stopped; call it about every 100 ms. */
void process_monitor_look(struct process_monitor *w, int64_t now_ms);
/* Whether a process is stopped, or was a moment ago (suspect.h); text names it. *stuck: the job waits for
 * it no longer. */
bool process_monitor_stopped(const struct process_monitor *w, int64_t now_ms, char *text,
                             size_t size, bool *stuck);

#endif
