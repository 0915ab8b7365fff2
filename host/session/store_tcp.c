/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The out-of-band calls over TCP: a star whose middle is rank 0. A rank introduces itself by its
 * number and the number of ranks; after that every call is messages of sizes that both ends know.
 */
#include "host/session/store.h"

#include "host/session/session.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HELLO_MAGIC 0x54524942u
#define RETRY_MS    20

struct tcp_store {
    struct trib_store store;
    uint32_t rank, size;
    int64_t patience_ms; /* of every wait */
    int *fd;             /* rank 0: of each other rank; else fd[0] alone */
};

struct hello {
    uint32_t magic, rank, size;
};

static int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- bytes ---- */

static int wait_for(int fd, short what, int64_t until_ms)
{
    struct pollfd p = {.fd = fd, .events = what};
    int64_t left;
    int rc;

    do {
        left = until_ms - now_ms();
        rc = left > 0 ? poll(&p, 1, left > 1000 ? 1000 : (int)left) : -1;
    } while (left > 0 && (rc == 0 || (rc < 0 && errno == EINTR)));
    return left <= 0 ? -ETIMEDOUT : rc < 0 ? -errno : 0;
}

/* All of it, in one direction. 0, -ETIMEDOUT, -ECONNRESET, -errno. */
static int transfer(int fd, bool out, void *buf, size_t bytes, int64_t until_ms)
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

/* ---- the calls ---- */

static int store_bcast(void *ctx, void *buf, size_t bytes, uint32_t root)
{
    struct tcp_store *s = ctx;
    int64_t until = now_ms() + s->patience_ms;
    int rc = 0;

    if (s->rank) {
        if (s->rank == root)
            return transfer(s->fd[0], true, buf, bytes, until);
        return transfer(s->fd[0], false, buf, bytes, until);
    }
    if (root)
        rc = transfer(s->fd[root], false, buf, bytes, until);
    for (uint32_t r = 1; !rc && r < s->size; r++)
        if (r != root)
            rc = transfer(s->fd[r], true, buf, bytes, until);
    return rc;
}

static int store_gather(void *ctx, uint32_t root, const void *mine, void *all, size_t bytes)
{
    struct tcp_store *s = ctx;
    int64_t until = now_ms() + s->patience_ms;
    char *into = all;
    int rc = 0;

    if (root)
        return -ENOTSUP;
    if (s->rank)
        return transfer(s->fd[0], true, (void *)(uintptr_t)mine, bytes, until);
    memcpy(into, mine, bytes);
    for (uint32_t r = 1; !rc && r < s->size; r++)
        rc = transfer(s->fd[r], false, into + r * bytes, bytes, until);
    return rc;
}

static int store_barrier(void *ctx)
{
    struct tcp_store *s = ctx;
    char *all = s->rank ? NULL : calloc(1, s->size), one = 0;
    int rc = !s->rank && !all ? -ENOMEM : store_gather(s, 0, &one, all, 1);

    free(all);
    return rc ? rc : store_bcast(s, &one, 1, 0);
}

/* ---- opening ---- */

static int resolve(const char *address, bool passive, struct addrinfo **list, char *err)
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

static int listen_at(const struct addrinfo *a, uint32_t size, char *err)
{
    int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol), on = 1;

    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd >= 0 && !bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, (int)size))
        return fd;
    int rc = -errno;
    if (fd >= 0)
        close(fd);
    return session_say(err, rc, "store: rank 0 cannot listen: %s", strerror(-rc));
}

/* Names the ranks that have not come. */
static int missing(const struct tcp_store *s, char *err)
{
    char text[96] = "";
    size_t at = 0;

    for (uint32_t r = 1; r < s->size && at < sizeof(text) - 16; r++)
        if (s->fd[r] < 0)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%u", at ? ", " : "", r);
    return session_say(err, -ETIMEDOUT, "store: ranks that have not connected: %s", text);
}

