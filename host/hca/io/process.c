/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric that the environment names: TRIB_RUN is its run directory, TRIB_HOST the host that
 * this process runs as. Devices are known from the conf alone; EAL, a process slot of the NIC and
 * the cable to it (memif) come with the first open.
 *
 * EAL runs in a thread of ours (rim_keeper.c), which has all signals but those of faults blocked,
 * so that the program's affinity and signal handling stay its own.
 *
 * A forked child has neither threads nor port: the HCAs that its parent had are dead there, what
 * they share with others is replaced by memory of the child's own, and its devices are as they were
 * before the first open, so that it can open them itself.
 */
#include "host/hca/io/process_priv.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define UP_WAIT_MS    5000
#define LINGER_MIN_NS 2000000LL
#define LINGER_MAX_NS 250000000LL
#define FORK_WAIT_NS  200000000LL

/* A preloaded library has nobody who could hand it a context: this is the process's. */
static struct {
    pthread_mutex_t lock;
    bool opened;
    struct rundir rd;
    struct fabric *fab;
    const struct fab_node *host;
    unsigned n;
    struct rim_hca *port[FAB_MAX_HOST_PORTS];
    unsigned forks; /* between the process that began and this one */
    bool spoiled;   /* forked while another thread of the parent was opening a device */
    bool held, held_port[FAB_MAX_HOST_PORTS]; /* across a fork */
} rim = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct rim_hca *rim_hca_at(unsigned port)
{
    return port < rim.n ? rim.port[port] : NULL;
}

bool rim_selected(void)
{
    const char *run = getenv("TRIB_RUN"), *host = getenv("TRIB_HOST");

    return run && *run && host && *host;
}

struct hca *rim_hca_of_port(unsigned port)
{
    struct rim_hca *r = rim_hca_at(port);

    return r ? r->hca : NULL;
}

/* ---- start, in the progress thread ---- */

static void nap_ms(long ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&ts, NULL);
}

/* The NIC listens and answers when its loop comes round; the bell makes that soon. */
static int wait_up(struct rim_hca *r)
{
    int64_t end = clock_mono_ns() + UP_WAIT_MS * 1000000LL;

    while (!rim_port_up(r->port)) {
        if (clock_mono_ns() > end) {
            fprintf(stderr,
                    "tributary: %s: no NIC answers at %s within %d s, expected a running "
                    "trib-switch (is the fabric up?)\n",
                    rim.host->name, r->sock, UP_WAIT_MS / 1000);
            return -ETIMEDOUT;
        }
        bell_ring(r->peer);
        nap_ms(1);
    }
    r->up = r->connected = true;
    return 0;
}

/* A program polls its ports in turn and sleeps in one of these polls, whichever port has the next
 * frame: so it always sleeps on the bell of the port that it opened first. Ports start one at a
 * time. */
static void share_bell(struct rim_hca *r)
{
    r->rest = r->bell;
    for (unsigned i = 0; i < rim.n; i++)
        if (rim.port[i] != r && rim.port[i]->start_done && !rim.port[i]->start_rc)
            r->rest = rim.port[i]->rest;
    atomic_store(&r->bell->also, (int32_t)(r->rest - r->bell));
}

