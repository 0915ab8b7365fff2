/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the programs and files that come with trib. In a checkout programs are in build/ or
 * scripts/; when installed, those that users call are beside trib, the others in
 * ../libexec/tributary. TRIB_BUILD and TRIB_LIB name other places.
 */
#ifndef TRIB_TRIB_FIND_H
#define TRIB_TRIB_FIND_H

#include "trib/run/words.h"

/* argv0: how the command was called: by scripts/trib of a checkout, or by its own path. */
void find_begin(const char *argv0);
/* The path of the command itself. */
const char *find_myself(void);
/* The path of a program; ends the command if there is none. */
const char *find_program(const char *name);
/* The same, but returns NULL if there is none. */
const char *find_program_quietly(const char *name);
/* libtribverbs.so. */
const char *find_library(void);
/* The directories in which conf/ may be, of a checkout and when installed. */
const struct words *find_tops(void);

#endif
