/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank of a Chakra trace, node by node, from protobuf or JSON: ids become numbers of operations,
 * whatever the order in the file; collectives of a group are one over ranks by the order of
 * their ids.
 */
#ifndef TRIB_TRACE_FORMATS_CHAKRA_RANK_H
#define TRIB_TRACE_FORMATS_CHAKRA_RANK_H

#include "trace/app_graph.h"
#include "trace/number_map.h"
#include "trace/trace_input.h"

#define CHAKRA_NO_TYPE UINT64_MAX

struct chakra_node {
    uint64_t id, type, duration_us;
    uint64_t comm_type, bytes; /* CHAKRA_NO_TYPE: it says none; bytes: of communication or tensor */
    uint64_t src, dst, tag;    /* ranks; CHAKRA_NO_TYPE: it says none */
    const char *group;         /* NULL: all ranks */
    size_t group_n;
    bool cpu;
};

struct chakra_rank {
    struct app_graph *g;
    struct trace_input *in;
    uint32_t rank;
    bool open;
    struct number_map ids;
    struct chakra_wait {
        uint32_t waits;
        uint64_t on; /* an id */
    } * data, *ctrl;
    size_t n_data, n_ctrl, data_room, ctrl_room;
};

/* 0, or -errno with the reason in the input's err. chakra_rank_end() in any case. */
int chakra_rank_begin(struct chakra_rank *c, struct app_graph *g, struct trace_input *in,
                      uint32_t rank);
/* record: of the file. */
int chakra_rank_node(struct chakra_rank *c, const struct chakra_node *n, uint32_t record);
/* The node that came last waits for the node of this id. */
void chakra_rank_data(struct chakra_rank *c, uint64_t id);
void chakra_rank_ctrl(struct chakra_rank *c, uint64_t id);
void chakra_rank_end(struct chakra_rank *c);

/* Says that a record of the rank's has `found`. -EINVAL. */
int chakra_refuse(struct chakra_rank *c, uint32_t record, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

struct json_t;

/* A process group {"pg_name": "1", "ranks": [0, 1]}; ranks [] are all. What is no such object is passed
 * over; a group that is known stays, and other members are noted. file: for messages. */
void chakra_process_group(struct app_graph *g, const struct json_t *one, const char *file);
/* Those of a list of them as text. */
void chakra_process_groups(struct app_graph *g, const char *json, size_t n, const char *file);

#endif
