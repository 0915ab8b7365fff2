/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of a trace over all ranks: whose operations are one collective, and whether its members agree. */
#ifndef TRIB_TRACE_APP_COLLS_H
#define TRIB_TRACE_APP_COLLS_H

#include "trace/app_graph.h"
#include "trace/number_map.h"

struct app_coll_member {
    uint32_t rank, op; /* op: of the rank */
};

struct app_colls {
    struct number_map keys; /* of group and tag */
    struct app_coll_all {
        uint32_t first, n; /* its operations: member[first] and n - 1 more */
        bool whole;        /* all members of its group have it */
    } * all;
    struct app_coll_member *member;
    uint32_t n;
    uint64_t n_members;
};

/* What joins nobody (APP_UNTYPED) is left out, and what is on no group. */
static inline bool app_op_joins(const struct app_op *op)
{
    return op->kind == APP_COLL && op->coll != APP_UNTYPED;
}

/* Collects them and notes what is wrong. */
void app_colls_build(struct app_colls *c, struct app_graph *g);
/* The number of the collective that an operation is part of. */
uint32_t app_colls_of(const struct app_colls *c, const struct app_op *op);
void app_colls_free(struct app_colls *c);

#endif
