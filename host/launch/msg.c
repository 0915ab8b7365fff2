/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/launch/msg.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

struct header {
    uint32_t type, len;
};

/* The other end reads continuously, so it is stuck or gone if it accepts nothing for this long. */
#define SEND_TIMEOUT_MS 5000

int msg_send(int fd, uint32_t type, const void *body, size_t len)
{
    struct header h = {type, (uint32_t)len};
    struct iovec v[2] = {{&h, sizeof(h)}, {(void *)(uintptr_t)body, len}};
    struct msghdr mh = {.msg_iov = v, .msg_iovlen = 2};

    while (v[0].iov_len + v[1].iov_len) {
        ssize_t n = sendmsg(fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            struct pollfd p = {.fd = fd, .events = POLLOUT};
            if (poll(&p, 1, SEND_TIMEOUT_MS) == 0)
                return -ETIMEDOUT;
            continue;
        }
        if (n < 0)
            return errno == ECONNRESET ? -EPIPE : -errno;
        for (int i = 0; i < 2; i++) {
            size_t k = (size_t)n < v[i].iov_len ? (size_t)n : v[i].iov_len;
            v[i].iov_base = (uint8_t *)v[i].iov_base + k;
            v[i].iov_len -= k;
            n -= (ssize_t)k;
        }
    }
    return 0;
}

static int make_room(struct inbox *in)
{
    if (in->head) {
        memmove(in->buf, in->buf + in->head, in->tail - in->head);
        in->tail -= in->head;
        in->head = 0;
    }
    if (in->size - in->tail >= 4096)
        return 0;
    if (in->size > 2 * MSG_MAX)
        return -EPROTO;
    size_t size = in->size ? in->size * 2 : 16384;
    uint8_t *p = realloc(in->buf, size);
    if (!p)
        return -ENOMEM;
    in->buf = p;
    in->size = size;
    return 0;
}

int msg_fill(struct inbox *in, int fd)
{
    int rc = make_room(in);
    if (rc)
        return rc;
    ssize_t n = recv(fd, in->buf + in->tail, in->size - in->tail, MSG_DONTWAIT);
    if (n > 0) {
        in->tail += (size_t)n;
        return 1;
    }
    if (n == 0 || errno == ECONNRESET)
        return -EPIPE;
    return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

int msg_next(struct inbox *in, struct msg *m)
{
    struct header h;

    if (in->tail - in->head < sizeof(h))
        return 0;
    memcpy(&h, in->buf + in->head, sizeof(h));
    if (h.len > MSG_MAX)
        return -EPROTO;
    if (in->tail - in->head < sizeof(h) + h.len)
        return 0;
    *m = (struct msg){h.type, h.len, in->buf + in->head + sizeof(h)};
    in->head += sizeof(h) + h.len;
    return 1;
}

void msg_free(struct inbox *in)
{
    free(in->buf);
    *in = (struct inbox){0};
}
