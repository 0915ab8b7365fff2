/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binds its socket under another name and renames it over DPDK's, which is unreachable afterwards. One
 * thread serves all clients, one command of each in turn, so a client waits for at most one command of
 * every other.
 */
#include "io/telemetry/telemetry_server.h"

#include "base/assert.h"
#include "system/own_clear.h"
#include "machine/shared.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define COMMAND   1024 /* DPDK's limit, and one byte to detect longer ones */
#define ANSWER    65536
#define BACKLOG   64
#define GREETING  1024
#define RETRY_NS  200000000  /* retry interval while no client can be accepted */
#define UNREAD_MS 20         /* interval of checks whether a client has read its answer */
#define UNREAD_NS 1000000000 /* time in which it has to */

struct client {
    int fd;
    bool held;         /* it sent a command before it read the last answer */
    int64_t active_ns; /* when it connected or was last answered */
};

struct telemetry_server {
    int listen_fd, dpdk; /* dpdk: connection to DPDK's own socket */
    bool full;           /* no descriptor was free, and the log says so */
    int64_t retry_ns;    /* when to try again */
    unsigned n;
    struct client client[TELEMETRY_CLIENTS];
    ssize_t greeting_len;
    char greeting[GREETING], command[COMMAND], answer[ANSWER];
};

static int connect_dpdk(struct telemetry_server *s, const struct sockaddr_un *un)
{
    s->dpdk = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (s->dpdk < 0 || connect(s->dpdk, (const struct sockaddr *)un, sizeof(*un)))
        return -errno;
    s->greeting_len = recv(s->dpdk, s->greeting, sizeof(s->greeting), 0);
    return s->greeting_len > 0 ? 0 : s->greeting_len ? -errno : -ECONNRESET;
}

static int take_over(struct telemetry_server *s, const struct sockaddr_un *at)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    if (snprintf(un.sun_path, sizeof(un.sun_path), "%.*s~", (int)sizeof(un.sun_path) - 2,
                 at->sun_path) <= 0)
        return -ENAMETOOLONG;
    own_socket_clear(un.sun_path);
    s->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->listen_fd < 0 || bind(s->listen_fd, (const struct sockaddr *)&un, sizeof(un)) ||
        listen(s->listen_fd, BACKLOG))
        return -errno;
    return own_rename(un.sun_path, at->sun_path);
}

/* ---- clients ---- */

static void telemetry_server_drop(struct telemetry_server *s, unsigned i)
{
    T_ASSERT(i < s->n, "a telemetry client is dropped that is not connected");
    close(s->client[i].fd);
    s->client[i] = s->client[--s->n];
}

static unsigned idlest(const struct telemetry_server *s)
{
    unsigned oldest = 0;

    for (unsigned i = 1; i < s->n; i++)
        if (s->client[i].active_ns < s->client[oldest].active_ns)
            oldest = i;
    return oldest;
}

/* ns until one more client can be accepted; 0: now. */
static int64_t until_room(const struct telemetry_server *s, int64_t now)
{
    int64_t at =
        s->n < TELEMETRY_CLIENTS ? now : s->client[idlest(s)].active_ns + TELEMETRY_IDLE_NS;

    if (s->full && s->retry_ns > at)
        at = s->retry_ns;
    return at > now ? at - now : 0;
}

/* No descriptor is free. The newcomer stays in the backlog; drops an idle client. */
static void be_full(struct telemetry_server *s, int error, int64_t now)
{
    if (!s->full)
        fprintf(stderr, "trib-switch: telemetry cannot take a client, trying on: %s\n",
                strerror(error));
    s->full = true;
    s->retry_ns = now + RETRY_NS;
    if (s->n && now - s->client[idlest(s)].active_ns > TELEMETRY_IDLE_NS)
        telemetry_server_drop(s, idlest(s));
}

static void accept_one(struct telemetry_server *s, int64_t now)
{
    int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
        return;
    if (fd < 0) {
        be_full(s, errno, now);
        return;
    }
    s->full = false;
    if (s->n == TELEMETRY_CLIENTS)
        telemetry_server_drop(s, idlest(s));
    s->client[s->n++] = (struct client){.fd = fd, .active_ns = now};
    if (send(fd, s->greeting, (size_t)s->greeting_len, MSG_NOSIGNAL) != s->greeting_len)
        telemetry_server_drop(s, s->n - 1);
}

