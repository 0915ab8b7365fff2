/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of GOAL's extension: their words, in the order of their types in binary files from 10 on. */
#ifndef TRIB_TRACE_FORMATS_GOAL_COLL_H
#define TRIB_TRACE_FORMATS_GOAL_COLL_H

#include "trace/app_graph.h"

#define GOAL_COLLS      5
#define GOAL_COLL_FIRST 10

static const struct goal_coll {
    const char *word;
    enum app_coll coll;
} goal_colls[GOAL_COLLS] = {
    {"bcast", APP_BROADCAST},      {"reduce", APP_REDUCE},
    {"allreduce", APP_ALL_REDUCE}, {"reduce_scatter", APP_REDUCE_SCATTER},
    {"allgather", APP_ALL_GATHER},
};

#endif
