/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What NCCL's logs say: processes, their communicators, and operations in order. Who is a member of a
 * communicator is known when all files are read; nccl_log_build() makes ranks of processes then.
 */
#ifndef TRIB_TRACE_FORMATS_NCCL_LOG_H
#define TRIB_TRACE_FORMATS_NCCL_LOG_H

#include "trace/app_graph.h"
#include "trace/label_map.h"
#include "trace/number_map.h"
#include "trace/trace_input.h"

#define NCCL_NONE UINT32_MAX

struct nccl_log {
    struct label_map names;    /* "HOST:PID" */
    struct label_map ids;      /* of communicators over processes */
    struct number_map handles; /* process, pointer */
    struct nccl_process {
        uint32_t file, rank, world; /* rank in the largest communicator, of `world` ranks */
        uint32_t first, last;       /* operations, by next; NCCL_NONE */
    } * process;
    struct nccl_comm {
        uint32_t id, rank; /* id: of all[] */
    } * comm;              /* by handles */
    struct nccl_all {
        uint32_t n, *process; /* by rank; NCCL_NONE: not seen */
    } * all;
    struct nccl_op {
        uint64_t bytes, count;
        uint32_t comm, peer, line, stream, next; /* peer: rank or root in the communicator */
        uint8_t kind, coll;
    } * op;
    struct number_map streams; /* process, pointer */
    uint32_t n_processes, n_all, n_ops;
    size_t process_room, comm_room, all_room, op_room;
    uint64_t members; /* of all communicators */
};

/* The log that the graph's reader keeps; made where there is none. */
struct nccl_log *nccl_log_of(struct app_graph *g);
/* Ranks of the graph. 0 or -EINVAL with the reason in err (TRACE_ERR bytes). */
int nccl_log_build(struct nccl_log *l, struct app_graph *g, char *err);
void nccl_log_free(struct nccl_log *l);

#endif
