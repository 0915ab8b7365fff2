/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/check/tables.h"

#include <dlfcn.h>
#include <string.h>

/* New versions add functions at the end of a table, and a few change arguments. Functions that
 * never changed are called through the oldest table's type. */
#define NET(t)  ((const struct nccl_net_v8 *)(t)->at)
#define COLL(t) ((const struct nccl_coll_v8 *)(t)->at)
#define SAME(a, b, f)                                                                              \
    _Static_assert(offsetof(struct a, f) == offsetof(struct b, f), "in the same place")
SAME(nccl_net_v8, nccl_net_v9, irecv_consumed);
SAME(nccl_net_v8, nccl_net_v10, irecv_consumed);
SAME(nccl_net_v8, nccl_net_v11, irecv_consumed);
SAME(nccl_net_v8, nccl_net_v12, irecv_consumed);
SAME(nccl_net_v11, nccl_net_v12, finalize);
SAME(nccl_coll_v8, nccl_coll_v9, close_listen);
SAME(nccl_coll_v8, nccl_coll_v11, close_listen);
SAME(nccl_coll_v8, nccl_coll_v12, close_listen);
SAME(nccl_coll_v11, nccl_coll_v12, finalize);

#define NET9(t)   ((const struct nccl_net_v9 *)(t)->at)
#define NET10(t)  ((const struct nccl_net_v10 *)(t)->at)
#define NET11(t)  ((const struct nccl_net_v11 *)(t)->at)
#define NET12(t)  ((const struct nccl_net_v12 *)(t)->at)
#define COLL9(t)  ((const struct nccl_coll_v9 *)(t)->at)
#define COLL11(t) ((const struct nccl_coll_v11 *)(t)->at)
#define COLL12(t) ((const struct nccl_coll_v12 *)(t)->at)
/* Of both kinds. */
#define BOTH(t, f, ...) ((t)->coll ? COLL(t)->f(__VA_ARGS__) : NET(t)->f(__VA_ARGS__))

static const char *const names[] = {"net-v8",  "net-v9",  "net-v10",  "net-v11",  "net-v12",
                                    "coll-v8", "coll-v9", "coll-v10", "coll-v11", "coll-v12"};
static const char *const symbols[] = {
    "ncclNetPlugin_v8",      "ncclNetPlugin_v9",      "ncclNetPlugin_v10",
    "ncclNetPlugin_v11",     "ncclNetPlugin_v12",     "ncclCollNetPlugin_v8",
    "ncclCollNetPlugin_v9",  "ncclCollNetPlugin_v10", "ncclCollNetPlugin_v11",
    "ncclCollNetPlugin_v12",
};

const char *table_name(unsigned i)
{
    return i < TABLES ? names[i] : NULL;
}

const char *table_symbol(unsigned i)
{
    return i < TABLES ? symbols[i] : NULL;
}

bool table_find(void *library, unsigned i, struct plugin_table *t)
{
    *t = (struct plugin_table){.coll = i >= TABLES / 2,
                               .version = TABLES_FIRST + (int)(i % (TABLES / 2)),
                               .at = dlsym(library, symbols[i])};
    return t->at != NULL;
}

/* Checks the pointers from the second member up to `last`. */
const char *table_lacks(const struct plugin_table *t)
{
    static const char *const net[] = {
        "name",   "init",  "devices",   "getProperties", "listen",     "connect",
        "accept", "regMr", NULL,        "deregMr",       "isend",      "irecv",
        "iflush", "test",  "closeSend", "closeRecv",     "closeListen"};
    static const char *const coll[] = {
        "name",  "init",      "devices",    "getProperties", "listen", "connect", "reduceSupport",
        "regMr", NULL,        "deregMr",    "iallreduce",    NULL,     NULL,      "iflush",
        "test",  "closeColl", "closeListen"};
    const char *const *names_of = t->coll ? coll : net;
    void *const *p = t->at;

    for (unsigned i = 0; i < sizeof(net) / sizeof(net[0]); i++)
        if (names_of[i] && !p[i])
            return names_of[i];
    if (t->version >= 11 && !(t->coll ? (void *)COLL11(t)->finalize : (void *)NET11(t)->finalize))
        return "finalize";
    return NULL;
}

int table_init(const struct plugin_table *t, void **ctx, uint64_t comm_id, nccl_log_fn log)
{
    struct nccl_config config = {NCCL_NO_CLASS};

    *ctx = NULL;
    if (t->coll)
        return t->version < 11 ? COLL(t)->init(log) : COLL11(t)->init(ctx, comm_id, log);
    return t->version < 10    ? NET(t)->init(log)
           : t->version == 10 ? NET10(t)->init(log, NULL)
                              : NET11(t)->init(ctx, comm_id, &config, log, NULL);
}

