/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/nccl/nccl_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int nccl_memory_check(const void *data, size_t size, int type, void *const *mh)
{
    if (!mh)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "regMr: found no place for the handle");
    if (type != NCCL_PTR_HOST)
        return nccl_refuse(NCCL_INVALID_USAGE,
                           "regMr: found memory of type %d, expected %d, the "
                           "host's",
                           type, NCCL_PTR_HOST);
    if (!data || !size || (uintptr_t)data + size < (uintptr_t)data)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "regMr: found %zu bytes at %p", size, data);
    return NCCL_SUCCESS;
}

static int link_find(const void *comm, const char *call, struct nccl_link **l)
{
    *l = nccl_handle_object(comm, NCCL_KIND_RECV);
    return *l ? NCCL_SUCCESS : nccl_handle_find(comm, NCCL_KIND_SEND, call, l);
}

static int memory_register(const struct nccl_link *l, void *data, size_t size, void **mh)
{
    struct ibv_mr *mr =
        ibv_reg_mr(l->device->pd, data, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

    if (!mr)
        return nccl_refuse(NCCL_SYSTEM_ERROR, "regMr: %zu bytes at %p: %s", size, data,
                           strerror(errno));
    *mh = nccl_handle_new(NCCL_KIND_MEMORY, mr);
    if (*mh)
        return NCCL_SUCCESS;
    ibv_dereg_mr(mr);
    return nccl_refuse(NCCL_SYSTEM_ERROR, "regMr: out of memory");
}

int nccl_reg_mr(void *comm, void *data, size_t size, int type, void **mh)
{
    struct nccl_link *l;
    int rc = nccl_memory_check(data, size, type, mh);

    if (mh)
        *mh = NULL;
    if (rc)
        return rc;
    nccl_lock();
    rc = link_find(comm, "regMr", &l);
    if (!rc)
        rc = memory_register(l, data, size, mh);
    nccl_unlock();
    return rc;
}

int nccl_reg_mr_dmabuf(void *comm, void *data, size_t size, int type, uint64_t offset, int fd,
                       void **mh)
{
    (void)comm, (void)data, (void)size, (void)type, (void)offset;
    if (mh)
        *mh = NULL;
    return nccl_refuse(NCCL_INVALID_USAGE,
                       "regMrDmaBuf: found the DMA buffer %d, expected the host's memory", fd);
}

int nccl_dereg_mr(void *comm, void *mh)
{
    struct nccl_link *l;
    struct ibv_mr *mr;
    int rc, err;

    nccl_lock();
    rc = link_find(comm, "deregMr", &l);
    if (!rc)
        rc = nccl_handle_find(mh, NCCL_KIND_MEMORY, "deregMr", &mr);
    if (!rc) {
        err = ibv_dereg_mr(mr);
        if (err)
            rc = nccl_refuse(NCCL_SYSTEM_ERROR, "deregMr: %s", strerror(err));
        else
            nccl_handle_end(mh);
    }
    nccl_unlock();
    return rc;
}

int nccl_memory_find(const void *mh, const void *data, size_t size, const char *call,
                     struct ibv_mr **mr)
{
    int rc;

    *mr = NULL;
    if (!size)
        return NCCL_SUCCESS;
    if (size > NCCL_MOST_BYTES)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "%s: found %zu bytes, expected at most %lu", call,
                           size, NCCL_MOST_BYTES);
    rc = nccl_handle_find(mh, NCCL_KIND_MEMORY, call, mr);
    if (rc)
        return rc;
    if ((uintptr_t)data < (uintptr_t)(*mr)->addr || size > (*mr)->length ||
        (uintptr_t)data - (uintptr_t)(*mr)->addr > (*mr)->length - size)
        return nccl_refuse(NCCL_INVALID_ARGUMENT,
                           "%s: found %zu bytes at %p, expected a part of the handle's %zu at %p",
                           call, size, data, (*mr)->length, (*mr)->addr);
    return NCCL_SUCCESS;
}
