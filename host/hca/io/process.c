/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric that the environment names: TRIB_RUN is its run directory, TRIB_HOST the host that
 * this process runs as. The conf alone gives the list of devices. The first open starts EAL, claims
 * a process slot of the NIC and connects to it (memif).
 *
 * EAL runs in a thread of this library (process_keeper.c) that blocks all signals but those of
 * faults, so that the program keeps its own affinity and signal handling.
 *
 * A forked child has neither threads nor port. The HCAs of its parent are dead there, memory of the
 * child's own replaces what they share with other processes, and its devices are as before the
 * first open, so that the child can open them itself.
 */
#include "host/hca/io/process_priv.h"
#include "machine/token.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINGER_MIN_NS 2000000LL
#define LINGER_MAX_NS 250000000LL
#define FORK_WAIT_NS  200000000LL

/* State of this process: callers of a preloaded library pass no context of ours. */
static struct {
    pthread_mutex_t lock;
    bool opened;
    struct rundir rd;
    struct fabric *fab;
    const struct fab_node *host;
    char token[TOKEN_BYTES]; /* of the host; empty: there is none */
    unsigned n;
    struct process_hca *port[FAB_MAX_HOST_PORTS];
    unsigned forks; /* generations of fork between the first process and this one */
    bool spoiled;   /* forked while another thread was opening a device */
    bool held, held_port[FAB_MAX_HOST_PORTS]; /* locks that before_fork() got */
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct process_hca *process_hca_at(unsigned port)
{
    return port < process.n ? process.port[port] : NULL;
}

bool process_on_fabric(void)
{
    const char *run = getenv("TRIB_RUN"), *host = getenv("TRIB_HOST");

    return run && *run && host && *host;
}

struct hca *process_hca_of_port(unsigned port)
{
    struct process_hca *p = process_hca_at(port);

    return p ? p->hca : NULL;
}

/* ---- start, in the progress thread ---- */

static void nap_ms(long ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&ts, NULL);
}

/* Makes all ports sleep on the bell of the port that the program opened first: a program polls its
 * ports in turn and sleeps in one of these polls, and the next frame may come to any port. Ports
 * start one at a time. */
static void share_bell(struct process_hca *p)
{
    p->sleep_bell = p->bell;
    for (unsigned i = 0; i < process.n; i++)
        if (process.port[i] != p && process.port[i]->start_done && !process.port[i]->start_rc)
            p->sleep_bell = process.port[i]->sleep_bell;
    for (unsigned i = 0; i < process.n; i++)
        if (process.port[i] != p && process.port[i]->bell == p->sleep_bell)
            atomic_store(&p->page->also,
                         slot_name(process.port[i]->dev.port, (unsigned)process.port[i]->slot));
}

static int connect_nic(struct process_hca *p)
{
    const struct fab_node *host = process.host;
    struct memif_cfg mc = {.socket = p->sock,
                           .queues = ENDPOINT_QUEUES,
                           .log2_ring = PORT_LOG2_RING,
                           .name = p->dev.v.name,
                           .secret = process.token};
    char name[RTE_MEMPOOL_NAMESIZE];
    int rc;

    p->slot = rundir_claim_slot(&process.rd, host->name, p->dev.port, process.fab->slots_per_host,
                                &p->slot_fd);
    if (p->slot < 0) {
        if (p->slot == -EBUSY)
            fprintf(stderr,
                    "tributary: %s: all %u process slots of its NIC are in use, expected a free "
                    "one (slots_per_host in the conf file, at most %d)\n",
                    host->name, process.fab->slots_per_host, FAB_MAX_SLOTS);
        return p->slot;
    }
    snprintf(p->lock_name, sizeof(p->lock_name), "port/%s/%u.%d.lock", host->name, p->dev.port,
             p->slot);
    rc = rundir_port_sock(&process.rd, host->name, p->dev.port, (unsigned)p->slot, p->sock,
                          sizeof(p->sock));
    if (rc)
        return rc;
    snprintf(name, sizeof(name), "tribhca%u.%u.%u", p->dev.port, process.forks, p->starts++);
    rc = io_frames_create(&p->frames, name, PORT_POOL);
    if (rc) {
        fprintf(stderr, "tributary: no memory for %d frames: %s\n", PORT_POOL, strerror(-rc));
        return rc;
    }
    mc.share = &p->frames;
    rc = io_port_memif(&p->port, &mc);
    if (rc)
        return rc;
    p->page = io_port_page(p->port);
    p->bell = &p->page->bell;
    share_bell(p);
    process_find_nic(p);
    return process_wait_nic(p);
}

