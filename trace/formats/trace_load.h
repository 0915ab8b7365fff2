/* SPDX-License-Identifier: BSD-3-Clause */
/* A trace of any format that is known, by the contents of its file. */
#ifndef TRIB_TRACE_FORMATS_TRACE_LOAD_H
#define TRIB_TRACE_FORMATS_TRACE_LOAD_H

#include "trace/app_graph.h"
#include "trace/trace_input.h"

/*
 * Reads what path means (trace/trace_files.h) into the graph, which is empty. groups: a file of groups;
 * NULL: the one beside the trace, where there is one. 0, or -errno with the reason in err (TRACE_ERR bytes).
 */
int trace_load(struct app_graph *g, const char *path, const char *groups, char *err);
/* The same for bytes in memory, without groups. */
int trace_load_bytes(struct app_graph *g, const char *name, const void *bytes, size_t n, char *err);

#endif
