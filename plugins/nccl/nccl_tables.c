/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables that NCCL looks up by name. Versions differ only in arguments. */
#include "plugins/nccl/nccl_coll.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define NAME   "Tributary"

/* ---- init ---- */

static int net_init_v8(nccl_log_fn log)
{
    int rc;

    nccl_log_by(log);
    nccl_lock();
    rc = nccl_patience_read();
    if (!rc)
        rc = nccl_devices_open();
    nccl_unlock();
    return rc;
}

static int net_init_v10(nccl_log_fn log, nccl_profile_fn profile)
{
    (void)profile;
    return net_init_v8(log);
}

/* A context only identifies the NCCL communicator; devices belong to the process. */
static int context_new(void **ctx)
{
    static char any;
    int rc = NCCL_SUCCESS;

    if (!ctx)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "init: found no place for the context");
    nccl_lock();
    *ctx = nccl_handle_new(NCCL_KIND_CONTEXT, &any);
    nccl_unlock();
    if (!*ctx)
        rc = nccl_refuse(NCCL_SYSTEM_ERROR, "init: out of memory");
    return rc;
}

static int net_init_v11(void **ctx, uint64_t comm_id, struct nccl_config *config, nccl_log_fn log,
                        nccl_profile_fn profile)
{
    int rc = net_init_v8(log);

    (void)comm_id, (void)config, (void)profile;
    return rc ? rc : context_new(ctx);
}

static int coll_init_v11(void **ctx, uint64_t comm_id, nccl_log_fn log)
{
    int rc = net_init_v8(log);

    (void)comm_id;
    return rc ? rc : context_new(ctx);
}

static int context_check(const void *ctx, const char *call)
{
    void *any;
    int rc;

    nccl_lock();
    rc = nccl_handle_find(ctx, NCCL_KIND_CONTEXT, call, &any);
    nccl_unlock();
    return rc;
}

static int finalize_v11(void *ctx)
{
    int rc = context_check(ctx, "finalize");

    nccl_lock();
    if (!rc)
        nccl_handle_end(ctx);
    nccl_unlock();
    return rc;
}

/* ---- properties: earlier versions have fewer ---- */

#define HEAD_AND_MIDDLE(p)                                                                         \
    .name = (p).name, .pci_path = (p).pci_path, .guid = (p).guid, .ptr_support = (p).ptr_support,  \
    .reg_is_global = (p).reg_is_global, .speed = (p).speed, .port = (p).port,                      \
    .latency = (p).latency, .max_comms = (p).max_comms, .max_recvs = (p).max_recvs,                \
    .device_type = (p).device_type, .device_version = (p).device_version
#define NEWER(p)                                                                                   \
    .force_flush = (p).force_flush, .vdev = {.ndevs = (p).vdev.ndevs, .devs = {(p).vdev.devs[0]}}, \
    .max_p2p_bytes = (p).max_p2p_bytes, .max_coll_bytes = (p).max_coll_bytes

static int properties_v8(int dev, struct nccl_props_v8 *to)
{
    struct nccl_props_v12 p;
    int rc = nccl_properties(dev, to ? &p : NULL);

    if (!rc)
        *to = (struct nccl_props_v8){HEAD_AND_MIDDLE(p)};
    return rc;
}

static int properties_v9(int dev, struct nccl_props_v9 *to)
{
    struct nccl_props_v12 p;
    int rc = nccl_properties(dev, to ? &p : NULL);

    if (!rc)
        *to = (struct nccl_props_v9){HEAD_AND_MIDDLE(p), NEWER(p)};
    return rc;
}

static int properties_v11(int dev, struct nccl_props_v11 *to)
{
    struct nccl_props_v12 p;
    int rc = nccl_properties(dev, to ? &p : NULL);

    if (!rc)
        *to = (struct nccl_props_v11){HEAD_AND_MIDDLE(p), NEWER(p),
                                      .max_multi_request_size = p.max_multi_request_size};
    return rc;
}

/* ---- connections ---- */

