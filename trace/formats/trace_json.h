/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces that are one JSON object: which keys it has says whose it is. */
#ifndef TRIB_TRACE_FORMATS_TRACE_JSON_H
#define TRIB_TRACE_FORMATS_TRACE_JSON_H

#include "trace/app_graph.h"
#include "trace/trace_input.h"

struct json_t;

#define TRACE_JSON_MOST (1u << 30) /* bytes of text */

/* rank: of the file's name; APP_ANY: it has none. 0, or -errno with the reason in in->err. */
int trace_json_read(struct app_graph *g, struct trace_input *in, uint32_t rank);
int chakra_json_read(struct app_graph *g, struct trace_input *in, const struct json_t *top,
                     uint32_t rank);
int kineto_read(struct app_graph *g, struct trace_input *in, const struct json_t *top,
                uint32_t rank);

#endif
