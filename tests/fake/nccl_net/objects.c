/* SPDX-License-Identifier: BSD-3-Clause */
#include "mock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static nccl_log_fn log_fn;

bool planted(const char *name)
{
    const char *plant = getenv("MOCK_PLANT");

    return plant && !strcmp(plant, name);
}

void log_by(nccl_log_fn log)
{
    log_fn = log;
}

int refuse(int result, const char *why)
{
    if (log_fn)
        log_fn(NCCL_LOG_WARN, NCCL_LOG_NET, __FILE__, __LINE__, "mock: %s", why);
    return result;
}

/* ---- objects ---- */

#define OBJECTS 65536u
static struct {
    enum kind kind;
    void *at;
} object[OBJECTS];
static unsigned objects = 1;

void *object_new(enum kind kind, void *at)
{
    if (objects == OBJECTS)
        return NULL;
    object[objects].kind = kind;
    object[objects].at = at;
    return (void *)(uintptr_t)objects++;
}

enum kind object_kind(const void *handle)
{
    return (uintptr_t)handle < objects ? object[(uintptr_t)handle].kind : KIND_NONE;
}

void *object_find(const void *handle, enum kind kind, int *rc)
{
    if (!handle && planted("null-crash"))
        raise(SIGSEGV);
    if (object_kind(handle) == KIND_NONE && handle && planted("stale-crash"))
        raise(SIGSEGV);
    if (object_kind(handle) == kind)
        return object[(uintptr_t)handle].at;
    *rc = refuse(handle ? NCCL_INVALID_USAGE : NCCL_INVALID_ARGUMENT, "no such object");
    return NULL;
}

void object_end(const void *handle)
{
    if ((uintptr_t)handle < objects) {
        object[(uintptr_t)handle].kind = KIND_NONE;
        object[(uintptr_t)handle].at = NULL;
    }
}

/* ---- memory ---- */

int mock_reg_mr(void *comm, void *data, size_t size, int type, void **mh)
{
    static void *last;
    static unsigned calls;
    struct memory *m;
    enum kind k = object_kind(comm);
    int rc = 0;

    if (k != KIND_SEND && k != KIND_RECV && k != KIND_COLL) {
        object_find(comm, KIND_SEND, &rc);
        if (!planted("stale-accepted"))
            return rc;
    }
    if (planted("reg-second-refused") && calls++)
        return refuse(NCCL_SYSTEM_ERROR, "one registration at most");
    if (!data || !size || (type != NCCL_PTR_HOST && !planted("gpu-memory-accepted")))
        return refuse(NCCL_INVALID_ARGUMENT, "no memory of the host");
    m = malloc(sizeof(*m));
    if (!m)
        return NCCL_SYSTEM_ERROR;
    *m = (struct memory){data, size};
    *mh = object_new(KIND_MEMORY, m);
    if (planted("mh-reused") && last) {
        free(m);
        *mh = last;
    }
    last = *mh;
    return NCCL_SUCCESS;
}

int mock_reg_dmabuf(void *comm, void *data, size_t size, int type, uint64_t offset, int fd,
                    void **mh)
{
    (void)comm, (void)data, (void)size, (void)type, (void)offset, (void)fd, (void)mh;
    return planted("dmabuf-accepted") ? NCCL_SUCCESS
                                      : refuse(NCCL_INVALID_USAGE, "no memory of GPUs");
}

int mock_dereg_mr(void *comm, void *mh)
{
    int rc = NCCL_SUCCESS;
    enum kind k = object_kind(comm);
    struct memory *m = object_find(mh, KIND_MEMORY, &rc);

    if (planted("dereg-fails"))
        return NCCL_INTERNAL_ERROR;
    if (m && k != KIND_SEND && k != KIND_RECV && k != KIND_COLL)
        return refuse(NCCL_INVALID_USAGE, "no communicator of the memory's");
    if (!m)
        return rc;
    for (unsigned i = 1; planted("dereg-all") && i < objects; i++) {
        struct memory *other = object[i].at;

        if (object[i].kind == KIND_MEMORY && other != m && other->at == m->at)
            object_end((void *)(uintptr_t)i);
    }
    object_end(mh);
    free(m);
    return NCCL_SUCCESS;
}

int memory_check(const void *mh, const void *data, size_t size)
{
    int rc = NCCL_SUCCESS;
    const struct memory *m;

    if (!size)
        return rc;
    m = object_find(mh, KIND_MEMORY, &rc);
    if (m && !planted("range-unchecked") &&
        ((const char *)data < m->at || size > m->size ||
         (size_t)((const char *)data - m->at) > m->size - size))
        rc = refuse(NCCL_INVALID_ARGUMENT, "memory outside of its registration");
    return rc;
}

/* ---- shared memory ---- */

void *shared_new(size_t size, struct shared *where)
{
    void *at;

    *where = (struct shared){getpid(), memfd_create("mock", MFD_CLOEXEC)};
    if (where->fd < 0 || ftruncate(where->fd, (off_t)size))
        return NULL;
    at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, where->fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

void *shared_open(const struct shared *where, size_t size)
{
    char path[64];
    void *at;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", where->pid, where->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return at == MAP_FAILED ? NULL : at;
}

bool is_dead(pid_t pid)
{
    return kill(pid, 0) && errno == ESRCH;
}