static int connect_nic(struct rim_hca *r)
{
    const struct fab_node *host = rim.host;
    struct memif_cfg mc = {.socket = r->sock,
                           .queues = ENDPOINT_QUEUES,
                           .log2_ring = RIM_LOG2_RING,
                           .name = r->dev.v.name};
    char name[RTE_MEMPOOL_NAMESIZE];
    unsigned bell;
    int rc;

    r->slot =
        rundir_claim_slot(&rim.rd, host->name, r->dev.port, rim.fab->slots_per_host, &r->slot_fd);
    if (r->slot < 0) {
        if (r->slot == -EBUSY)
            fprintf(stderr,
                    "tributary: %s: all %u process slots of its NIC are in use, expected a free "
                    "one (slots_per_host in the conf file, at most %d)\n",
                    host->name, rim.fab->slots_per_host, FAB_MAX_SLOTS);
        return r->slot;
    }
    rc = rundir_path(&rim.rd, r->lock_path, sizeof(r->lock_path), "port/%s.%u.%d.lock", host->name,
                     r->dev.port, r->slot);
    if (rc)
        return rc;
    bell = bell_of_slot(rim.fab, host, r->dev.port, (unsigned)r->slot);
    r->bell = &rim.rd.sh->bell[bell];
    r->lag = &rim.rd.sh->lag[lag_of_port(host, r->dev.port)];
    r->late = &rim.rd.sh->late[bell];
    share_bell(r);
    r->peer = &rim.rd.sh->bell[bell_of_proc(host->proc)];
    if (host->ports[r->dev.port].link != FAB_NONE)
        r->link_down = &rim.rd.sh->link_down[host->ports[r->dev.port].link];
    rc = rundir_port_sock(&rim.rd, host->name, r->dev.port, (unsigned)r->slot, r->sock,
                          sizeof(r->sock));
    if (rc)
        return rc;
    snprintf(name, sizeof(name), "tribhca%u.%u.%u", r->dev.port, rim.forks, r->starts++);
    rc = rim_frames_create(&r->frames, name, RIM_POOL);
    if (rc) {
        fprintf(stderr, "tributary: no memory for %d frames: %s\n", RIM_POOL, strerror(-rc));
        return rc;
    }
    mc.share = &r->frames;
    rc = rim_port_memif(&r->port, &mc);
    return rc ? rc : wait_up(r);
}

/* After a failed start, so that a later open can try again. */
static void disconnect_nic(struct rim_hca *r)
{
    if (r->port)
        rim_port_close(r->port);
    rim_frames_destroy(&r->frames);
    if (r->slot_fd >= 0)
        close(r->slot_fd);
    r->port = NULL;
    r->slot_fd = -1;
    *r->lock_path = 0;
    r->up = r->connected = false;
}

/* Only a fabric with ways out has neighbours that need to be asked for. */
static bool has_ways_out(const struct fabric *f)
{
    for (unsigned i = 0; i < f->n_switches; i++)
        for (unsigned p = 0; p < f->nodes[f->switches[i]].n_ports; p++)
            if (f->nodes[f->switches[i]].ports[p].external[0])
                return true;
    return false;
}

static bool is_outside(void *ctx, uint32_t ip)
{
    int d = fabric_dest_of_ip(rim.fab, ip);

    (void)ctx;
    return d < 0 || rim.fab->nodes[rim.fab->dests[d].node].outside;
}

int rim_start(struct rim_hca *r)
{
    const struct fab_port *fp = &rim.host->ports[r->dev.port];
    struct hca_cfg cfg = {.ip = r->dev.ip,
                          .port = (uint8_t)r->dev.port,
                          .mtu = (uint16_t)rim.fab->mtu,
                          .rate_bps = fp->rate_bps,
                          .dcqcn = hca_dcqcn(&rim.fab->dcqcn, fp->rate_bps),
                          .gpu_ps = rim.fab->costs.gpu_ps,
                          .message_ps = rim.fab->costs.hca_ps,
                          .far = true,
                          .drv = rim_driver(r)};
    int rc;

    if (has_ways_out(rim.fab))
        cfg.drv.foreign = is_outside;
    if (late_counts(rim.fab))
        cfg.drv.late_on_way = rim_late_on_way;
    rc = rim_eal_init_private("tribverbs", 32 + 4 * rim.n);
    if (!rc)
        rc = connect_nic(r);
    if (rc) {
        disconnect_nic(r);
        return rc;
    }
    r->ring_ps = (1 << RIM_LOG2_RING) * link_time_ps(rim.fab->mtu + 100, fp->rate_bps);
    snprintf(cfg.name, sizeof(cfg.name), "%.31s", r->dev.v.name);
    cfg.slot = (unsigned)r->slot;
    cfg.pool = r->frames.pool;
    rc = hca_create_on(&r->hca, &cfg, &r->dev);
    if (rc)
        disconnect_nic(r);
    else {
        r->ep = hca_endpoint(r->hca);
        hca_link_state(r->hca, !atomic_load(r->link_down), clock_fabric_ps(r->sh));
        /* Without room for them it works all the same. */
        (void)port_counters_open(&r->counters, &rim.rd, rim.host->name, r->dev.port);
    }
    rim_report(r);
    return rc;
}

