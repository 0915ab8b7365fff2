/* SPDX-License-Identifier: BSD-3-Clause */
/* There is one session in a process, as libtribverbs has one host in a process. */
#include "host/session/session.h"

#include "base/assert.h"
#include "machine/shared.h"
#include "protocols/host/load.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct range {
    uint8_t *base;
    size_t bytes;
    struct range *next;
};
struct session_entry {
    struct trib_comm *comm;
    struct session_entry *next;
};

/* comms_lock guards the list of communicators, `lock` everything else. The order is comms_lock, a
 * communicator's lock, lock. */
static pthread_mutex_t comms_lock = PTHREAD_MUTEX_INITIALIZER, lock = PTHREAD_MUTEX_INITIALIZER;
static struct session session;
static struct range *ranges;
static struct session_entry *comms;

int session_say(char *err, int rc, const char *format, ...)
{
    va_list ap;

    if (!err)
        return rc;
    va_start(ap, format);
    vsnprintf(err, TRIB_TEXT, format, ap);
    va_end(ap);
    return rc;
}

/* ---- opening ---- */

static int find_host(struct session *s, const char *name, char *err)
{
    char hint[FABRIC_HINT];

    for (uint16_t i = 0; i < s->fab->n_hosts; i++)
        if (!strcmp(s->fab->nodes[s->fab->hosts[i]].name, name)) {
            s->host = i;
            return 0;
        }
    return session_say(err, -ENOENT, "TRIB_HOST: found %s, expected a host of %s%s", name,
                       s->fab->name, fabric_host_hint(s->fab, name, hint, sizeof(hint)));
}

static int open_devices(struct session *s, char *err)
{
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);

    if (!list || n < 1) {
        if (list)
            ibv_free_device_list(list);
        return session_say(err, -ENODEV,
                           "found no RDMA device, expected the emulated one: is the program run by "
                           "trib exec?");
    }
    for (; (int)s->n_ctx < n && s->n_ctx < FAB_MAX_HOST_PORTS; s->n_ctx++) {
        s->ctx[s->n_ctx] = ibv_open_device(list[s->n_ctx]);
        if (!s->ctx[s->n_ctx])
            break;
    }
    int rc = (int)s->n_ctx < n && s->n_ctx < FAB_MAX_HOST_PORTS ? -errno : 0;
    ibv_free_device_list(list);
    return rc ? session_say(err, rc, "cannot open RDMA device %u of %d: %s", s->n_ctx, n,
                            strerror(-rc))
              : 0;
}

static void close_all(struct session *s)
{
    while (s->n_ctx)
        ibv_close_device(s->ctx[--s->n_ctx]);
    if (s->fab)
        fabric_free(s->fab);
    rundir_close(&s->rd);
    memset(s, 0, sizeof(*s));
}

static int open_all(struct session *s, char *err)
{
    const char *run = getenv("TRIB_RUN"), *host = getenv("TRIB_HOST");
    char why[PROTO_CONF_TEXT];
    int rc;

    T_ASSERT(!s->fab && !s->n_ctx, "a session is opened that is open");
    if (!run || !*run || !host || !*host)
        return session_say(
            err, -ENODEV,
            "found no TRIB_RUN and TRIB_HOST, expected a program that is run by trib "
            "exec CONF HOST -- PROGRAM");
    rc = rundir_open(&s->rd, NULL, NULL, false);
    if (rc)
        return session_say(err, rc, "cannot open the run directory %s: is the fabric up?", run);
    s->fab = rundir_fabric(&s->rd);
    if (!s->fab)
        return session_say(err, -EINVAL, "cannot load the conf of the fabric in %s", run);
    if (proto_setup(s->fab, why))
        return session_say(err, -EINVAL, "%s", why);
    rc = find_host(s, host, err);
    return rc ? rc : open_devices(s, err);
}

struct session *session_get(char *err)
{
    struct session *s = &session;

    pthread_mutex_lock(&lock);
    if (!s->users && open_all(s, err)) {
        close_all(s);
        s = NULL;
    } else {
        s->users++;
    }
    pthread_mutex_unlock(&lock);
    return s;
}

void session_put(void)
{
    pthread_mutex_lock(&lock);
    T_ASSERT(session.users, "a session is given up that nobody has");
    if (!--session.users)
        close_all(&session);
    pthread_mutex_unlock(&lock);
}

int64_t trib_time_ps(void)
{
    int64_t ps = 0;

    pthread_mutex_lock(&lock);
    if (session.users)
        ps = clock_fabric_ps(session.rd.sh);
    pthread_mutex_unlock(&lock);
    return ps;
}

unsigned trib_coll_version(void)
{
    return TRIB_COLL_VERSION;
}

/* ---- registered memory ---- */

bool session_range_of(const void *buf, size_t bytes, void **base, size_t *whole)
{
    const uint8_t *p = buf;
    const struct range *r;

    pthread_mutex_lock(&lock);
    for (r = ranges; r; r = r->next)
        if (p >= r->base && bytes <= r->bytes && (size_t)(p - r->base) <= r->bytes - bytes) {
            *base = r->base;
            *whole = r->bytes;
            break;
        }
    pthread_mutex_unlock(&lock);
    return r != NULL;
}

int trib_register(void *buf, size_t bytes)
{
    struct range *r;

    if (!buf || !bytes || (uintptr_t)buf + bytes < (uintptr_t)buf)
        return -EINVAL;
    r = malloc(sizeof(*r));
    if (!r)
        return -ENOMEM;
    pthread_mutex_lock(&lock);
    *r = (struct range){buf, bytes, ranges};
    ranges = r;
    pthread_mutex_unlock(&lock);
    return 0;
}

static struct range *take_range(const void *buf)
{
    struct range **at, *r;

    pthread_mutex_lock(&lock);
    for (at = &ranges; *at && (*at)->base != buf; at = &(*at)->next)
        ;
    r = *at;
    if (r)
        *at = r->next;
    pthread_mutex_unlock(&lock);
    return r;
}

int trib_deregister(void *buf)
{
    struct range *r = take_range(buf);
    int rc = 0;

    if (!r)
        return -ENOENT;
    pthread_mutex_lock(&comms_lock);
    for (const struct session_entry *e = comms; e && !rc; e = e->next)
        rc = session_comm_forget(e->comm, r->base, r->bytes);
    pthread_mutex_unlock(&comms_lock);
    if (!rc) {
        free(r);
        return 0;
    }
    pthread_mutex_lock(&lock);
    r->next = ranges;
    ranges = r;
    pthread_mutex_unlock(&lock);
    return rc;
}

void session_add_comm(struct trib_comm *c)
{
    struct session_entry *e = malloc(sizeof(*e));

    /* Out of memory: trib_deregister() leaves ranges registered until the communicator ends. */
    if (!e)
        return;
    pthread_mutex_lock(&comms_lock);
    *e = (struct session_entry){c, comms};
    comms = e;
    pthread_mutex_unlock(&comms_lock);
}

void session_drop_comm(struct trib_comm *c)
{
    struct session_entry *gone = NULL;

    pthread_mutex_lock(&comms_lock);
    for (struct session_entry **at = &comms; *at; at = &(*at)->next)
        if ((*at)->comm == c) {
            gone = *at;
            *at = gone->next;
            break;
        }
    pthread_mutex_unlock(&comms_lock);
    free(gone);
}
