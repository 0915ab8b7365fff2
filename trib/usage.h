/* SPDX-License-Identifier: BSD-3-Clause */
/* What trib says of itself: help, the manual page, lists for completion. */
#ifndef TRIB_TRIB_USAGE_H
#define TRIB_TRIB_USAGE_H

#include <stdio.h>

/* Prints the usage of all commands, and what CONF is. */
void usage_all(FILE *out);
/* Prints the help of one command, or becomes its program, which prints its own. Returns the exit
 * code. */
int usage_of(const char *command);
/* Refuses a word that is no command: exit code 2. */
void usage_unknown(const char *word) __attribute__((noreturn));

void usage_version(void);
/* Prints trib(1). */
void usage_man(void);
/* Prints a line for each command: command|arguments|options|text. */
void usage_complete(void);

#endif
