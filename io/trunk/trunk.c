/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/trunk/trunk_priv.h"

#include "machine/page_server.h"
#include "io/pool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/net_tstamp.h>
#include <net/if.h>
#include <poll.h>
#include <rte_common.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SOCKET_BYTES (8 << 20) /* as far as the system allows */
#define AGREE_MS     20
#define IDLE_MS      200     /* between looks whether to stop */
#define CHECK_NS     5000000 /* between looks at ports that are not up yet */
#define LAG_NS       100000000
#define POOL_FRAMES  4096u
#define POOL_END                                                                                   \
    512u /* for each link, beside its windows: rings, and what waits for a switch process */
#define POOL_MOST    262144u
#define ROUND_BURSTS 64 /* of each end and of the port, before the rest of a round */
#define SLACK_NS     1  /* of the kernel's timers, as loop_run() */

/* ---- the socket ---- */

static int refuse_address(const struct fab_machine *m, int err)
{
    fprintf(stderr, "trib-switch: machine %s: cannot receive at %u.%u.%u.%u port %u: %s%s\n",
            m->name, m->ip >> 24, m->ip >> 16 & 255, m->ip >> 8 & 255, m->ip & 255, m->port,
            strerror(err), err == EADDRNOTAVAIL ? ", expected an address of this machine" : "");
    return -err;
}

