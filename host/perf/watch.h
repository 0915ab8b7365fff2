/*
 * The trib-switch processes of a run directory, watched: those that run when the job starts,
 * however the nodes were spread over them (the conf's processes, or --nodes by hand).
 */
#ifndef TRIB_PERF_WATCH_H
#define TRIB_PERF_WATCH_H

#include "switch/rim/rundir.h"

#include <stdbool.h>

struct watch;

/* Finds them. 0; -ENOENT: none runs; -ENOMEM. */
int watch_start(struct watch **w, const struct rundir *rd, const struct fabric *fab);
void watch_stop(struct watch *w);
/*
 * Whether one has died since last asked; text says which, with its nodes. *needed: a host or a
 * switch that hosts hang on is gone with it. Without other switches there may be other ways.
 */
bool watch_died(struct watch *w, char *text, size_t size, bool *needed);

#endif