int table_finalize(const struct plugin_table *t, void *ctx)
{
    if (t->version < 11)
        return NCCL_SUCCESS;
    return t->coll ? COLL11(t)->finalize(ctx) : NET11(t)->finalize(ctx);
}

int table_devices(const struct plugin_table *t, int *n)
{
    return BOTH(t, devices, n);
}

/* ---- properties ---- */

union props {
    struct nccl_props_v8 v8;
    struct nccl_props_v9 v9;
    struct nccl_props_v11 v11;
    struct nccl_props_v12 v12;
    uint8_t room[sizeof(struct nccl_props_v12) + 64];
};

static int properties_get(const struct plugin_table *t, int dev, union props *p)
{
    if (t->version == 8)
        return BOTH(t, get_properties, dev, &p->v8);
    if (t->version < 11)
        return t->coll ? COLL9(t)->get_properties(dev, &p->v9)
                       : NET9(t)->get_properties(dev, &p->v9);
    if (t->version == 11)
        return t->coll ? COLL11(t)->get_properties(dev, &p->v11)
                       : NET11(t)->get_properties(dev, &p->v11);
    return t->coll ? COLL12(t)->get_properties(dev, &p->v12)
                   : NET12(t)->get_properties(dev, &p->v12);
}

/* Converts properties to the newest version. All versions begin with the same members, in two runs:
 * up to force_flush, which version 8 lacks, and up to the virtual device. */
static void properties_newest(int version, const union props *p, struct nccl_props_v12 *to)
{
    *to = (struct nccl_props_v12){.vdev = {.ndevs = 1}, .max_multi_request_size = 1};
    to->rail_id = to->plane_id = NCCL_NO_CLASS;
    to->max_p2p_bytes = to->max_coll_bytes = NCCL_MAX_BYTES;
    memcpy(to, p, offsetof(struct nccl_props_v9, force_flush));
    if (version == 8) {
        to->speed = p->v8.speed, to->port = p->v8.port, to->latency = p->v8.latency;
        to->max_comms = p->v8.max_comms, to->max_recvs = p->v8.max_recvs;
        to->device_type = p->v8.device_type, to->device_version = p->v8.device_version;
        return;
    }
    if (version == 12) {
        *to = p->v12;
        return;
    }
    memcpy(to, p, offsetof(struct nccl_props_v9, vdev));
    to->vdev.ndevs = p->v9.vdev.ndevs;
    memcpy(to->vdev.devs, p->v9.vdev.devs, sizeof(p->v9.vdev.devs));
    to->max_p2p_bytes = p->v9.max_p2p_bytes;
    to->max_coll_bytes = p->v9.max_coll_bytes;
    if (version == 11)
        to->max_multi_request_size = p->v11.max_multi_request_size;
}

int table_properties(const struct plugin_table *t, int dev, uint8_t fill,
                     struct nccl_props_v12 *props, bool *beyond)
{
    size_t size = t->version == 8    ? sizeof(struct nccl_props_v8)
                  : t->version < 11  ? sizeof(struct nccl_props_v9)
                  : t->version == 11 ? sizeof(struct nccl_props_v11)
                                     : sizeof(struct nccl_props_v12);
    union props p;
    int rc;

    memset(&p, fill, sizeof(p));
    rc = properties_get(t, dev, &p);
    *beyond = false;
    for (size_t i = size; i < sizeof(p); i++)
        *beyond |= p.room[i] != fill;
    properties_newest(t->version, &p, props);
    return rc;
}

/* ---- of both kinds ---- */

int table_listen(const struct plugin_table *t, void *ctx, int dev, void *handle, void **listen)
{
    if (t->version < 11)
        return BOTH(t, listen, dev, handle, listen);
    return t->coll ? COLL11(t)->listen(ctx, dev, handle, listen)
                   : NET11(t)->listen(ctx, dev, handle, listen);
}

int table_close_listen(const struct plugin_table *t, void *listen)
{
    return BOTH(t, close_listen, listen);
}

int table_reg_mr(const struct plugin_table *t, void *comm, void *data, size_t size, int type,
                 void **mh)
{
    return BOTH(t, reg_mr, comm, data, size, type, mh);
}

int table_dereg_mr(const struct plugin_table *t, void *comm, void *mh)
{
    return BOTH(t, dereg_mr, comm, mh);
}

int table_reg_dmabuf(const struct plugin_table *t, void *comm, void *data, size_t size, int fd,
                     void **mh)
{
    if (!(t->coll ? COLL(t)->reg_mr_dmabuf : NET(t)->reg_mr_dmabuf))
        return -1;
    return BOTH(t, reg_mr_dmabuf, comm, data, size, NCCL_PTR_CUDA, 0, fd, mh);
}

