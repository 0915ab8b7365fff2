/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Predicts the memory that the ranks of a job will take, for connections, schedules, slots and
 * workspaces, from the schedules of a few of them, so that a job that does not fit the machine can
 * be refused.
 */
#ifndef TRIB_HOST_COLL_MEMORY_NEED_H
#define TRIB_HOST_COLL_MEMORY_NEED_H

#include "fabric/fabric.h"
#include "host/coll/coll.h"

struct coll_memory_cfg {
    const struct fabric *fab;
    unsigned nranks;
    const uint16_t *host_of_rank;
    unsigned trees;        /* aggregation trees that the ranks join, */
    const uint16_t *tree;  /* [trees] and which; NULL: not known, protocols use one */
    struct coll_args args; /* the largest operation; its algo and buffers are ignored */
    unsigned algos;        /* bits of coll_algo that run it, one after the other */
    unsigned ops;          /* number of operations by each */
    uint32_t window;       /* requested window; 0: the aggregation nodes' choice */
    bool lengths;          /* payload is lengths */
    bool dense;            /* malloc() uses pages of 2 MiB: untouched memory counts too */
};

/* Of all ranks together. */
struct coll_memory {
    uint64_t conns; /* number of connection ends */
    uint64_t conn_bytes, sched_bytes;
    uint64_t data_bytes;    /* slots and workspaces that are touched */
    uint64_t address_bytes; /* address space reserved for slots, touched or not */
};

/* 0; -errno: an algorithm has no schedule here (running it says why), or no memory. */
int coll_memory_predict(const struct coll_memory_cfg *cfg, struct coll_memory *n);

static inline uint64_t coll_memory_bytes(const struct coll_memory *n)
{
    return n->conn_bytes + n->sched_bytes + n->data_bytes;
}

#endif