static int listen_v11(void *ctx, int dev, void *handle, void **listen)
{
    int rc = context_check(ctx, "listen");

    return rc ? rc : nccl_listen(dev, handle, listen);
}

static int connect_v10(int dev, struct nccl_config *config, void *handle, void **comm,
                       struct nccl_device_handle **device)
{
    (void)config;
    return nccl_connect(dev, handle, comm, device);
}

static int connect_v11(void *ctx, int dev, void *handle, void **comm,
                       struct nccl_device_handle **device)
{
    int rc = context_check(ctx, "connect");

    return rc ? rc : nccl_connect(dev, handle, comm, device);
}

/* ---- transfer ---- */

static int isend_v8(void *comm, void *data, int size, int tag, void *mh, void **req)
{
    if (size < 0)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "isend: found %d bytes", size);
    return nccl_isend(comm, data, (size_t)size, tag, mh, req);
}

static int irecv_v8(void *comm, int n, void **data, int *sizes, int *tags, void **mh, void **req)
{
    size_t size[NCCL_GROUP] = {0};

    for (int i = 0; sizes && i < n && i < NCCL_GROUP; i++) {
        if (sizes[i] < 0)
            return nccl_refuse(NCCL_INVALID_ARGUMENT, "irecv: found %d bytes", sizes[i]);
        size[i] = (size_t)sizes[i];
    }
    return nccl_irecv(comm, n, data, sizes ? size : NULL, tags, mh, req);
}

static int irecv_v9(void *comm, int n, void **data, size_t *sizes, int *tags, void **mh, void **req)
{
    return nccl_irecv(comm, n, data, sizes, tags, mh, req);
}

static int isend_v10(void *comm, void *data, size_t size, int tag, void *mh, void *ph, void **req)
{
    (void)ph;
    return nccl_isend(comm, data, size, tag, mh, req);
}

static int irecv_v10(void *comm, int n, void **data, size_t *sizes, int *tags, void **mh, void **ph,
                     void **req)
{
    (void)ph;
    return nccl_irecv(comm, n, data, sizes, tags, mh, req);
}

/* ---- CollNet ---- */

static int iallreduce_v8(void *comm, void *send, void *recv, int count, int type, int op,
                         void *send_mh, void *recv_mh, void **req)
{
    if (count < 0)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "iallreduce: found %d elements", count);
    return nccl_coll_iallreduce(comm, send, recv, (size_t)count, type, op, send_mh, recv_mh, req);
}

static const struct nccl_sge *part_of(const struct nccl_sge_v8 *from, struct nccl_sge *to)
{
    if (!from)
        return NULL;
    *to = (struct nccl_sge){from->mh, from->address, from->size};
    return to;
}

static int iallgather_v8(void *comm, void *send, int n_parts, struct nccl_sge_v8 *recv,
                         size_t block, size_t offset, size_t bytes, void *send_mh, void **req)
{
    struct nccl_sge part;

    return nccl_coll_iallgather(comm, send, n_parts, part_of(recv, &part), block, offset, bytes,
                                send_mh, req);
}

static int ireducescatter_v8(void *comm, int n_parts, struct nccl_sge_v8 *send, void *recv,
                             size_t block, size_t offset, size_t bytes, int type, int op,
                             void *recv_mh, void **req)
{
    struct nccl_sge part;

    return nccl_coll_ireducescatter(comm, n_parts, part_of(send, &part), recv, block, offset, bytes,
                                    type, op, recv_mh, req);
}

static int iallgather_v9(void *comm, void *send, int n_parts, struct nccl_sge *recv, size_t block,
                         size_t offset, size_t bytes, void *send_mh, void **req)
{
    return nccl_coll_iallgather(comm, send, n_parts, recv, block, offset, bytes, send_mh, req);
}

static int ireducescatter_v9(void *comm, int n_parts, struct nccl_sge *send, void *recv,
                             size_t block, size_t offset, size_t bytes, int type, int op,
                             void *recv_mh, void **req)
{
    return nccl_coll_ireducescatter(comm, n_parts, send, recv, block, offset, bytes, type, op,
                                    recv_mh, req);
}

