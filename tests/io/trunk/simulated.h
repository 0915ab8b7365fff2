/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Machines of one conf in one process, in virtual time: each has the trunk's own code, a clock of its own that
 * drifts, and the pages of one switch process. What the trunk asks of the C library (clocks, datagrams, random
 * numbers, threads, sleep) and of its switch processes is answered here, from a seed: the same seed is the same
 * run. Datagrams come late, twice, changed or not at all; machines die, begin again and stop for a while; what
 * was sent once is sent again by somebody else. A program has this once.
 */
#ifndef TRIB_TESTS_IO_TRUNK_SIMULATED_H
#define TRIB_TESTS_IO_TRUNK_SIMULATED_H

#include "base/heap.h"
#include "base/random.h"
#include "io/trunk/trunk_priv.h"
#include "machine/link_reader.h"
#include "machine/page_server.h"
#include "machine/telemetry_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define US       1000ll
#define MS       1000000ll
#define S        (1000 * MS)
#define MACHINES 4u    /* at most */
#define EVENTS   8192u /* that wait */
#define HISTORY  1024u /* datagrams that somebody has captured */
#define ORDERS   256u
#define TICK_NS  50000000 /* TRUNK_STATE_NS of run_rounds() */
#define AGREE_NS 20000000
#define OUTSIDE  UINT32_MAX /* no machine: the test itself */

/* ---- what there is ---- */

struct datagram {
    uint8_t from, to;
    uint16_t bytes;
    int64_t arrived; /* at the socket of a process that did not run then; 0: it runs */
    uint8_t m[512];
};

enum event_kind { EVENT_NONE, EVENT_TICK, EVENT_ARRIVAL, EVENT_TROUBLE };
struct event {
    enum event_kind kind;
    unsigned machine, life, what;
    struct datagram d;
};

struct sim_machine {
    struct trunk *t; /* NULL: it is dead */
    unsigned life;
    struct shared *sh;
    struct switch_page *sw; /* of the switch process: what it states of its links */
    int64_t base_ns, skew_ppb,
        day_ns; /* its clocks: monotonic, and how far the time of day is off */
    int64_t dead_at, stopped_at, stopped_until;
    int64_t last_ps;           /* fabric time after its last turn */
    unsigned executed[ORDERS]; /* how often, by this life */
};

static struct {
    uint64_t rng;
    int64_t now;
    unsigned at; /* the machine whose code runs */
    unsigned n;
    struct fabric *fab;
    struct rundir rd;
    volatile sig_atomic_t stop;
    struct sim_machine machine[MACHINES];
    struct heap due;
    struct event event[EVENTS];
    struct { /* the network */
        int64_t way_ns, jitter_ns, held_ns;
        unsigned loss, twice, held, again, forged; /* of a thousand */
        int64_t cut_until[MACHINES][MACHINES], cut_since[MACHINES][MACHINES];
    } net;
    struct datagram history[HISTORY];
    unsigned n_history;
    struct { /* begun by the code of machine `at` */
        void *(*run)(void *);
        void *arg;
    } thread[16];
    unsigned n_threads;
    unsigned long long datagrams, replays;
} sim = {.at = OUTSIDE};

static uint64_t draw(uint64_t below)
{
    return random_next(&sim.rng) % below;
}

static bool in_thousand(unsigned p)
{
    return draw(1000) < p;
}

static int64_t mono_of_machine(unsigned i, int64_t at)
{
    const struct sim_machine *m = &sim.machine[i];

    return m->base_ns + at + at / 1000 * m->skew_ppb / 1000000;
}

/* ---- events ---- */

static struct event *event_at(int64_t at, enum event_kind kind, unsigned machine)
{
    for (unsigned i = 0; i < EVENTS; i++) {
        struct event *e = &sim.event[i];

        if (e->kind)
            continue;
        e->kind = kind;
        e->machine = machine;
        e->life = sim.machine[machine].life;
        heap_set(&sim.due, i, at);
        return e;
    }
    fail_msg("more than %u events wait", EVENTS);
    abort();
}

/* ---- what code asks of the C library, and of switch processes ---- */

int clock_gettime(clockid_t id, struct timespec *ts)
{
    int64_t ns;

    if (sim.at == OUTSIDE)
        return (int)syscall(SYS_clock_gettime, id, ts);
    ns = id == CLOCK_REALTIME ? 1800000000 * S + sim.now + sim.machine[sim.at].day_ns
                              : mono_of_machine(sim.at, sim.now);
    *ts = (struct timespec){.tv_sec = ns / S, .tv_nsec = ns % S};
    return 0;
}

ssize_t getrandom(void *to, size_t bytes, unsigned flags)
{
    uint8_t *p = to;

    if (sim.at == OUTSIDE)
        return syscall(SYS_getrandom, to, bytes, flags);
    for (size_t i = 0; i < bytes; i++)
        p[i] = (uint8_t)draw(256);
    return (ssize_t)bytes;
}

