/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A trace of an application as one graph, whatever format it came in: for each rank its operations,
 * and which of them wait for which others of the same rank. Messages and collectives join ranks.
 *
 * A reader builds it a rank at a time: app_graph_rank(), operations and dependencies in any order,
 * app_graph_rank_end(). What ranks name (peers, groups) may come later.
 */
#ifndef TRIB_TRACE_APP_GRAPH_H
#define TRIB_TRACE_APP_GRAPH_H

#include "trace/finding.h"
#include "trace/label_map.h"
#include "trace/repair.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define APP_RANKS_MOST  (1u << 20)
#define APP_OPS_MOST    (UINT32_MAX - 1u) /* of all ranks */
#define APP_GROUPS_MOST (1u << 24)
#define APP_ANY         UINT32_MAX /* of a receive: any source, any tag; of a collective: no root */
#define APP_WORLD       UINT32_MAX /* the group of all ranks */
#define APP_AT_START    0x80000000u

/* kind, name in JSON */
#define APP_KIND_TABLE                                                                             \
    ROW(COMPUTE, "compute")                                                                        \
    ROW(SEND, "send")                                                                              \
    ROW(RECV, "recv")                                                                              \
    ROW(COLL, "collective")                                                                        \
    ROW(COPY, "copy")                                                                              \
    ROW(WAIT, "wait")

enum app_kind {
#define ROW(kind, name) APP_##kind,
    APP_KIND_TABLE
#undef ROW
        APP_KINDS
};

#define APP_COLL_TABLE                                                                             \
    ROW(BROADCAST, "broadcast")                                                                    \
    ROW(REDUCE, "reduce")                                                                          \
    ROW(ALL_REDUCE, "all_reduce")                                                                  \
    ROW(REDUCE_SCATTER, "reduce_scatter")                                                          \
    ROW(ALL_GATHER, "all_gather")                                                                  \
    ROW(ALL_TO_ALL, "alltoall")                                                                    \
    ROW(GATHER, "gather")                                                                          \
    ROW(SCATTER, "scatter")                                                                        \
    ROW(BARRIER, "barrier")                                                                        \
    ROW(UNTYPED, "untyped") /* the trace does not say: joins nobody */

enum app_coll {
#define ROW(kind, name) APP_##kind,
    APP_COLL_TABLE
#undef ROW
        APP_COLLS
};

/* An operation. line: where in its file, a line or the number of a record. */
struct app_op {
    uint64_t bytes; /* as the format says it (docs/traces.md) */
    uint64_t ns;    /* duration */
    uint32_t peer;  /* of a message; of a collective its root */
    uint32_t tag;   /* of a message; equal ones of a group are one collective */
    uint32_t group; /* of a collective */
    uint32_t line;
    uint16_t stream;
    uint8_t nic, kind, coll;
};

struct app_rank {
    struct app_op *op;
    uint32_t *first; /* [n + 1] op i waits for dep[first[i]] to dep[first[i + 1] - 1] */
    uint32_t *dep;   /* op of the same rank, with APP_AT_START: for its start, not its end */
    uint32_t n, file;
    bool there;
};

struct app_group {
    uint32_t *rank, *sorted, n;
    bool there;
};

struct app_file {
    char *name;
    bool records; /* places are numbers of records of a rank, not lines */
};

struct app_building;
struct nccl_log;

struct app_graph {
    const char *format; /* "GOAL", for people */
    struct app_rank *rank;
    struct app_group *group;
    struct app_file *file;
    uint32_t n_ranks, n_groups, n_files;
    uint64_t n_ops, n_deps;
    uint32_t alike;   /* ranks that do the same as rank 0, which stands for them; 0: none */
    bool partial;     /* of ranks without operations the rest of the trace may know */
    uint64_t span_ns; /* of the longest rank by the trace's clock; 0: it has none */
    uint64_t repaired[REPAIRS]; /* uses of each rule */
    struct nccl_log *log;       /* what a reader of several files keeps until all are read */
    struct findings found;
    struct label_map group_names;
    struct app_building *building;
    void *arena;
    size_t rank_room, group_room, file_room;
};

void app_graph_init(struct app_graph *g);
void app_graph_free(struct app_graph *g);

/* A file that ranks are read from; its number. */
uint32_t app_graph_file(struct app_graph *g, const char *name, bool records);
/* The number of ranks is at least n, without operations so far. -ERANGE: too many. */
int app_graph_ranks(struct app_graph *g, uint32_t n);
/* Begins a rank. -EEXIST: it is there already; -ERANGE: its number is too large. */
int app_graph_rank(struct app_graph *g, uint32_t rank, uint32_t file);
/* An operation of it; its number in the rank, from 0 on. -ERANGE: too many. */
int64_t app_graph_op(struct app_graph *g, const struct app_op *op);
/* Operation `waits` waits for operation `on` to end, or to start; both are there. */
void app_graph_dep(struct app_graph *g, uint32_t waits, uint32_t on, bool at_start);
uint32_t app_graph_rank_ops(const struct app_graph *g);
struct app_op *app_graph_rank_op(struct app_graph *g, uint32_t i);
void app_graph_rank_end(struct app_graph *g);

/* Group `number` has these members. -EEXIST, -ERANGE, -EINVAL: a rank twice, which *twice is. */
int app_graph_group(struct app_graph *g, uint32_t number, const uint32_t *rank, uint32_t n,
                    uint32_t *twice);
/* The group of this name, which may be APP_WORLD. False: there is none. */
bool app_graph_group_find(const struct app_graph *g, const char *name, size_t n, uint32_t *group);
/* A number for the name, which has none; app_graph_group() may give it members. */
uint32_t app_graph_group_new(struct app_graph *g, const char *name, size_t n);
/* The name means all ranks. */
void app_graph_group_world(struct app_graph *g, const char *name, size_t n);
bool app_group_has(const struct app_graph *g, uint32_t group, uint32_t rank);
/* 0: it does not exist. */
uint32_t app_group_size(const struct app_graph *g, uint32_t group);

/* Whether the trace says what this rank does: no where it is part of a larger one. */
static inline bool app_rank_known(const struct app_graph *g, uint32_t rank)
{
    return !g->partial || (rank < g->n_ranks && g->rank[rank].there);
}

const char *app_kind_name(unsigned kind);
const char *app_coll_name(unsigned coll);
/* "FILE:LINE", or "FILE: rank 3, record 5", in text of `size` bytes, which is returned. */
const char *app_graph_place(const struct app_graph *g, uint32_t rank, const struct app_op *op,
                            char *text, size_t size);

#endif
