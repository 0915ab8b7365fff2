/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives on a Tributary fabric, for programs of any kind: in the switches (SHARP, NVSwitches)
 * or by the hosts (ring, tree, ...).
 *
 *   struct trib_store *store;            or callbacks of your own: MPI, a launcher's sockets
 *   trib_store_open(&store, "127.0.0.1:4711", rank, size, 30, err);      or trib_store_pmix()
 *   trib_store_oob(store, &oob);
 *   trib_comm_create(&comm, &oob, NULL, err);
 *   trib_all_reduce(comm, in, out, n, TRIB_FLOAT32, TRIB_SUM, &request);
 *   while (!trib_test(request)) compute();
 *   trib_free(request);
 *   trib_comm_destroy(comm);
 *
 * The program runs as a host of the fabric: `trib exec CONF HOST -- PROGRAM`, which sets TRIB_RUN and
 * TRIB_HOST. Link with `pkg-config --libs tributary`.
 *
 * Every rank calls the same operations of a communicator in the same order; they run one after the
 * other. Results are those of docs/numerics.md: the same bits in every run, at every rank.
 *
 * Units: counts are elements, sizes bytes, times picoseconds of fabric time unless they say seconds.
 * Ownership: buffers stay the caller's, and are his to change again once the operation has ended.
 * Threads: any; calls for one communicator wait for each other, and no thread runs in between:
 * operations proceed in trib_test(), trib_wait() and trib_progress() of any of the communicator's
 * operations.
 * Errors: functions return 0 or a negative errno; `err`, TRIB_TEXT bytes, may be NULL and gets the
 * reason in words. NULL in place of a store, a communicator, a request or of where one is to be put is
 * refused by -EINVAL, and so is, as far as its memory still shows it, one that has ended; functions
 * without an error do nothing then, and return 0 or what is said at each.
 */
#ifndef TRIBUTARY_COLL_H
#define TRIBUTARY_COLL_H

#include <tributary/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define TRIB_COLL_VERSION 1 /* of this header; trib_coll_version() is the library's */
#define TRIB_TEXT         256

/* Reductions beside those of enum trib_sum: the mean; bits of integers; the least or greatest value
 * and its index, of pairs only; integers as truth, 1 or 0 (a communicator of one rank copies). */
enum {
    TRIB_AVG = TRIB_REDUCTIONS,
    TRIB_BAND,
    TRIB_BOR,
    TRIB_BXOR,
    TRIB_MINLOC,
    TRIB_MAXLOC,
    TRIB_LAND,
    TRIB_LOR,
    TRIB_LXOR
};

struct trib_comm;
struct trib_request;
struct trib_store;

unsigned trib_coll_version(void);

/* ---- out of band: how ranks find each other ---- */

/*
 * Calls that the ranks of a new communicator make, all in the same order, while it is created and
 * destroyed; they block. 0, anything else is a failure. `all` of gather is valid at the root only,
 * in order of ranks. Messages are at most 512 bytes a rank.
 */
struct trib_oob {
    void *ctx;
    uint32_t rank, size;
    int (*bcast)(void *ctx, void *buf, size_t bytes, uint32_t root);
    int (*gather)(void *ctx, uint32_t root, const void *mine, void *all, size_t bytes);
    int (*barrier)(void *ctx);
};

/*
 * The same over TCP, for programs without an MPI or PMIx: rank 0 listens at ADDRESS:PORT, the others
 * connect to it, for so many seconds at most. Both ends prove that they know one secret: that of
 * TRIB_STORE_SECRET, of the file TRIB_STORE_SECRET_FILE (this user's, mode 0600), else that of the fabric
 * of several machines, else this user's own on this machine. Who has another one is hung up on, and
 * changes nothing; so is who comes by a port that is forwarded. -ETIMEDOUT: ranks are missing, err names
 * them; -EACCES: who listens has another secret, or passes connections on.
 */
int trib_store_open(struct trib_store **store, const char *address, uint32_t rank, uint32_t size,
                    double timeout_s, char *err);
/*
 * The same over PMIx, for ranks that mpirun, srun or another launcher that serves it has started:
 * they need no address, and rank and size are those of trib_store_oob(). A call waits for so many
 * seconds at most. -ENOTCONN: there is no such launcher; -ENOTSUP: built without PMIx.
 */
int trib_store_pmix(struct trib_store **store, double timeout_s, char *err);
/* NULL: calls that are NULL, which trib_comm_create() refuses. */
void trib_store_oob(struct trib_store *store, struct trib_oob *oob);
/* After the communicators that use it. */
void trib_store_close(struct trib_store *store);

/* ---- communicators ---- */

