/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives over verbs. A communicator is one rank's view of a group of ranks; operations on it
 * are non-blocking. It posts verbs and polls completion queues and does not depend on the emulator;
 * it reads the fabric's conf to find trees and to predict times.
 *
 * Threads: one at a time per communicator. No call blocks: comm_progress() drives everything.
 */
#ifndef TRIB_HOST_COLL_COLL_H
#define TRIB_HOST_COLL_COLL_H

#include "aggregation/arith.h"
#include "fabric/fabric.h"
#include "fabric/tree_rails.h"
#include "host/kernels/device.h"
#include "protocols/host/registry.h"

#include <infiniband/verbs.h>
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
    ALGO_RING,       /* pipelined ring, a channel after the other in proportion to their rates */
    ALGO_SHARP,      /* in the aggregation nodes of the scale-out network */
    ALGO_TREE,       /* double binary tree */
    ALGO_CHAIN,      /* pipelined chain */
    ALGO_HALVING,    /* recursive halving and doubling */
    ALGO_PAIRWISE,   /* one peer at a time */
    ALGO_DIRECT,     /* all peers at once */
    ALGO_NVLS,       /* multimem of the NVSwitches */
    ALGO_HIER,       /* within the node, across the rails by ring, within the node */
    ALGO_HIER_SHARP, /* the same, across by SHARP */
    ALGO_NVLS_SHARP, /* within the node by multimem, across by SHARP */
    ALGO_PROTOCOL,   /* aggregation protocols (protocols/), by their seats */
    ALGO_PROTOCOL_LAST = ALGO_PROTOCOL + PROTO_SEATS - 1,
    ALGO_RINGS,    /* rings through all NICs of GPU nodes at once */
    ALGO_PXN,      /* all-to-all in two hops: within the node, then along the rail */
    ALGO_SCHEDULE, /* from a file: coll_args.file */
    ALGO_COUNT,
    ALGO_AUTO = ALGO_COUNT /* what the model says is fastest; never in a schedule */
};

/* Algorithms before this one are there on every fabric that can run them; the others where somebody
 * names them. */
#define ALGO_USUAL     ((unsigned)ALGO_PROTOCOL)
#define COLL_PROTOCOLS (((1u << PROTO_SEATS) - 1) << ALGO_PROTOCOL)
static inline bool coll_is_protocol(enum coll_algo a)
{
    return a >= ALGO_PROTOCOL && a <= ALGO_PROTOCOL_LAST;
}

/* The protocol that the algorithm is; NULL: it is none, or the seat is empty. */
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

struct comm;
struct comm_sim;
struct comm_watch;
struct coll_req;

#define COLL_TREES FAB_JOB_TREES /* aggregation trees of a communicator, at most */

struct comm_cfg {
    unsigned n_ctx; /* this rank's devices, in order of its host's ports */
    struct ibv_context *const *ctx;
    const struct fabric *fab;
    unsigned rank, nranks;
    const uint16_t *host_of_rank; /* [nranks] host_index */
    uint32_t group;               /* id of the aggregation group, unique on the fabric */
    uint64_t key;                 /* its secret */
    unsigned n_trees;             /* aggregation trees to join; 0: tree[0] alone */
    uint16_t tree[COLL_TREES];
    uint32_t window; /* slots asked for in each; 0: default */
    unsigned algos;  /* bit (1 << ALGO_x): what to set up */
    /*
     * Algorithms to fail over to when switches refuse or abort a group: those after the operation's
     * own, or the whole list if that is not in it. Skipped are algorithms that need a failed part,
     * and those that the collective or the ranks do not have; for a barrier, ring stands for
     * direct. Algorithms that need switches must be in algos. Only failed parts are given up.
     * n_policy 0: sharp, ring. If the list has no alternative left, the communicator fails with the
     * switch's reason. SHARP goes on by the trees that are left. ALGO_SCHEDULE is in no policy: it has one number of ranks, and needs no
     * switch.
     */
    unsigned n_policy;
    enum coll_algo policy[ALGO_COUNT];
    /* Buffers of operations are in this GPU's memory, which belongs to the caller: those of all
     * ranks, or of none. Messages are staged through host memory, except those sent from memory
     * that HCAs reach. Not with sim. NULL: host memory. */
    struct device *device;
    /* Fabric time, for the timers of protocols. NULL: CLOCK_MONOTONIC. */
    int64_t (*now_ps)(void *ctx);
    void *now_ctx;
    const struct comm_sim *sim;     /* for simulations only (comm_sim.h); NULL: none */
    const struct comm_watch *watch; /* of operations (comm_watch.h); NULL: none */
};

