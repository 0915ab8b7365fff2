/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NCCL's handles are numbers: an index into the table, and the entry's use count. So stale and
 * invalid handles are refused instead of dereferenced.
 */
#include "plugins/nccl/nccl_priv.h"

#include <pthread.h>
#include <stdlib.h>

#define MOST (1u << 24)

/* Two locks, so that a thread that polls in a loop lets others in: it waits at the gate behind
 * them. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER, lock = PTHREAD_MUTEX_INITIALIZER;

static struct handle_place {
    void *object;
    uint32_t uses; /* from 1, so that no handle equals NULL or one of NCCL's hints */
    uint32_t kind; /* 0: the entry is free, and ... */
    uint32_t next; /* ... this is the next free entry + 1 */
} * places;
static uint32_t n_places, first_free;

static const char *const kind_name[NCCL_KINDS] = {
    "nothing",
    "context",
    "listening communicator",
    "connection that is made",
    "send communicator",
    "receive communicator",
    "request",
    "memory handle",
    "collective communicator",
    "request of a collective",
    "memory handle of a collective",
};

void nccl_lock(void)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&gate);
}

void nccl_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static bool table_grow(void)
{
    uint32_t n = n_places ? 2 * n_places : 256;
    struct handle_place *p = n <= MOST ? realloc(places, n * sizeof(*p)) : NULL;

    if (!p)
        return false;
    for (uint32_t i = n; i-- > n_places;) {
        p[i] = (struct handle_place){.next = first_free};
        first_free = i + 1;
    }
    places = p;
    n_places = n;
    return true;
}

void *nccl_handle_new(enum nccl_kind kind, void *object)
{
    uint32_t i;

    if (!first_free && !table_grow())
        return NULL;
    i = first_free - 1;
    first_free = places[i].next;
    places[i].uses = places[i].uses == INT32_MAX ? 1 : places[i].uses + 1;
    places[i].kind = kind;
    places[i].object = object;
    return (void *)((uintptr_t)places[i].uses << 32 | i);
}

static struct handle_place *place_of(const void *handle)
{
    uint32_t i = (uint32_t)(uintptr_t)handle, uses = (uint32_t)((uintptr_t)handle >> 32);

    return i < n_places && places[i].kind && places[i].uses == uses ? &places[i] : NULL;
}

void *nccl_handle_object(const void *handle, enum nccl_kind kind)
{
    struct handle_place *p = place_of(handle);

    return p && p->kind == kind ? p->object : NULL;
}

void nccl_handle_end(void *handle)
{
    struct handle_place *p = place_of(handle);

    if (!p)
        return;
    p->object = NULL;
    p->kind = NCCL_KIND_NONE;
    p->next = first_free;
    first_free = (uint32_t)(p - places) + 1;
}

int nccl_handle_find(const void *handle, enum nccl_kind kind, const char *call, void *object)
{
    void *found = nccl_handle_object(handle, kind);

    *(void **)object = found;
    if (found)
        return NCCL_SUCCESS;
    if (!handle)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "%s: found NULL, expected a %s", call,
                           kind_name[kind]);
    return nccl_refuse(NCCL_INVALID_USAGE, "%s: found %p, expected a %s that has not been closed",
                       call, handle, kind_name[kind]);
}
