/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection matrix of htsim as a table, and how it becomes operations of ranks. */
#ifndef TRIB_TRACE_FORMATS_HTSIM_FLOW_H
#define TRIB_TRACE_FORMATS_HTSIM_FLOW_H

#include "trace/app_graph.h"
#include "trace/number_map.h"
#include "trace/trace_input.h"

#define HTSIM_NONE UINT32_MAX

enum htsim_how { HTSIM_ONESHOT, HTSIM_MULTISHOT, HTSIM_BARRIER };

struct htsim_matrix {
    struct app_graph *g;
    struct trace_input *in;
    uint32_t nodes;
    struct htsim_flow {
        uint64_t start_ns, bytes;
        uint32_t from, to;          /* nodes; of a collective the root's place and the group */
        uint32_t id, line, trigger; /* trigger: that starts it */
        uint32_t send_done, recv_done;
        uint8_t coll;
        bool is_coll;
    } * flow;
    struct htsim_trigger {
        uint32_t count, line; /* count: of a barrier */
        enum htsim_how how;
        bool there;
    } * trigger;           /* by place in ids */
    struct number_map ids; /* of triggers */
    uint32_t n, n_triggers;
    size_t room, trigger_room;
};

/* Operations of all ranks, when flows and triggers are known. 0 or -EINVAL. */
int htsim_flow_build(struct htsim_matrix *m, uint32_t file);

#endif
