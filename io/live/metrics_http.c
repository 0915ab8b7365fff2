/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/live/metrics_http.h"

#include <errno.h>
#include <stdio.h>

#ifndef TRIB_MICROHTTPD
int metrics_serve(struct live *l, const char *where)
{
    (void)l;
    (void)where;
    fputs("trib-metrics: built without libmicrohttpd (Debian: libmicrohttpd-dev), so it cannot "
          "serve; without --listen it prints\n",
          stderr);
    return -ENOSYS;
}
#else
#include "io/live/metrics.h"

#include "machine/shared.h"

#include <microhttpd.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * The loop accepts connections and MHD serves them, in one thread; at most CONNECTIONS are open. A
 * connection may stay for ANSWER_NS after it was opened or last answered, however slowly it sends. If all
 * places are taken or no descriptor is free, a newcomer replaces the connection with the oldest answer,
 * once that is IDLE_NS old. The time to read the switches delays all connections alike.
 */
#define CONNECTIONS 16u
#define BACKLOG     128
#define IDLE_NS     100000000   /* a scrape sends its request at once */
#define ANSWER_NS   10000000000 /* time to send a request and to read its answer */
#define RETRY_NS    200000000   /* retry interval while no connection can be accepted */
#define TICK_MS     1000
#define OPEN_TYPE   "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define TEXT_TYPE   "text/plain; version=0.0.4; charset=utf-8"

struct http_place {
    int fd;
    int64_t since_ns; /* when it connected or was last answered */
};

struct server {
    struct live *live;
    struct MHD_Daemon *mhd;
    int listen_fd;
    bool full;        /* no descriptor was free, and the log says so */
    int64_t retry_ns; /* when to try again */
    unsigned n;
    struct http_place place[CONNECTIONS];
};

static struct http_place *place_of(struct server *s, struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);

    for (unsigned i = 0; info && i < s->n; i++)
        if (s->place[i].fd == info->connect_fd)
            return &s->place[i];
    return NULL;
}

static enum MHD_Result metrics_http_answer(struct MHD_Connection *c, unsigned status,
                                           const char *type, char *text, size_t len,
                                           enum MHD_ResponseMemoryMode mode)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(len, text, mode);
    enum MHD_Result ok;

    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    ok = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return ok;
}

static enum MHD_Result metrics_http_say(struct MHD_Connection *c, unsigned status, const char *text)
{
    return metrics_http_answer(c, status, "text/plain", (char *)(uintptr_t)text, strlen(text),
                               MHD_RESPMEM_PERSISTENT);
}

static void server_look(struct server *s)
{
    int64_t began = clock_mono_ns(), took;

    live_look(s->live);
    took = clock_mono_ns() - began;
    for (unsigned i = 0; i < s->n; i++)
        s->place[i].since_ns += took;
}

static enum MHD_Result scrape(void *ctx, struct MHD_Connection *c, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *n_data, void **state)
{
    const char *accept = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
    bool open = accept && strstr(accept, "application/openmetrics-text");
    char *text = NULL;
    size_t len = 0;
    struct server *s = ctx;
    struct http_place *p = place_of(s, c);
    FILE *f;

    (void)version, (void)data, (void)state;
    *n_data = 0;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return metrics_http_say(c, MHD_HTTP_METHOD_NOT_ALLOWED, "expected GET\n");
    if (strcmp(url, "/metrics") != 0)
        return metrics_http_say(c, MHD_HTTP_NOT_FOUND, "expected /metrics\n");
    f = open_memstream(&text, &len);
    if (!f)
        return MHD_NO;
    server_look(s);
    if (p)
        p->since_ns = clock_mono_ns(); /* the client's time starts now */
    metrics_print(s->live, open ? METRICS_OPENMETRICS : METRICS_PROMETHEUS, f);
    fclose(f);
    return metrics_http_answer(c, MHD_HTTP_OK, open ? OPEN_TYPE : TEXT_TYPE, text, len,
                               MHD_RESPMEM_MUST_FREE);
}

/* ---- places ---- */

static void place_note(void *ctx, struct MHD_Connection *c, void **state,
                       enum MHD_ConnectionNotificationCode what)
{
    struct server *s = ctx;
    struct http_place *p = place_of(s, c);

    (void)state;
    if (p && what == MHD_CONNECTION_NOTIFY_CLOSED)
        *p = s->place[--s->n];
}

static void place_answered(void *ctx, struct MHD_Connection *c, void **state,
                           enum MHD_RequestTerminationCode how)
{
    struct http_place *p = place_of(ctx, c);

    (void)state, (void)how;
    if (p)
        p->since_ns = clock_mono_ns();
}

static struct http_place *place_idlest(struct server *s)
{
    struct http_place *idlest = &s->place[0];

    for (unsigned i = 1; i < s->n; i++)
        if (s->place[i].since_ns < idlest->since_ns)
            idlest = &s->place[i];
    return idlest;
}

/* Ends a connection: MHD notices the shutdown, and place_note() frees the place. */
static void place_end(struct server *s, struct http_place *p)
{
    unsigned before = s->n;

    shutdown(p->fd, SHUT_RDWR);
    for (unsigned i = 0; i < 4 && s->n == before; i++)
        MHD_run(s->mhd);
}

/* Time in ns until a newcomer can be accepted: until the idlest connection may be replaced, and until a
 * descriptor may be free. 0: now. */
static int64_t places_until_room(struct server *s, int64_t now)
{
    int64_t at = s->n < CONNECTIONS ? now : place_idlest(s)->since_ns + IDLE_NS;

    if (s->full && s->retry_ns > at)
        at = s->retry_ns;
    return at > now ? at - now : 0;
}

