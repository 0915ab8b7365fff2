/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trace on a machine without limits: every operation starts when what it waits for has happened,
 * messages and collectives take no time, and computations the trace's. What takes longest is the
 * critical path, a lower bound of any replay. What never starts is wrong.
 */
#ifndef TRIB_TRACE_APP_PATH_H
#define TRIB_TRACE_APP_PATH_H

#include "trace/app_colls.h"
#include "trace/app_graph.h"

struct app_path {
    uint64_t ns;             /* of the critical path */
    uint64_t ops;            /* on it */
    uint32_t rank, op;       /* where it ends, where anything does */
    uint64_t started, ended; /* operations */
    uint64_t met;            /* messages with both ends */
};

/* Notes what is wrong with messages and dependencies of the graph. */
void app_path_find(struct app_path *p, struct app_graph *g, const struct app_colls *c);

#endif