/* ---- the tables ---- */

#define NET(init_fn, properties_fn, listen_fn, connect_fn, isend_fn, irecv_fn)                     \
    .name = NAME, .init = init_fn, .devices = nccl_devices, .get_properties = properties_fn,       \
    .listen = listen_fn, .connect = connect_fn, .accept = nccl_accept, .reg_mr = nccl_reg_mr,      \
    .reg_mr_dmabuf = nccl_reg_mr_dmabuf, .dereg_mr = nccl_dereg_mr, .isend = isend_fn,             \
    .irecv = irecv_fn, .iflush = nccl_iflush, .test = nccl_test, .close_send = nccl_close_send,    \
    .close_recv = nccl_close_recv, .close_listen = nccl_close_listen

EXPORT const struct nccl_net_v8 ncclNetPlugin_v8 = {
    NET(net_init_v8, properties_v8, nccl_listen, nccl_connect, isend_v8, irecv_v8)};
EXPORT const struct nccl_net_v9 ncclNetPlugin_v9 = {
    NET(net_init_v8, properties_v9, nccl_listen, nccl_connect, nccl_isend, irecv_v9)};
EXPORT const struct nccl_net_v10 ncclNetPlugin_v10 = {
    NET(net_init_v10, properties_v9, nccl_listen, connect_v10, isend_v10, irecv_v10)};
EXPORT const struct nccl_net_v11 ncclNetPlugin_v11 = {
    NET(net_init_v11, properties_v11, listen_v11, connect_v11, isend_v10, irecv_v10),
    .finalize = finalize_v11};
EXPORT const struct nccl_net_v12 ncclNetPlugin_v12 = {
    NET(net_init_v11, nccl_properties, listen_v11, connect_v11, isend_v10, irecv_v10),
    .finalize = finalize_v11};

#define COLL(init_fn, properties_fn, listen_fn, allreduce_fn, allgather_fn, reducescatter_fn)      \
    .name = NAME, .init = init_fn, .devices = nccl_devices, .get_properties = properties_fn,       \
    .listen = listen_fn, .connect = nccl_coll_connect, .reduce_support = nccl_reduce_support,      \
    .reg_mr = nccl_coll_reg_mr, .reg_mr_dmabuf = nccl_reg_mr_dmabuf,                               \
    .dereg_mr = nccl_coll_dereg_mr, .iallreduce = allreduce_fn, .iallgather = allgather_fn,        \
    .ireducescatter = reducescatter_fn, .iflush = nccl_coll_iflush, .test = nccl_coll_test,        \
    .close_coll = nccl_coll_close, .close_listen = nccl_close_listen

#define COLL_V9                                                                                    \
    {                                                                                              \
        COLL(net_init_v8, properties_v9, nccl_listen, nccl_coll_iallreduce, iallgather_v9,         \
             ireducescatter_v9)                                                                    \
    }

EXPORT const struct nccl_coll_v8 ncclCollNetPlugin_v8 = {
    COLL(net_init_v8, properties_v8, nccl_listen, iallreduce_v8, iallgather_v8, ireducescatter_v8)};
EXPORT const struct nccl_coll_v9 ncclCollNetPlugin_v9 = COLL_V9;
EXPORT const struct nccl_coll_v9 ncclCollNetPlugin_v10 = COLL_V9;
EXPORT const struct nccl_coll_v11 ncclCollNetPlugin_v11 = {COLL(coll_init_v11, properties_v11,
                                                                listen_v11, nccl_coll_iallreduce,
                                                                iallgather_v9, ireducescatter_v9),
                                                           .finalize = finalize_v11};
EXPORT const struct nccl_coll_v12 ncclCollNetPlugin_v12 = {COLL(coll_init_v11, nccl_properties,
                                                                listen_v11, nccl_coll_iallreduce,
                                                                iallgather_v9, ireducescatter_v9),
                                                           .finalize = finalize_v11};
