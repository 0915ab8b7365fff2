/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, contexts, and the tables. */
#include "mock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static int init(nccl_log_fn log)
{
    log_by(log);
    if (planted("init-crash"))
        abort();
    return planted("init-fails") ? refuse(NCCL_SYSTEM_ERROR, "no device of mine") : NCCL_SUCCESS;
}

static int init_v10(nccl_log_fn log, nccl_profile_fn profile)
{
    (void)profile;
    return init(log);
}

static char any;

static int coll_init_v11(void **ctx, uint64_t comm_id, nccl_log_fn log)
{
    static void *shared;
    int rc = init(log);

    (void)comm_id;
    if (rc || planted("context-null"))
        return rc;
    *ctx = shared && planted("context-shared") ? shared : object_new(KIND_CONTEXT, &any);
    shared = *ctx;
    return rc;
}

static int net_init_v11(void **ctx, uint64_t comm_id, struct nccl_config *config, nccl_log_fn log,
                        nccl_profile_fn profile)
{
    (void)config, (void)profile;
    return coll_init_v11(ctx, comm_id, log);
}

static int finalize_v11(void *ctx)
{
    int rc = NCCL_SUCCESS;

    if (planted("finalize-fails"))
        return NCCL_INTERNAL_ERROR;
    if (!object_find(ctx, KIND_CONTEXT, &rc))
        return object_kind(ctx) != KIND_NONE && planted("wrong-context-accepted") ? NCCL_SUCCESS
                                                                                  : rc;
    object_end(ctx);
    for (uintptr_t i = 1; planted("finalize-all") && i < 65536; i++)
        if (object_kind((void *)i) == KIND_CONTEXT)
            object_end((void *)i);
    return rc;
}

static int devices(int *n)
{
    if (!n)
        return planted("null-devices-accepted") ? NCCL_SUCCESS
                                                : refuse(NCCL_INVALID_ARGUMENT, "no place");
    if (!planted("devices-unset"))
        *n = planted("devices-none") ? 0 : 1;
    return NCCL_SUCCESS;
}

/* ---- properties ---- */

static void properties_spoil(struct nccl_props_v12 *p)
{
    if (planted("props-name-null"))
        p->name = NULL;
    if (planted("props-name-empty"))
        p->name = (char *)(uintptr_t) "";
    if (planted("props-path-relative"))
        p->pci_path = (char *)(uintptr_t) "sys/devices";
    if (planted("props-speed-0"))
        p->speed = 0;
    if (planted("props-ptr-none"))
        p->ptr_support = 0;
    if (planted("props-latency-nan"))
        p->latency = NAN;
    if (planted("props-max-comms"))
        p->max_comms = -1;
    if (planted("props-max-recvs-0"))
        p->max_recvs = 0;
    if (planted("props-max-recvs-64"))
        p->max_recvs = 64;
    if (planted("props-device-type"))
        p->device_type = 1;
    if (planted("props-no-vdev"))
        p->vdev.ndevs = 0;
    if (planted("props-p2p-0"))
        p->max_p2p_bytes = 0;
    if (planted("props-coll-huge"))
        p->max_coll_bytes = NCCL_MAX_BYTES + 1;
    if (planted("props-multi-0"))
        p->max_multi_request_size = 0;
}

static int properties_v12(int dev, struct nccl_props_v12 *to)
{
    static char name[] = "mock0";

    if (!to || ((dev < 0 || dev > 0) && !planted("bad-device")))
        return refuse(NCCL_INVALID_ARGUMENT, "no such device");
    *to = (struct nccl_props_v12){
        .name = name,
        .guid = 42,
        .ptr_support = NCCL_PTR_HOST,
        .speed = 100000,
        .port = 1,
        .latency = 1,
        .max_comms = 1000,
        .max_recvs = GROUP,
        .vdev = {.ndevs = 1},
        .max_p2p_bytes = BLOCK,
        .max_coll_bytes = BLOCK,
        .max_multi_request_size = 1,
        .rail_id = NCCL_NO_CLASS,
        .plane_id = NCCL_NO_CLASS,
    };
    properties_spoil(to);
    return NCCL_SUCCESS;
}

#define HEAD_AND_MIDDLE(p)                                                                         \
    .name = (p).name, .pci_path = (p).pci_path, .guid = (p).guid, .ptr_support = (p).ptr_support,  \
    .reg_is_global = (p).reg_is_global, .speed = (p).speed, .port = (p).port,                      \
    .latency = (p).latency, .max_comms = (p).max_comms, .max_recvs = (p).max_recvs,                \
    .device_type = (p).device_type, .device_version = (p).device_version
#define NEWER(p)                                                                                   \
    .force_flush = (p).force_flush, .vdev = {.ndevs = (p).vdev.ndevs, .devs = {(p).vdev.devs[0]}}, \
    .max_p2p_bytes = (p).max_p2p_bytes, .max_coll_bytes = (p).max_coll_bytes

