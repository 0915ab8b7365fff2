/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts the ranks of a table's cases, and again behind a case that has ended one. */
#ifndef TRIB_PLUGINS_CHECK_PLUGIN_SESSION_H
#define TRIB_PLUGINS_CHECK_PLUGIN_SESSION_H

#include "plugins/check/board.h"

#include <signal.h>

struct session_plan {
    struct board *b;
    int fd;           /* of the board */
    const char *conf; /* of a fabric that is up: each rank is one of its hosts; NULL: processes */
    const char *trib; /* the command, with conf */
    unsigned limit_s; /* of a case */
    bool verbose;     /* what ranks print is shown */
    const volatile sig_atomic_t *stop; /* not 0: end the ranks, and run no more; NULL: never */
};

/* Which tables the plug-in has, a bit each; found by a process of its own. -1: none, or it is no
 * plug-in, as why says. */
int session_probe(const struct session_plan *p, char *why, size_t size);
/* All rows of the board's table that are wanted have a result then. */
void session_run(const struct session_plan *p);

#endif
