/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out why a trib-switch does not answer: it is stopped, has ended (and how), or is slow. */
#ifndef TRIB_MACHINE_SILENT_H
#define TRIB_MACHINE_SILENT_H

#include <stdbool.h>
#include <stddef.h>

#define SILENT_WHY 320

/* Whether its trib-keep has recorded that it ended: waiting for it is useless. */
bool silent_has_died(const char *dir, const char *name);
/* Whether it is stopped (SIGSTOP, a debugger): waiting for it is useless. */
bool silent_is_stopped(const char *dir, const char *name);
/* Writes a sentence that names it: "trib-switch leaf0 does not answer: it is stopped ...", "trib-switch
 * leaf0 has died: killed by signal 9 (Killed)", or "... does not run" if no cause is recorded. rc: -errno
 * of the attempt to reach it. */
void silent_why(const char *dir, const char *name, int rc, char *text, size_t size);

#endif