int table_test(const struct plugin_table *t, void *req, int *done, int *sizes)
{
    return BOTH(t, test, req, done, sizes);
}

/* ---- net ---- */

int net_connect(const struct plugin_table *t, void *ctx, int dev, void *handle, void **comm,
                struct nccl_device_handle **device)
{
    struct nccl_config config = {NCCL_NO_CLASS};

    return t->version < 10    ? NET(t)->connect(dev, handle, comm, device)
           : t->version == 10 ? NET10(t)->connect(dev, &config, handle, comm, device)
                              : NET11(t)->connect(ctx, dev, handle, comm, device);
}

int net_accept(const struct plugin_table *t, void *listen, void **comm,
               struct nccl_device_handle **device)
{
    return NET(t)->accept(listen, comm, device);
}

int net_isend(const struct plugin_table *t, void *comm, void *data, size_t size, int tag, void *mh,
              void **req)
{
    return t->version == 8   ? NET(t)->isend(comm, data, (int)size, tag, mh, req)
           : t->version == 9 ? NET9(t)->isend(comm, data, size, tag, mh, req)
                             : NET10(t)->isend(comm, data, size, tag, mh, NULL, req);
}

int net_irecv(const struct plugin_table *t, void *comm, int n, void **data, size_t *sizes,
              int *tags, void **mh, void **req)
{
    void *ph[TABLE_GROUP] = {NULL};
    int s[TABLE_GROUP];

    for (int i = 0; i < n && i < TABLE_GROUP; i++)
        s[i] = (int)sizes[i];
    return t->version == 8   ? NET(t)->irecv(comm, n, data, s, tags, mh, req)
           : t->version == 9 ? NET9(t)->irecv(comm, n, data, sizes, tags, mh, req)
                             : NET10(t)->irecv(comm, n, data, sizes, tags, mh, ph, req);
}

int net_iflush(const struct plugin_table *t, void *comm, int n, void **data, int *sizes, void **mh,
               void **req)
{
    return NET(t)->iflush(comm, n, data, sizes, mh, req);
}

int net_close_send(const struct plugin_table *t, void *comm)
{
    return NET(t)->close_send(comm);
}

int net_close_recv(const struct plugin_table *t, void *comm)
{
    return NET(t)->close_recv(comm);
}

/* ---- CollNet ---- */

int coll_connect(const struct plugin_table *t, void *handles[], int nranks, int rank, void *listen,
                 void **comm)
{
    return COLL(t)->connect(handles, nranks, rank, listen, comm);
}

int coll_reduce_support(const struct plugin_table *t, int type, int op, int *supported)
{
    return COLL(t)->reduce_support(type, op, supported);
}

int coll_iallreduce(const struct plugin_table *t, void *comm, void *send, void *recv, size_t count,
                    int type, int op, void *send_mh, void *recv_mh, void **req)
{
    return t->version == 8
               ? COLL(t)->iallreduce(comm, send, recv, (int)count, type, op, send_mh, recv_mh, req)
               : COLL9(t)->iallreduce(comm, send, recv, count, type, op, send_mh, recv_mh, req);
}

int coll_iallgather(const struct plugin_table *t, void *comm, void *send, void *window,
                    size_t block, size_t offset, size_t bytes, void *send_mh, void *recv_mh,
                    void **req)
{
    struct nccl_sge_v8 old = {recv_mh, window, (uint32_t)bytes};
    struct nccl_sge part = {recv_mh, window, bytes};

    return t->version == 8
               ? COLL(t)->iallgather(comm, send, 1, &old, block, offset, bytes, send_mh, req)
               : COLL9(t)->iallgather(comm, send, 1, &part, block, offset, bytes, send_mh, req);
}

int coll_ireducescatter(const struct plugin_table *t, void *comm, void *window, void *recv,
                        size_t block, size_t offset, size_t bytes, int type, int op, void *send_mh,
                        void *recv_mh, void **req)
{
    struct nccl_sge_v8 old = {send_mh, window, (uint32_t)bytes};
    struct nccl_sge part = {send_mh, window, bytes};

    return t->version == 8 ? COLL(t)->ireducescatter(comm, 1, &old, recv, block, offset, bytes,
                                                     type, op, recv_mh, req)
                           : COLL9(t)->ireducescatter(comm, 1, &part, recv, block, offset, bytes,
                                                      type, op, recv_mh, req);
}

int coll_iflush(const struct plugin_table *t, void *comm, void *data, int size, void *mh,
                void **req)
{
    return COLL(t)->iflush(comm, data, size, mh, req);
}

int coll_close(const struct plugin_table *t, void *comm)
{
    return COLL(t)->close_coll(comm);
}
