/* SPDX-License-Identifier: BSD-3-Clause */
/* What trib says of itself: help, the manual page, lists for completion. */
#ifndef TRIB_TRIB_USAGE_H
#define TRIB_TRIB_USAGE_H

#include <stdio.h>

/* The lines of all commands, or of one, of 120 characters, the second and later ones indented as far as the texts. */
void usage_lines(const char *command, FILE *out);
/* Those of all commands, and what CONF is. */
void usage_all(FILE *out);
/* Of one command: its program's own help, if a program does the work. Exit code. */
int usage_of(const char *command);
/* A word that is no command: exit code 2. */
void usage_unknown(const char *word) __attribute__((noreturn));

void usage_version(void);
/* trib(1). */
void usage_man(void);
/* A line each: command|arguments|options|text. */
void usage_complete(void);

#endif