static int properties_v9(int dev, struct nccl_props_v9 *to)
{
    struct nccl_props_v12 p;
    int rc = properties_v12(dev, to ? &p : NULL);

    if (rc)
        return rc;
    *to = (struct nccl_props_v9){HEAD_AND_MIDDLE(p), NEWER(p)};
    if (planted("props-versions-differ"))
        to->guid++;
    return NCCL_SUCCESS;
}

static int properties_v8(int dev, struct nccl_props_v8 *to)
{
    struct nccl_props_v12 p;
    int rc = properties_v12(dev, to ? &p : NULL), speed;

    if (rc)
        return rc;
    speed = to->speed;
    if (planted("props-beyond")) /* the struct of a newer version */
        return properties_v9(dev, (void *)to);
    *to = (struct nccl_props_v8){HEAD_AND_MIDDLE(p)};
    if (planted("props-speed-unset"))
        to->speed = speed;
    return NCCL_SUCCESS;
}

static int properties_v11(int dev, struct nccl_props_v11 *to)
{
    struct nccl_props_v12 p;
    int rc = properties_v12(dev, to ? &p : NULL);

    if (rc)
        return rc;
    *to = (struct nccl_props_v11){HEAD_AND_MIDDLE(p), NEWER(p),
                                  .max_multi_request_size = p.max_multi_request_size};
    if (planted("props-shifted")) { /* places of a newer version */
        to->max_p2p_bytes = 0;
        to->max_coll_bytes = p.max_p2p_bytes;
    }
    return NCCL_SUCCESS;
}

static int properties_newest(int dev, struct nccl_props_v12 *to)
{
    struct nccl_props_v11 old;
    int rc = properties_v11(dev, to ? &old : NULL);

    if (!rc && planted("props-short")) { /* the struct of an older version */
        memcpy(to, &old, sizeof(old));
        return rc;
    }
    return properties_v12(dev, to);
}

/* ---- what differs between versions ---- */

static int context_check(void *ctx)
{
    int rc = NCCL_SUCCESS;

    object_find(ctx, KIND_CONTEXT, &rc);
    return rc;
}

static int listen_v11(void *ctx, int dev, void *handle, void **listen)
{
    int rc = context_check(ctx);

    return rc ? rc : mock_listen(dev, handle, listen);
}

static int connect_v10(int dev, struct nccl_config *config, void *handle, void **comm,
                       struct nccl_device_handle **device)
{
    (void)config;
    return mock_connect(dev, handle, comm, device);
}

static int connect_v11(void *ctx, int dev, void *handle, void **comm,
                       struct nccl_device_handle **device)
{
    int rc = context_check(ctx);

    return rc ? rc : mock_connect(dev, handle, comm, device);
}

static int isend_v8(void *comm, void *data, int size, int tag, void *mh, void **req)
{
    return mock_isend(comm, data, (size_t)size, tag, mh, req);
}

static int irecv_v8(void *comm, int n, void **data, int *sizes, int *tags, void **mh, void **req)
{
    size_t size[GROUP];

    for (int i = 0; i < n && i < GROUP; i++)
        size[i] = (size_t)sizes[i];
    return mock_irecv(comm, n, data, size, tags, mh, req);
}

static int irecv_v9(void *comm, int n, void **data, size_t *sizes, int *tags, void **mh, void **req)
{
    return mock_irecv(comm, n, data, sizes, tags, mh, req);
}

static int isend_v10(void *comm, void *data, size_t size, int tag, void *mh, void *ph, void **req)
{
    (void)ph;
    return mock_isend(comm, data, size, planted("tag-of-v10") ? 0 : tag, mh, req);
}

static int irecv_v10(void *comm, int n, void **data, size_t *sizes, int *tags, void **mh, void **ph,
                     void **req)
{
    (void)ph;
    return mock_irecv(comm, n, data, sizes, tags, mh, req);
}

/* ---- the tables ---- */

#define NET(init_fn, properties_fn, listen_fn, connect_fn, isend_fn, irecv_fn)                     \
    .name = "mock", .init = init_fn, .devices = devices, .get_properties = properties_fn,          \
    .listen = listen_fn, .connect = connect_fn, .accept = mock_accept, .reg_mr = mock_reg_mr,      \
    .reg_mr_dmabuf = mock_reg_dmabuf, .dereg_mr = mock_dereg_mr, .isend = isend_fn,                \
    .irecv = irecv_fn, .iflush = mock_iflush, .test = mock_test, .close_send = mock_close_send,    \
    .close_recv = mock_close_recv, .close_listen = mock_close_listen

