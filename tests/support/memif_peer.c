/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/memif_peer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- control messages ---- */

static void send_msg(const struct memif_peer *p, const struct memif_msg *msg, size_t len,
                     const int *fd, unsigned n_fds)
{
    union {
        char buf[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } ctl = {0};
    struct iovec iov = {(void *)(uintptr_t)msg, len};
    struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

    if (n_fds) {
        mh.msg_control = ctl.buf;
        mh.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        CMSG_FIRSTHDR(&mh)->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        CMSG_FIRSTHDR(&mh)->cmsg_level = SOL_SOCKET;
        CMSG_FIRSTHDR(&mh)->cmsg_type = SCM_RIGHTS;
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&mh)), fd, n_fds * sizeof(int));
    }
    sendmsg(p->fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int make_file(uint8_t how, size_t size)
{
    int fd = how & MEMIF_PEER_MEMORY ? memfd_create("peer", MFD_CLOEXEC | MFD_ALLOW_SEALING)
                                     : eventfd(0, EFD_CLOEXEC);

    if (how & MEMIF_PEER_MEMORY && ftruncate(fd, (off_t)size))
        abort();
    if (how & MEMIF_PEER_SEALED)
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
    return fd;
}

/* A file that the next ADD_REGION is right for. */
static int region_file(struct memif_peer *p, uint8_t pages)
{
    size_t size = MEMIF_PEER_PAGE * (pages % MEMIF_PEER_PAGES + 1u);
    int fd = make_file(MEMIF_PEER_MEMORY | MEMIF_PEER_SEALED, size);
    unsigned i = p->n_regions;

    if (i == MEMIF_REGIONS)
        return fd;
    p->at[i] = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p->at[i] == MAP_FAILED)
        abort();
    p->size[i] = size;
    p->memfd[i] = dup(fd);
    p->n_regions++;
    return fd;
}

static struct memif_ring *ring_of(const struct memif_peer *p, unsigned i)
{
    uint32_t at = p->ring_at[i % (2 * MEMIF_PEER_QUEUES)];
    size_t need = sizeof(struct memif_ring) + (sizeof(struct memif_desc) << MEMIF_PEER_LOG2);

    return p->at[0] && at + need <= p->size[0] ? (struct memif_ring *)(p->at[0] + at) : NULL;
}

/* A valid next ring with its buffers, behind those there are. */
static void next_ring(struct memif_peer *p, struct memif_msg *msg, uint8_t flags)
{
    bool c2s = flags & MEMIF_RING_C2S;
    unsigned n = p->n_rings[c2s], i = (c2s ? 0 : MEMIF_PEER_QUEUES) + n;
    struct memif_ring *r;

    msg->ring.flags = flags;
    msg->ring.index = (uint16_t)n;
    msg->ring.offset = 256u * i;
    msg->ring.log2_size = MEMIF_PEER_LOG2;
    if (n >= MEMIF_PEER_QUEUES)
        return;
    p->n_rings[c2s]++;
    p->ring_at[i] = 256u * i;
    r = ring_of(p, i);
    if (!r)
        return;
    r->cookie = MEMIF_COOKIE;
    r->head = c2s ? 0 : 1u << MEMIF_PEER_LOG2;
    for (unsigned d = 0; d < 1u << MEMIF_PEER_LOG2; d++)
        r->desc[d] = (struct memif_desc){
            .length = 512, .offset = MEMIF_PEER_PAGE + 512u * (i * (1u << MEMIF_PEER_LOG2) + d)};
}

void memif_peer_say(struct memif_peer *p, uint8_t type, uint8_t how, const uint8_t *patch, size_t n)
{
    struct memif_msg msg = {.type = type % 10};
    int fd[2] = {-1, -1};
    unsigned n_fds = how >> 6;
    size_t len = sizeof(msg);

    switch (msg.type) {
    case MEMIF_HELLO:
        msg.hello.min_version = msg.hello.max_version = MEMIF_VERSION;
        msg.hello.max_region = 3;
        msg.hello.max_c2s_ring = msg.hello.max_s2c_ring = MEMIF_PEER_QUEUES - 1;
        msg.hello.max_log2_ring = MEMIF_PEER_LOG2;
        break;
    case MEMIF_INIT:
        msg.init.version = MEMIF_VERSION;
        msg.init.id = MEMIF_PEER_ID;
        break;
    case MEMIF_ADD_REGION:
        msg.region.index = (uint16_t)p->n_regions;
        fd[0] = region_file(p, how);
        msg.region.size = MEMIF_PEER_PAGE * (how % MEMIF_PEER_PAGES + 1u);
        break;
    case MEMIF_ADD_RING:
        next_ring(p, &msg, how & 1);
        break;
    default:
        break;
    }
    for (size_t i = 0; i + 1 < n; i += 2)
        ((uint8_t *)&msg)[patch[i] % sizeof(msg)] = patch[i + 1];
    if (n & 1)
        len = patch[n - 1] % (sizeof(msg) + 1);
    if (n_fds == 1 && fd[0] >= 0) { /* another kind of file */
        close(fd[0]);
        fd[0] = make_file(how, MEMIF_PEER_PAGE);
    }
    if (fd[0] < 0 && n_fds)
        fd[0] = make_file(how, MEMIF_PEER_PAGE);
    if (n_fds == 3)
        fd[1] = make_file(how, MEMIF_PEER_PAGE);
    send_msg(p, &msg, len, fd, (fd[0] >= 0) + (fd[1] >= 0));
    for (unsigned i = 0; i < 2; i++)
        if (fd[i] >= 0)
            close(fd[i]);
}

