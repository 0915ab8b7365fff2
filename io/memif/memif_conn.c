/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control channel of a memif: a socket first, then the messages of memif_wire.h, then none until an end
 * closes. All of it runs in io_port_up(), in the thread that also receives and sends: when the peer
 * dies, regions are unmapped between two bursts and never during one.
 */
#include "io/memif/memif.h"

#include "base/assert.h"
#include "system/credential.h"
#include "system/own_clear.h"
#include "machine/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

void memif_drop(struct memif *mf)
{
    if (mf->fd >= 0)
        close(mf->fd);
    if (mf->listener)
        memif_page_drop(mf);
    share_drop(mf);
    for (unsigned i = 0; i < mf->n_regions; i++)
        if (!mf->share || mf->region[i].addr != mf->share->at)
            munmap(mf->region[i].addr, mf->region[i].size);
    mf->fd = -1;
    mf->n_regions = mf->n_rx = mf->n_tx = 0;
    memset(mf->rx, 0, sizeof(mf->rx));
    memset(mf->tx, 0, sizeof(mf->tx));
    mf->state = MEMIF_DOWN;
}

int memif_send(struct memif *mf, const struct memif_msg *msg, int fd)
{
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } ctl = {0};
    struct iovec iov = {(void *)msg, sizeof(*msg)};
    struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

    if (fd >= 0) {
        struct cmsghdr *c;

        mh.msg_control = ctl.buf;
        mh.msg_controllen = sizeof(ctl.buf);
        c = CMSG_FIRSTHDR(&mh);
        c->cmsg_len = CMSG_LEN(sizeof(int));
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    }
    return sendmsg(mf->fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(*msg) ? 0 : -EPIPE;
}

static int peer_pid(int fd)
{
    struct ucred peer = {0};
    socklen_t len = sizeof(peer);

    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
    return peer.pid;
}

int memif_refuse(struct memif *mf, const char *reason)
{
    struct memif_msg msg = {.type = MEMIF_DISCONNECT};

    if (mf->listener && mf->state != MEMIF_UP) {
        mf->port.refused_pid = peer_pid(mf->fd);
        mf->port.refused_why = reason;
        mf->port.stats.refused++;
    }

    snprintf(msg.disconnect.reason, sizeof(msg.disconnect.reason), "%s", reason);
    memif_send(mf, &msg, -1);
    return -EPROTO;
}

/* Receives a message. *fd: the descriptor that came with it, or -1. 0: no message waits; < 0: the peer
 * is gone or broken. */
static int memif_recv(struct memif *mf, struct memif_msg *msg, int *fd)
{
    union {
        char buf[CMSG_SPACE(4 * sizeof(int)) + CMSG_SPACE(64)];
        struct cmsghdr align;
    } ctl;
    struct iovec iov = {msg, sizeof(*msg)};
    struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl.buf};
    ssize_t n;

    mh.msg_controllen = sizeof(ctl.buf);
    *fd = -1;
    n = recvmsg(mf->fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&mh); c; c = CMSG_NXTHDR(&mh, c)) {
        size_t fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < fds; i++) {
            int got;

            memcpy(&got, CMSG_DATA(c) + i * sizeof(int), sizeof(got));
            if (*fd < 0)
                *fd = got;
            else
                close(got);
        }
    }
    if (n == sizeof(*msg))
        return 1;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return n ? -EPROTO : -ECONNRESET;
}

void memif_add_region(struct memif *mf, void *at, uint64_t size)
{
    T_ASSERT(mf->n_regions < MEMIF_REGIONS, "a memif maps more regions than it has places for");
    mf->region[mf->n_regions].addr = at;
    mf->region[mf->n_regions++].size = size;
}

/* ---- server ---- */

static int serve_hello(struct memif *mf)
{
    struct memif_msg msg = {.type = MEMIF_HELLO};

    snprintf(msg.hello.name, sizeof(msg.hello.name), "%s", mf->name);
    msg.hello.min_version = msg.hello.max_version = MEMIF_VERSION;
    msg.hello.max_region = MEMIF_REGIONS - 1;
    msg.hello.max_c2s_ring = msg.hello.max_s2c_ring = mf->queues - 1;
    msg.hello.max_log2_ring = MEMIF_MAX_LOG2;
    return memif_send(mf, &msg, -1);
}

static int serve_region(struct memif *mf, const struct memif_msg *msg, int fd)
{
    uint64_t size = msg->region.size;
    void *at;

    if (fd < 0 || msg->region.index != mf->n_regions || mf->n_regions == MEMIF_REGIONS)
        return memif_refuse(mf, "invalid region");
    if (!size || size > UINT32_MAX || !shared_is_safe(fd, size))
        return memif_refuse(mf, "region is not a sealed file of the size announced");
    at = shared_map_part(fd, size);
    if (!at)
        return memif_refuse(mf, "cannot map region");
    memif_add_region(mf, at, size);
    return 0;
}

