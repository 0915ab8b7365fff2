/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives and the algorithms that run them, and the arguments of an operation. */
#ifndef TRIB_COLLECTIVE_KINDS_H
#define TRIB_COLLECTIVE_KINDS_H

#include "aggregation/arith.h"
#include "fabric/fabric.h"
#include "fabric/tree_rails.h"
#include "protocols/host/registry.h"

#include <stdbool.h>

/*
 * `count` is as in NCCL: elements of the vector (all-reduce, reduce, broadcast), of each rank's
 * contribution (all-gather, gather), of what each rank gets (reduce-scatter, scatter), of the block
 * for each pair (all-to-all), of the message to rank + 1 (send/recv, from rank - 1, around a ring).
 * In place: all-gather and gather (root) send == recv + rank * bytes of count; reduce-scatter and
 * scatter (root) recv == send + rank * bytes of count; all-to-all and send/recv cannot be.
 */
enum coll_kind {
    COLL_ALLREDUCE,
    COLL_REDUCE,
    COLL_BROADCAST,
    COLL_ALLGATHER,
    COLL_REDUCE_SCATTER,
    COLL_ALLTOALL,
    COLL_GATHER,
    COLL_SCATTER,
    COLL_SENDRECV,
    COLL_BARRIER,
    COLL_KINDS
};

static inline bool coll_reduces(enum coll_kind k)
{
    return k == COLL_ALLREDUCE || k == COLL_REDUCE || k == COLL_REDUCE_SCATTER;
}

static inline bool coll_rooted(enum coll_kind k)
{
    return k == COLL_REDUCE || k == COLL_BROADCAST || k == COLL_GATHER || k == COLL_SCATTER;
}

const char *coll_name(unsigned kind); /* "all_reduce", as in nccl-tests; "?" of none */

enum coll_algo {
    ALGO_RING,       /* pipelined ring, over all channels in proportion to their rates */
    ALGO_SHARP,      /* in the aggregation nodes of the scale-out network */
    ALGO_TREE,       /* double binary tree */
    ALGO_CHAIN,      /* pipelined chain */
    ALGO_HALVING,    /* recursive halving and doubling */
    ALGO_PAIRWISE,   /* one peer at a time */
    ALGO_DIRECT,     /* all peers at once */
    ALGO_NVLS,       /* multimem of the NVSwitches */
    ALGO_HIER,       /* within the node, across the rails by ring, within the node */
    ALGO_HIER_SHARP, /* as ALGO_HIER, with SHARP across the rails */
    ALGO_NVLS_SHARP, /* within the node by multimem, across by SHARP */
    ALGO_PROTOCOL,   /* aggregation protocols (protocols/), by their seats */
    ALGO_PROTOCOL_LAST = ALGO_PROTOCOL + PROTO_SEATS - 1,
    ALGO_RINGS,    /* rings through all NICs of GPU nodes at once */
    ALGO_PXN,      /* all-to-all in two hops: within the node, then along the rail */
    ALGO_SCHEDULE, /* from a file: coll_args.file */
    ALGO_COUNT,
    ALGO_AUTO = ALGO_COUNT /* what the model says is fastest; never in a schedule */
};

/* Algorithms before this one are used on every fabric that can run them; the others only if they
 * are named. */
#define ALGO_USUAL     ((unsigned)ALGO_PROTOCOL)
#define COLL_PROTOCOLS (((1u << PROTO_SEATS) - 1) << ALGO_PROTOCOL)
static inline bool coll_is_protocol(enum coll_algo a)
{
    return a >= ALGO_PROTOCOL && a <= ALGO_PROTOCOL_LAST;
}

/* The protocol of the algorithm; NULL: it is no protocol, or the seat is empty. */
static inline const struct trib_protocol *coll_protocol(enum coll_algo a)
{
    return coll_is_protocol(a) ? proto_at(a - ALGO_PROTOCOL) : NULL;
}

/* Does the protocol reduce these? An average is its sum, divided by the rank. */
static inline bool coll_protocol_does(const struct trib_protocol *p, enum dtype t, enum redop op)
{
    return t <= DT_BF16 && op <= OP_AVG &&
           p->supports((enum trib_type)t, op == OP_AVG ? TRIB_SUM : (enum trib_sum)op);
}

#define COLL_TREES FAB_JOB_TREES /* aggregation trees that a collective uses, at most */

struct sched_file; /* collective/file/sched_file.h */

struct coll_args {
    enum coll_kind kind;
    enum coll_algo algo;
    const void *send;
    void *recv;
    size_t count;
    enum dtype type;
    enum redop op;
    unsigned root;
    unsigned sparse; /* all-to-all: so many blocks of each rank are not empty; 0: all */
    bool mm_self;    /* NVLS: a GPU's own contribution crosses the switch too (F27), so 16-bit
                        floats are rounded only once; false: the GPU adds it itself (F26) */
    const struct sched_file *file; /* of ALGO_SCHEDULE: the same at all ranks, until the end of the
                                      operation */
};

#endif