static void datagram_on_way(const struct datagram *d, int64_t at)
{
    event_at(at, EVENT_ARRIVAL, d->to)->d = *d;
}

/* From the socket of machine d->from, or by a stranger. */
static void datagram_go(const struct datagram *d)
{
    int64_t way = sim.net.way_ns + (int64_t)draw((uint64_t)sim.net.jitter_ns + 1);

    if (in_thousand(sim.net.held))
        way += (int64_t)draw((uint64_t)sim.net.held_ns + 1);
    datagram_on_way(d, sim.now + way);
}

ssize_t sendto(int fd, const void *m, size_t bytes, int flags, const struct sockaddr *to,
               socklen_t size)
{
    struct datagram d = {.from = (uint8_t)sim.at, .bytes = (uint16_t)bytes};
    struct sockaddr_in in;

    (void)fd, (void)flags;
    assert_true(sim.at < sim.n && bytes <= sizeof(d.m) && size == sizeof(in));
    memcpy(&in, to, sizeof(in));
    while (d.to < sim.n && sim.fab->machines[d.to].ip != ntohl(in.sin_addr.s_addr))
        d.to++;
    assert_true(d.to < sim.n && d.to != d.from);
    memcpy(d.m, m, bytes);
    sim.datagrams++;
    if (sim.now < sim.net.cut_until[d.from][d.to])
        return (ssize_t)bytes;
    sim.history[sim.n_history++ % HISTORY] = d;
    if (in_thousand(sim.net.loss))
        return (ssize_t)bytes;
    datagram_go(&d);
    if (in_thousand(sim.net.twice))
        datagram_go(&d);
    return (ssize_t)bytes;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    (void)attr;
    assert_true(sim.n_threads < sizeof(sim.thread) / sizeof(*sim.thread));
    *thread = pthread_self();
    sim.thread[sim.n_threads].run = run;
    sim.thread[sim.n_threads++].arg = arg;
    return 0;
}

int pthread_join(pthread_t thread, void **result)
{
    (void)thread, (void)result;
    return 0; /* it has run */
}

int pthread_detach(pthread_t thread)
{
    (void)thread;
    return 0;
}

static void threads_run(void)
{
    for (unsigned i = 0; i < sim.n_threads; i++)
        sim.thread[i].run(sim.thread[i].arg);
    sim.n_threads = 0;
}

#define NO_FD (1 << 20)
int telemetry_client_open(const char *dir, const char *proc, unsigned seconds)
{
    (void)dir, (void)proc, (void)seconds;
    return NO_FD;
}

/* What a switch process is asked: that a link has another seed, which is the number of an order. */
struct json_t *telemetry_client_ask(int fd, const char *cmd, const char *params)
{
    unsigned order = 0;

    assert_int_equal(fd, NO_FD);
    assert_string_equal(cmd, "/trib/link");
    assert_int_equal(sscanf(params, "s0-s1,seed=%u", &order), 1);
    assert_true(order < ORDERS);
    if (getenv("SEED"))
        printf("%.3f m%u life %u executes %u\n", (double)sim.now / 1e9, sim.at,
               sim.machine[sim.at].life, order);
    sim.machine[sim.at].executed[order]++;
    return NULL;
}

static uint64_t bytes_of(unsigned direction)
{
    return direction * 1000003ull + 7;
}

int link_reader_ask(int fd, const struct fabric *f, uint64_t *sent)
{
    assert_int_equal(fd, NO_FD);
    for (unsigned d = 0; d < 2u * f->n_links; d++)
        if (f->nodes[d & 1 ? f->links[d / 2].b : f->links[d / 2].a].machine == sim.at)
            sent[d] = bytes_of(d);
    return 0;
}

static void run_until(int64_t until);
int usleep(useconds_t us)
{
    run_until(sim.now + (int64_t)us * US);
    return 0;
}

/* ---- a machine's life ---- */

static void *page_of(size_t bytes)
{
    void *p = calloc(1, bytes);

    assert_non_null(p);
    return p;
}

static void machine_start(unsigned i)
{
    struct sim_machine *m = &sim.machine[i];
    struct trunk *t = page_of(sizeof(*t));

    assert_null(m->t);
    m->life++;
    m->last_ps = INT64_MIN;
    m->stopped_until = 0;
    memset(m->executed, 0, sizeof(m->executed));
    t->fab = sim.fab;
    t->cfg = (struct trunk_cfg){.fab = sim.fab, .rd = &sim.rd, .machine = i, .dilation = 10};
    t->me = i;
    t->n = sim.n;
    t->fd = -1;
    t->stop = &sim.stop;
    sim.at = i;
    pthread_mutex_init(&t->lock, NULL);
    assert_int_equal(peers_create(t), 0);
    assert_int_equal(ends_create(t), 0);
    assert_int_equal(cuts_create(t), 0);
    assert_int_equal(orders_create(t), 0);
    assert_int_equal(counts_create(t), 0);
    t->began_ns = clock_mono_ns();
    sim.at = OUTSIDE;
    m->t = t;
    event_at(sim.now, EVENT_TICK, i);
}

