/* SPDX-License-Identifier: BSD-3-Clause */
/* What must hold of the machines of simulated.h: always, and when they have had peace. */
#ifndef TRIB_TESTS_IO_TRUNK_HOLDS_H
#define TRIB_TESTS_IO_TRUNK_HOLDS_H

#include "answers.h"

/* After its last word: it begins a session by a nonce that is as old as can be, and then is silent. */
#define ALIVE_MOST (TRUNK_SILENT_NS + 2ll * SESSION_FRESH_NS + 5ll * TICK_NS)

static struct {
    unsigned seed;
    bool peace, quiet;
    unsigned orders; /* given */
} run;

#define HOLDS(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("SEED=%u at %.3f s: ", run.seed, (double)sim.now / 1e9);                        \
            printf(__VA_ARGS__);                                                                   \
            printf("\n");                                                                          \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

/* ---- what holds always ---- */

/* Since when machine `who` cannot have answered machine `to`; INT64_MAX: it can. */
static int64_t silent_since(unsigned who, unsigned to)
{
    const struct sim_machine *m = &sim.machine[who];

    if (!m->t)
        return m->dead_at;
    if (m->stopped_until > sim.now)
        return m->stopped_at;
    if (sim.net.cut_until[who][to] > sim.now)
        return sim.net.cut_since[who][to];
    if (sim.net.cut_until[to][who] > sim.now)
        return sim.net.cut_since[to][who];
    return INT64_MAX;
}

static void machine_check(unsigned i, bool ticked)
{
    struct sim_machine *m = &sim.machine[i];

    if (m->sh) {
        int64_t ps = clock_fabric_ps(m->sh);

        HOLDS(ps >= m->last_ps, "fabric time of machine %u goes back from %lld to %lld ps", i,
              (long long)m->last_ps, (long long)ps);
        m->last_ps = ps;
    }
    for (unsigned k = 0; k <= run.orders; k++)
        HOLDS(m->executed[k] <= 1, "machine %u carries order %u out %u times", i, k,
              m->executed[k]);
    for (unsigned j = 0; ticked && j < sim.n; j++) {
        int64_t since = j == i ? INT64_MAX : silent_since(j, i);

        HOLDS(since == INT64_MAX || sim.now - since <= ALIVE_MOST || !peer_alive(&m->t->peer[j]),
              "machine %u says that machine %u is there, which is silent since %.3f s", i, j,
              (double)since / 1e9);
    }
}

/* ---- in peace ---- */

static void all_are_there(void)
{
    for (unsigned i = 0; i < sim.n; i++) {
        if (!sim.machine[i].t)
            continue;
        HOLDS(sim.machine[i].sh, "machine %u has no clock", i);
        for (unsigned j = 0; j < sim.n; j++)
            HOLDS(i == j || !sim.machine[j].t || peer_usable(&sim.machine[i].t->peer[j]),
                  "machine %u does not use machine %u: %s", i, j,
                  peer_alive(&sim.machine[i].t->peer[j]) ? "its clock is another"
                                                         : "it is not there");
    }
}

/* Wall time between the fabric's clocks of two machines. */
static int64_t apart_ns(unsigned i, unsigned j)
{
    const struct sim_machine *a = &sim.machine[i], *b = &sim.machine[j];
    int64_t ps = clock_fabric_at(a->sh, mono_of_machine(i, sim.now)) -
                 clock_fabric_at(b->sh, mono_of_machine(j, sim.now));

    return trunk_clock_wall_ns(ps < 0 ? -ps : ps, clock_dilation(a->sh));
}

static void one_clock(unsigned of)
{
    unsigned owner = sim.machine[of].t->owner;

    HOLDS(!clock_state_of(sim.machine[owner].sh->clock).skew_ppb,
          "the clock of machine %u, which all follow, is corrected by %d ppb", owner,
          clock_state_of(sim.machine[owner].sh->clock).skew_ppb);
    for (unsigned i = 0; i < sim.n; i++) {
        if (!sim.machine[i].t)
            continue;
        HOLDS(sim.machine[i].t->owner == owner,
              "machine %u follows the clock of %u, machine %u that of %u", i,
              sim.machine[i].t->owner, of, owner);
        HOLDS(apart_ns(i, owner) <=
                  atomic_load(&sim.machine[i].sh->own_clock->unsure_ns) + 100 * US,
              "the clock of machine %u is %lld ns from that of %u, which it calls sure within %lld",
              i, (long long)apart_ns(i, owner), owner,
              (long long)atomic_load(&sim.machine[i].sh->own_clock->unsure_ns));
    }
}

