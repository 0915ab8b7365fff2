/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How two ends connect over the fabric alone, as machines' addresses are meaningless on it.
 *
 *   listen    makes a queue pair for datagrams; the handle has its address and a random cookie
 *   connect   sends the address of its queue pair, and repeats it until it is answered
 *   accept    answers each such datagram, repeated ones too, with the address of its own queue pair
 *   connect   connects, and sends an empty message on the connection, which cannot be lost
 *   accept    receives it
 *
 * The connecting end keeps its state between calls of connect() in the spare bytes of NCCL's
 * handle.
 */
#include "system/credential.h"
#include "plugins/nccl/nccl_priv.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC         0x3178656e62697274ull /* "tribnex1" */
#define AGAIN_MS      20
#define AGAIN_MOST_MS 320
#define CONNECTIONS   4096 /* most connections of a listening communicator */
/* Long, because other ranks may still load their programs, or wait for other ranks. */
#define CONNECT_S      120
#define CONNECT_MOST_S 86400

struct meet_place {
    uint64_t magic, cookie;
    union ibv_gid gid;
    uint64_t meeting; /* at the connecting end: the handle of its struct meeting */
    uint32_t qpn;
};
_Static_assert(sizeof(struct meet_place) <= NCCL_HANDLE, "NCCL carries so much");

struct guest {
    uint64_t id;
    struct nccl_link *link; /* NULL: NCCL owns it now */
};

struct listener {
    void *handle;
    struct nccl_device *device;
    struct nccl_post_box box;
    uint64_t cookie;
    struct guest *guest;
    unsigned n;
};

struct meeting {
    void *handle;
    struct nccl_post_box box;
    struct nccl_link *link;
    uint64_t id;
    int64_t began_ms, said_ms, again_ms;
};

static int64_t patience_s = CONNECT_S;

int nccl_patience_read(void)
{
    const char *s = getenv("TRIB_NCCL_CONNECT_S");
    char *end;
    long seconds;

    if (!s || !*s)
        return NCCL_SUCCESS;
    seconds = strtol(s, &end, 10);
    if (*end || seconds < 1 || seconds > CONNECT_MOST_S)
        return nccl_refuse(NCCL_INVALID_USAGE,
                           "TRIB_NCCL_CONNECT_S: found '%.40s', expected 1 to %d seconds", s,
                           CONNECT_MOST_S);
    patience_s = seconds;
    return NCCL_SUCCESS;
}

int64_t nccl_patience_ms(void)
{
    return patience_s * 1000;
}

/* ---- listening ---- */

static int listener_new(struct nccl_device *device, struct listener **listener)
{
    struct listener *l = calloc(1, sizeof(*l));

    if (!l)
        return nccl_refuse(NCCL_SYSTEM_ERROR, "listen: out of memory");
    l->device = device;
    if (credential_random(&l->cookie, sizeof(l->cookie)) || nccl_post_box_open(&l->box, device)) {
        free(l);
        return nccl_refuse(NCCL_SYSTEM_ERROR, "listen: found no random number or no queue pair");
    }
    l->handle = nccl_handle_new(NCCL_KIND_LISTEN, l);
    if (!l->handle) {
        nccl_post_box_close(&l->box);
        free(l);
        return nccl_refuse(NCCL_SYSTEM_ERROR, "listen: out of memory");
    }
    *listener = l;
    return NCCL_SUCCESS;
}

int nccl_listen(int dev, void *handle, void **listen)
{
    struct nccl_device *device;
    struct meet_place place = {.magic = MAGIC};
    struct listener *l = NULL;
    int rc;

    if (!handle || !listen)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "listen: found no place for the %s",
                           handle ? "communicator" : "handle");
    *listen = NULL;
    nccl_lock();
    rc = nccl_device_get(dev, "listen", &device);
    if (!rc)
        rc = listener_new(device, &l);
    if (!rc) {
        place.cookie = l->cookie;
        place.gid = device->gid;
        place.qpn = l->box.qp->qp_num;
        memset(handle, 0, NCCL_HANDLE);
        memcpy(handle, &place, sizeof(place));
        *listen = l->handle;
    }
    nccl_unlock();
    return rc;
}