static void pages_free(struct sim_machine *m)
{
    if (!m->sh)
        return;
    free(m->sh->own_clock);
    free(m->sh->own);
    free(m->sh->own_bell);
    free(m->sw);
    free(m->sh);
    m->sh = NULL;
    m->sw = NULL;
}

static void machine_die(unsigned i)
{
    struct sim_machine *m = &sim.machine[i];
    struct trunk *t = m->t;

    if (!t)
        return;
    m->t = NULL;
    m->dead_at = sim.now;
    counts_destroy(t);
    ends_destroy(t);
    peers_destroy(t);
    pthread_mutex_destroy(&t->lock);
    free(t->cuts);
    free(t->cuts_sent);
    free(t->terms);
    free(t);
    pages_free(m);
}

/* As share() of trunk.c, with the pages of one switch process beside it. */
static void machine_share(unsigned i, const struct clock_state *line)
{
    struct sim_machine *m = &sim.machine[i];
    struct shared *sh = page_of(sizeof(*sh));

    sh->own_clock = page_of(sizeof(*sh->own_clock));
    sh->clock = sh->own_clock;
    sh->own = page_of(sizeof(*sh->own));
    sh->own_bell = page_of(sizeof(*sh->own_bell));
    m->sw = page_of(sizeof(*m->sw));
    for (unsigned k = 0; k < sim.fab->n_nodes; k++)
        m->sw->runs[k] = sim.fab->nodes[k].machine == i;
    sh->sw[0].page = m->sw;
    atomic_store(&sh->n_sw, 1);
    clock_start_at(sh->own_clock, line);
    m->sh = m->t->sh = sh;
    cuts_heard(m->t);
}

/* ---- a machine's turn ---- */

/* What must hold after each turn of a machine; ticked: the turn was a tick. */
static void machine_check(unsigned i, bool ticked);

static void machine_tick(unsigned i)
{
    struct sim_machine *m = &sim.machine[i];
    struct clock_state line;
    int64_t now = clock_mono_ns();

    pthread_mutex_lock(&m->t->lock);
    if (m->sh) {
        cuts_look(m->t, now);
        peers_tick(m->t, now);
        orders_tick(m->t);
        trunk_clock_tick(m->t);
    } else {
        peers_tick(m->t, now);
        if (trunk_clock_agree(m->t, now, &line))
            machine_share(i, &line);
    }
    pthread_mutex_unlock(&m->t->lock);
    event_at(sim.now + (m->sh ? TICK_NS : AGREE_NS) + (int64_t)draw(2 * MS), EVENT_TICK, i);
}

/* When the kernel received it, as arrival_ns() of trunk.c. */
static int64_t arrival_of(unsigned i, const struct datagram *d)
{
    bool late = d->arrived && sim.now - d->arrived < S;

    return mono_of_machine(i, late ? d->arrived : sim.now);
}

static void machine_hear(unsigned i, const struct datagram *d)
{
    struct trunk *t = sim.machine[i].t;
    struct clock_state line;

    pthread_mutex_lock(&t->lock);
    peers_input(t, d->m, d->bytes, arrival_of(i, d));
    if (!sim.machine[i].sh && trunk_clock_agree(t, clock_mono_ns(), &line))
        machine_share(i, &line);
    pthread_mutex_unlock(&t->lock);
}

static void trouble(unsigned machine, unsigned what);

/* A process that is stopped has its turn, and what has arrived, when it runs again. */
static bool put_off(struct event *e)
{
    int64_t until = sim.machine[e->machine].stopped_until;
    struct event *later;

    if (until <= sim.now)
        return false;
    later = event_at(until, e->kind, e->machine);
    later->d = e->d;
    later->life = e->life;
    if (e->kind == EVENT_ARRIVAL && !later->d.arrived)
        later->d.arrived = sim.now;
    return true;
}

static void event_run(struct event *e)
{
    struct sim_machine *m = &sim.machine[e->machine];

    if (e->kind == EVENT_TROUBLE) {
        trouble(e->machine, e->what);
        return;
    }
    if (!m->t || (e->kind == EVENT_TICK && e->life != m->life) || put_off(e))
        return;
    sim.at = e->machine;
    if (e->kind == EVENT_TICK)
        machine_tick(e->machine);
    else
        machine_hear(e->machine, &e->d);
    threads_run();
    machine_check(e->machine, e->kind == EVENT_TICK);
    sim.at = OUTSIDE;
}

static void run_until(int64_t until)
{
    const unsigned at = sim.at;

    while (heap_time(&sim.due) <= until) {
        unsigned i = heap_top(&sim.due);
        struct event e = sim.event[i];

        sim.now = heap_time(&sim.due);
        heap_set(&sim.due, i, INT64_MAX);
        sim.event[i].kind = EVENT_NONE;
        event_run(&e);
    }
    sim.now = until;
    sim.at = at;
}

#endif