struct trib_comm_options {
    /*
     * Algorithms, as in `trib perf --policy`: an operation takes the first one that the collective
     * and the fabric have; the others are what it fails over to when switches refuse or fail. "auto":
     * the fastest by the model, for each size. NULL: "sharp,ring".
     */
    const char *algo;
    uint32_t window; /* slots to ask of aggregation nodes; 0: their choice */
};

/* Creates a communicator of all ranks of oob, which every rank calls; options may be NULL. If one
 * rank fails, all do, with its reason. oob is copied; its ctx stays valid until destroy. */
int trib_comm_create(struct trib_comm **comm, const struct trib_oob *oob,
                     const struct trib_comm_options *options, char *err);
/* Every rank calls it; operations that have not ended fail. */
void trib_comm_destroy(struct trib_comm *comm);
uint32_t trib_comm_rank(const struct trib_comm *comm);
uint32_t trib_comm_size(const struct trib_comm *comm);
/* Why the communicator has failed; "": it has not; that it is none. Valid until the next call for it by this thread. */
const char *trib_comm_error(struct trib_comm *comm);
/* Aggregation trees that the switches granted to all ranks, the same number at each; 0: it is hosts
 * that reduce. why: what they refused; "": nothing. */
unsigned trib_comm_trees(struct trib_comm *comm, char *why);
/* Why parts of the in-network path are no longer used; "": all are. */
const char *trib_comm_fell_back(struct trib_comm *comm);

/* ---- memory ---- */

/*
 * Memory of operations, for all communicators of the process. Not needed: an operation registers
 * what is not registered for as long as it runs; it saves that time. What is only sent may be memory
 * for reading. Must be deregistered with the same address before it is unmapped. -EBUSY: an
 * operation uses it. -EINVAL, -ENOENT: NULL, or memory that cannot be, or is not registered.
 */
int trib_register(void *buf, size_t bytes);
int trib_deregister(void *buf);

/* ---- operations ---- */

/*
 * `count`: elements of the vector (all-reduce, reduce, broadcast), of each rank's contribution
 * (all-gather, gather), of what each rank gets (reduce-scatter, scatter), of the block for each pair
 * (all-to-all). In place: send == recv; all-gather and gather (root) send == recv + rank * count
 * elements, reduce-scatter and scatter (root) recv == send + rank * count elements; all-to-all cannot
 * be. Else buffers do not overlap. A buffer that a rank does not use may be NULL. *req is set on
 * success only; free it by trib_free(). -EINVAL, -ENOTSUP, -EIO: a refused call changes nothing.
 * op of a reduction: enum trib_sum, or one of the above.
 */
int trib_all_reduce(struct trib_comm *comm, const void *send, void *recv, size_t count,
                    enum trib_type type, int op, struct trib_request **req, char *err);
int trib_reduce(struct trib_comm *comm, const void *send, void *recv, size_t count,
                enum trib_type type, int op, uint32_t root, struct trib_request **req, char *err);
int trib_reduce_scatter(struct trib_comm *comm, const void *send, void *recv, size_t count,
                        enum trib_type type, int op, struct trib_request **req, char *err);
int trib_broadcast(struct trib_comm *comm, void *buf, size_t count, enum trib_type type,
                   uint32_t root, struct trib_request **req, char *err);
int trib_all_gather(struct trib_comm *comm, const void *send, void *recv, size_t count,
                    enum trib_type type, struct trib_request **req, char *err);
int trib_gather(struct trib_comm *comm, const void *send, void *recv, size_t count,
                enum trib_type type, uint32_t root, struct trib_request **req, char *err);
int trib_scatter(struct trib_comm *comm, const void *send, void *recv, size_t count,
                 enum trib_type type, uint32_t root, struct trib_request **req, char *err);
int trib_all_to_all(struct trib_comm *comm, const void *send, void *recv, size_t count,
                    enum trib_type type, struct trib_request **req, char *err);
int trib_barrier(struct trib_comm *comm, struct trib_request **req, char *err);

/* Proceeds. 0: it has not ended; 1: done, also NULL; negative: failed, trib_comm_error() says why. */
int trib_test(struct trib_request *req);
/* Until it has ended: 0 or a negative errno. */
int trib_wait(struct trib_request *req);
/* The same for so many seconds of wall time at most; returns as trib_test(), 0: it has not ended. */
int trib_wait_for(struct trib_request *req, double seconds);
/* One that has not ended goes on, and its buffers stay in use until it ends. NULL: nothing. */
void trib_free(struct trib_request *req);
/* Proceeds without asking for one. */
void trib_progress(struct trib_comm *comm);
/* The algorithm that has run it, or would by now: "sharp", "ring", ...; "": it is no request. */
const char *trib_request_algo(const struct trib_request *req);

/* Fabric time now; for differences. 0 before the first communicator. */
int64_t trib_time_ps(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