static int guest_add(struct listener *l, uint64_t id, const struct nccl_address *peer,
                     struct guest **guest)
{
    struct guest *more = realloc(l->guest, (l->n + 1) * sizeof(*more));
    struct nccl_link *link;
    int rc;

    if (!more)
        return nccl_refuse(NCCL_SYSTEM_ERROR, "accept: out of memory");
    l->guest = more;
    if (l->n >= CONNECTIONS)
        return nccl_refuse(NCCL_SYSTEM_ERROR, "accept: found more than %d connections",
                           CONNECTIONS);
    rc = nccl_link_new(l->device, NCCL_KIND_RECV, &link);
    if (rc)
        return rc;
    rc = nccl_link_connect(link, peer);
    if (rc) {
        nccl_link_free(link);
        return rc;
    }
    *guest = &l->guest[l->n++];
    **guest = (struct guest){id, link};
    return NCCL_SUCCESS;
}

static int listener_answer(struct listener *l)
{
    struct nccl_datagram d;
    uint32_t qpn;

    while (nccl_post_box_next(&l->box, &d, &qpn)) {
        union ibv_gid to = d.rc.gid;
        struct guest *g = NULL;
        int rc;

        if (d.magic != MAGIC || d.cookie != l->cookie)
            continue;
        for (unsigned i = 0; i < l->n && !g; i++)
            g = l->guest[i].id == d.id ? &l->guest[i] : NULL;
        if (!g) {
            rc = guest_add(l, d.id, &d.rc, &g);
            if (rc)
                return rc;
        }
        if (!g->link)
            continue; /* a repeated datagram, whose answer has been sent */
        d.rc = g->link->mine;
        nccl_post_box_send(&l->box, &d, &to, qpn);
    }
    return NCCL_SUCCESS;
}

static int listener_accept(struct listener *l, void **comm)
{
    int rc = listener_answer(l);

    for (unsigned i = 0; i < l->n && !rc; i++) {
        struct nccl_link *link = l->guest[i].link;

        if (!link)
            continue;
        if (nccl_link_poll(link)) { /* the peer has ended before it was connected */
            nccl_link_free(link);
            l->guest[i].link = NULL;
            continue;
        }
        if (!link->ready)
            continue;
        link->handle = nccl_handle_new(NCCL_KIND_RECV, link);
        if (!link->handle)
            return nccl_refuse(NCCL_SYSTEM_ERROR, "accept: out of memory");
        l->guest[i].link = NULL;
        *comm = link->handle;
        break;
    }
    return rc;
}

int nccl_accept(void *listen, void **recv_comm, struct nccl_device_handle **device)
{
    struct listener *l;
    int rc;

    if (!recv_comm)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "accept: found no place for the communicator");
    *recv_comm = NULL;
    if (device)
        *device = NULL;
    nccl_lock();
    rc = nccl_handle_find(listen, NCCL_KIND_LISTEN, "accept", &l);
    if (!rc)
        rc = listener_accept(l, recv_comm);
    nccl_unlock();
    return rc;
}

int nccl_listen_device(void *listen, int *dev)
{
    struct listener *l;
    int rc;

    nccl_lock();
    rc = nccl_handle_find(listen, NCCL_KIND_LISTEN, "connect", &l);
    if (!rc)
        *dev = l->device->index;
    nccl_unlock();
    return rc;
}

int nccl_close_listen(void *listen)
{
    struct listener *l;
    int rc;

    nccl_lock();
    rc = nccl_handle_find(listen, NCCL_KIND_LISTEN, "closeListen", &l);
    if (!rc) {
        nccl_handle_end(l->handle);
        for (unsigned i = 0; i < l->n; i++)
            if (l->guest[i].link)
                nccl_link_free(l->guest[i].link);
        nccl_post_box_close(&l->box);
        free(l->guest);
        free(l);
    }
    nccl_unlock();
    return rc;
}

/* ---- connecting ---- */

static void meeting_end(struct meeting *m)
{
    nccl_handle_end(m->handle);
    if (m->link)
        nccl_link_free(m->link);
    if (m->box.qp)
        nccl_post_box_close(&m->box);
    free(m);
}

