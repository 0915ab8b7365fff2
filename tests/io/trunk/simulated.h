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
#include "io/port/port_impl.h"
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

enum event_kind { EVENT_TICK, EVENT_ARRIVAL, EVENT_ROUND, EVENT_TROUBLE };
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
    bool sw_dead;
    int64_t round_at; /* the trunk's loop wakes then; INT64_MAX: only when it is rung */
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
    struct rte_mempool *pool; /* NULL: there are no frames */
    struct sim_machine machine[MACHINES];
    struct heap due;
    struct event event[EVENTS];
    uint16_t free[EVENTS];
    unsigned n_free;
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
    struct event *e;

    if (sim.n_free == 0)
        fail_msg("more than %u events wait", EVENTS);
    e = &sim.event[sim.free[--sim.n_free]];
    e->kind = kind;
    e->machine = machine;
    e->life = sim.machine[machine].life;
    heap_set(&sim.due, (uint32_t)(e - sim.event), at);
    return e;
}

static void threads_run(void)
{
    for (unsigned i = 0; i < sim.n_threads; i++)
        sim.thread[i].run(sim.thread[i].arg);
    sim.n_threads = 0;
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
    m->sw_dead = false;
    m->round_at = INT64_MAX;
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
    free(m->sh->sw[0].bell);
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
    sh->sw[0].bell = page_of(sizeof(*sh->sw[0].bell));
    atomic_store(&sh->n_sw, 1);
    clock_start_at(sh->own_clock, line);
    m->sh = m->t->sh = sh;
    m->t->pool = sim.pool;
    m->t->looked_ns = clock_mono_ns();
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
        ends_check(m->t);
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

/* As trunk_round(): frames of the switch process, acknowledgements, and when to look again. */
static void machine_round(unsigned i)
{
    struct sim_machine *m = &sim.machine[i];
    int64_t now = clock_mono_ns(), next;

    if (!m->t->pool)
        return;
    pthread_mutex_lock(&m->t->lock);
    while (ends_send(m->t, now))
        ;
    next = ends_flush(m->t, now);
    pthread_mutex_unlock(&m->t->lock);
    if (next == INT64_MAX)
        return;
    next = sim.now + (next > now ? next - now : 1);
    if (next >= m->round_at)
        return;
    m->round_at = next;
    event_at(next, EVENT_ROUND, i);
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
    if (!m->t || (e->kind != EVENT_ARRIVAL && e->life != m->life) || put_off(e))
        return;
    sim.at = e->machine;
    if (e->kind == EVENT_TICK)
        machine_tick(e->machine);
    else if (e->kind == EVENT_ARRIVAL)
        machine_hear(e->machine, &e->d);
    else
        m->round_at = INT64_MAX;
    machine_round(e->machine);
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
        sim.free[sim.n_free++] = (uint16_t)i;
        event_run(&e);
    }
    sim.now = until;
    sim.at = at;
}

#endif
