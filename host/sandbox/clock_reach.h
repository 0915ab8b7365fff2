/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a preloaded library can give a program another clock. */
#ifndef TRIB_HOST_SANDBOX_CLOCK_REACH_H
#define TRIB_HOST_SANDBOX_CLOCK_REACH_H

/*
 * Why a preloaded library cannot reach the program that execvp(3) would run for `command`; NULL: it
 * can, or the program cannot be read. For a script it checks the interpreter; it does not check
 * programs that the program starts. Returns static text.
 */
const char *clock_out_of_reach(const char *command);

#endif