void memif_peer_take(struct memif_peer *p)
{
    struct memif_msg msg;
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } ctl;
    struct iovec iov = {&msg, sizeof(msg)};

    for (;;) {
        struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl.buf};
        struct cmsghdr *c;
        int fd = -1;

        mh.msg_controllen = sizeof(ctl.buf);
        if (recvmsg(p->fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != sizeof(msg))
            return;
        c = CMSG_FIRSTHDR(&mh);
        if (c)
            memcpy(&fd, CMSG_DATA(c), sizeof(fd));
        if (p->serves && msg.type == MEMIF_ADD_REGION && fd >= 0 && p->n_regions < 2) {
            unsigned i = p->n_regions++;

            p->size[i] = msg.region.size;
            p->at[i] = mmap(NULL, msg.region.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            if (p->at[i] == MAP_FAILED)
                abort();
            p->memfd[i] = dup(fd);
        }
        if (p->serves && msg.type == MEMIF_ADD_RING)
            p->ring_at[(msg.ring.flags & MEMIF_RING_C2S ? 0 : MEMIF_PEER_QUEUES) + msg.ring.index] =
                msg.ring.offset;
        if (fd >= 0)
            close(fd);
    }
}

void *memif_peer_field(const struct memif_peer *p, unsigned ring, unsigned which, unsigned *bytes)
{
    struct memif_ring *r = ring_of(p, ring);
    struct memif_desc *d = r ? &r->desc[which >> 4 & ((1u << MEMIF_PEER_LOG2) - 1)] : NULL;

    *bytes = which % 8 < 3 || which % 8 == 5 || which % 8 == 6 ? 2 : 4;
    if (!r)
        return NULL;
    switch (which % 8) {
    case 0:
        return &r->head;
    case 1:
        return &r->tail;
    case 2:
        return &r->flags;
    case 3:
        return &d->length;
    case 4:
        return &d->offset;
    case 5:
        return &d->region;
    case 6:
        return &d->flags;
    default:
        return &r->cookie;
    }
}

/* ---- connecting ---- */

static struct sockaddr_un address(const struct memif_peer *p)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    snprintf(un.sun_path, sizeof(un.sun_path), "%s", p->socket);
    return un;
}

bool memif_peer_open(struct memif_peer *p, const char *socket_path, bool serves)
{
    struct sockaddr_un un;

    *p = (struct memif_peer){.socket = socket_path, .serves = serves, .listen = -1, .fd = -1};
    if (!serves)
        return true;
    un = address(p);
    unlink(socket_path);
    p->listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return p->listen >= 0 && !bind(p->listen, (struct sockaddr *)&un, sizeof(un)) &&
           !listen(p->listen, 8);
}

void memif_peer_forget(struct memif_peer *p)
{
    for (unsigned i = 0; i < p->n_regions; i++) {
        munmap(p->at[i], p->size[i]);
        close(p->memfd[i]);
    }
    if (p->fd >= 0)
        close(p->fd);
    *p = (struct memif_peer){
        .socket = p->socket, .serves = p->serves, .listen = p->listen, .fd = -1};
}

bool memif_peer_join(struct memif_peer *p)
{
    struct sockaddr_un un = address(p);

    memif_peer_forget(p);
    if (p->serves) {
        p->fd = accept4(p->listen, NULL, NULL, SOCK_CLOEXEC);
        return p->fd >= 0;
    }
    p->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    return p->fd >= 0 && !connect(p->fd, (struct sockaddr *)&un, sizeof(un));
}

void memif_peer_close(struct memif_peer *p)
{
    memif_peer_forget(p);
    if (p->listen >= 0)
        close(p->listen);
    if (p->serves)
        unlink(p->socket);
    p->listen = -1;
}
