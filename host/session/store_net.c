/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/session/store_tcp.h"

#include "host/session/session.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int64_t store_now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int wait_for(int fd, short what, int64_t until_ms)
{
    struct pollfd p = {.fd = fd, .events = what};
    int64_t left;
    int rc;

    do {
        left = until_ms - store_now_ms();
        rc = left > 0 ? poll(&p, 1, left > 1000 ? 1000 : (int)left) : -1;
    } while (left > 0 && (rc == 0 || (rc < 0 && errno == EINTR)));
    return left <= 0 ? -ETIMEDOUT : rc < 0 ? -errno : 0;
}

int store_transfer(int fd, bool out, void *buf, size_t bytes, int64_t until_ms)
{
    char *p = buf;

    while (bytes) {
        ssize_t n = out ? send(fd, p, bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
                        : recv(fd, p, bytes, MSG_DONTWAIT);

        if (n == 0)
            return -ECONNRESET;
        if (n > 0) {
            p += n;
            bytes -= (size_t)n;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
        int rc = wait_for(fd, out ? POLLOUT : POLLIN, until_ms);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- addresses ---- */

int store_resolve(const char *address, bool passive, struct addrinfo **list, char *err)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = (passive ? AI_PASSIVE : 0) | AI_NUMERICSERV};
    const char *colon = address ? strrchr(address, ':') : NULL;
    char host[128];
    size_t n = colon ? (size_t)(colon - address) : 0;
    int rc;

    if (!colon || !n || n >= sizeof(host) || !colon[1])
        return session_say(err, -EINVAL, "store: found '%s', expected ADDRESS:PORT",
                           address ? address : "nothing");
    if (address[0] == '[' && address[n - 1] == ']') /* IPv6 */
        address++, n -= 2;
    snprintf(host, sizeof(host), "%.*s", (int)n, address);
    rc = getaddrinfo(host, colon + 1, &hints, list);
    if (rc)
        return session_say(err, -EINVAL, "store: found '%s:%s', expected ADDRESS:PORT: %s", host,
                           colon + 1, gai_strerror(rc));
    return 0;
}

int store_listen(const struct addrinfo *a, char *err)
{
    int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    int on = 1;

    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd >= 0 && !bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, SOMAXCONN))
        return fd;
    int rc = -errno;
    if (fd >= 0)
        close(fd);
    return session_say(err, rc, "store: rank 0 cannot listen: %s", strerror(-rc));
}

int store_connect(const struct addrinfo *a, int64_t until_ms)
{
    int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    int rc = fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen) ? -errno : 0, error = 0;
    socklen_t size = sizeof(error);

    if (fd >= 0 && rc == -EINPROGRESS) {
        rc = wait_for(fd, POLLOUT, until_ms);
        if (!rc && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size))
            rc = -errno;
        rc = rc ? rc : -error;
    }
    if (!rc)
        return fd;
    if (fd >= 0)
        close(fd);
    return rc;
}

int store_place(int fd, bool peer, struct store_place *p)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a = {.any.sa_family = AF_UNSPEC};
    socklen_t bytes = sizeof(a);

    if (peer ? getpeername(fd, &a.any, &bytes) : getsockname(fd, &a.any, &bytes))
        return -errno;
    *p = (struct store_place){.zero = {0}};
    if (a.any.sa_family == AF_INET) {
        memset(p->address + 10, 0xff, 2); /* RFC 4291, 2.5.5.2 */
        memcpy(p->address + 12, &a.v4.sin_addr, 4);
        memcpy(p->port, &a.v4.sin_port, 2);
        return 0;
    }
    if (a.any.sa_family != AF_INET6)
        return -EAFNOSUPPORT;
    memcpy(p->address, &a.v6.sin6_addr, 16);
    memcpy(p->port, &a.v6.sin6_port, 2);
    return 0;
}
