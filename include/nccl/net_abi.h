/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What NCCL and a network plug-in agree on: the tables of functions that it looks up by the names
 * ncclNetPlugin_v8 to _v12 and ncclCollNetPlugin_v8 to _v12. New in NCCL 2.20 (v8), 2.24 (v9), 2.26
 * (v10), 2.28 (v11), 2.30 (v12). Facts of NCCL's public plug-in interface, stated once for both ends
 * that are here: the plug-in (plugins/nccl) and what checks plug-ins.
 *
 * Would-block: isend, irecv and the collectives set *req to NULL and succeed, connect and accept
 * their communicator; the caller comes again. A request is not tested again after done.
 */
#ifndef NCCL_NET_ABI_H
#define NCCL_NET_ABI_H

#include <stddef.h>
#include <stdint.h>

enum nccl_result {
    NCCL_SUCCESS,
    NCCL_CUDA_ERROR,
    NCCL_SYSTEM_ERROR,
    NCCL_INTERNAL_ERROR,
    NCCL_INVALID_ARGUMENT,
    NCCL_INVALID_USAGE,
    NCCL_REMOTE_ERROR,
    NCCL_IN_PROGRESS,
    NCCL_RESULTS
};

enum nccl_op { NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN, NCCL_AVG, NCCL_OPS };

enum nccl_type {
    NCCL_INT8,
    NCCL_UINT8,
    NCCL_INT32,
    NCCL_UINT32,
    NCCL_INT64,
    NCCL_UINT64,
    NCCL_FLOAT16,
    NCCL_FLOAT32,
    NCCL_FLOAT64,
    NCCL_BFLOAT16,
    NCCL_FLOAT8E4M3,
    NCCL_FLOAT8E5M2,
    NCCL_TYPES
};

enum nccl_ptr { NCCL_PTR_HOST = 1, NCCL_PTR_CUDA = 2, NCCL_PTR_DMABUF = 4 };

enum nccl_log { NCCL_LOG_VERSION = 1, NCCL_LOG_WARN = 2, NCCL_LOG_INFO = 3, NCCL_LOG_TRACE = 5 };

#define NCCL_HANDLE        128 /* bytes of a listen handle */
#define NCCL_REQUESTS      32 /* of a communicator at once; of a sender for each receive of a group */
#define NCCL_MAX_BYTES     (1ull << 40) /* most of maxP2pBytes and maxCollBytes */
#define NCCL_LOG_NET       0x10ul       /* the log's bit of networks, of unsigned long flags */
#define NCCL_NO_CLASS      (-1)         /* no traffic class, rail or plane */
#define NCCL_RECV_OPTIONAL ((void *)1)  /* *req at entry of irecv: nobody asks for the size */

typedef void (*nccl_log_fn)(int level, unsigned long flags, const char *file, int line,
                            const char *fmt, ...) __attribute__((format(printf, 5, 6)));
typedef int (*nccl_profile_fn)(void **event, int type, void *parent, int64_t id, void *data);

/* ---- properties of a device ---- */

struct nccl_vdev {
    int ndevs, devs[4];
};
struct nccl_vdev_v12 {
    int ndevs, devs[8];
};

#define NCCL_PROPS_HEAD                                                                            \
    char *name, *pci_path; /* its folder in /sys, or NULL */                                       \
    uint64_t guid;         /* of the card */                                                       \
    int ptr_support;       /* bits of enum nccl_ptr */                                             \
    int reg_is_global      /* a registration holds for all communicators */
/* speed in Mb/s, latency in us; device type 0 is the host's, there is no other without GPU code */
#define NCCL_PROPS_MIDDLE                                                                          \
    int speed, port;                                                                               \
    float latency;                                                                                 \
    int max_comms, max_recvs;                                                                      \
    int device_type, device_version

struct nccl_props_v8 {
    NCCL_PROPS_HEAD;
    NCCL_PROPS_MIDDLE;
};
struct nccl_props_v9 { /* and v10 */
    NCCL_PROPS_HEAD;
    int force_flush;
    NCCL_PROPS_MIDDLE;
    struct nccl_vdev vdev;
    size_t max_p2p_bytes, max_coll_bytes;
};
struct nccl_props_v11 {
    NCCL_PROPS_HEAD;
    int force_flush;
    NCCL_PROPS_MIDDLE;
    struct nccl_vdev vdev;
    size_t max_p2p_bytes, max_coll_bytes;
    int max_multi_request_size;
};
struct nccl_props_v12 {
    NCCL_PROPS_HEAD;
    int force_flush;
    NCCL_PROPS_MIDDLE;
    struct nccl_vdev_v12 vdev;
    size_t max_p2p_bytes, max_coll_bytes;
    int max_multi_request_size;
    int16_t rail_id, plane_id;
};

_Static_assert(sizeof(struct nccl_props_v8) == 64 && sizeof(struct nccl_props_v9) == 104 &&
                   sizeof(struct nccl_props_v11) == 112 && sizeof(struct nccl_props_v12) == 128,
               "as NCCL's own");
