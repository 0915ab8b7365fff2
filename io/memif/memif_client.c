/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's end of a memif's control channel. The client provides the memory. */
#include "io/memif/memif.h"

#include "base/assert.h"
#include "machine/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void memif_client_connect(struct memif *mf)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    snprintf(un.sun_path, sizeof(un.sun_path), "%s", mf->socket);
    mf->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (mf->fd >= 0 && connect(mf->fd, (struct sockaddr *)&un, sizeof(un)))
        memif_drop(mf); /* no listener yet: the next call tries again */
}

static int client_region(struct memif *mf)
{
    size_t size = memif_region_bytes(mf);
    int rc, fd;
    void *at = shared_make("memif", size, &fd);

    if (!at)
        return fd;
    T_ASSERT(!mf->n_regions, "a client connects with the regions of an earlier connection");
    memif_add_region(mf, at, size);
    rc = memif_region_init(mf);
    if (rc) {
        close(fd);
        return rc;
    }
    if (mf->share) {
        T_ASSERT(mf->share->at && mf->share->fd >= 0, "frames are shared that have no memory");
        mf->region[1].addr = mf->share->at;
        mf->region[1].size = mf->share->bytes;
        mf->n_regions = 2;
    }
    return fd;
}

static int client_regions(struct memif *mf, int fd)
{
    struct memif_msg msg = {.type = MEMIF_ADD_REGION};
    int rc = 0;

    for (uint16_t i = 0; !rc && i < mf->n_regions; i++) {
        msg.region.index = i;
        msg.region.size = mf->region[i].size;
        rc = memif_send(mf, &msg, i ? mf->share->fd : fd);
    }
    return rc;
}

static int client_rings(struct memif *mf)
{
    /* The protocol requires a descriptor for interrupts. It stays unused, because receivers poll. */
    int rc = 0, efd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

    if (efd < 0)
        return -errno;
    for (unsigned i = 0; !rc && i < 2u * mf->queues; i++) {
        struct memif_msg msg = {.type = MEMIF_ADD_RING};

        msg.ring.flags = i < mf->queues ? MEMIF_RING_C2S : 0;
        msg.ring.index = (uint16_t)(i % mf->queues);
        msg.ring.offset = (uint32_t)(i * memif_ring_bytes(mf));
        msg.ring.log2_size = mf->log2_ring;
        rc = memif_send(mf, &msg, efd);
    }
    close(efd);
    return rc;
}

/* Answers HELLO with all other messages at once; the server answers those with ACKs. */
static int client_hello(struct memif *mf, const struct memif_msg *hello)
{
    struct memif_msg init = {.type = MEMIF_INIT}, conn = {.type = MEMIF_CONNECT}, page;
    int fd, rc;

    if (hello->hello.min_version > MEMIF_VERSION || hello->hello.max_version < MEMIF_VERSION ||
        hello->hello.max_c2s_ring + 1 < mf->queues || hello->hello.max_s2c_ring + 1 < mf->queues ||
        hello->hello.max_log2_ring < mf->log2_ring || (mf->share && !hello->hello.max_region))
        return memif_refuse(mf, "found another version or too few rings");
    fd = client_region(mf);
    if (fd < 0)
        return fd;
    init.init.version = MEMIF_VERSION;
    init.init.id = mf->id;
    memcpy(init.init.secret, mf->secret, sizeof(init.init.secret));
    snprintf(init.init.name, sizeof(init.init.name), "%s", mf->name);
    snprintf(conn.connect.name, sizeof(conn.connect.name), "%s", mf->name);
    rc = memif_send(mf, &init, -1);
    if (!rc)
        rc = client_regions(mf, fd);
    close(fd);
    if (!rc && memif_page_message(mf, hello, &page))
        rc = memif_send(mf, &page, mf->page_fd);
    if (!rc)
        rc = client_rings(mf);
    if (!rc)
        rc = memif_send(mf, &conn, -1);
    mf->state = MEMIF_GREETED;
    return rc;
}

void memif_client_refused(struct memif *mf, const struct memif_msg *msg)
{
    if (msg->type != MEMIF_DISCONNECT || mf->state == MEMIF_UP)
        return;
    snprintf(mf->port.refused_text, sizeof(mf->port.refused_text), "%.95s", msg->disconnect.reason);
    mf->port.refused_why = mf->port.refused_text;
}

int memif_client(struct memif *mf, const struct memif_msg *msg)
{
    if (msg->type == MEMIF_ACK)
        return 0;
    if (msg->type == MEMIF_HELLO && mf->state == MEMIF_DOWN)
        return client_hello(mf, msg);
    if (msg->type == MEMIF_CONNECTED && mf->state == MEMIF_GREETED) {
        memif_rings_start(mf);
        mf->state = MEMIF_UP;
        return 0;
    }
    memif_client_refused(mf, msg);
    return -ECONNRESET;
}