EXPORT struct nccl_net_v8 ncclNetPlugin_v8 = {
    NET(init, properties_v8, mock_listen, mock_connect, isend_v8, irecv_v8)};
EXPORT struct nccl_net_v9 ncclNetPlugin_v9 = {
    NET(init, properties_v9, mock_listen, mock_connect, mock_isend, irecv_v9)};
EXPORT struct nccl_net_v10 ncclNetPlugin_v10 = {
    NET(init_v10, properties_v9, mock_listen, connect_v10, isend_v10, irecv_v10)};
EXPORT struct nccl_net_v11 ncclNetPlugin_v11 = {
    NET(net_init_v11, properties_v11, listen_v11, connect_v11, isend_v10, irecv_v10),
    .finalize = finalize_v11};
EXPORT struct nccl_net_v12 ncclNetPlugin_v12 = {
    NET(net_init_v11, properties_newest, listen_v11, connect_v11, isend_v10, irecv_v10),
    .finalize = finalize_v11};

static int iallreduce_v8(void *comm, void *send, void *recv, int count, int type, int op,
                         void *send_mh, void *recv_mh, void **req)
{
    return mock_iallreduce(comm, send, recv, (size_t)count, type, op, send_mh, recv_mh, req);
}

static struct nccl_sge part_of(const struct nccl_sge_v8 *from)
{
    return (struct nccl_sge){from->mh, from->address, from->size};
}

static int iallgather_v8(void *comm, void *send, int n_parts, struct nccl_sge_v8 *recv,
                         size_t block, size_t offset, size_t bytes, void *send_mh, void **req)
{
    struct nccl_sge part = part_of(recv);

    return mock_iallgather(comm, send, n_parts, &part, block, offset, bytes, send_mh, req);
}

static int ireducescatter_v8(void *comm, int n_parts, struct nccl_sge_v8 *send, void *recv,
                             size_t block, size_t offset, size_t bytes, int type, int op,
                             void *recv_mh, void **req)
{
    struct nccl_sge part = part_of(send);

    return mock_ireducescatter(comm, n_parts, &part, recv, block, offset, bytes, type, op, recv_mh,
                               req);
}

#define COLL(init_fn, properties_fn, listen_fn, allreduce_fn, allgather_fn, reducescatter_fn)      \
    .name = "mock", .init = init_fn, .devices = devices, .get_properties = properties_fn,          \
    .listen = listen_fn, .connect = mock_coll_connect, .reduce_support = mock_reduce_support,      \
    .reg_mr = mock_reg_mr, .reg_mr_dmabuf = mock_reg_dmabuf, .dereg_mr = mock_dereg_mr,            \
    .iallreduce = allreduce_fn, .iallgather = allgather_fn, .ireducescatter = reducescatter_fn,    \
    .iflush = mock_coll_iflush, .test = mock_coll_test, .close_coll = mock_coll_close,             \
    .close_listen = mock_close_listen
#define COLL_V9                                                                                    \
    {                                                                                              \
        COLL(init, properties_v9, mock_listen, mock_iallreduce, mock_iallgather,                   \
             mock_ireducescatter)                                                                  \
    }
#define COLL_V11(properties_fn)                                                                    \
    {                                                                                              \
        COLL(coll_init_v11, properties_fn, listen_v11, mock_iallreduce, mock_iallgather,           \
             mock_ireducescatter),                                                                 \
            .finalize = finalize_v11                                                               \
    }

EXPORT struct nccl_coll_v8 ncclCollNetPlugin_v8 = {
    COLL(init, properties_v8, mock_listen, iallreduce_v8, iallgather_v8, ireducescatter_v8)};
EXPORT struct nccl_coll_v9 ncclCollNetPlugin_v9 = COLL_V9;
EXPORT struct nccl_coll_v9 ncclCollNetPlugin_v10 = COLL_V9;
EXPORT struct nccl_coll_v11 ncclCollNetPlugin_v11 = COLL_V11(properties_v11);
EXPORT struct nccl_coll_v12 ncclCollNetPlugin_v12 = COLL_V11(properties_newest);

__attribute__((constructor)) static void tables_spoil(void)
{
    if (planted("load-crash"))
        abort();
    if (planted("no-isend"))
        ncclNetPlugin_v8.isend = NULL;
    if (planted("no-reduce-support"))
        ncclCollNetPlugin_v9.reduce_support = NULL;
    if (planted("no-name"))
        ncclNetPlugin_v10.name = NULL;
    if (planted("no-finalize"))
        ncclNetPlugin_v11.finalize = NULL;
    if (planted("version-of-v8")) /* its arguments are others */
        memcpy(&ncclNetPlugin_v10, &ncclNetPlugin_v8, sizeof(ncclNetPlugin_v8));
}

__attribute__((destructor)) static void end(void)
{
    if (planted("exit-status"))
        _exit(3);
}
