/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts ranks for a table's cases, and again after a case that ended a rank. */
#ifndef TRIB_PLUGINS_CHECK_PLUGIN_SESSION_H
#define TRIB_PLUGINS_CHECK_PLUGIN_SESSION_H

#include "plugins/check/board.h"

#include <signal.h>

struct session_plan {
    struct board *b;
    int fd;           /* of the board */
    const char *conf; /* a fabric that is up, whose hosts are the ranks; NULL: plain processes */
    const char *trib; /* the command, with conf */
    unsigned limit_s; /* time limit of a case */
    bool verbose;     /* show the ranks' output */
    const volatile sig_atomic_t *stop; /* not 0: end the ranks, and run no more; NULL: never */
};

/* Finds in a child process which tables the plug-in has, one bit each. -1: none, or it is no
 * plug-in; why has the reason. */
int session_probe(const struct session_plan *p, char *why, size_t size);
/* Runs all requested rows of the board's table; then each has a result. */
void session_run(const struct session_plan *p);

#endif