static int meeting_new(int dev, struct meeting **meeting)
{
    struct nccl_device *device;
    struct meeting *m;
    int rc = nccl_device_get(dev, "connect", &device);

    if (rc)
        return rc;
    m = calloc(1, sizeof(*m));
    if (!m)
        return nccl_refuse(NCCL_SYSTEM_ERROR, "connect: out of memory");
    m->handle = nccl_handle_new(NCCL_KIND_MEETING, m);
    rc = m->handle && !credential_random(&m->id, sizeof(m->id))
             ? NCCL_SUCCESS
             : nccl_refuse(NCCL_SYSTEM_ERROR, "connect: found no memory or no random number");
    if (!rc)
        rc = nccl_link_new(device, NCCL_KIND_SEND, &m->link);
    if (!rc)
        rc = nccl_post_box_open(&m->box, device);
    if (rc) {
        meeting_end(m);
        return rc;
    }
    m->began_ms = nccl_wall_ms();
    m->again_ms = AGAIN_MS;
    *meeting = m;
    return rc;
}

static int meeting_say(struct meeting *m, const struct meet_place *place)
{
    struct nccl_datagram d = {MAGIC, place->cookie, m->id, m->link->mine};
    int64_t now = nccl_wall_ms(), patience = nccl_patience_ms();

    if (now - m->began_ms > patience)
        return nccl_refuse(
            NCCL_REMOTE_ERROR,
            "connect: found nobody at %u.%u.%u.%u, queue pair %u, in %lld s: it does "
            "not accept, or is gone",
            place->gid.raw[12], place->gid.raw[13], place->gid.raw[14], place->gid.raw[15],
            place->qpn, (long long)patience / 1000);
    if (m->said_ms && now - m->said_ms < m->again_ms)
        return NCCL_SUCCESS;
    if (m->said_ms && m->again_ms < AGAIN_MOST_MS)
        m->again_ms *= 2;
    m->said_ms = now;
    nccl_post_box_send(&m->box, &d, &place->gid, place->qpn);
    return NCCL_SUCCESS;
}

/* Handles the answer: connects, and hands the connection to NCCL. */
static int meeting_done(struct meeting *m, const struct nccl_address *peer, void **comm)
{
    struct nccl_link *l = m->link;
    struct ibv_send_wr wr = {
        .wr_id = NCCL_WR_READY, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    int rc = nccl_link_connect(l, peer);

    if (!rc)
        rc = nccl_link_post(l, &wr);
    if (rc)
        return rc;
    l->handle = nccl_handle_new(NCCL_KIND_SEND, l);
    if (!l->handle)
        return nccl_refuse(NCCL_SYSTEM_ERROR, "connect: out of memory");
    l->ready = true;
    m->link = NULL;
    *comm = l->handle;
    return NCCL_SUCCESS;
}

static int meeting_go_on(struct meeting *m, const struct meet_place *place, void **comm)
{
    struct nccl_datagram d;
    uint32_t qpn;

    while (nccl_post_box_next(&m->box, &d, &qpn))
        if (d.magic == MAGIC && d.cookie == place->cookie && d.id == m->id)
            return meeting_done(m, &d.rc, comm);
    return meeting_say(m, place);
}

int nccl_connect(int dev, void *handle, void **send_comm, struct nccl_device_handle **device)
{
    struct meeting *m;
    struct meet_place place;
    int rc = NCCL_SUCCESS;

    if (!handle || !send_comm)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "connect: found no %s",
                           handle ? "place for the communicator" : "handle");
    *send_comm = NULL;
    if (device)
        *device = NULL;
    memcpy(&place, handle, sizeof(place));
    if (place.magic != MAGIC)
        return nccl_refuse(NCCL_INVALID_ARGUMENT,
                           "connect: found a handle of another plug-in, expected one of listen()");
    nccl_lock();
    m = nccl_handle_object((void *)(uintptr_t)place.meeting, NCCL_KIND_MEETING);
    if (!m)
        rc = meeting_new(dev, &m);
    if (!rc) {
        rc = meeting_go_on(m, &place, send_comm);
        place.meeting = (uintptr_t)m->handle;
        if (rc || *send_comm) {
            meeting_end(m);
            place.meeting = 0;
        }
        memcpy(handle, &place, sizeof(place));
    }
    nccl_unlock();
    return rc;
}
