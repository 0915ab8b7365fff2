/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends the command when it cannot do its work. */
#ifndef TRIB_TRIB_RUN_DIE_H
#define TRIB_TRIB_RUN_DIE_H

#include <stdio.h>

#define EXIT_WRONG 2 /* the command line is wrong */

/* Prints "trib: " and the text on stderr; exit code 1. */
void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* The same with another exit code. */
void die_with(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));

#endif