_Static_assert(offsetof(struct nccl_props_v9, vdev) == 64 &&
                   offsetof(struct nccl_props_v12, max_p2p_bytes) == 104,
               "as NCCL's own");

/* ---- what functions take ---- */

struct nccl_device_handle; /* of networks that GPUs drive: none here */

struct nccl_config {
    int traffic_class;
};
struct nccl_comm_attr {
    int32_t max_concurrent_peers, min_concurrent_peers, max_flows_per_peer, min_flows_per_peer;
};
struct nccl_net_attr {
    struct nccl_comm_attr send, recv;
    uint32_t op, algo, proto;
};
struct nccl_sge_v8 {
    void *mh, *address;
    uint32_t size;
};
struct nccl_sge {
    void *mh, *address;
    size_t size;
};

_Static_assert(sizeof(struct nccl_sge) == 24 && sizeof(struct nccl_sge_v8) == 24, "as NCCL's own");

/* ---- the tables; all functions return enum nccl_result ---- */

#define NCCL_FN(name, ...) int (*name)(__VA_ARGS__)

#define NCCL_ACCEPT_AND_MEMORY                                                                     \
    NCCL_FN(accept, void *listen, void **recv_comm, struct nccl_device_handle **);                 \
    NCCL_MEMORY
/* data of size bytes, of a type of enum nccl_ptr */
#define NCCL_MEMORY                                                                                \
    NCCL_FN(reg_mr, void *comm, void *data, size_t size, int type, void **mh);                     \
    NCCL_FN(reg_mr_dmabuf, void *comm, void *data, size_t size, int type, uint64_t offset, int fd, \
            void **mh);                                                                            \
    NCCL_FN(dereg_mr, void *comm, void *mh)
/* test: size may be NULL; of a group of receives it has a size each */
#define NCCL_END                                                                                   \
    NCCL_FN(iflush, void *recv_comm, int n, void **data, int *sizes, void **mh, void **req);       \
    NCCL_FN(test, void *req, int *done, int *sizes);                                               \
    NCCL_FN(close_send, void *send_comm);                                                          \
    NCCL_FN(close_recv, void *recv_comm);                                                          \
    NCCL_FN(close_listen, void *listen);                                                           \
    NCCL_FN(get_device_mr, void *comm, void *mh, void **device_mh);                                \
    NCCL_FN(irecv_consumed, void *recv_comm, int n, void *req)

struct nccl_net_v8 {
    const char *name;
    NCCL_FN(init, nccl_log_fn);
    NCCL_FN(devices, int *n);
    NCCL_FN(get_properties, int dev, struct nccl_props_v8 *);
    NCCL_FN(listen, int dev, void *handle, void **listen);
    NCCL_FN(connect, int dev, void *handle, void **send_comm, struct nccl_device_handle **);
    NCCL_ACCEPT_AND_MEMORY;
    NCCL_FN(isend, void *send_comm, void *data, int size, int tag, void *mh, void **req);
    NCCL_FN(irecv, void *recv_comm, int n, void **data, int *sizes, int *tags, void **mh,
            void **req);
    NCCL_END;
};

struct nccl_net_v9 {
    const char *name;
    NCCL_FN(init, nccl_log_fn);
    NCCL_FN(devices, int *n);
    NCCL_FN(get_properties, int dev, struct nccl_props_v9 *);
    NCCL_FN(listen, int dev, void *handle, void **listen);
    NCCL_FN(connect, int dev, void *handle, void **send_comm, struct nccl_device_handle **);
    NCCL_ACCEPT_AND_MEMORY;
    NCCL_FN(isend, void *send_comm, void *data, size_t size, int tag, void *mh, void **req);
    NCCL_FN(irecv, void *recv_comm, int n, void **data, size_t *sizes, int *tags, void **mh,
            void **req);
    NCCL_END;
    NCCL_FN(make_vdevice, int *dev, struct nccl_vdev *);
};

/* From v10 on; ph: of the profiler. */
#define NCCL_TRANSFER                                                                              \
    NCCL_FN(isend, void *send_comm, void *data, size_t size, int tag, void *mh, void *ph,          \
            void **req);                                                                           \
    NCCL_FN(irecv, void *recv_comm, int n, void **data, size_t *sizes, int *tags, void **mh,       \
            void **ph, void **req)

struct nccl_net_v10 {
    const char *name;
    NCCL_FN(init, nccl_log_fn, nccl_profile_fn);
    NCCL_FN(devices, int *n);
    NCCL_FN(get_properties, int dev, struct nccl_props_v9 *);
    NCCL_FN(listen, int dev, void *handle, void **listen);
    NCCL_FN(connect, int dev, struct nccl_config *, void *handle, void **send_comm,
            struct nccl_device_handle **);
    NCCL_ACCEPT_AND_MEMORY;
    NCCL_TRANSFER;
    NCCL_END;
    NCCL_FN(make_vdevice, int *dev, struct nccl_vdev *);
};

