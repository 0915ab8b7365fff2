/* SPDX-License-Identifier: BSD-3-Clause */
/* CollNet: communicators of tributary/coll.h, which reduces in the switches. */
#ifndef TRIB_PLUGINS_NCCL_COLL_H
#define TRIB_PLUGINS_NCCL_COLL_H

#include "plugins/nccl/nccl_priv.h"

#include <tributary/coll.h>

/* ---- types and reductions ---- */

/* Converts a type or reduction; false: not supported, equally at all ranks. There is no mean, as
 * NCCL divides sums itself. */
bool nccl_type_of(int type, enum trib_type *to);
bool nccl_op_of(int op, int *to);
int nccl_reduce_support(int type, int op, int *supported);

/* ---- out-of-band calls ---- */

/* Connections between rank 0 and each other rank, in both directions. */
struct nccl_star {
    uint32_t rank, size;
    void **to, **from; /* at rank 0: [size], by rank; at the others only [0], to rank 0 */
    uint8_t *memory;   /* buffer of messages */
    void *mh;
};
/* Connects, and waits for the other ranks. */
int nccl_star_open(struct nccl_star *star, int dev, void *handles[], uint32_t size, uint32_t rank,
                   void *listen);
void nccl_star_oob(struct nccl_star *star, struct trib_oob *oob);
void nccl_star_close(struct nccl_star *star);

/* ---- communicators ---- */

#define NCCL_COLL_REQUESTS 64

struct nccl_coll {
    void *handle;
    struct nccl_star star;
    struct trib_comm *trib;
    uint32_t rank, size;
    bool told; /* the loss of parts of the in-network path has been logged */
    unsigned running;
    struct nccl_coll_request *requests;
};

struct nccl_coll_request {
    void *handle;
    struct nccl_coll *coll;
    const char *what;
    unsigned n, ended;
    int size; /* for test() */
    struct trib_request **part;
    struct nccl_coll_request *next;
};

int nccl_coll_connect(void *handles[], int nranks, int rank, void *listen, void **coll_comm);
int nccl_coll_close(void *coll_comm);
int nccl_coll_reg_mr(void *comm, void *data, size_t size, int type, void **mh);
int nccl_coll_dereg_mr(void *comm, void *mh);
int nccl_coll_iallreduce(void *comm, void *send, void *recv, size_t count, int type, int op,
                         void *send_mh, void *recv_mh, void **req);
int nccl_coll_iallgather(void *comm, void *send, int n_parts, const struct nccl_sge *recv,
                         size_t block, size_t offset, size_t bytes, void *send_mh, void **req);
int nccl_coll_ireducescatter(void *comm, int n_parts, const struct nccl_sge *send, void *recv,
                             size_t block, size_t offset, size_t bytes, int type, int op,
                             void *recv_mh, void **req);
int nccl_coll_iflush(void *comm, void *data, int size, void *mh, void **req);
int nccl_coll_test(void *req, int *done, int *size);
/* Ends all requests of a communicator that is being closed; with the lock. */
void nccl_coll_requests_end(struct nccl_coll *c);

#endif
