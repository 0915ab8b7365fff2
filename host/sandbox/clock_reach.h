/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a preloaded library can give a program another clock. */
#ifndef TRIB_HOST_SANDBOX_CLOCK_REACH_H
#define TRIB_HOST_SANDBOX_CLOCK_REACH_H

/*
 * Why the program that execvp(3) would take for `command` is out of reach; NULL: it is not, or cannot be
 * read. Of a script its interpreter counts. What the program starts is not looked at. Static text.
 */
const char *clock_out_of_reach(const char *command);

#endif
