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
 * Ownership: buffers stay the caller's, who may change them again once the operation has ended.
 * Threads: any; calls for one communicator wait for each other. No thread runs in the background:
 * operations proceed in trib_test(), trib_wait() and trib_progress() of any of the communicator's
 * operations.
 * Errors: functions return 0 or a negative errno; `err`, TRIB_TEXT bytes, may be NULL and gets the
 * reason in words. A NULL store, communicator, request or place for a result is refused with -EINVAL; so is
 * one that has ended, as far as its memory still shows that. Functions that return no error do nothing
 * then, and return 0 or what their comment says.
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

#define TRIB_COLL_VERSION 1 /* version of this header; trib_coll_version(): of the library */
#define TRIB_TEXT         256

/* Reductions beside those of enum trib_sum: the mean; bitwise, of integers; the least or greatest value with
 * its index, of pairs only; logical, of integers: 1 or 0 (with one rank: a copy). */
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
 * Calls by which the ranks of a communicator reach each other while it is created and destroyed. All ranks
 * make them in the same order; they block. They return 0; anything else is a failure. gather fills `all` at
 * the root only, in order of ranks. Messages are at most 512 bytes a rank.
 */
struct trib_oob {
    void *ctx;
    uint32_t rank, size;
    int (*bcast)(void *ctx, void *buf, size_t bytes, uint32_t root);
    int (*gather)(void *ctx, uint32_t root, const void *mine, void *all, size_t bytes);
    int (*barrier)(void *ctx);
};

/*
 * A trib_oob over TCP, for programs without MPI or PMIx: rank 0 listens at ADDRESS:PORT, the others connect to
 * it; each waits timeout_s seconds at most. Both ends prove that they know the same secret: that of
 * TRIB_STORE_SECRET, else of the file TRIB_STORE_SECRET_FILE (this user's, mode 0600), else that of a fabric
 * of several machines, else this user's own on this machine. Peers with another secret, or that come through
 * a forwarded port, are disconnected and change nothing. -ETIMEDOUT: ranks are missing, err names them;
 * -EACCES: the listener has another secret, or forwards connections.
 */
int trib_store_open(struct trib_store **store, const char *address, uint32_t rank, uint32_t size,
                    double timeout_s, char *err);
/*
 * A trib_oob over PMIx, for ranks that were started by mpirun, srun or another launcher with a PMIx server:
 * they need no address; trib_store_oob() tells rank and size. A call waits timeout_s seconds at
 * most. -ENOTCONN: there is no such launcher; -ENOTSUP: built without PMIx.
 */
int trib_store_pmix(struct trib_store **store, double timeout_s, char *err);
/* Fills *oob. store NULL: its calls are NULL, and trib_comm_create() refuses them. */
void trib_store_oob(struct trib_store *store, struct trib_oob *oob);
/* Closes the store. Destroy its communicators first. */
void trib_store_close(struct trib_store *store);

/* ---- communicators ---- */

struct trib_comm_options {
    /*
     * Algorithms, as in `trib perf --policy`: an operation uses the first one that supports the collective
     * on this fabric, and fails over to the next ones when switches refuse or fail. "auto": the fastest
     * by the model, for each size. NULL: "sharp,ring".
     */
    const char *algo;
    uint32_t window; /* slots to request from aggregation nodes; 0: their choice */
};

/* Creates a communicator of all ranks of oob; every rank calls it. options may be NULL. If one rank fails,
 * all do, with its reason. oob is copied; its ctx must stay valid until destroy. */
int trib_comm_create(struct trib_comm **comm, const struct trib_oob *oob,
                     const struct trib_comm_options *options, char *err);
/* Destroys the communicator; every rank calls it. Operations that have not ended fail. */
void trib_comm_destroy(struct trib_comm *comm);
uint32_t trib_comm_rank(const struct trib_comm *comm);
uint32_t trib_comm_size(const struct trib_comm *comm);
/* Why the communicator has failed; "": it has not. NULL or ended: says so. Valid until this thread's next call for it. */
const char *trib_comm_error(struct trib_comm *comm);
/* How many aggregation trees the switches granted to all ranks, the same number at each; 0: hosts reduce.
 * why: what the switches refused; "": nothing. */
unsigned trib_comm_trees(struct trib_comm *comm, char *why);
/* Why some of the in-network path is no longer used; "": all of it is. */
const char *trib_comm_fell_back(struct trib_comm *comm);

/* ---- memory ---- */

/*
 * Registers memory for operations, with all communicators of the process. Optional: an operation registers
 * the rest for as long as it runs; registering before saves that time. Memory that is only sent may be
 * read-only. Deregister it by the same address before it is unmapped. -EBUSY: an operation uses it.
 * -EINVAL, -ENOENT: NULL, or memory that cannot be registered, or is not.
 */
int trib_register(void *buf, size_t bytes);
int trib_deregister(void *buf);

/* ---- operations ---- */

/*
 * `count`: elements of the vector (all-reduce, reduce, broadcast), of each rank's contribution
 * (all-gather, gather), of what each rank gets (reduce-scatter, scatter), of the block for each pair
 * (all-to-all). In place: send == recv; all-gather and gather (root) send == recv + rank * count
 * elements, reduce-scatter and scatter (root) recv == send + rank * count elements; all-to-all has no
 * such form. Otherwise buffers must not overlap. A buffer that a rank does not use may be NULL. *req is set
 * on success only; free it with trib_free(). -EINVAL, -ENOTSUP, -EIO: a refused call changes nothing.
 * op: enum trib_sum, or one of the reductions above.
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

/* Makes progress. 1: done, or NULL; 0: not yet; negative: failed, and trib_comm_error() says why. */
int trib_test(struct trib_request *req);
/* Waits until the operation has ended: 0 or a negative errno. */
int trib_wait(struct trib_request *req);
/* Waits for at most so many seconds of wall time. Returns as trib_test(); 0: it has not ended. */
int trib_wait_for(struct trib_request *req, double seconds);
/* Frees a request. An operation that has not ended goes on, and uses its buffers until then. NULL: nothing. */
void trib_free(struct trib_request *req);
/* Makes progress on all operations of a communicator. */
void trib_progress(struct trib_comm *comm);
/* The algorithm that ran it, or would run it now: "sharp", "ring", ...; "": not a request. */
const char *trib_request_algo(const struct trib_request *req);

/* Fabric time now, for differences. 0 before the first communicator exists. */
int64_t trib_time_ps(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