static int serve_page(struct memif *mf, const struct memif_msg *msg, int fd)
{
    return memif_page_take(mf, msg, fd) ? memif_refuse(mf, "invalid port page") : 0;
}

static int serve_ring(struct memif *mf, const struct memif_msg *msg)
{
    bool c2s = msg->ring.flags & MEMIF_RING_C2S;
    uint16_t *n = c2s ? &mf->n_rx : &mf->n_tx;
    unsigned log2 = msg->ring.log2_size;
    struct memif_queue *q;
    uint8_t *at;

    if (msg->ring.index != *n || *n >= mf->queues || log2 > MEMIF_MAX_LOG2 ||
        msg->ring.region >= mf->n_regions || msg->ring.offset % 64 % 16 ||
        msg->ring.offset + sizeof(struct memif_ring) + (sizeof(struct memif_desc) << log2) >
            mf->region[msg->ring.region].size)
        return memif_refuse(mf, "invalid ring");
    at = mf->region[msg->ring.region].addr + msg->ring.offset;
    q = c2s ? &mf->rx[*n] : &mf->tx[*n];
    *q =
        (struct memif_queue){.ring = (struct memif_ring *)at, .mask = (uint16_t)((1u << log2) - 1)};
    if (q->ring->cookie != MEMIF_COOKIE)
        return memif_refuse(mf, "wrong cookie in ring");
    T_ASSERT(*n < mf->queues, "a memif has more rings than queues");
    (*n)++;
    return 0;
}

static int serve_connect(struct memif *mf)
{
    struct memif_msg msg = {.type = MEMIF_CONNECTED};

    if (!mf->n_rx || !mf->n_tx)
        return memif_refuse(mf, "no rings");
    T_ASSERT(mf->state == MEMIF_GREETED, "a memif is connected before its peer said who it is");
    memif_rings_start(mf);
    mf->state = MEMIF_UP;
    snprintf(msg.connect.name, sizeof(msg.connect.name), "%s", mf->name);
    return memif_send(mf, &msg, -1);
}

/* Handles a client's message. Compares the secret in constant time. */
static int memif_conn_serve(struct memif *mf, const struct memif_msg *msg, int fd)
{
    static const struct memif_msg ack = {.type = MEMIF_ACK};
    int rc = 0;

    if (msg->type != MEMIF_DISCONNECT &&
        (mf->state == MEMIF_UP || (mf->state == MEMIF_DOWN && msg->type != MEMIF_INIT)))
        return memif_refuse(mf, "unexpected message");
    switch (msg->type) {
    case MEMIF_INIT:
        if (msg->init.version != MEMIF_VERSION || msg->init.mode || msg->init.id != mf->id)
            return memif_refuse(mf, "found another version, mode or id");
        if (mf->has_secret && !credential_same(mf->secret, msg->init.secret, MEMIF_SECRET))
            return memif_refuse(mf, "it does not have this host's token");
        mf->state = MEMIF_GREETED;
        break;
    case MEMIF_ADD_REGION:
        rc = msg->region.kind == MEMIF_PORT_PAGE ? serve_page(mf, msg, fd)
                                                 : serve_region(mf, msg, fd);
        break;
    case MEMIF_ADD_RING:
        rc = serve_ring(mf, msg);
        break;
    case MEMIF_CONNECT:
        return serve_connect(mf);
    default: /* DISCONNECT, or an unknown type */
        return -ECONNRESET;
    }
    return rc ? rc : memif_send(mf, &ack, -1);
}

static int server_listen(struct memif *mf)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int err;

    snprintf(un.sun_path, sizeof(un.sun_path), "%s", mf->socket);
    mf->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (mf->listen_fd < 0)
        return -errno;
    own_socket_clear(mf->socket);
    if (!bind(mf->listen_fd, (struct sockaddr *)&un, sizeof(un)) && !listen(mf->listen_fd, 8))
        return 0;
    err = errno;
    close(mf->listen_fd);
    mf->listen_fd = -1;
    return -err;
}