enum comm_state { COMM_CONNECTING, COMM_READY, COMM_FAILED };

#define COMM_BLOB 256 /* bytes that each rank gives to every other, out of band */
#define COMM_TEXT 256

/* Creates local queue pairs and writes this rank's blob. 0 or -errno with the reason in err
 * (COMM_TEXT bytes). */
int comm_create(struct comm **c, const struct comm_cfg *cfg, void *blob, char *err);
/* Connects, given every rank's blob in order of rank. JOINs are under way then: progress until
 * COMM_READY. */
int comm_connect(struct comm *c, const void *blobs, char *err);
enum comm_state comm_state(const struct comm *c);
const char *comm_error(const struct comm *c); /* names rank, node and reason */
/*
 * Polls completions and does all work that is possible now; returns its amount (0: idle). Returns
 * at once when an operation has ended or the state has changed, and after a bounded amount of work,
 * so that the caller can do other work: at COMM_PROGRESS_MAX and above, call again.
 */
#define COMM_PROGRESS_MAX 4096
int comm_progress(struct comm *c);
/* Drives the retries of control messages. now_ns: any monotonic clock of the caller's, in ns. Call
 * it every few ms, in addition to comm_progress. */
void comm_tick(struct comm *c, int64_t now_ns);
/* What the rank half of a protocol has counted so far, in order of its names; zeros where the
 * algorithm is none that was set up. */
void comm_counted(const struct comm *c, enum coll_algo a, uint64_t n[TRIB_COUNTERS]);
/* When comm_progress() has to be called, whatever arrives: cfg.now_ps's time, INT64_MAX: never. */
int64_t comm_deadline(const struct comm *c);
/* Why parts of the in-network path are no longer used, since which operation (counted from 1) and,
 * if it was running, since which message. NULL: nothing has failed. */
const char *comm_fell_back(const struct comm *c);
/* Trees of the algorithm's, SHARP or a protocol, were given up and have not returned. */
bool comm_lacks_trees(const struct comm *c, enum coll_algo a);
/* Operations so far that a failure has cut, or made start over. */
unsigned comm_cut(const struct comm *c);
/*
 * Resources granted by the switches, once READY: the number of trees that the group of all ranks
 * uses, of those requested, and which; the smallest window of these trees in slots, and that of
 * this rank's rail (0: none). why: "" if all requests were granted, else a text that names the
 * switch. Trees that are given up later count no longer, until they return.
 */
struct coll_grant {
    unsigned trees, trees_asked;
    uint16_t tree[COLL_TREES];
    uint8_t protocol[PROTO_SEATS]; /* trees that a protocol has lost, a bit each in its order */
    bool rail_asked;
    uint32_t window, rail, asked;
    char why[128];
};
void comm_granted(const struct comm *c, struct coll_grant *g);
/* Trees of all ranks, by index, of the operation that runs, else of the last one: a tree that has
 * failed or returned since is not counted. Returns their number, COLL_TREES at most. */
unsigned comm_last_trees(const struct comm *c, uint16_t *tree);
/* Fails every operation with this text, on all ranks: failures pass around the ring of ranks by
 * datagrams. For a launcher that detects the loss of a rank. The first reason stays. */
void comm_abort(struct comm *c, const char *why);
/* Rank r and this one wait for each other's end, and it has told of none. */
bool comm_counts_on(const struct comm *c, unsigned r);
/*
 * LEAVE and wait until answered or refused (comm_progress and comm_tick until comm_closed), then
 * comm_destroy. Neighbours wait for each other, so that the last message of each is acknowledged; 2
 * s of comm_tick's clock at most. Operations under way fail.
 */
void comm_close(struct comm *c);
bool comm_closed(const struct comm *c);
void comm_destroy(struct comm *c);

/* Memory that collectives use is registered before; it must stay mapped (the GPU's: allocated) until
 * comm_deregister of the same range, or comm_destroy. A range within a registered one is not
 * registered again. 0 or -errno. */
int comm_register(struct comm *c, void *buf, size_t bytes);
/* The same for memory that operations only read, which the process need not be allowed to write. */
int comm_register_input(struct comm *c, const void *buf, size_t bytes);
/* -ENOENT: no such region; -EBUSY: an operation that has not ended uses it. */
int comm_deregister(struct comm *c, const void *buf, size_t bytes);
/* How messages reach the memory of cfg.device once some is registered, and the reason. text has
 * COMM_TEXT bytes. */
void comm_gpudirect(const struct comm *c, char *text);

