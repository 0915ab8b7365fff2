/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trunks of two to four machines through troubles that a seed draws: machines die, begin again and stop, links
 * between them are cut, datagrams are lost, late, twice, captured and sent again, or forged; clocks drift and the
 * time of day is set; links change, the fabric slows down. Then there is peace, and all has to be as if nothing had
 * been. SEED=N: this one alone; SEEDS=N: so many from SEED (1) on.
 */
#include "holds.h"
#include "frames.h"

#include "base/log.h"

#define TROUBLES_NS (20 * S)
#define PEACE_NS    (10 * S) /* and as often again as it takes clocks to agree: */
#define PEACES      40u      /* one that is ahead of all others' is slowed down to a fifth */

enum what {
    DIES,
    BEGINS,
    STOPS,
    PARTS,
    ORDERS_LINK,
    DILATES,
    CUTS,
    SETS_DAY,
    SWITCH_DIES,
    SWITCH_BEGINS,
    ATTACKS,
    SENDS
};

/* ---- troubles ---- */

/* As often below ten times a value as below a hundred times it. */
static int64_t draw_scaled(int64_t least, unsigned decades)
{
    for (unsigned i = (unsigned)draw(decades); i; i--)
        least *= 10;
    return least + (int64_t)draw((uint64_t)least * 9);
}

static void trouble_at(int64_t at, unsigned machine, enum what what)
{
    event_at(at, EVENT_TROUBLE, machine)->what = what;
}

static void way_cut(unsigned from, unsigned to, int64_t until)
{
    if (sim.net.cut_until[from][to] <= sim.now)
        sim.net.cut_since[from][to] = sim.now;
    sim.net.cut_until[from][to] = until;
}

/* One direction, or both. */
static void parts(unsigned i)
{
    unsigned j = (i + 1 + (unsigned)draw(sim.n - 1)) % sim.n, ways = 1 + (unsigned)draw(3);
    int64_t until = sim.now + draw_scaled(100 * MS, 2);

    if (ways & 1)
        way_cut(i, j, until);
    if (ways & 2)
        way_cut(j, i, until);
}

static void cuts(unsigned i)
{
    struct sim_machine *m = &sim.machine[i];
    unsigned link = (unsigned)draw(sim.fab->n_links);
    bool cut = draw(2);

    sim.at = i;
    if (m->sw)
        atomic_store(&m->sw->cut[link], (uint64_t)clock_mono_ns() << 1 | cut);
}

/* Somebody without the key sends what he has captured, or what looks like it, to whomever he likes. */
static void attacks(void)
{
    struct datagram d;

    if (!sim.n_history)
        return;
    d = sim.history[draw(sim.n_history < HISTORY ? sim.n_history : HISTORY)];
    d.arrived = 0;
    if (in_thousand(sim.net.forged)) {
        d.to = (uint8_t)draw(sim.n);
        d.m[draw(d.bytes)] ^= (uint8_t)(1 + draw(255));
        d.bytes = draw(4) ? d.bytes : (uint16_t)draw(d.bytes + 1u);
    }
    sim.replays++;
    datagram_on_way(&d, sim.now + 1);
}

static void machine_trouble(unsigned i, enum what what)
{
    struct sim_machine *m = &sim.machine[i];

    if (what == DIES) {
        machine_die(i);
        trouble_at(sim.now + draw_scaled(10 * MS, 3), i, BEGINS);
    } else if (what == STOPS) {
        m->stopped_at = m->stopped_until > sim.now ? m->stopped_at : sim.now;
        m->stopped_until = sim.now + draw_scaled(10 * MS, 3);
    } else if (what == ORDERS_LINK && m->stopped_until <= sim.now) {
        orders_link(i);
    } else if (what == DILATES && m->sh && m->stopped_until <= sim.now) {
        sim.at = i;
        trunk_clock_dilate(m->t, 1 + (uint32_t)draw(100));
    } else if (what == CUTS) {
        cuts(i);
    } else if (what == SWITCH_DIES) {
        switch_dies(i);
        trouble_at(sim.now + draw_scaled(MS, 4), i, SWITCH_BEGINS);
    } else if (what == SWITCH_BEGINS) {
        switch_begins(i);
    } else if (what == SETS_DAY) {
        m->day_ns = (int64_t)draw(7200 * S) - 3600 * S;
    }
}