/* Passes a command on to DPDK and the answer back. False: the caller drops the client. */
static bool serve_client(struct telemetry_server *s, struct client *c)
{
    ssize_t n = recv(c->fd, s->command, sizeof(s->command), MSG_DONTWAIT | MSG_TRUNC);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    if (!n || n >= COMMAND) /* closed, or longer than a command */
        return false;
    if (send(s->dpdk, s->command, (size_t)n, MSG_NOSIGNAL) != n)
        return false;
    n = recv(s->dpdk, s->answer, sizeof(s->answer), 0);
    if (n <= 0 || send(c->fd, s->answer, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) != n)
        return false;
    c->active_ns = clock_mono_ns();
    return true;
}

static bool has_read(const struct client *c)
{
    int bytes = 0;

    return ioctl(c->fd, SIOCOUTQ, &bytes) || !bytes;
}

/* Whether a client sends a command before it has read the last answer: it waits, as commands cost the
 * loop time. Checked only when a command arrives; checked earlier, a client that reads at once would wait
 * for the next check, too. */
static bool is_early(struct client *c, const struct pollfd *p)
{
    c->held = !(p->revents & (POLLHUP | POLLERR)) && !has_read(c);
    return c->held;
}

/* Sets the descriptors to wait for. Returns the timeout in ms. */
static int telemetry_server_prepare(struct telemetry_server *s, struct pollfd *p)
{
    int64_t now = clock_mono_ns(), wait = until_room(s, now);
    int ms = wait ? (int)(wait / 1000000) + 1 : -1;

    for (unsigned i = 0; i < s->n;) {
        struct client *c = &s->client[i];

        c->held = c->held && !has_read(c);
        if (c->held && now - c->active_ns > UNREAD_NS) {
            telemetry_server_drop(s, i);
            continue;
        }
        if (c->held)
            ms = UNREAD_MS;
        p[i] = (struct pollfd){c->fd, c->held ? 0 : POLLIN, 0};
        i++;
    }
    p[s->n] = (struct pollfd){s->listen_fd, wait ? 0 : POLLIN, 0};
    return ms;
}

/* Reports once that the kernel has no memory for poll(); clients wait until it has. */
static void say_once(int err)
{
    static const struct timespec pause = {.tv_nsec = 100000000};
    static bool said;

    if (err == EINTR)
        return;
    if (!said)
        fprintf(stderr, "trib-switch: telemetry cannot wait for clients: %s; tries again\n",
                strerror(err));
    said = true;
    nanosleep(&pause, NULL);
}

static _Noreturn void *telemetry_server_serve(void *arg)
{
    struct telemetry_server *s = arg;
    struct pollfd p[TELEMETRY_CLIENTS + 1];

    pthread_setname_np(pthread_self(), "telemetry");
    for (;;) {
        int ms = telemetry_server_prepare(s, p);
        unsigned n = s->n;

        if (poll(p, n + 1, ms) < 0) {
            say_once(errno);
            continue;
        }
        for (unsigned i = n; i-- > 0;) /* backwards: telemetry_server_drop() moves the last one */
            if (p[i].revents && !is_early(&s->client[i], &p[i]) && !serve_client(s, &s->client[i]))
                telemetry_server_drop(s, i);
        if (p[n].revents)
            accept_one(s, clock_mono_ns());
    }
}

int telemetry_server_start(const char *path)
{
    struct telemetry_server *s = calloc(1, sizeof(*s)); /* the thread owns it once started */
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    sigset_t all, old;
    pthread_t t;
    int rc;

    if (!s)
        return -ENOMEM;
    s->listen_fd = s->dpdk = -1;
    rc = snprintf(un.sun_path, sizeof(un.sun_path), "%s", path) < (int)sizeof(un.sun_path) - 1
             ? 0
             : -ENAMETOOLONG;
    rc = rc ? rc : connect_dpdk(s, &un);
    rc = rc ? rc : take_over(s, &un);
    if (!rc) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        rc = -pthread_create(&t, NULL, telemetry_server_serve, s);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    if (!rc) {
        pthread_detach(t);
        return 0;
    }
    if (s->dpdk >= 0)
        close(s->dpdk);
    if (s->listen_fd >= 0)
        close(s->listen_fd);
    free(s);
    return rc;
}