static void server_accept(struct memif *mf)
{
    T_ASSERT(mf->state == MEMIF_DOWN && !mf->n_regions,
             "a peer is accepted while another is there");
    mf->fd = accept4(mf->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    mf->accepted_ns = clock_mono_ns();
    mf->port.peer_pid = mf->fd >= 0 ? peer_pid(mf->fd) : 0;
    if (mf->fd >= 0 && serve_hello(mf))
        memif_drop(mf);
}

static bool memif_expired(const struct io_port *p)
{
    const struct memif *mf = (const struct memif *)p;

    struct pollfd others = {mf->listen_fd, POLLIN, 0};
    int64_t ns;

    if (!mf->listener || mf->fd < 0 || mf->state == MEMIF_UP)
        return false;
    ns = clock_mono_ns() - mf->accepted_ns;
    return ns > MEMIF_SETUP_NS ||
           (ns > MEMIF_SAYS_NS && mf->state == MEMIF_DOWN && poll(&others, 1, 0) > 0);
}

/* ---- both ---- */

/* Reads the messages that a server sent before it closed: they say why it refused this client. */
static void hear_refusal(struct memif *mf)
{
    struct memif_msg msg;
    int fd;

    while (memif_recv(mf, &msg, &fd) > 0) {
        memif_client_refused(mf, &msg);
        if (fd >= 0)
            close(fd);
    }
}

static bool memif_up(struct io_port *p)
{
    struct memif *mf = (struct memif *)p;
    enum memif_state before = mf->state;
    struct memif_msg msg;
    int rc, fd;

    if (mf->fd < 0 && mf->listener)
        server_accept(mf);
    else if (mf->fd < 0)
        memif_client_connect(mf);
    while (mf->fd >= 0 && (rc = memif_recv(mf, &msg, &fd)) != 0) {
        if (rc > 0) {
            rc = mf->listener ? memif_conn_serve(mf, &msg, fd) : memif_client(mf, &msg);
            if (fd >= 0)
                close(fd);
        }
        if (rc < 0 && !mf->listener)
            hear_refusal(mf);
        if (rc < 0)
            memif_drop(mf);
    }
    if (memif_expired(p)) {
        memif_refuse(mf, "it did not finish its connection");
        memif_drop(mf);
    }
    if (mf->state == MEMIF_UP && before != MEMIF_UP)
        p->stats.connects++;
    return mf->state == MEMIF_UP;
}

static int memif_fd(const struct io_port *p)
{
    const struct memif *mf = (const struct memif *)p;

    return mf->fd >= 0 ? mf->fd : mf->listen_fd;
}

static void memif_close(struct io_port *p)
{
    struct memif *mf = (struct memif *)p;

    if (mf->fd >= 0)
        memif_refuse(mf, "closed");
    memif_drop(mf);
    memif_page_drop(mf);
    if (mf->listen_fd >= 0) {
        close(mf->listen_fd);
        own_socket_clear(mf->socket);
    }
    free(mf->held);
    free(mf);
}

/* Replaces the shared memory by private memory. A mapping that cannot be replaced is never used again. */
static void memif_orphan(struct io_port *p, bool fds)
{
    struct memif *mf = (struct memif *)p;

    for (unsigned i = 0; i < mf->n_regions; i++)
        (void)mmap(mf->region[i].addr, mf->region[i].size, PROT_READ | PROT_WRITE,
                   MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memif_page_orphan(mf, fds);
    if (fds && mf->fd >= 0)
        close(mf->fd);
    mf->fd = -1;
    mf->state = MEMIF_DOWN;
}

static struct port_page *memif_page(const struct io_port *p)
{
    return ((const struct memif *)p)->page;
}

static const struct io_port_ops memif_ops = {
    .up = memif_up,
    .fd = memif_fd,
    .rx = memif_rx,
    .tx = memif_tx,
    .pending = memif_pending,
    .arrived = memif_arrived,
    .crowded = memif_crowded,
    .untaken = memif_untaken,
    .page = memif_page,
    .expired = memif_expired,
    .close = memif_close,
    .orphan = memif_orphan,
};

int io_port_memif(struct io_port **p, const struct memif_cfg *cfg)
{
    struct memif *mf;
    int rc;

    *p = NULL;
    if (!cfg->queues || cfg->queues > RIM_QUEUES || cfg->log2_ring > MEMIF_MAX_LOG2 ||
        (cfg->share && cfg->listener) || strlen(cfg->socket) >= sizeof(mf->socket))
        return -EINVAL;
    mf = calloc(1, sizeof(*mf));
    if (!mf)
        return -ENOMEM;
    mf->port.ops = &memif_ops;
    mf->fd = mf->listen_fd = mf->page_fd = -1;
    mf->listener = cfg->listener;
    mf->queues = cfg->queues;
    mf->log2_ring = cfg->log2_ring;
    mf->id = cfg->id;
    mf->pool = cfg->share ? cfg->share->pool : cfg->pool;
    mf->share = cfg->share;
    mf->held = cfg->share ? calloc(2u * cfg->queues << cfg->log2_ring, sizeof(*mf->held)) : NULL;
    if (mf->share && !mf->held) {
        free(mf);
        return -ENOMEM;
    }
    if (cfg->secret)
        memcpy(mf->secret, cfg->secret, sizeof(mf->secret));
    mf->has_secret = cfg->secret;
    snprintf(mf->socket, sizeof(mf->socket), "%s", cfg->socket);
    snprintf(mf->name, sizeof(mf->name), "%s", cfg->name ? cfg->name : "tributary");
    rc = cfg->listener ? server_listen(mf) : memif_page_make(mf);
    if (rc) {
        fprintf(stderr, "tributary: cannot %s %s: %s\n",
                cfg->listener ? "listen on" : "share memory with", cfg->socket, strerror(-rc));
        free(mf->held);
        free(mf);
        return rc;
    }
    *p = &mf->port;
    return 0;
}
