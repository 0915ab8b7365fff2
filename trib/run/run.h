/* SPDX-License-Identifier: BSD-3-Clause */
/* Other programs that the command becomes, or runs and waits for. */
#ifndef TRIB_TRIB_RUN_RUN_H
#define TRIB_TRIB_RUN_RUN_H

#include "trib/run/words.h"

#include <sys/types.h>

/* Becomes the program of the first word. */
void run_become(const struct words *command) __attribute__((noreturn));
/* Runs it beside this one, as a shell does with "&": it reads nothing, and ignores SIGINT and SIGQUIT until it
 * says otherwise. Its pid; the command ends where none can be had. */
pid_t run_beside(const struct words *command);
/* Runs it; its exit code. quiet: what it says on stderr is not shown. */
int run_whole(const struct words *command, bool quiet);
/* The same, and what it printed, without newlines at the end. */
int run_output(const struct words *command, bool quiet, char **text);

#endif
