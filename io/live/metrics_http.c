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

#include <microhttpd.h>
#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define CONNECTIONS 16u
#define TIMEOUT_S   10u
#define OPEN_TYPE   "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define TEXT_TYPE   "text/plain; version=0.0.4; charset=utf-8"

static enum MHD_Result answer(struct MHD_Connection *c, unsigned status, const char *type,
                              char *text, size_t len, enum MHD_ResponseMemoryMode mode)
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

static enum MHD_Result say(struct MHD_Connection *c, unsigned status, const char *text)
{
    return answer(c, status, "text/plain", (char *)(uintptr_t)text, strlen(text),
                  MHD_RESPMEM_PERSISTENT);
}

/* In MHD's one thread. */
static enum MHD_Result scrape(void *ctx, struct MHD_Connection *c, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *n_data, void **state)
{
    const char *accept = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
    bool open = accept && strstr(accept, "application/openmetrics-text");
    char *text = NULL;
    size_t len = 0;
    FILE *f;

    (void)version, (void)data, (void)state;
    *n_data = 0;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return say(c, MHD_HTTP_METHOD_NOT_ALLOWED, "expected GET\n");
    if (strcmp(url, "/metrics") != 0)
        return say(c, MHD_HTTP_NOT_FOUND, "expected /metrics\n");
    f = open_memstream(&text, &len);
    if (!f)
        return MHD_NO;
    live_look(ctx);
    metrics_print(ctx, open ? METRICS_OPENMETRICS : METRICS_PROMETHEUS, f);
    fclose(f);
    return answer(c, MHD_HTTP_OK, open ? OPEN_TYPE : TEXT_TYPE, text, len, MHD_RESPMEM_MUST_FREE);
}

/* Splits "ADDRESS:PORT"; NULL: it cannot be that. */
static struct addrinfo *address(const char *where)
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

int metrics_serve(struct live *l, const char *where)
{
    struct addrinfo *at = address(where);
    struct MHD_Daemon *d;
    sigset_t ends;
    int sig;

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
    d = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
                             (at->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0),
                         0, NULL, NULL, scrape, l, MHD_OPTION_SOCK_ADDR, at->ai_addr,
                         MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
                         TIMEOUT_S, MHD_OPTION_END);
    freeaddrinfo(at);
    if (!d) {
        fprintf(stderr, "trib-metrics: cannot listen at %s: %s\n", where, strerror(errno));
        return -EADDRINUSE;
    }
    fprintf(stderr, "serving /metrics at port %u of %s; Ctrl-C ends it\n",
            MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT)->port, where);
    sigwait(&ends, &sig);
    MHD_stop_daemon(d);
    return 0;
}
#endif
