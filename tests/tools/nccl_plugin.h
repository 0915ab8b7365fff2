/* SPDX-License-Identifier: BSD-3-Clause */
/* A network plug-in's tables of any version, called alike; and ranks that meet by a store. */
#ifndef TRIB_TESTS_TOOLS_NCCL_PLUGIN_H
#define TRIB_TESTS_TOOLS_NCCL_PLUGIN_H

#include <nccl/net_abi.h>
#include <tributary/coll.h>

#include <dlfcn.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, version;
static struct trib_oob oob;
static unsigned checked, warnings;
static bool quiet;
static char warning[1024]; /* the plug-in's last one */

#define must(cond, ...)                                                                            \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "rank %d, version %d, line %d: expected %s: ", rank, version,          \
                    __LINE__, #cond);                                                              \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

__attribute__((format(printf, 5, 6))) static inline void
say(int level, unsigned long flags, const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    (void)flags, (void)file, (void)line;
    if (level > NCCL_LOG_WARN)
        return;
    va_start(ap, fmt);
    vsnprintf(warning, sizeof(warning), fmt, ap);
    va_end(ap);
    warnings++;
    if (!quiet)
        fprintf(stderr, "rank %d: %s\n", rank, warning);
}

/* ---- tables ---- */

static void *net_ctx, *coll_ctx;
static const struct nccl_net_v8 *n8;
static const struct nccl_net_v9 *n9;
static const struct nccl_net_v10 *n10;
static const struct nccl_net_v11 *n11; /* and v12's: properties differ alone */
static const struct nccl_coll_v8 *c8;
static const struct nccl_coll_v9 *c9;
static const struct nccl_coll_v11 *c11;

#define NET(field)                                                                                 \
    (version == 8 ? n8->field : version == 9 ? n9->field : version == 10 ? n10->field : n11->field)
#define COLL(field) (version == 8 ? c8->field : version < 11 ? c9->field : c11->field)

static inline void tables(void *library, int v)
{
    char name[64];
    void *p;

    version = v;
    snprintf(name, sizeof(name), "ncclNetPlugin_v%d", v);
    p = dlsym(library, name);
    must(p, "%s", name);
    n8 = p, n9 = p, n10 = p, n11 = p;
    snprintf(name, sizeof(name), "ncclCollNetPlugin_v%d", v);
    p = dlsym(library, name);
    must(p, "%s", name);
    c8 = p, c9 = p, c11 = p;
}

static inline void tables_init(void)
{
    int rc = version < 10    ? n9->init(say)
             : version == 10 ? n10->init(say, NULL)
                             : n11->init(&net_ctx, 1, NULL, say, NULL),
        n = 0;

    must(!rc, "init of the net table, not %d", rc);
    rc = version < 11 ? c9->init(say) : c11->init(&coll_ctx, 1, say);
    must(!rc, "init of the CollNet table, not %d", rc);
    must(!NET(devices)(&n) && n > 0, "a device, not %d", n);
    must(!COLL(devices)(&n) && n > 0, "a device, not %d", n);
}

static inline int net_listen(void *handle, void **listen)
{
    return version < 11 ? n9->listen(0, handle, listen) : n11->listen(net_ctx, 0, handle, listen);
}

static inline int coll_listen(void *handle, void **listen)
{
    return version < 11 ? c9->listen(0, handle, listen) : c11->listen(coll_ctx, 0, handle, listen);
}

static inline int net_connect(void *handle, void **comm)
{
    return version < 10    ? n9->connect(0, handle, comm, NULL)
           : version == 10 ? n10->connect(0, NULL, handle, comm, NULL)
                           : n11->connect(net_ctx, 0, handle, comm, NULL);
}

static inline int net_isend(void *comm, void *data, size_t n, int tag, void *mh, void **req)
{
    return version == 8   ? n8->isend(comm, data, (int)n, tag, mh, req)
           : version == 9 ? n9->isend(comm, data, n, tag, mh, req)
                          : n11->isend(comm, data, n, tag, mh, NULL, req);
}

static inline int net_irecv(void *comm, int n, void **data, size_t *sizes, int *tags, void **mh,
                            void **req)
{
    int s[16];

    for (int i = 0; i < n && i < 16; i++)
        s[i] = (int)sizes[i];
    return version == 8   ? n8->irecv(comm, n, data, s, tags, mh, req)
           : version == 9 ? n9->irecv(comm, n, data, sizes, tags, mh, req)
                          : n11->irecv(comm, n, data, sizes, tags, mh, NULL, req);
}

static inline int coll_iallreduce(void *comm, void *send, void *recv, size_t n, int type, int op,
                                  void **mh, void **req)
{
    return version == 8 ? c8->iallreduce(comm, send, recv, (int)n, type, op, mh[0], mh[1], req)
                        : c9->iallreduce(comm, send, recv, n, type, op, mh[0], mh[1], req);
}

static inline int coll_iallgather(void *comm, void *send, void *window, size_t block, size_t offset,
                                  size_t bytes, void **mh, void **req)
{
    struct nccl_sge_v8 old = {mh[1], window, (uint32_t)bytes};
    struct nccl_sge part = {mh[1], window, bytes};

    return version == 8 ? c8->iallgather(comm, send, 1, &old, block, offset, bytes, mh[0], req)
                        : c9->iallgather(comm, send, 1, &part, block, offset, bytes, mh[0], req);
}

static inline int coll_ireducescatter(void *comm, void *window, void *recv, size_t block,
                                      size_t offset, size_t bytes, int type, void **mh, void **req)
{
    struct nccl_sge_v8 old = {mh[0], window, (uint32_t)bytes};
    struct nccl_sge part = {mh[0], window, bytes};

    return version == 8 ? c8->ireducescatter(comm, 1, &old, recv, block, offset, bytes, type,
                                             NCCL_SUM, mh[1], req)
                        : c9->ireducescatter(comm, 1, &part, recv, block, offset, bytes, type,
                                             NCCL_SUM, mh[1], req);
}

/* ---- ranks ---- */

static inline void barrier(void)
{
    must(!oob.barrier(oob.ctx), "a barrier");
}

/* Handles of all ranks, in order. */
static inline void exchange(const void *mine, void *all)
{
    must(!oob.gather(oob.ctx, 0, mine, all, NCCL_HANDLE), "gather");
    for (int r = 0; r < size; r++)
        must(!oob.bcast(oob.ctx, (char *)all + r * NCCL_HANDLE, NCCL_HANDLE, 0), "bcast");
}

static inline void meet(const char *where)
{
    struct trib_store *store;
    char why[TRIB_TEXT];

    must(!trib_store_open(&store, where, (uint32_t)rank, (uint32_t)size, 30, why), "%s", why);
    trib_store_oob(store, &oob);
}

#endif