static int open_socket(struct trunk *t)
{
    int one = 1, size = SOCKET_BYTES;
    struct timeval tv = {.tv_usec = AGREE_MS * 1000};

    t->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (t->fd < 0)
        return -errno;
    if (setsockopt(t->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
        setsockopt(t->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    if (setsockopt(t->fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
        setsockopt(t->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    setsockopt(t->fd, IPPROTO_IP, IP_MTU_DISCOVER, &(int){IP_PMTUDISC_DONT}, sizeof(int));
    setsockopt(t->fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one));
    setsockopt(t->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
    if (bind(t->fd, (struct sockaddr *)&t->peer[t->me].at, sizeof(t->peer[t->me].at)))
        return refuse_address(&t->fab->machines[t->me], errno);
    return 0;
}

/* When the kernel received a datagram, by CLOCK_MONOTONIC. */
static int64_t arrival_ns(struct msghdr *mh)
{
    int64_t mono = clock_mono_ns(), ago;
    struct timespec real, at;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
            continue;
        memcpy(&at, CMSG_DATA(c), sizeof(at));
        clock_gettime(CLOCK_REALTIME, &real);
        ago = (int64_t)(real.tv_sec - at.tv_sec) * 1000000000 + real.tv_nsec - at.tv_nsec;
        if (ago >= 0 && ago < 1000000000)
            return mono - ago;
    }
    return mono;
}

#define CONTROL 64
struct trunk_inbox {
    uint8_t data[TRUNK_BURST][TRUNK_MAX], control[TRUNK_BURST][CONTROL];
    struct iovec iov[TRUNK_BURST];
    struct mmsghdr msg[TRUNK_BURST];
};

/* Waits for datagrams, AGREE_MS at most, and takes them. */
static unsigned trunk_receive(struct trunk *t, struct trunk_inbox *in)
{
    int64_t now;
    int n;

    for (unsigned i = 0; i < TRUNK_BURST; i++) {
        in->iov[i] = (struct iovec){in->data[i], TRUNK_MAX};
        in->msg[i].msg_hdr = (struct msghdr){.msg_iov = &in->iov[i],
                                             .msg_iovlen = 1,
                                             .msg_control = in->control[i],
                                             .msg_controllen = CONTROL};
    }
    n = recvmmsg(t->fd, in->msg, TRUNK_BURST, MSG_WAITFORONE, NULL);
    if (n <= 0)
        return 0;
    pthread_mutex_lock(&t->lock);
    if (t->pool)
        pool_grow(t->pool);
    for (int i = 0; i < n; i++) {
        if (in->msg[i].msg_hdr.msg_flags & MSG_TRUNC)
            t->refused[TRUNK_SHORT]++;
        else
            peers_input(t, in->data[i], in->msg[i].msg_len, arrival_ns(&in->msg[i].msg_hdr));
    }
    now = clock_mono_ns();
    if (t->sh && RTE_MIN(ends_flush(t, now), carrier_next(t, now)) < t->wakes_ns)
        loop_bell_ring(t->sh->own, t->sh->own_bell, &t->own_rung);
    pthread_mutex_unlock(&t->lock);
    return (unsigned)n;
}

static void *receiver(void *arg)
{
    struct trunk *t = arg;
    struct trunk_inbox *in = calloc(1, sizeof(*in));

    pthread_setname_np(pthread_self(), "receiver");
    prctl(PR_SET_TIMERSLACK, SLACK_NS);
    while (in && !*t->stop)
        trunk_receive(t, in);
    free(in);
    return NULL;
}

/* ---- begin ---- */

static int trunk_agree(struct trunk *t, struct clock_state *line, volatile sig_atomic_t *stop)
{
    struct trunk_inbox *in = calloc(1, sizeof(*in));
    bool done = false;

    if (!in)
        return -ENOMEM;
    t->began_ns = clock_mono_ns();
    while (!done && !*stop) {
        peers_tick(t, clock_mono_ns());
        trunk_receive(t, in);
        done = trunk_clock_agree(t, clock_mono_ns(), line);
    }
    free(in);
    return done ? 0 : -EINTR;
}

static int share(struct trunk *t, struct page_server **pages, const struct clock_state *line)
{
    bool *far = calloc(t->fab->n_nodes, sizeof(*far));
    struct page_server_cfg cfg = {.dir = t->cfg.rd->path,
                                  .name = FAB_TRUNK,
                                  .proc = t->fab->n_procs,
                                  .fab = t->fab,
                                  .mine = far,
                                  .clock = line};
    int rc;

    if (!far)
        return -ENOMEM;
    for (unsigned i = 0; i < t->n_ends; i++)
        far[t->end[i].far] = true;
    rc = page_server_start(pages, &t->cfg.rd->sh, &cfg);
    free(far);
    if (rc)
        return rc;
    if (!t->cfg.rd->sh->own_clock) {
        fprintf(stderr, "trib-switch: found a clock in %s already, expected that of the trunk\n",
                t->cfg.rd->path);
        return -EEXIST;
    }
    pthread_mutex_lock(&t->lock);
    t->sh = t->cfg.rd->sh;
    cuts_heard(t);
    pthread_mutex_unlock(&t->lock);
    return 0;
}

int trunk_begin(struct trunk **out, struct page_server **pages, const struct trunk_cfg *cfg,
                volatile sig_atomic_t *stop)
{
    struct trunk *t = calloc(1, sizeof(*t));
    struct clock_state line;
    int rc;

    *out = t;
    if (!t)
        return -ENOMEM;
    t->cfg = *cfg;
    t->fab = cfg->fab;
    t->me = cfg->machine;
    t->n = cfg->fab->n_machines;
    t->fd = -1;
    t->stop = stop;
    pthread_mutex_init(&t->lock, NULL);
    rc = peers_create(t);
    rc = rc ? rc : ends_create(t);
    rc = rc ? rc : cuts_create(t);
    rc = rc ? rc : orders_create(t);
    rc = rc ? rc : counts_create(t);
    if (rc)
        fprintf(stderr, "trib-switch: the trunk cannot start: %s\n", strerror(-rc));
    rc = rc ? rc : open_socket(t);
    rc = rc ? rc : rundir_set_machine(cfg->rd, t->fab->machines[t->me].name);
    rc = rc ? rc : trunk_agree(t, &line, stop);
    return rc ? rc : share(t, pages, &line);
}

/* ---- run ---- */

struct looks {
    int64_t state_ns, check_ns, lag_ns;
    bool missing; /* some end is not up that should be */
};

static void trunk_tick(struct trunk *t, struct looks *k, int64_t now)
{
    if (now - k->check_ns >= (k->missing ? CHECK_NS : TRUNK_STATE_NS)) {
        k->missing = ends_check(t);
        k->check_ns = now;
    }
    if (now - k->lag_ns >= LAG_NS) {
        ends_lateness(t, now);
        k->lag_ns = now;
    }
    if (now - k->state_ns >= TRUNK_STATE_NS) {
        cuts_look(t, now);
        carrier_tick(t);
        peers_tick(t, now);
        orders_tick(t);
        trunk_clock_tick(t);
        k->state_ns = now;
    }
}

/* One round; returns how long the loop may sleep then, in ns. */
static int64_t trunk_round(struct trunk *t, struct looks *k)
{
    int64_t now = clock_mono_ns();
    int64_t next;
    unsigned more = 1;

    pool_grow(t->pool);
    for (unsigned i = 0; more && i < ROUND_BURSTS; i++) {
        more = ends_send(t, now) + carrier_receive(t, now);
        now = clock_mono_ns();
    }
    trunk_tick(t, k, now);
    next = k->missing ? now + CHECK_NS : k->state_ns + TRUNK_STATE_NS;
    next = RTE_MIN(next, carrier_next(t, now));
    next = RTE_MIN(next, ends_flush(t, now));
    t->wakes_ns = more ? now : next;
    return t->wakes_ns - now;
}

static void run_rounds(struct trunk *t, volatile sig_atomic_t *stop)
{
    struct looks k = {0};

    while (!*stop) {
        uint32_t token;
        int64_t ns;
        bool more;

        pthread_mutex_lock(&t->lock);
        ns = trunk_round(t, &k);
        token = loop_bell_prepare(t->sh->own, t->sh->own_bell);
        more = ends_pending(t);
        pthread_mutex_unlock(&t->lock);
        if (more || ns <= 0)
            loop_bell_cancel(t->sh->own);
        else
            loop_bell_sleep(t->sh->own, t->sh->own_bell, token, ns);
    }
}

unsigned trunk_pool_frames(const struct trunk *t)
{
    return RTE_MIN(POOL_FRAMES + t->n_ends * (2 * FLOW_WINDOW + POOL_END), POOL_MOST) - 1;
}

const char *trunk_device(const struct trunk *t, unsigned i)
{
    return t->fab->machines[t->me].device[i];
}

int trunk_run(struct trunk *t, struct rte_mempool *pool, volatile sig_atomic_t *stop,
              void (*ready)(void *ctx), void *ctx)
{
    sigset_t all, old;
    int rc;

    prctl(PR_SET_TIMERSLACK, SLACK_NS);
    rc = carrier_open(t);
    if (rc)
        return rc;
    t->pool = pool;
    t->looked_ns = clock_mono_ns();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&t->receiver, NULL, receiver, t);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc) {
        fprintf(stderr, "trib-switch: the trunk cannot start a thread: %s\n", strerror(rc));
        return -rc;
    }
    t->receives = true;
    setsockopt(t->fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_usec = IDLE_MS * 1000},
               sizeof(struct timeval));
    trunk_telemetry(t);
    ready(ctx);
    run_rounds(t, stop);
    return 0;
}

void trunk_end(struct trunk *t)
{
    if (!t)
        return;
    trunk_telemetry(NULL);
    if (t->receives)
        pthread_join(t->receiver, NULL);
    counts_destroy(t);
    carrier_close(t);
    if (t->fd >= 0)
        close(t->fd);
    ends_destroy(t);
    peers_destroy(t);
    pthread_mutex_destroy(&t->lock);
    free(t->cuts);
    free(t->cuts_sent);
    free(t->terms);
    free(t);
}

/* ---- which machine this is ---- */

static bool is_here(const struct ifaddrs *list, uint32_t ip)
{
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        struct sockaddr_in at;

        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET)
            continue;
        memcpy(&at, i->ifa_addr, sizeof(at));
        if (ntohl(at.sin_addr.s_addr) == ip)
            return true;
    }
    return false;
}

