/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a trib-switch of a run directory does not answer: it is stopped, has ended (and how), or is slow. */
#ifndef TRIB_MACHINE_SILENT_H
#define TRIB_MACHINE_SILENT_H

#include <stdbool.h>
#include <stddef.h>

#define SILENT_WHY 320

/* Whether its trib-keep has recorded that it ended, so that no wait helps either. */
bool silent_has_died(const char *dir, const char *name);
/* Whether the process of that name is stopped (SIGSTOP, a debugger), so that no wait helps. */
bool silent_is_stopped(const char *dir, const char *name);
/* A sentence that names it: "trib-switch leaf0 does not answer: it is stopped ...", "trib-switch leaf0
 * has died: killed by signal 9 (Killed)", "... does not run" where nothing says how. rc: -errno that
 * the attempt ended with. */
void silent_why(const char *dir, const char *name, int rc, char *text, size_t size);

#endif