/* No descriptor is free. The newcomer stays in the backlog; frees a place if one is idle. */
static void places_full(struct server *s, int error)
{
    int64_t now = clock_mono_ns();

    if (!s->full)
        fprintf(stderr, "trib-metrics: cannot take a connection, trying on: %s\n", strerror(error));
    s->full = true;
    s->retry_ns = now + RETRY_NS;
    if (s->n && now - place_idlest(s)->since_ns > IDLE_NS)
        place_end(s, place_idlest(s));
}

static void places_accept(struct server *s)
{
    struct sockaddr_storage from;
    socklen_t len = sizeof(from);
    int fd = accept4(s->listen_fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
        return; /* the client has left */
    if (fd < 0) {
        places_full(s, errno);
        return;
    }
    s->full = false;
    if (s->n == CONNECTIONS)
        place_end(s, place_idlest(s));
    if (s->n == CONNECTIONS) {
        close(fd);
        return;
    }
    s->place[s->n++] = (struct http_place){.fd = fd, .since_ns = clock_mono_ns()};
    if (MHD_add_connection(s->mhd, fd, (struct sockaddr *)&from, len) != MHD_YES)
        for (unsigned i = 0; i < s->n; i++) /* MHD closed fd; it may have called place_note() */
            if (s->place[i].fd == fd)
                s->place[i] = s->place[--s->n];
}

static void places_end_overdue(struct server *s, int64_t now)
{
    while (s->n && now - place_idlest(s)->since_ns > ANSWER_NS) {
        unsigned before = s->n;

        place_end(s, place_idlest(s));
        if (s->n == before)
            return;
    }
}

/* ---- the loop ---- */

/* Serves until one of the signals arrives. */
static int server_serve(struct server *s, int signals)
{
    const union MHD_DaemonInfo *mhd = MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    struct pollfd p[3] = {{signals, POLLIN, 0}, {mhd->epoll_fd, POLLIN, 0}, {0}};

    for (;;) {
        int64_t now = clock_mono_ns(), wait;
        MHD_UNSIGNED_LONG_LONG timeout;
        int ms = TICK_MS;

        places_end_overdue(s, now);
        wait = places_until_room(s, now);
        p[2] = (struct pollfd){s->listen_fd, wait ? 0 : POLLIN, 0};
        if (wait)
            ms = (int)(wait / 1000000) + 1;
        if (MHD_get_timeout(s->mhd, &timeout) == MHD_YES && timeout < (unsigned)ms)
            ms = (int)timeout;
        if (poll(p, 3, ms) < 0 && errno != EINTR)
            return -errno;
        if (p[0].revents)
            return 0;
        if (p[2].revents)
            places_accept(s);
        MHD_run(s->mhd);
    }
}

/* Splits "ADDRESS:PORT"; NULL: it cannot be that. */
static struct addrinfo *metrics_http_address(const char *where)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE},
                    *found = NULL;
    const char *colon = strrchr(where, ':'), *port = colon ? colon + 1 : where;
    char host[64] = "127.0.0.1";

    if (colon && colon != where) {
        bool v6 = *where == '[' && colon[-1] == ']';

        snprintf(host, sizeof(host), "%.*s", (int)(colon - where) - 2 * v6, where + v6);
    }
    /* getaddrinfo() takes 99999 for a port too, modulo 65,536 */
    if (strlen(port) > 5 || strtoul(port, NULL, 10) > UINT16_MAX)
        return NULL;
    return getaddrinfo(host, port, &hints, &found) ? NULL : found;
}

static int listen_at(const struct addrinfo *at, unsigned *port)
{
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1, rc = 0;
    struct sockaddr_storage is;
    socklen_t len = sizeof(is);
    char text[NI_MAXSERV];

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, at->ai_addr, at->ai_addrlen) || listen(fd, BACKLOG) ||
        getsockname(fd, (struct sockaddr *)&is, &len)) {
        rc = -errno;
    } else if (getnameinfo((struct sockaddr *)&is, len, NULL, 0, text, sizeof(text),
                           NI_NUMERICSERV)) {
        rc = -EINVAL;
    }
    if (rc)
        close(fd);
    else
        *port = (unsigned)strtoul(text, NULL, 10);
    return rc ? rc : fd;
}

int metrics_serve(struct live *l, const char *where)
{
    struct server s = {.live = l, .listen_fd = -1};
    struct addrinfo *at = metrics_http_address(where);
    int signals, rc;
    unsigned port = 0;
    sigset_t ends;

    if (!at) {
        fprintf(stderr,
                "trib-metrics: found --listen %s, expected ADDRESS:PORT such as 127.0.0.1:9412\n",
                where);
        return -EINVAL;
    }
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    s.listen_fd = listen_at(at, &port);
    freeaddrinfo(at);
    rc = s.listen_fd < 0 ? s.listen_fd : 0;
    signals = signalfd(-1, &ends, SFD_CLOEXEC);
    if (!rc && signals < 0)
        rc = -errno;
    if (!rc) {
        errno = ENOMEM;
        s.mhd = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, scrape,
                                 &s, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
                                 MHD_OPTION_NOTIFY_CONNECTION, place_note, &s,
                                 MHD_OPTION_NOTIFY_COMPLETED, place_answered, &s, MHD_OPTION_END);
        rc = s.mhd ? 0 : -errno;
    }
    if (rc) {
        fprintf(stderr, "trib-metrics: cannot listen at %s: %s\n", where, strerror(-rc));
    } else {
        fprintf(stderr, "serving /metrics at port %u of %s; Ctrl-C ends it\n", port, where);
        rc = server_serve(&s, signals);
        MHD_stop_daemon(s.mhd);
    }
    if (signals >= 0)
        close(signals);
    if (s.listen_fd >= 0)
        close(s.listen_fd);
    return rc;
}
#endif