/* ---- the fabric ---- */

/* A ring of switches, a machine and a host for each. */
static struct fabric *ring_of(unsigned n)
{
    char text[2048];
    size_t at = 0;

#define ADD(...) at += (size_t)snprintf(text + at, sizeof(text) - at, __VA_ARGS__)
    ADD("name = \"trunk\"; link_defaults = { rate = \"100Gb/s\"; latency = \"300ns\"; }; nodes = "
        "(");
    for (unsigned i = 0; i < n; i++)
        ADD("%s{ name = \"h%u\"; kind = \"host\"; }, { name = \"s%u\"; kind = \"switch\"; }",
            i ? ", " : "", i, i);
    ADD("); links = (");
    for (unsigned i = 0; i < n; i++)
        ADD("%s{ a = \"h%u\"; b = \"s%u\"; }", i ? ", " : "", i, i);
    for (unsigned i = 0; i < (n == 2 ? 1 : n); i++)
        ADD(", { a = \"s%u\"; b = \"s%u\"; }", i, (i + 1) % n);
    ADD("); machines = (");
    for (unsigned i = 0; i < n; i++)
        ADD("%s{ name = \"m%u\"; address = \"127.0.0.%u\"; nodes = ( \"s%u\" ); }", i ? ", " : "",
            i, i + 1, i);
    ADD("); trunk_key = \"a secret that the lab shares\";");
#undef ADD
    return fabric_load_string(text, "trunk.conf", NULL);
}

/* ---- a run ---- */

/* n: of machines; 0: it is drawn. */
static void sim_begin(unsigned seed, unsigned n)
{
    run.seed = seed;
    run.peace = run.quiet = false;
    run.orders = 0;
    sim.rng = seed;
    sim.now = 0;
    sim.n_history = sim.n_threads = 0;
    for (sim.n_free = 0; sim.n_free < EVENTS; sim.n_free++)
        sim.free[sim.n_free] = (uint16_t)sim.n_free;
    memset(sim.machine, 0, sizeof(sim.machine));
    assert_int_equal(heap_init(&sim.due, EVENTS), 0);
    sim.n = n ? n : 2 + (unsigned)draw(MACHINES - 1);
    sim.fab = ring_of(sim.n);
    assert_non_null(sim.fab);
    for (unsigned i = 0; i < sim.n; i++) {
        sim.machine[i].base_ns = 1 + (int64_t)draw(1000000 * S);
        sim.machine[i].skew_ppb = (int64_t)draw(200000) - 100000;
    }
}

static void sim_end(void)
{
    for (unsigned i = 0; i < sim.n; i++)
        machine_die(i);
    fabric_free(sim.fab);
    heap_fini(&sim.due);
}

static void orders_link(unsigned i)
{
    struct trunk *t = sim.machine[i].t;
    char text[64];

    sim.at = i;
    snprintf(text, sizeof(text), "s0-s1,seed=%u", ++run.orders);
    if (t->sh)
        orders_give(t, TRUNK_LINK, text);
}

static int setup(void **state)
{
    char dir[64] = "/tmp/test_trunk_seeds.XXXXXX";

    (void)state;
    if (!getenv("SEED"))
        stderr = fopen("/dev/null",
                       "we"); /* what machines say of each other: for a case that is looked at */
    assert_non_null(stderr);
    assert_non_null(mkdtemp(dir));
    return rundir_open(&sim.rd, dir, "trunk", true);
}

static int teardown(void **state)
{
    (void)state;
    rundir_remove(&sim.rd);
    rmdir(sim.rd.path);
    rundir_close(&sim.rd);
    return 0;
}

#endif
