/*
 * Collectives over verbs. A communicator is a member's view of a group of ranks; operations on it
 * are non-blocking. The code posts verbs and polls completion queues and knows nothing of the
 * emulator; it reads the fabric's conf to find trees and to predict times.
 *
 * Single-threaded per communicator. Nothing blocks: make progress with comm_progress().
 */
#ifndef TRIB_COLL_H
#define TRIB_COLL_H

#include "fabric/fabric.h"
#include "switch/reduce/arith.h"

#include <infiniband/verbs.h>
#include <stdbool.h>

enum coll_kind { COLL_ALLREDUCE, COLL_KINDS };
enum coll_algo { ALGO_RING, ALGO_SHARP, ALGO_COUNT };

struct comm;
struct coll_req;

struct comm_cfg {
    struct ibv_context *ctx; /* device of this rank's host */
    const struct fabric *fab;
    unsigned rank, nranks;
    const uint16_t *host_of_rank; /* [nranks] host_index */
    uint32_t group;               /* id of the aggregation group, unique on the fabric */
    uint64_t key;                 /* its secret */
    uint16_t tree;
    uint32_t window; /* slots asked for; 0: default */
    unsigned algos;  /* bit (1 << ALGO_x): what to set up */
};

enum comm_state { COMM_CONNECTING, COMM_READY, COMM_FAILED };

#define COMM_BLOB 256 /* bytes that each rank gives to every other, by whatever means there is */
#define COMM_TEXT 256

/* Creates local queue pairs and writes this rank's blob. 0 or -errno; *err (COMM_TEXT bytes) says
 * why in words. */
int comm_create(struct comm **c, const struct comm_cfg *cfg, void *blob, char *err);
/* Connects, given every rank's blob in order of rank. JOINs are under way then: progress until
 * COMM_READY. */
int comm_connect(struct comm *c, const void *blobs, char *err);
enum comm_state comm_state(const struct comm *c);
const char *comm_error(const struct comm *c); /* names rank, node and reason */
/* Polls completions and drives everything; returns how much was done (0: idle). */
int comm_progress(struct comm *c);
/* Time for the retries of control messages: the caller's clock, in ns, whichever it is; call now
 * and then with comm_progress. */
void comm_tick(struct comm *c, int64_t now_ns);
/* Another rank is known to be gone (launcher); every operation fails with this text. */
void comm_abort(struct comm *c, const char *why);
/* LEAVE and wait until answered or refused (comm_progress until comm_closed), then comm_destroy. */
void comm_close(struct comm *c);
bool comm_closed(const struct comm *c);
void comm_destroy(struct comm *c);

/* Memory that collectives use is registered once. */
int comm_register(struct comm *c, void *buf, size_t bytes);

struct coll_args {
    enum coll_kind kind;
    enum coll_algo algo;
    const void *send;
    void *recv;
    size_t count;
    enum dtype type;
    enum redop op;
    unsigned root;
};

/* Starts an operation; send == recv is in place. All ranks start the same operations in the same
 * order. */
int coll_start(struct comm *c, const struct coll_args *a, struct coll_req **req, char *err);
int coll_test(struct coll_req *req); /* 0 running, 1 done, -errno failed (comm_error says why) */
void coll_free(struct coll_req *req);

/* What theory says (model.c), from the schedule and the fabric without running anything. */
struct coll_prediction {
    int64_t time_ps;
    uint64_t busiest_link_bytes;
    uint32_t busiest_dirlink;
    unsigned handoffs;
};
int coll_predict(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
                 const uint16_t *host_of_rank, uint16_t tree, uint32_t window,
                 struct coll_prediction *p);

#endif