/* ---- end ---- */

/*
 * The last ACK of a program that ends may still be in the ring, and the NIC forgets the ring with
 * the process. So what was sent a moment ago gets the time in which the link takes all of a ring.
 */
static void at_exit(void)
{
    for (unsigned i = 0; i < rim.n; i++) {
        struct rim_hca *r = rim.port[i];
        int64_t linger, left;

        if (!r || !r->hca || r->hca->dead)
            continue;
        rim_report(r);
        rim_count(r, true);
        port_counters_leave(&r->counters);
        if (!r->up)
            continue;
        linger = rim_ring_ns(r, LINGER_MIN_NS, LINGER_MAX_NS);
        left = r->sent_ns + linger - clock_mono_ns();
        if (left > 0 && left <= linger)
            nap_ms(left / 1000000 + 1);
    }
}

/* ---- fork ---- */

/* Nobody holds these locks for long, but for one who opens a device; and a signal handler may fork
 * in a thread that has one. */
static bool lock_for_fork(pthread_mutex_t *m)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += FORK_WAIT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return !pthread_mutex_clocklock(m, CLOCK_MONOTONIC, &until);
}

/* So that what the child has is whole: objects are in lists of their HCA. */
static void before_fork(void)
{
    rim.held = lock_for_fork(&rim.lock);
    for (unsigned i = 0; i < rim.n; i++)
        rim.held_port[i] = lock_for_fork(&rim.port[i]->lock);
}

static void in_parent(void)
{
    for (unsigned i = rim.n; i-- > 0;)
        if (rim.held_port[i])
            pthread_mutex_unlock(&rim.port[i]->lock);
    if (rim.held)
        pthread_mutex_unlock(&rim.lock);
}

static void init_port(struct rim_hca *r)
{
    r->sh = rim.rd.sh;
    r->fab = rim.fab;
    r->slot_fd = r->frames.fd = -1;
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->count_lock, NULL);
    pthread_cond_init(&r->started, NULL);
}

static void in_child(void)
{
    rim.forks++;
    rim.spoiled |= !rim.held;
    for (unsigned i = 0; i < rim.n; i++) {
        struct rim_hca *r = rim.port[i];
        struct hca_device dev = r->dev;
        const _Atomic uint8_t *link_down = r->link_down;

        if (r->hca)
            hca_kill(r->hca);
        port_counters_forget(&r->counters);
        rim_port_orphan(r->port, r->shared_fds);
        rim_frames_orphan(&r->frames, r->shared_fds);
        if (r->shared_fds && r->slot_fd >= 0)
            close(r->slot_fd);
        memset(r, 0, sizeof(*r));
        r->dev = dev;
        r->dev.hca = NULL;
        r->link_down = link_down;
        init_port(r);
    }
    pthread_mutex_init(&rim.lock, NULL);
}

/* ---- open ---- */

static int start_thread(pthread_t *t, void *(*fn)(void *), struct rim_hca *r)
{
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    sigdelset(&all, SIGSEGV); /* blocked, a fault of its own would kill without a word */
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(t, NULL, fn, r);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return -rc;
}