/* Undoes a failed start, so that a later open can try again. */
static void disconnect_nic(struct process_hca *p)
{
    if (p->port)
        io_port_close(p->port);
    io_frames_destroy(&p->frames);
    if (p->slot_fd >= 0)
        close(p->slot_fd);
    p->port = NULL;
    p->page = NULL;
    p->bell = NULL;
    p->slot_fd = -1;
    *p->lock_name = 0;
    p->up = p->connected = false;
}

/* Whether the fabric has external ports; only then are there neighbours to resolve by ARP. */
static bool has_external_ports(const struct fabric *f)
{
    for (unsigned i = 0; i < f->n_switches; i++)
        for (unsigned p = 0; p < f->nodes[f->switches[i]].n_ports; p++)
            if (f->nodes[f->switches[i]].ports[p].external[0])
                return true;
    return false;
}

static bool is_outside(void *ctx, uint32_t ip)
{
    int d = fabric_dest_of_ip(process.fab, ip);

    (void)ctx;
    return d < 0 || process.fab->nodes[process.fab->dests[d].node].outside;
}

static bool is_nowhere(void *ctx, uint32_t ip)
{
    (void)ctx;
    return fabric_dest_of_ip(process.fab, ip) < 0;
}

int process_start(struct process_hca *p)
{
    const struct fab_port *fp = &process.host->ports[p->dev.port];
    struct hca_cfg cfg = {.ip = p->dev.ip,
                          .port = (uint8_t)p->dev.port,
                          .mtu = (uint16_t)process.fab->mtu,
                          .rate_bps = fp->rate_bps,
                          .dcqcn = hca_dcqcn(&process.fab->dcqcn, fp->rate_bps),
                          .window_pkts = process.fab->transport.window,
                          .early_slots = process.fab->transport.early_slots,
                          .notice = fabric_notice(process.fab, process.host, p->dev.port),
                          .message_ps = process.fab->costs.hca_ps,
                          .far = true,
                          .drv = process_driver(p)};
    int rc;

    if (has_external_ports(process.fab))
        cfg.drv.foreign = is_outside;
    else
        cfg.drv.nowhere = is_nowhere;
    if (lateness_known(process.fab))
        cfg.drv.lateness_on_path = process_lateness_on_path;
    rc = io_eal_init_private("tribverbs", 32 + 4 * process.n);
    if (!rc)
        rc = connect_nic(p);
    if (rc) {
        disconnect_nic(p);
        return rc;
    }
    p->rate_bps = fp->rate_bps;
    p->frame_ps = link_time_ps(process.fab->mtu + 100, fp->rate_bps);
    snprintf(cfg.name, sizeof(cfg.name), "%.31s", p->dev.v.name);
    cfg.slot = (unsigned)p->slot;
    cfg.pool = p->frames.pool;
    rc = hca_create_on(&p->hca, &cfg, &p->dev);
    if (rc)
        disconnect_nic(p);
    else {
        p->ep = hca_endpoint(p->hca);
        hca_link_state(p->hca, process_link_is_up(p), clock_fabric_ps(p->sh));
        /* The port works without counters too. */
        (void)port_counters_open(&p->counters, &process.rd, process.host->name, p->dev.port);
    }
    process_report(p);
    return rc;
}

