/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Readers of formats: each fills a graph from a file. 0, or -errno with the reason in in->err. What can
 * be read but is wrong is noted among the graph's findings.
 */
#ifndef TRIB_TRACE_FORMATS_TRACE_READERS_H
#define TRIB_TRACE_FORMATS_TRACE_READERS_H

#include "trace/app_graph.h"
#include "trace/trace_input.h"

/* rank: of the file's name, for formats with a file a rank; APP_ANY: it has none. */
int goal_text_read(struct app_graph *g, struct trace_input *in, uint32_t rank);
int goal_binary_read(struct app_graph *g, struct trace_input *in, uint32_t rank);
int chakra_et_read(struct app_graph *g, struct trace_input *in, uint32_t rank);
int htsim_matrix_read(struct app_graph *g, struct trace_input *in, uint32_t rank);
/* Whether these bytes have a line of NCCL's. */
bool nccl_text_is(const char *at, size_t n);
/* One of several files; nccl_log_build() behind the last. */
int nccl_text_read(struct app_graph *g, struct trace_input *in, uint32_t rank);
/* Whether these first bytes are a workload's: the name of a policy. */
bool text_workload_is(const char *at, size_t n);
int text_workload_read(struct app_graph *g, struct trace_input *in, uint32_t rank);
/* {"NAME": [RANK, ..], ..}, before the ranks that name them. */
int chakra_groups_read(struct app_graph *g, struct trace_input *in);
/* Groups beside a schedule, one a line. */
int goal_groups_read(struct app_graph *g, struct trace_input *in);

#endif