/* From v11 on: init and finalize are called for each communicator of NCCL, which has a context. */
#define NCCL_NET_OF_CONTEXTS(props, vdev)                                                          \
    const char *name;                                                                              \
    NCCL_FN(init, void **ctx, uint64_t comm_id, struct nccl_config *, nccl_log_fn,                 \
            nccl_profile_fn);                                                                      \
    NCCL_FN(devices, int *n);                                                                      \
    NCCL_FN(get_properties, int dev, struct props *);                                              \
    NCCL_FN(listen, void *ctx, int dev, void *handle, void **listen);                              \
    NCCL_FN(connect, void *ctx, int dev, void *handle, void **send_comm,                           \
            struct nccl_device_handle **);                                                         \
    NCCL_ACCEPT_AND_MEMORY;                                                                        \
    NCCL_TRANSFER;                                                                                 \
    NCCL_END;                                                                                      \
    NCCL_FN(make_vdevice, int *dev, struct vdev *);                                                \
    NCCL_FN(finalize, void *ctx);                                                                  \
    NCCL_FN(set_net_attr, void *ctx, struct nccl_net_attr *)

struct nccl_net_v11 {
    NCCL_NET_OF_CONTEXTS(nccl_props_v11, nccl_vdev);
};
struct nccl_net_v12 {
    NCCL_NET_OF_CONTEXTS(nccl_props_v12, nccl_vdev_v12);
};

/* handles: [nranks] of listen; connect may block. supported: 1 or 0. */
#define NCCL_COLL_CONNECT                                                                          \
    NCCL_FN(connect, void *handles[], int nranks, int rank, void *listen, void **coll_comm);       \
    NCCL_FN(reduce_support, int type, int op, int *supported);                                     \
    NCCL_MEMORY
/* The window [offset, offset + bytes) of the vector of all ranks' blocks, bytes_per_rank each. */
#define NCCL_COLL_WINDOWS(sge)                                                                     \
    NCCL_FN(iallgather, void *coll_comm, void *send, int n_parts, struct sge *recv_parts,          \
            size_t bytes_per_rank, size_t window_offset, size_t window_bytes, void *send_mh,       \
            void **req);                                                                           \
    NCCL_FN(ireducescatter, void *coll_comm, int n_parts, struct sge *send_parts, void *recv,      \
            size_t bytes_per_rank, size_t window_offset, size_t window_bytes, int type, int op,    \
            void *recv_mh, void **req)
#define NCCL_COLL_END                                                                              \
    NCCL_FN(iflush, void *coll_comm, void *data, int size, void *mh, void **req);                  \
    NCCL_FN(test, void *req, int *done, int *size);                                                \
    NCCL_FN(close_coll, void *coll_comm);                                                          \
    NCCL_FN(close_listen, void *listen)
#define NCCL_COLL_ALLREDUCE                                                                        \
    NCCL_FN(iallreduce, void *coll_comm, void *send, void *recv, size_t count, int type, int op,   \
            void *send_mh, void *recv_mh, void **req)

struct nccl_coll_v8 {
    const char *name;
    NCCL_FN(init, nccl_log_fn);
    NCCL_FN(devices, int *n);
    NCCL_FN(get_properties, int dev, struct nccl_props_v8 *);
    NCCL_FN(listen, int dev, void *handle, void **listen);
    NCCL_COLL_CONNECT;
    NCCL_FN(iallreduce, void *coll_comm, void *send, void *recv, int count, int type, int op,
            void *send_mh, void *recv_mh, void **req);
    NCCL_COLL_WINDOWS(nccl_sge_v8);
    NCCL_COLL_END;
};

struct nccl_coll_v9 { /* and v10 */
    const char *name;
    NCCL_FN(init, nccl_log_fn);
    NCCL_FN(devices, int *n);
    NCCL_FN(get_properties, int dev, struct nccl_props_v9 *);
    NCCL_FN(listen, int dev, void *handle, void **listen);
    NCCL_COLL_CONNECT;
    NCCL_COLL_ALLREDUCE;
    NCCL_COLL_WINDOWS(nccl_sge);
    NCCL_COLL_END;
    NCCL_FN(make_vdevice, int *dev, struct nccl_vdev *);
};

#define NCCL_COLL_OF_CONTEXTS(props, vdev)                                                         \
    const char *name;                                                                              \
    NCCL_FN(init, void **ctx, uint64_t comm_id, nccl_log_fn);                                      \
    NCCL_FN(devices, int *n);                                                                      \
    NCCL_FN(get_properties, int dev, struct props *);                                              \
    NCCL_FN(listen, void *ctx, int dev, void *handle, void **listen);                              \
    NCCL_COLL_CONNECT;                                                                             \
    NCCL_COLL_ALLREDUCE;                                                                           \
    NCCL_COLL_WINDOWS(nccl_sge);                                                                   \
    NCCL_COLL_END;                                                                                 \
    NCCL_FN(make_vdevice, int *dev, struct vdev *);                                                \
    NCCL_FN(finalize, void *ctx)

struct nccl_coll_v11 {
    NCCL_COLL_OF_CONTEXTS(nccl_props_v11, nccl_vdev);
};
struct nccl_coll_v12 {
    NCCL_COLL_OF_CONTEXTS(nccl_props_v12, nccl_vdev_v12);
};

#endif
