/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NCCL's network plug-in over libibverbs, and its CollNet over tributary/coll.h.
 *
 *   nccl_tables.c       the tables of each version, which only adapt arguments
 *   nccl_log.c          the log, and refusals
 *   nccl_handle.c       what NCCL holds of objects: numbers that are looked up
 *   nccl_device.c       devices and their properties
 *   nccl_time.c         wall time
 *   nccl_datagram.c     unreliable datagrams, by which ends meet
 *   nccl_meet.c         listen, connect, accept
 *   nccl_link.c         a connection: its queue pair, completions, and whether the peer is there
 *   nccl_send.c         the sending end
 *   nccl_receive.c      the receiving end
 *   nccl_memory.c       registrations
 *   nccl_type.c         types and reductions
 *   nccl_star.c         out-of-band calls of a CollNet communicator, over connections
 *   nccl_coll.c         CollNet communicators
 *   nccl_coll_op.c      their operations
 *
 * One lock for the process protects everything and is held in every call, except while a CollNet
 * communicator is created or ends: those wait for other ranks.
 */
#ifndef TRIB_PLUGINS_NCCL_PRIV_H
#define TRIB_PLUGINS_NCCL_PRIV_H

#include <infiniband/verbs.h>
#include <nccl/net_abi.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- log ---- */

void nccl_log_by(nccl_log_fn log);
/* Writes a line to NCCL's log. Returns result. */
__attribute__((format(printf, 5, 6))) int nccl_say(int level, int result, const char *file,
                                                   int line, const char *format, ...);
#define nccl_refuse(result, ...) nccl_say(NCCL_LOG_WARN, result, __FILE__, __LINE__, __VA_ARGS__)
#define nccl_tell(...)           ((void)nccl_say(NCCL_LOG_INFO, 0, __FILE__, __LINE__, __VA_ARGS__))

/* ---- handles ---- */

enum nccl_kind {
    NCCL_KIND_NONE,
    NCCL_KIND_CONTEXT,
    NCCL_KIND_LISTEN,
    NCCL_KIND_MEETING, /* a connect that is in progress */
    NCCL_KIND_SEND,
    NCCL_KIND_RECV,
    NCCL_KIND_REQUEST,
    NCCL_KIND_MEMORY,
    NCCL_KIND_COLL,
    NCCL_KIND_COLL_REQUEST,
    NCCL_KIND_COLL_MEMORY,
    NCCL_KINDS
};
void nccl_lock(void);
void nccl_unlock(void);
/* Makes a handle. NULL: out of memory. A number is reused only after 2^31 others. */
void *nccl_handle_new(enum nccl_kind kind, void *object);
/* The object of a handle; NULL: the handle is not valid, or of another kind. */
void *nccl_handle_object(const void *handle, enum nccl_kind kind);
void nccl_handle_end(void *handle);
/* As nccl_handle_object(), with a message in the log if it is refused. */
int nccl_handle_find(const void *handle, enum nccl_kind kind, const char *call, void *object);

/* ---- devices ---- */

#define NCCL_DEVICES 8
struct nccl_device {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    union ibv_gid gid;
    enum ibv_mtu mtu;
    uint8_t ack_timeout; /* as ibv_qp_attr.timeout */
    char *path;          /* path in /sys, or NULL */
    char name[IBV_SYSFS_NAME_MAX];
    int index;
    uint64_t guid;
    int speed, max_qp; /* Mb/s */
};
/* Opens the devices, once. */
int nccl_devices_open(void);
int nccl_devices(int *n);
int nccl_device_get(int dev, const char *call, struct nccl_device **device);
int nccl_properties(int dev, struct nccl_props_v12 *props);

int64_t nccl_wall_ms(void);

/* ---- meeting ---- */

/* How to reach a queue pair. */
struct nccl_address {
    union ibv_gid gid;
    uint32_t qpn, psn;
};
struct ibv_ah_attr nccl_route(const union ibv_gid *gid);

struct nccl_datagram {
    uint64_t magic;
    uint64_t cookie; /* of the listening communicator */
    uint64_t id;     /* of the connection */
    struct nccl_address rc;
};

#define NCCL_DATAGRAMS 64
struct nccl_post_box {
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    unsigned sending;
    struct {
        uint8_t header[40];
        struct nccl_datagram d;
    } in[NCCL_DATAGRAMS];
};
int nccl_post_box_open(struct nccl_post_box *box, struct nccl_device *device);
void nccl_post_box_close(struct nccl_post_box *box);
/* Sends a datagram, which may be lost. */
void nccl_post_box_send(struct nccl_post_box *box, const struct nccl_datagram *d,
                        const union ibv_gid *gid, uint32_t qpn);
bool nccl_post_box_next(struct nccl_post_box *box, struct nccl_datagram *d, uint32_t *from_qpn);

