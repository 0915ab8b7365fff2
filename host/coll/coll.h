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

#include "collective/kinds.h"
#include "fabric/fabric.h"
#include "host/kernels/device.h"

#include <infiniband/verbs.h>
#include <stdbool.h>

struct comm;
struct comm_hooks;
struct comm_watch;
struct coll_req;

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
     * Algorithms to fail over to when switches refuse or abort a group: those that follow the
     * operation's own, or the whole list if that is not in it. An algorithm is skipped if it needs
     * a failed part, or if the collective or these ranks do not have it; a barrier takes direct for
     * ring. Algorithms that need switches must be in algos. The communicator gives up only the
     * parts that fail: SHARP continues on the trees that are left. If the list has no alternative
     * left, the communicator fails with the switch's reason. ALGO_SCHEDULE is in no policy: a
     * schedule is for one number of ranks, and needs no switch. n_policy 0: sharp, ring.
     */
    unsigned n_policy;
    enum coll_algo policy[ALGO_COUNT];
    /* Operations' buffers are in the memory of this GPU, which the caller owns, at all ranks or at
     * none. Messages are staged through host memory, except those sent from memory that HCAs reach.
     * Not allowed with hooks. NULL: host memory. */
    struct device *device;
    /* Fabric time, for the timers of protocols. NULL: CLOCK_MONOTONIC. */
    int64_t (*now_ps)(void *ctx);
    void *now_ctx;
    const struct comm_hooks *hooks; /* of the program that runs ranks (comm_hooks.h); NULL: none */
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
/* Reads the counters of a protocol's rank half, in the order of their names. All are zero if the
 * algorithm is not a protocol that was set up. */
void comm_counted(const struct comm *c, enum coll_algo a, uint64_t n[TRIB_COUNTERS]);
/* Latest time for the next comm_progress(), by cfg.now_ps, even if nothing arrives. INT64_MAX:
 * none. */
int64_t comm_deadline(const struct comm *c);
/* Why parts of the in-network path are no longer used, since which operation (counted from 1) and,
 * if it was running, since which message. NULL: nothing has failed. */
const char *comm_fell_back(const struct comm *c);
/* True if trees of the algorithm, SHARP or a protocol, were given up and have not returned. */
bool comm_lacks_trees(const struct comm *c, enum coll_algo a);
/* Number of operations that a failure has cut or made start over. */
unsigned comm_cut(const struct comm *c);
/*
 * Resources that the switches have granted, valid once READY. trees, tree: the trees that the group
 * of all ranks uses, of trees_asked. window: the smallest window of these trees, in slots; rail:
 * the window of this rank's rail (0: none). why: "" if all requests were granted, else a text that
 * names the switch. A tree that is given up later does not count until it returns.
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
/* Writes the indices of the trees of all ranks that the running operation may use, else the last
 * one that ran. Trees that failed or returned since then change nothing. Returns their number,
 * COLL_TREES at most. */
unsigned comm_last_trees(const struct comm *c, uint16_t *tree);
/* Fails every operation with this text, on all ranks: failures pass around the ring of ranks by
 * datagrams. For a launcher that detects the loss of a rank. The first reason stays. */
void comm_abort(struct comm *c, const char *why);
/* True if rank r and this rank wait for each other at the end, and r has not announced its end. */
bool comm_counts_on(const struct comm *c, unsigned r);
/*
 * Leaves all groups. Call comm_progress() and comm_tick() until comm_closed(), then comm_destroy().
 * Linked ranks wait for each other, so that the last message of each is acknowledged, but for 2 s
 * of comm_tick's clock at most. Operations under way fail.
 */
void comm_close(struct comm *c);
bool comm_closed(const struct comm *c);
void comm_destroy(struct comm *c);

/* Registers memory for collectives. It must stay mapped (GPU memory: allocated) until
 * comm_deregister() of the same range, or comm_destroy(). A range within a registered one is not
 * registered again. 0 or -errno. */
int comm_register(struct comm *c, void *buf, size_t bytes);
/* The same for memory that operations only read: the process needs no permission to write it. */
int comm_register_input(struct comm *c, const void *buf, size_t bytes);
/* -ENOENT: no such region; -EBUSY: an operation that has not ended uses it. */
int comm_deregister(struct comm *c, const void *buf, size_t bytes);
/* Writes how messages reach the memory of cfg.device; "" until some of it is registered. text has
 * COMM_TEXT bytes. */
void comm_gpudirect(const struct comm *c, char *text);

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
 * until comm_connected(). An algorithm that reduces in NVSwitches binds the buffers there, too;
 * others do not look at them. Returns what coll_start() does.
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

#endif
