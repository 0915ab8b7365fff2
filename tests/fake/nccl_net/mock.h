/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network plug-in for NCCL over shared memory, for tests of what checks plug-ins. It is right;
 * MOCK_PLANT=NAME makes one thing wrong (plants.txt has the names).
 */
#ifndef TRIB_TESTS_FAKE_NCCL_NET_MOCK_H
#define TRIB_TESTS_FAKE_NCCL_NET_MOCK_H

#include <nccl/net_abi.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

bool planted(const char *name);
int refuse(int result, const char *why);
void log_by(nccl_log_fn log);

/* ---- objects ---- */

enum kind {
    KIND_NONE,
    KIND_CONTEXT,
    KIND_LISTEN,
    KIND_MEETING,
    KIND_SEND,
    KIND_RECV,
    KIND_MEMORY,
    KIND_REQUEST,
    KIND_FLUSH,
    KIND_COLL,
    KIND_COLL_REQUEST
};
/* A number, never used again; an object of its own kind is behind it. */
void *object_new(enum kind kind, void *at);
/* NULL: it is none, and *rc the refusal. */
void *object_find(const void *handle, enum kind kind, int *rc);
enum kind object_kind(const void *handle);
void object_end(const void *handle);

struct memory {
    char *at;
    size_t size;
};
int memory_check(const void *mh, const void *data, size_t size);
int mock_reg_mr(void *comm, void *data, size_t size, int type, void **mh);
int mock_reg_dmabuf(void *comm, void *data, size_t size, int type, uint64_t offset, int fd,
                    void **mh);
int mock_dereg_mr(void *comm, void *mh);

/* Memory that another process finds by the pair; it is gone with its last user. */
struct shared {
    pid_t pid;
    int fd;
};
void *shared_new(size_t size, struct shared *where);
void *shared_open(const struct shared *where, size_t size);
bool is_dead(pid_t pid);

/* ---- net ---- */

int mock_listen(int dev, void *handle, void **listen);
int mock_connect(int dev, void *handle, void **comm, struct nccl_device_handle **device);
int mock_accept(void *listen, void **comm, struct nccl_device_handle **device);
int mock_close_listen(void *listen);
int mock_isend(void *comm, void *data, size_t size, int tag, void *mh, void **req);
int mock_irecv(void *comm, int n, void **data, const size_t *sizes, const int *tags, void **mh,
               void **req);
int mock_iflush(void *comm, int n, void **data, int *sizes, void **mh, void **req);
int mock_test(void *req, int *done, int *sizes);
int mock_close_send(void *comm);
int mock_close_recv(void *comm);

/* Where ranks of a collective communicator find what the one that listens has made for them. */
struct entrance {
    struct shared where;
    _Atomic int there;
};
struct entrance *entrance_open(const void *handle);
void entrance_leave(struct entrance *e);

/* ---- CollNet ---- */

int mock_coll_connect(void *handles[], int nranks, int rank, void *listen, void **comm);
int mock_reduce_support(int type, int op, int *supported);
int mock_iallreduce(void *comm, void *send, void *recv, size_t count, int type, int op,
                    void *send_mh, void *recv_mh, void **req);
int mock_iallgather(void *comm, void *send, int n_parts, struct nccl_sge *part, size_t block,
                    size_t offset, size_t bytes, void *send_mh, void **req);
int mock_ireducescatter(void *comm, int n_parts, struct nccl_sge *part, void *recv, size_t block,
                        size_t offset, size_t bytes, int type, int op, void *recv_mh, void **req);
int mock_coll_iflush(void *comm, void *data, int size, void *mh, void **req);
int mock_coll_test(void *req, int *done, int *size);
int mock_coll_close(void *comm);

/* ---- messages ---- */

#define SLOTS 256
#define GROUP 8
#define BLOCK ((size_t)1 << 20)

struct slot {
    _Atomic int state;
    unsigned number; /* of the message */
    int tag;
    size_t size;
};
enum { SLOT_FREE, SLOT_FULL, SLOT_TAKEN };
struct wire {
    _Atomic pid_t sender, receiver;
    _Atomic int sender_left, receiver_left;
    _Atomic unsigned receives; /* posted, of all times */
    struct slot slot[SLOTS];
    char data[SLOTS][BLOCK];
};

struct link;
struct request {
    void *handle; /* NULL: free */
    struct link *link;
    unsigned n, left;
    bool refused;
    /* of a receive */
    char *data[GROUP];
    size_t room[GROUP];
    int tag[GROUP], size[GROUP];
    unsigned number;
    void *mh;
    /* of a send */
    unsigned slot;
    const char *from;
};
struct link {
    enum kind kind;
    void *handle;
    struct wire *wire;
    struct shared where;
    unsigned next, calls; /* messages; receives */
    struct request request[SLOTS];
};
int link_new(enum kind kind, struct wire *wire, struct shared where, struct link **l);
void link_free(struct link *l);
/* Takes what has come. */
void link_receive(struct link *l);

#endif