/* Whoever does not introduce himself well is not a rank, and is hung up on. */
static int admit(struct tcp_store *s, int fd, int64_t until_ms, char *err)
{
    struct hello h;
    int64_t soon = now_ms() + 2000;

    if (transfer(fd, false, &h, sizeof(h), soon < until_ms ? soon : until_ms) ||
        h.magic != HELLO_MAGIC) {
        close(fd);
        return 0;
    }
    if (h.size != s->size || !h.rank || h.rank >= s->size || s->fd[h.rank] >= 0) {
        bool twice = h.size == s->size && h.rank && h.rank < s->size;

        close(fd);
        return twice
                   ? session_say(err, -EINVAL, "store: found rank %u twice, expected each once",
                                 h.rank)
                   : session_say(err, -EINVAL, "store: found rank %u of %u, expected 1 to %u of %u",
                                 h.rank, h.size, s->size - 1, s->size);
    }
    s->fd[h.rank] = fd;
    return 0;
}

static int serve(struct tcp_store *s, const struct addrinfo *a, int64_t until_ms, char *err)
{
    int at = listen_at(a, s->size, err), rc = at < 0 ? at : 0;

    for (uint32_t n = 1; !rc && n < s->size;) {
        int fd = wait_for(at, POLLIN, until_ms) ? -1 : accept4(at, NULL, NULL, SOCK_CLOEXEC);

        if (fd >= 0)
            rc = admit(s, fd, until_ms, err);
        else if (now_ms() >= until_ms)
            rc = missing(s, err);
        n = 1;
        for (uint32_t r = 1; r < s->size; r++)
            n += s->fd[r] >= 0;
    }
    if (at >= 0)
        close(at);
    return rc;
}

/* Rank 0 may not listen yet. */
static int reach(struct tcp_store *s, const struct addrinfo *a, int64_t until_ms, char *err)
{
    struct hello h = {HELLO_MAGIC, s->rank, s->size};
    int rc;

    do {
        int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);

        rc = fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen) ? -errno : 0;
        if (!rc) {
            s->fd[0] = fd;
            return transfer(fd, true, &h, sizeof(h), until_ms);
        }
        if (fd >= 0)
            close(fd);
        nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000L}, NULL);
    } while (now_ms() < until_ms);
    return session_say(err, rc, "store: rank %u cannot reach rank 0: %s", s->rank, strerror(-rc));
}

static void store_close(struct trib_store *store)
{
    struct tcp_store *s = (struct tcp_store *)store;

    for (uint32_t r = 0; r < (s->rank ? 1 : s->size); r++)
        if (s->fd[r] >= 0)
            close(s->fd[r]);
    free(s->fd);
    free(s);
}

static struct tcp_store *make(uint32_t rank, uint32_t size, double timeout_s)
{
    struct tcp_store *s = calloc(1, sizeof(*s));
    int *fd = calloc(size, sizeof(*fd));

    if (!s || !fd) {
        free(s);
        free(fd);
        return NULL;
    }
    for (uint32_t r = 0; r < size; r++)
        fd[r] = -1;
    *s = (struct tcp_store){.store = {.oob = {.ctx = s,
                                              .rank = rank,
                                              .size = size,
                                              .bcast = store_bcast,
                                              .gather = store_gather,
                                              .barrier = store_barrier},
                                      .close = store_close},
                            .rank = rank,
                            .size = size,
                            .patience_ms = (int64_t)(timeout_s * 1000),
                            .fd = fd};
    return s;
}

int trib_store_open(struct trib_store **store, const char *address, uint32_t rank, uint32_t size,
                    double timeout_s, char *err)
{
    struct addrinfo *list = NULL;
    struct tcp_store *s;
    int64_t until;
    int rc;

    if (!size || rank >= size || size > 1u << 20)
        return session_say(
            err, -EINVAL, "store: found rank %u of %u, expected a rank below the size", rank, size);
    if (!(timeout_s > 0 && timeout_s < 1e6))
        return session_say(err, -EINVAL, "store: found a timeout of %g s, expected more than 0",
                           timeout_s);
    rc = resolve(address, !rank, &list, err);
    if (rc)
        return rc;
    s = make(rank, size, timeout_s);
    if (!s) {
        freeaddrinfo(list);
        return session_say(err, -ENOMEM, "store: out of memory");
    }
    until = now_ms() + s->patience_ms;
    rc = size == 1 ? 0 : rank ? reach(s, list, until, err) : serve(s, list, until, err);
    freeaddrinfo(list);
    if (rc) {
        store_close(&s->store);
        return rc;
    }
    *store = &s->store;
    return 0;
}
