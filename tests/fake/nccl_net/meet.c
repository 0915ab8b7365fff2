/* SPDX-License-Identifier: BSD-3-Clause */
/* A listening end has a door, memory in which others leave what they have made for the connection. */
#include "mock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAGIC 0x4d6f636b
#define DOOR  16

struct door {
    struct entrance entrance;
    _Atomic unsigned left, taken;
    struct {
        _Atomic int there;
        struct shared wire;
    } at[DOOR];
};

struct place { /* in a handle */
    uint32_t magic;
    struct shared door;
    void *meeting; /* of who connects */
};

struct listener {
    struct door *door;
    struct shared where;
    void *last;
};

struct meeting {
    struct link *link;
    struct door *door;
    unsigned calls;
};

/* ---- listening ---- */

int mock_listen(int dev, void *handle, void **listen)
{
    struct listener *l;
    struct place place = {.magic = MAGIC};

    if (!handle || !listen || (dev && !planted("bad-device")))
        return refuse(NCCL_INVALID_ARGUMENT, "no such device, or no place for results");
    *listen = NULL;
    if (planted("listen-null"))
        return NCCL_SUCCESS;
    l = calloc(1, sizeof(*l));
    if (!l)
        return NCCL_SYSTEM_ERROR;
    l->door = shared_new(sizeof(*l->door), &l->where);
    place.door = l->where;
    if (!l->door) {
        free(l);
        return NCCL_SYSTEM_ERROR;
    }
    memset(handle, 0, planted("handle-long") ? NCCL_HANDLE + 4 : NCCL_HANDLE);
    memcpy(handle, &place, sizeof(place));
    *listen = object_new(KIND_LISTEN, l);
    return NCCL_SUCCESS;
}

static int accept_try(struct listener *l, void **comm)
{
    unsigned i = l->door->taken % DOOR;
    struct link *link;
    struct wire *w;
    int rc;

    if (!l->door->at[i].there || (planted("one-listen") && l->door->taken))
        return NCCL_SUCCESS;
    w = shared_open(&l->door->at[i].wire, sizeof(*w));
    l->door->at[i].there = 0;
    l->door->taken++;
    if (!w)
        return NCCL_SUCCESS; /* who has connected is gone */
    rc = link_new(KIND_RECV, w, (struct shared){0, -1}, &link);
    if (rc)
        return rc;
    w->receiver = getpid();
    *comm = link->handle;
    return NCCL_SUCCESS;
}

int mock_accept(void *listen, void **comm, struct nccl_device_handle **device)
{
    static void *first;
    int rc = NCCL_SUCCESS;
    struct listener *l = object_find(listen, KIND_LISTEN, &rc);
    void *found = NULL;

    (void)device;
    if (!l)
        return planted("stale-accepted") ? NCCL_SUCCESS : rc;
    do
        rc = accept_try(l, &found);
    while (planted("accept-blocks") && !rc && !found);
    if (planted("accept-same") && found && first)
        found = first;
    first = first ? first : found;
    if (found || !planted("accept-unset"))
        *comm = found;
    return rc;
}

int mock_close_listen(void *listen)
{
    int rc = NCCL_SUCCESS;
    struct listener *l = object_find(listen, KIND_LISTEN, &rc);

    if (!l && object_kind(listen) != KIND_NONE && planted("wrong-kind-accepted"))
        return NCCL_SUCCESS;
    if (!l)
        return rc;
    if (planted("close-listen-crash") && l->door->at[l->door->taken % DOOR].there)
        abort();
    if (planted("close-listen-fails"))
        return NCCL_INTERNAL_ERROR;
    object_end(listen);
    close(l->where.fd);
    munmap(l->door, sizeof(*l->door));
    free(l);
    return rc;
}

struct entrance *entrance_open(const void *handle)
{
    struct place place;
    struct door *d;

    memcpy(&place, handle, sizeof(place));
    d = place.magic == MAGIC ? shared_open(&place.door, sizeof(*d)) : NULL;
    return d ? &d->entrance : NULL;
}

void entrance_leave(struct entrance *e)
{
    munmap(e, sizeof(struct door)); /* it is the first member */
}

/* ---- connecting ---- */

static int meeting_new(const struct place *place, struct meeting **meeting)
{
    struct meeting *m = calloc(1, sizeof(*m));
    struct wire *w;
    struct shared where;
    unsigned i;

    if (!m)
        return NCCL_SYSTEM_ERROR;
    m->door = shared_open(&place->door, sizeof(*m->door));
    w = m->door ? shared_new(sizeof(*w), &where) : NULL;
    if (!w || link_new(KIND_SEND, w, where, &m->link)) {
        free(m);
        return refuse(NCCL_REMOTE_ERROR, "nobody listens");
    }
    w->sender = getpid();
    i = m->door->left++ % DOOR;
    m->door->at[i].wire = where;
    m->door->at[i].there = 1;
    *meeting = m;
    return NCCL_SUCCESS;
}

int mock_connect(int dev, void *handle, void **comm, struct nccl_device_handle **device)
{
    static unsigned opened;
    struct place place;
    struct meeting *m = NULL;
    int rc = NCCL_SUCCESS;

    (void)dev, (void)device;
    memcpy(&place, handle, sizeof(place));
    if (place.magic != MAGIC)
        return refuse(NCCL_INVALID_ARGUMENT, "no handle of listen()");
    if (!planted("connect-unset"))
        *comm = NULL;
    if (place.meeting && !planted("connect-forgets"))
        m = object_find(place.meeting, KIND_MEETING, &rc);
    if (!m && !place.meeting && planted("reopen-fails") && ++opened > 5)
        return refuse(NCCL_SYSTEM_ERROR, "no more connections");
    if (!m)
        rc = meeting_new(&place, &m);
    if (rc)
        return rc;
    if (!place.meeting)
        place.meeting = object_new(KIND_MEETING, m);
    while (!m->link->wire->receiver && planted("connect-blocks"))
        ;
    if (m->calls++ && m->link->wire->receiver) { /* the first one always would block */
        *comm = m->link->handle;
        munmap(m->door, sizeof(*m->door));
        object_end(place.meeting);
        place.meeting = NULL;
        free(m);
    }
    memcpy(handle, &place, sizeof(place));
    return NCCL_SUCCESS;
}