/* Its bell is rung. */
static void sends(unsigned i)
{
    struct sim_machine *m = &sim.machine[i];

    if (!sim.pool)
        return;
    if (m->sh && !m->sw_dead) {
        frames_send(i, (unsigned)draw(draw(10) ? 4 : 400));
        if (m->round_at > sim.now)
            event_at(m->round_at = sim.now, EVENT_ROUND, i);
    }
    if (!run.quiet)
        trouble_at(sim.now + draw_scaled(10 * MS, 2), i, SENDS);
}

static void trouble(unsigned i, unsigned what)
{
    if (what == ATTACKS) {
        attacks();
        if (!run.peace)
            trouble_at(sim.now + sim.net.again * MS, 0, ATTACKS);
    } else if (what == SENDS) {
        sends(i);
    } else if (what == PARTS) {
        parts(i);
    } else if (what == BEGINS) {
        if (!sim.machine[i].t)
            machine_start(i);
    } else if (sim.machine[i].t) {
        machine_trouble(i, what);
    }
    sim.at = OUTSIDE;
}

static void network_drawn(void)
{
    static const unsigned often[] = {0, 0, 10, 100, 400};

    memset(&sim.net, 0, sizeof(sim.net));
    sim.net.way_ns = draw_scaled(20 * US, 3);
    sim.net.jitter_ns = draw_scaled(US, 4);
    sim.net.loss = often[draw(5)];
    sim.net.twice = often[draw(5)];
    sim.net.held = draw(3) ? 0 : 10;
    sim.net.held_ns = 6 * S;
    sim.net.again = 1 + (unsigned)draw(200);
    sim.net.forged = (unsigned)draw(1000);
}

static void troubles_drawn(void)
{
    for (unsigned i = 0; i < sim.n; i++)
        trouble_at(draw(2) ? 0 : (int64_t)draw(4 * S), i, BEGINS);
    for (unsigned i = 0; i < sim.n; i++)
        trouble_at(0, i, SENDS);
    trouble_at(0, 0, ATTACKS);
    for (unsigned n = (unsigned)draw(draw(4) ? 20 : 200); n; n--) {
        enum what what = (enum what)draw(ATTACKS);

        trouble_at((int64_t)draw(TROUBLES_NS), (unsigned)draw(sim.n), what);
    }
}

/* ---- peace ---- */

static bool clocks_agree(void)
{
    for (unsigned i = 0; i < sim.n; i++)
        for (unsigned j = 0; j < sim.n; j++)
            if (i != j && (!sim.machine[i].sh || sim.machine[i].t->peer[j].far))
                return false;
    return true;
}

static void peace(void)
{
    run.peace = true;
    frames.slow = false;
    for (unsigned i = 0; i < sim.n; i++)
        switch_begins(i);
    memset(sim.net.cut_until, 0, sizeof(sim.net.cut_until));
    sim.net.loss = sim.net.twice = sim.net.held = 0;
    for (unsigned i = 0; i < sim.n; i++)
        if (!sim.machine[i].t)
            machine_start(i);
    for (unsigned i = 0; i < PEACES && (!i || !clocks_agree()); i++)
        run_until(sim.now + PEACE_NS);
    run_until(sim.now + PEACE_NS);
}

static bool says(unsigned machine, unsigned link)
{
    return atomic_load(&sim.machine[machine].sw->cut[link]) & 1;
}

static void all_know_the_cuts(void)
{
    for (unsigned i = 0; i < sim.n; i++)
        for (unsigned k = 0; k < sim.fab->n_links; k++) {
            const struct fab_link *l = &sim.fab->links[k];
            unsigned a = sim.fab->nodes[l->a].machine, b = sim.fab->nodes[l->b].machine;

            HOLDS(a == i || b == i ||
                      (atomic_load(&sim.machine[i].sh->own->cut[k]) & 1) ==
                          (says(a, k) || says(b, k)),
                  "machine %u says that link %u is%s cut", i, k,
                  says(a, k) || says(b, k) ? " not" : "");
        }
}

static void an_order_is_carried_out(void)
{
    unsigned giver = (unsigned)draw(sim.n);

    orders_link(giver);
    sim.at = OUTSIDE;
    run_until(sim.now + S);
    for (unsigned i = 0; i < sim.n; i++)
        HOLDS(sim.machine[i].executed[run.orders] == (i != giver),
              "machine %u carries an order of machine %u out %u times", i, giver,
              sim.machine[i].executed[run.orders]);
}

