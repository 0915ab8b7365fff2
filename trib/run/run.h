/* SPDX-License-Identifier: BSD-3-Clause */
/* Becomes other programs, or runs them and waits for them. */
#ifndef TRIB_TRIB_RUN_RUN_H
#define TRIB_TRIB_RUN_RUN_H

#include "trib/run/words.h"

#include <sys/types.h>

/* Becomes the program of the first word. */
void run_become(const struct words *command) __attribute__((noreturn));
/* Runs a program beside this one, as a shell does with "&": it reads nothing, and ignores SIGINT
 * and SIGQUIT until it says otherwise. Returns its pid; ends the command if it cannot be
 * started. */
pid_t run_beside(const struct words *command);
/* Runs a program; returns its exit code. quiet: hides its stderr. */
int run_whole(const struct words *command, bool quiet);
/* The same; *text is what it printed, without newlines at the end. */
int run_output(const struct words *command, bool quiet, char **text);

#endif