static int machine_here(const struct fabric *f)
{
    struct ifaddrs *list;
    int found = -ENOENT;

    if (getifaddrs(&list))
        return -errno;
    for (unsigned i = 0; i < f->n_machines && found != -ENOTUNIQ; i++)
        if (is_here(list, f->machines[i].ip))
            found = found < 0 ? (int)i : -ENOTUNIQ;
    freeifaddrs(list);
    return found;
}

int trunk_machine(const struct fabric *f, const char *name)
{
    int found = name ? -ENOENT : machine_here(f);

    for (unsigned i = 0; name && i < f->n_machines; i++)
        if (!strcmp(f->machines[i].name, name))
            found = (int)i;
    if (found >= 0)
        return found;
    if (!f->n_machines)
        fprintf(stderr, "trib-switch: %s has no machines, expected a conf that lists them\n",
                f->path);
    else if (name)
        fprintf(stderr, "trib-switch: --machine: found \"%s\", expected a machine of %s:", name,
                f->path);
    else
        fprintf(stderr, "trib-switch: %s of the machines of %s %s, expected --machine with one of:",
                found == -ENOTUNIQ ? "several" : "none", f->path,
                found == -ENOTUNIQ ? "have addresses of this one" : "has an address of this one");
    for (unsigned i = 0; i < f->n_machines; i++)
        fprintf(stderr, " %s%s", f->machines[i].name, i + 1 == f->n_machines ? "\n" : "");
    return found;
}