static void a_dilation_is_taken(void)
{
    uint32_t dilation = 1 + (uint32_t)draw(100);

    sim.at = (unsigned)draw(sim.n);
    trunk_clock_dilate(sim.machine[sim.at].t, dilation);
    sim.at = OUTSIDE;
    run_until(sim.now + 3 * S);
    for (unsigned i = 0; i < sim.n; i++)
        HOLDS(clock_dilation(sim.machine[i].sh) == dilation,
              "machine %u has dilation %u instead of %u", i, clock_dilation(sim.machine[i].sh),
              dilation);
}

static void links_are_counted(void)
{
    struct trunk *t = sim.machine[0].t;
    uint64_t bytes;

    sim.at = 0;
    pthread_mutex_lock(&t->lock);
    counts_refresh(t);
    pthread_mutex_unlock(&t->lock);
    sim.at = OUTSIDE;
    for (unsigned d = 0; d < 2 * sim.fab->n_links; d++) {
        unsigned of = d & 1 ? sim.fab->links[d / 2].b : sim.fab->links[d / 2].a;

        HOLDS(sim.fab->nodes[of].machine == 0 || (counts_of(t, d, &bytes) && bytes == bytes_of(d)),
              "direction %u is not known, or wrong", d);
    }
}

/* Of those that were sent for two seconds. */
static void no_frame_is_lost(void)
{
    uint32_t sent[MACHINES][LINKS];
    unsigned long long in[MACHINES][LINKS];

    memcpy(sent, frames.came, sizeof(sent)); /* what is on its way comes after these */
    memcpy(in, frames.in, sizeof(in));
    run_until(sim.now + 2 * S);
    run.quiet = true;
    run_until(sim.now + 2 * S);
    for (unsigned link = sim.n; link < sim.fab->n_links; link++)
        for (unsigned end = 0; end < 2; end++) {
            const struct fab_link *l = &sim.fab->links[link];
            unsigned from = sim.fab->nodes[end ? l->a : l->b].machine;
            unsigned to = sim.fab->nodes[end ? l->b : l->a].machine;

            HOLDS(frames.came[to][link] == frames.sent[from][link] &&
                      frames.in[to][link] - in[to][link] ==
                          frames.sent[from][link] - sent[to][link],
                  "of link %u, %llu of %u frames come to machine %u", link,
                  frames.in[to][link] - in[to][link], frames.sent[from][link] - sent[to][link], to);
        }
}

/* The lowest of the others goes on with the fabric's clock. */
static void the_owner_dies(void)
{
    unsigned owner = sim.machine[0].t->owner, next = owner ? 0 : 1;

    machine_die(owner);
    run_until(sim.now + 6 * S);
    all_are_there();
    HOLDS(sim.machine[next].t->owner == next, "machine %u follows the clock of %u", next,
          sim.machine[next].t->owner);
    one_clock(next);
}

/* ---- a seed ---- */

static void a_seed(unsigned seed)
{
    sim_begin(seed, 0);
    if (!draw(4)) /* they take six times as long */
        frames_begin(draw(2));
    network_drawn();
    troubles_drawn();
    run_until(TROUBLES_NS);
    peace();
    all_are_there();
    one_clock(0);
    all_know_the_cuts();
    an_order_is_carried_out();
    a_dilation_is_taken();
    links_are_counted();
    if (sim.pool)
        no_frame_is_lost();
    the_owner_dies();
    sim_end();
    if (sim.pool)
        frames_end();
    sim.pool = NULL;
}

/* ---- the run ---- */

static unsigned number_of(const char *name, unsigned otherwise)
{
    const char *s = getenv(name);

    return s && *s ? (unsigned)strtoul(s, NULL, 10) : otherwise;
}

static void seeds(void **state)
{
    unsigned first = number_of("SEED", 1), n = number_of("SEEDS", getenv("SEED") ? 1 : 60);

    (void)state;
    for (unsigned i = first; i < first + n; i++)
        a_seed(i);
    printf("%u seeds, %llu datagrams, %llu by a stranger, %llu frames\n", n, sim.datagrams,
           sim.replays, frames.all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeds),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