/* ---- end ---- */

/*
 * A process that ends may still have its last ACK in the ring, and the NIC drops the ring with the
 * process. So a process that has just sent waits for the time in which the link sends a full ring.
 */
static void at_exit(void)
{
    for (unsigned i = 0; i < process.n; i++) {
        struct process_hca *p = process.port[i];
        int64_t linger, left;

        if (!p || !p->hca || p->hca->dead)
            continue;
        process_report(p);
        process_count(p, true);
        port_counters_leave(&p->counters);
        if (!p->up)
            continue;
        linger = process_ring_ns(p, LINGER_MIN_NS, LINGER_MAX_NS);
        left = p->sent_ns + linger - clock_mono_ns();
        if (left > 0 && left <= linger)
            nap_ms(left / 1000000 + 1);
    }
}

/* ---- fork ---- */

/* Locks m, and gives up after FORK_WAIT_NS: a signal handler may fork in a thread that holds the
 * lock. Otherwise only opening a device holds it for long. */
static bool lock_for_fork(pthread_mutex_t *m)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += FORK_WAIT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return !pthread_mutex_clocklock(m, CLOCK_MONOTONIC, &until);
}

/* Holds all locks across the fork, so that the child finds the HCAs' lists consistent. */
static void before_fork(void)
{
    process.held = lock_for_fork(&process.lock);
    for (unsigned i = 0; i < process.n; i++)
        process.held_port[i] = lock_for_fork(&process.port[i]->lock);
}

static void in_parent(void)
{
    for (unsigned i = process.n; i-- > 0;)
        if (process.held_port[i])
            pthread_mutex_unlock(&process.port[i]->lock);
    if (process.held)
        pthread_mutex_unlock(&process.lock);
}

static void init_port(struct process_hca *p)
{
    p->sh = process.rd.sh;
    p->fab = process.fab;
    p->rd = &process.rd;
    p->host = process.host;
    p->slot_fd = p->frames.fd = -1;
    pthread_mutex_init(&p->lock, NULL);
    pthread_mutex_init(&p->count_lock, NULL);
    pthread_cond_init(&p->started, NULL);
}

static void in_child(void)
{
    process.forks++;
    process.spoiled |= !process.held;
    for (unsigned i = 0; i < process.n; i++) {
        struct process_hca *p = process.port[i];
        struct hca_device dev = p->dev;
        const _Atomic uint8_t *link_down = p->link_down;
        const _Atomic uint64_t *link_cut = p->link_cut;

        if (p->hca)
            hca_kill(p->hca);
        port_counters_forget(&p->counters);
        io_port_orphan(p->port, p->shared_fds);
        io_frames_orphan(&p->frames, p->shared_fds);
        if (p->shared_fds && p->slot_fd >= 0)
            close(p->slot_fd);
        memset(p, 0, sizeof(*p));
        p->dev = dev;
        p->dev.hca = NULL;
        p->link_down = link_down;
        p->link_cut = link_cut;
        init_port(p);
    }
    pthread_mutex_init(&process.lock, NULL);
    process_nic_forked();
    process_deaths_forked();
}

/* ---- open ---- */

static int start_thread(pthread_t *t, void *(*fn)(void *), struct process_hca *p)
{
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    sigdelset(&all, SIGSEGV); /* blocked, a fault in this thread would kill without a message */
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(t, NULL, fn, p);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return -rc;
}

/* The progress thread shares the program's descriptors (it posts events); the keeper has
 * its own. */
static int start_threads(struct process_hca *p)
{
    int rc;

    p->start_done = false;
    rc = start_thread(&p->thread, progress_thread, p);
    if (rc)
        return rc;
    rc = start_thread(&p->keeper, process_keeper, p);
    pthread_mutex_lock(&p->lock);
    if (rc) {
        p->start_rc = rc;
        p->start_done = true;
        pthread_cond_broadcast(&p->started);
    }
    while (!p->start_done)
        pthread_cond_wait(&p->started, &p->lock);
    pthread_mutex_unlock(&p->lock);
    if (p->start_rc) {
        pthread_join(p->thread, NULL);
        if (!rc)
            pthread_join(p->keeper, NULL);
    }
    return p->start_rc;
}