struct sched_file; /* host/coll/alg/sched_file.h */

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
    bool mm_self;    /* NVLS: a GPU's own contribution crosses the switch too (F27), so that 16-bit
                        floats are rounded once; else the GPU adds it itself (F26) */
    const struct sched_file *file; /* of ALGO_SCHEDULE: the same at all ranks, until the end of the
                                      operation */
};

/*
 * Starts an operation. Buffers overlap only as "in place" says above; one that a rank does not use
 * (send of a broadcast that it only gets, recv of a reduce at others than the root) may be NULL.
 * All ranks start the same operations in the same order; they run one after the other. Ranks that
 * differ in collective, size, type, reduction or root all fail, and the text names the difference.
 * -EFAULT: a buffer is not registered; -ENOTCONN: not COMM_READY; -ENOTSUP: algorithm not in
 * comm_cfg.algos, or not for this collective or fabric; -E2BIG: too long; -EINVAL: another wrong
 * argument; -EIO: failed; err (COMM_TEXT bytes) has the reason. A refused call changes nothing, but
 * ranks that did start wait for this one, so a caller that cannot go on calls comm_abort. count 0
 * is done at once and waits for no rank.
 */
int coll_start(struct comm *c, const struct coll_args *a, struct coll_req **req, char *err);
/*
 * Begins to make the connections that coll_start() of these arguments will use; without it, an
 * operation makes those that are missing when it starts. Every rank calls it, and makes progress
 * until comm_connected(). An algorithm that reduces in NVSwitches binds the buffers there, too; others
 * do not look at them. What coll_start() returns.
 */
int coll_connect(struct comm *c, const struct coll_args *a, char *err);
/* Whether all connections that were begun are made. */
bool comm_connected(const struct comm *c);
/* Is there a schedule for this kind, algorithm, type and count on the communicator? Buffers are not
 * looked at. */
bool comm_supports(struct comm *c, const struct coll_args *a);
/* The algorithm that would run it now: after a failover it may differ from a->algo. */
enum coll_algo comm_runs_by(struct comm *c, const struct coll_args *a);
/* For a finished operation: true if the requested algorithm did all of it. */
bool coll_as_asked(const struct coll_req *req);
int coll_test(struct coll_req *req);  /* 0 running, 1 done, -errno failed (comm_error says why) */
void coll_free(struct coll_req *req); /* a running operation goes on by itself */

/*
 * The predicted time (model/), from the schedule and the fabric, without running anything.
 * time_ps: from the moment at which all ranks start to the one at which the last knows that it is
 * done. busiest_link_bytes: what the busiest direction of a link carries in all, layer-2 frames and
 * 24 bytes each for preamble, FCS and gap, one ACK a message included; so its utilisation is 8 *
 * bytes / (rate * time). busiest_dirlink: link * 2 + direction. handoffs: from process to process,
 * one after the other, on the critical path. No time is below what the payload takes on the links
 * that it has to cross (model/cost_bound.h). window as in comm_cfg; what the
 * switches' quotas leave the trees is applied. 0, -EINVAL, -ENOTSUP (no aggregation node of the
 * tree reaches all ranks), -ENOMEM.
 */
struct coll_prediction {
    int64_t time_ps;
    int64_t
        next_ps;  /* what an operation adds that follows another at once; 0: as much as the first */
    bool guessed; /* of a protocol without a formula, or of a schedule that is too long to be looked
                    at: of use for a dilation, and for nobody to see */
    bool hashed;  /* ecmp = "hash" chooses among ways, which are taken as balanced ECMP has them */
    unsigned within_percent; /* of a protocol: what runs without loss differ by; 0: unknown */
    uint64_t busiest_link_bytes;
    uint32_t busiest_dirlink;
    unsigned handoffs;
    unsigned
        from_ranks; /* extrapolated from a run of the model with so many; 0: it ran all ranks */
};
int coll_predict(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
                 const uint16_t *host_of_rank, uint16_t tree, uint32_t window,
                 struct coll_prediction *p);
/* The same over several trees; each rail takes the first one that reaches its ranks. */
int coll_predict_trees(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
                       const uint16_t *host_of_rank, const uint16_t *tree, unsigned n_trees,
                       uint32_t window, struct coll_prediction *p);

/*
 * ALGO_AUTO: the fastest by the model of the algorithms allowed (bit 1 << ALGO_x) that the fabric
 * can run; a->algo is not looked at. *p is its prediction, why (COLL_WHY bytes) says in words what
 * it was compared with. What coll_predict returns; -ENOTSUP: none can.
 */
#define COLL_WHY 160
int coll_auto(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
              const uint16_t *host_of_rank, const uint16_t *tree, unsigned n_trees, uint32_t window,
              unsigned allowed, enum coll_algo *algo, struct coll_prediction *p, char *why);

#endif