struct nccl_device_handle;
int nccl_listen(int dev, void *handle, void **listen);
int nccl_connect(int dev, void *handle, void **send_comm, struct nccl_device_handle **device);
int nccl_accept(void *listen, void **recv_comm, struct nccl_device_handle **device);
int nccl_close_listen(void *listen);
/* The device of a listening communicator. */
int nccl_listen_device(void *listen, int *dev);
/* The first reads TRIB_NCCL_CONNECT_S; the second is the time in ms that connect() waits. */
int nccl_patience_read(void);
int64_t nccl_patience_ms(void);

/* ---- connections ---- */

#define NCCL_GROUP      8           /* most receives of a group */
#define NCCL_MOST_BYTES (1ul << 30) /* longest message: the limit of a work request */

/* A waiting receive, as its end announces it to the sender. */
struct nccl_entry {
    uint64_t address, bytes;
    uint32_t rkey;
    int32_t tag;
};
struct nccl_announcement {
    uint32_t n, request; /* request: number that comes back with the data */
    struct nccl_entry entry[NCCL_GROUP];
};
_Static_assert(sizeof(struct nccl_announcement) == 200, "inline in a work request");

/* Immediate data: number of the request, place in the group, whether the message was too large. */
#define NCCL_IMM(request, place, refused)                                                          \
    ((uint32_t)(request) | (uint32_t)(place) << 8 | (uint32_t)(refused) << 16)
#define NCCL_IMM_REQUEST(imm) ((imm)&0xff)
#define NCCL_IMM_PLACE(imm)   ((imm) >> 8 & 0xff)
#define NCCL_IMM_REFUSED(imm) ((imm) >> 16 & 1)

struct nccl_link;
struct nccl_request {
    void *handle; /* NULL: free */
    struct nccl_link *link;
    unsigned n, left;
    bool refused; /* a message was longer than its receive */
    size_t posted[NCCL_GROUP];
    int size[NCCL_GROUP];
};

struct nccl_group {
    struct nccl_announcement a;
    uint32_t used; /* bits of the entries that have their messages */
    unsigned left;
};

#define NCCL_SENDS (NCCL_REQUESTS * NCCL_GROUP)
struct nccl_link {
    enum nccl_kind kind; /* NCCL_KIND_SEND or _RECV */
    void *handle;        /* NULL: not handed to NCCL yet */
    struct nccl_device *device;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct nccl_address mine, peer;
    int failed; /* the result with which it failed; 0: it has not */
    bool ready; /* the other end is connected */
    bool asking;
    unsigned posted; /* outstanding work requests of the send queue */
    int64_t heard_ms;
    struct nccl_request request[NCCL_SENDS];
    /* the sending end */
    struct nccl_announcement in[NCCL_REQUESTS];
    struct nccl_group group[NCCL_REQUESTS];
    unsigned head, tail; /* of groups */
};
int nccl_link_new(struct nccl_device *device, enum nccl_kind kind, struct nccl_link **link);
int nccl_link_connect(struct nccl_link *l, const struct nccl_address *peer);
void nccl_link_free(struct nccl_link *l);
/* Handles completions. Returns `failed`. */
int nccl_link_poll(struct nccl_link *l);
/* Call while waiting: checks at intervals that the peer lives. */
void nccl_link_ask(struct nccl_link *l);
/* Posts a work request to the send queue. 0 or a result. */
int nccl_link_post(struct nccl_link *l, struct ibv_send_wr *wr);
/* Takes a free request, with at most `most` in use. NULL: none. */
struct nccl_request *nccl_request_new(struct nccl_link *l, unsigned most);
void nccl_request_end(struct nccl_request *r);
/* Handles a completion of the sending or receiving end. */
int nccl_send_took(struct nccl_link *l, const struct ibv_wc *wc);
int nccl_receive_took(struct nccl_link *l, const struct ibv_wc *wc);
int nccl_send_prepare(struct nccl_link *l);
int nccl_receive_prepare(struct nccl_link *l);
/* wr_id of work requests that belong to no NCCL request. */
enum { NCCL_WR_READY = NCCL_SENDS, NCCL_WR_ASK, NCCL_WR_ANNOUNCE, NCCL_WR_RECV };

int nccl_isend(void *send_comm, void *data, size_t size, int tag, void *mh, void **req);
int nccl_irecv(void *recv_comm, int n, void **data, const size_t *sizes, const int *tags, void **mh,
               void **req);
int nccl_iflush(void *recv_comm, int n, void **data, int *sizes, void **mh, void **req);
int nccl_test(void *req, int *done, int *sizes);
int nccl_close_send(void *comm);
int nccl_close_recv(void *comm);

/* ---- memory ---- */

int nccl_reg_mr(void *comm, void *data, size_t size, int type, void **mh);
int nccl_reg_mr_dmabuf(void *comm, void *data, size_t size, int type, uint64_t offset, int fd,
                       void **mh);
int nccl_dereg_mr(void *comm, void *mh);
/* Finds the registration that holds the bytes; *mr may be NULL if there are none. */
int nccl_memory_find(const void *mh, const void *data, size_t size, const char *call,
                     struct ibv_mr **mr);
/* Whether memory of the type can be registered. */
int nccl_memory_check(const void *data, size_t size, int type, void *const *mh);

#endif