static int check_forked(void)
{
    if (!process.forks || (!process.spoiled && io_eal_is_private()))
        return 0;
    fprintf(stderr,
            "tributary: %s: process %d cannot open a device: %s; expected a fork before that, or "
            "a program started by exec\n",
            process.host->name, (int)getpid(),
            process.spoiled ? "found a fork while another thread of its parent was opening one"
                            : "found DPDK's memory shared with its parent");
    return -EIO;
}

static int open_port(struct hca_device *d)
{
    static bool handlers;
    struct process_hca *p = (struct process_hca *)d;
    int rc = 0;

    pthread_mutex_lock(&process.lock);
    if (!d->hca) {
        rc = check_forked();
        rc = rc ? rc : start_threads(p);
        if (!rc && !handlers) {
            handlers = true;
            process_fault_init();
            process_ucx_routes();
            atexit(at_exit);
        }
    }
    pthread_mutex_unlock(&process.lock);
    return rc;
}

/* ---- devices ---- */

static int add_ports(void)
{
    static _Atomic uint64_t uncut;
    static _Atomic uint8_t never; /* for a port without a link of the fabric */
    char name[32];

    for (unsigned i = 0; i < process.host->n_ports; i++) {
        struct process_hca *p = calloc(1, sizeof(*p));

        if (!p)
            return -ENOMEM;
        snprintf(name, sizeof(name), "trib%u", i);
        hca_device_init(&p->dev, name, process.host->ip_of_port[i]);
        p->dev.port = i;
        p->dev.open = open_port;
        p->link_down = &never;
        p->link_cut = &uncut;
        T_ASSERT(process.n < FAB_MAX_HOST_PORTS, "a host has more ports than a fabric allows");
        init_port(p);
        process.port[process.n++] = p;
    }
    return 0;
}

static int process_load(void)
{
    const char *name = getenv("TRIB_HOST");
    int rc = rundir_open(&process.rd, getenv("TRIB_RUN"), NULL, false);

    if (rc)
        return rc;
    process.fab = rundir_fabric(&process.rd);
    if (!process.fab)
        return -EINVAL;
    process.host = fabric_node(process.fab, name);
    if (process.host && process.host->outside) {
        fprintf(stderr,
                "tributary: TRIB_HOST: found \"%s\", which is outside, expected a host that is "
                "emulated\n",
                name);
        return -ENODEV;
    }
    if (!process.host || process.host->kind != FAB_HOST) {
        char hint[FABRIC_HINT];

        fprintf(stderr, "tributary: TRIB_HOST: found \"%s\", expected a host of fabric %s%s\n",
                name, process.fab->name, fabric_host_hint(process.fab, name, hint, sizeof(hint)));
        return -ENODEV;
    }
    /* Without it the NIC refuses the connection, and says so. */
    if (token_find(&process.rd, process.host->name, process.token))
        *process.token = 0;
    return add_ports();
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

int process_devices(struct hca_device **devs, unsigned max)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int rc = 0;

    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&process.lock);
    if (!process.opened) {
        rc = process_load();
        process.opened = !rc;
    }
    for (unsigned i = 0; !rc && i < process.n && i < max; i++)
        devs[i] = &process.port[i]->dev;
    if (!rc)
        rc = (int)(process.n < max ? process.n : max);
    else if (process.fab) { /* a later attempt, with other variables, starts afresh */
        fabric_free(process.fab);
        process.fab = NULL;
        rundir_close(&process.rd);
    }
    pthread_mutex_unlock(&process.lock);
    return rc;
}