/* The progress thread has the program's descriptors (it posts events), the keeper its own. */
static int start_threads(struct rim_hca *r)
{
    int rc;

    r->start_done = false;
    rc = start_thread(&r->thread, rim_thread, r);
    if (rc)
        return rc;
    rc = start_thread(&r->keeper, rim_keeper, r);
    pthread_mutex_lock(&r->lock);
    if (rc) {
        r->start_rc = rc;
        r->start_done = true;
        pthread_cond_broadcast(&r->started);
    }
    while (!r->start_done)
        pthread_cond_wait(&r->started, &r->lock);
    pthread_mutex_unlock(&r->lock);
    if (r->start_rc) {
        pthread_join(r->thread, NULL);
        if (!rc)
            pthread_join(r->keeper, NULL);
    }
    return r->start_rc;
}

static int check_forked(void)
{
    if (!rim.forks || (!rim.spoiled && rim_eal_is_private()))
        return 0;
    fprintf(stderr,
            "tributary: %s: process %d cannot open a device: %s; expected a fork before that, or "
            "a program started by exec\n",
            rim.host->name, (int)getpid(),
            rim.spoiled ? "found a fork while another thread of its parent was opening one"
                        : "found DPDK's memory shared with its parent");
    return -EIO;
}

static int open_port(struct hca_device *d)
{
    static bool handlers;
    struct rim_hca *r = (struct rim_hca *)d;
    int rc = 0;

    pthread_mutex_lock(&rim.lock);
    if (!d->hca) {
        rc = check_forked();
        rc = rc ? rc : start_threads(r);
        if (!rc && !handlers) {
            handlers = true;
            rim_fault_init();
            atexit(at_exit);
        }
    }
    pthread_mutex_unlock(&rim.lock);
    return rc;
}

/* ---- devices ---- */

static int add_ports(void)
{
    static _Atomic uint8_t never; /* of a port without a link of the fabric */
    char name[32];

    for (unsigned p = 0; p < rim.host->n_ports; p++) {
        struct rim_hca *r = calloc(1, sizeof(*r));

        if (!r)
            return -ENOMEM;
        snprintf(name, sizeof(name), "trib%u", p);
        hca_device_init(&r->dev, name, rim.host->ip_of_port[p]);
        r->dev.port = p;
        r->dev.open = open_port;
        r->link_down = &never;
        init_port(r);
        rim.port[rim.n++] = r;
    }
    return 0;
}

static int load(void)
{
    const char *name = getenv("TRIB_HOST");
    int rc = rundir_open(&rim.rd, getenv("TRIB_RUN"), NULL, false);

    if (rc)
        return rc;
    rim.fab = rundir_fabric(&rim.rd);
    if (!rim.fab)
        return -EINVAL;
    rim.host = fabric_node(rim.fab, name);
    if (rim.host && rim.host->outside) {
        fprintf(stderr,
                "tributary: TRIB_HOST: found \"%s\", which is outside, expected a host that is "
                "emulated\n",
                name);
        return -ENODEV;
    }
    if (!rim.host || rim.host->kind != FAB_HOST) {
        fprintf(stderr,
                "tributary: TRIB_HOST: found \"%s\", expected a host of fabric %s (%s ...)\n", name,
                rim.fab->name,
                rim.fab->n_hosts ? rim.fab->nodes[rim.fab->hosts[0]].name : "it has none");
        return -ENODEV;
    }
    return add_ports();
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

int rim_devices(struct hca_device **devs, unsigned max)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int rc = 0;

    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&rim.lock);
    if (!rim.opened) {
        rc = load();
        rim.opened = !rc;
    }
    for (unsigned i = 0; !rc && i < rim.n && i < max; i++)
        devs[i] = &rim.port[i]->dev;
    if (!rc)
        rc = (int)(rim.n < max ? rim.n : max);
    else if (rim.fab) { /* a second try, with other variables, begins anew */
        fabric_free(rim.fab);
        rim.fab = NULL;
        rundir_close(&rim.rd);
    }
    pthread_mutex_unlock(&rim.lock);
    return rc;
}
