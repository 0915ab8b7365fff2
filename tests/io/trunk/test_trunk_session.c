/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ends that find a session over a network that loses, repeats, delays and reorders, one of which dies
 * or starts anew at any moment, and somebody without the key who sends again whatever was sent before.
 */
#include "io/trunk/trunk_session.h"

#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MS     1000000ll
#define S      (1000 * MS)
#define FLIGHT 256
#define KEPT   100000
#define STATE  (50 * MS)
#define SILENT (2500 * MS)

struct message {
    struct trunk_header h;
    unsigned to;
    int64_t sent_ns, at_ns;
    unsigned life; /* of its sender */
    bool flies;
};

struct end {
    struct trunk_session s;
    bool up;
    unsigned life, begun, taken;
    int64_t said_ns, heard_ns, died_ns, begun_ns;
};

static struct {
    struct end end[2];
    struct message flight[FLIGHT], kept[KEPT];
    unsigned n_kept;
    int64_t now;
    double loss, dup, reorder;
    bool replays; /* what arrives is of somebody who sends it again */
    bool floods;  /* so many HELLOs, too, that they are there before any other */
} w;

static bool draw(double share)
{
    return rand() < share * RAND_MAX;
}

/* The time of day, which differs from machine to machine. */
static uint64_t wall_ns(unsigned end)
{
    return (uint64_t)(w.now + (end ? 0 : 3600 * S));
}

static void fly(struct message m)
{
    unsigned i = 0;

    m.at_ns = w.now + MS / 10 + (draw(w.reorder) ? rand() % (300 * MS) : 0);
    while (w.flight[i].flies)
        assert_true(++i < FLIGHT);
    m.flies = true;
    w.flight[i] = m;
}

static void say(unsigned from, unsigned type, uint64_t asked)
{
    struct message m = {.h = {.type = (uint8_t)type, .from = (uint8_t)from, .to = (uint8_t)!from},
                        .to = !from,
                        .sent_ns = w.now,
                        .life = w.end[from].life};

    session_stamp(&w.end[from].s, &m.h, asked, wall_ns(from));
    assert_true(w.n_kept < KEPT);
    w.kept[w.n_kept++] = m;
    if (!draw(w.loss))
        fly(m);
    if (draw(w.dup))
        fly(m);
}

/* A dead end says nothing new: what counts as its own was sent while it was there, or lately. */
static void hear(const struct message *m)
{
    struct end *e = &w.end[m->to], *other = &w.end[!m->to];
    enum session_says says;

    if (!e->up)
        return;
    says = session_input(&e->s, &m->h, w.now);
    if (says == SESSION_ASKED)
        say(m->to, TRUNK_CHALLENGE, be64toh(m->h.session));
    if (says == SESSION_BEGINS || says == SESSION_TAKE) {
        assert_true(w.now - m->sent_ns <= 2 * SESSION_FRESH_NS);
        if (m->life != other->life || !other->up)
            assert_true(w.now - other->died_ns <= 2 * SESSION_FRESH_NS);
        e->heard_ns = w.now;
        e->taken += m->h.type == TRUNK_STATE;
    }
    if (says != SESSION_BEGINS)
        return;
    e->begun++;
    e->begun_ns = w.now;
    say(m->to, TRUNK_STATE, 0);
    e->said_ns = w.now;
}

static void tick(unsigned i)
{
    struct end *e = &w.end[i];

    if (!e->up)
        return;
    session_tick(&e->s, w.now);
    if (session_open(&e->s) && w.now - e->heard_ns > SILENT)
        session_end(&e->s);
    if (w.now - e->said_ns < STATE)
        return;
    say(i, session_open(&e->s) ? TRUNK_STATE : TRUNK_HELLO, 0);
    e->said_ns = w.now;
}

static void pass(int64_t ns)
{
    for (int64_t until = w.now + ns; w.now < until; w.now += MS / 5) {
        for (unsigned k = 0; w.floods && k < 100; k++) {
            struct message m = w.kept[(unsigned)rand() % w.n_kept];

            if (m.h.type == TRUNK_HELLO)
                hear(&m);
        }
        for (unsigned i = 0; i < FLIGHT; i++)
            if (w.flight[i].flies && w.flight[i].at_ns <= w.now) {
                w.flight[i].flies = false;
                hear(&w.flight[i]);
            }
        tick(0);
        tick(1);
        if (w.replays && w.n_kept)
            for (unsigned k = 0; k < 3; k++) {
                struct message m = w.kept[(unsigned)rand() % w.n_kept];

                hear(&m);
            }
    }
}

static void start(unsigned i)
{
    struct end *e = &w.end[i];
    unsigned life = e->life + 1;
    int64_t died_ns = e->up ? w.now : e->died_ns;

    *e = (struct end){.up = true, .life = life, .said_ns = w.now - STATE, .died_ns = died_ns};
    session_init(&e->s, w.now);
}

static void die(unsigned i)
{
    w.end[i].up = false;
    w.end[i].died_ns = w.now;
}

static bool agree(void)
{
    return session_open(&w.end[0].s) && w.end[0].s.mine == w.end[1].s.theirs &&
           w.end[0].s.theirs == w.end[1].s.mine;
}

static void begin(unsigned seed)
{
    srand(seed);
    memset(&w, 0, sizeof(w));
    w.now = 1000 * S;
}

static void machines_that_start_find_a_session(void **state)
{
    (void)state;
    for (unsigned later = 0; later < 80; later += 7) {
        begin(later);
        start(0);
        pass(later * MS);
        start(1);
        pass(later < 10 ? 2 * MS : STATE + 2 * MS);
        assert_true(agree());
        assert_true(w.end[0].taken && w.end[1].taken);
        assert_true(w.end[0].begun == 1 && w.end[1].begun == 1);
        pass(20 * S); /* and keep it */
        assert_true(w.end[0].begun == 1 && w.end[1].begun == 1);
    }
}

static void one_that_starts_anew_has_a_session_in_milliseconds(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin(i);
        start(0), start(1);
        pass(5 * S);
        start(i);
        pass(3 * MS);
        assert_true(agree());
        assert_int_equal(w.end[!i].begun, 2);
        start(0), start(1); /* both at once */
        pass(3 * MS);
        assert_true(agree());
    }
}

/* Whichever datagram of the first ones is lost. */
static void a_lost_datagram_costs_a_tick(void **state)
{
    (void)state;
    for (unsigned lost = 1; lost < 16; lost++) {
        begin(lost);
        start(0), start(1);
        for (unsigned k = 0; k < 4; k++) {
            pass(MS / 5);
            for (unsigned i = 0; i < FLIGHT; i++)
                if (lost >> k & 1)
                    w.flight[i].flies = false;
        }
        pass(2 * STATE);
        assert_true(agree());
    }
}

static void ends_agree_whatever_the_network_does(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 60; seed++) {
        unsigned begun;

        begin(seed);
        w.loss = 0.1 * (seed % 5);
        w.dup = 0.2 * (seed % 3);
        w.reorder = 0.25 * (seed % 4);
        start(0), start(1);
        for (unsigned round = 0; round < 6; round++) {
            pass(4 * S);
            assert_true(agree());
            begun = w.end[0].begun + w.end[1].begun;
            pass(2 * S);
            assert_int_equal(w.end[0].begun + w.end[1].begun, begun);
            switch (rand() % 4) {
            case 0:
                start(0), start(1);
                break;
            case 1:
                die((unsigned)rand() % 2);
                pass(rand() % (6 * S));
                start(!w.end[1].up);
                break;
            default:
                start((unsigned)rand() % 2);
            }
        }
    }
}

/* Three times as much is sent again as time passes ticks: of all lives and sessions, to both ends. hear() asserts that nothing of it counts. */
static void what_was_sent_before_never_counts(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 25; seed++) {
        begin(seed);
        w.replays = true;
        start(0), start(1);
        for (unsigned round = 0; round < 5; round++) {
            unsigned begun[2], i = (unsigned)rand() % 2;
            int64_t since;

            pass(3 * S);
            assert_true(agree());
            begun[0] = w.end[0].begun, begun[1] = w.end[1].begun;
            pass(2 * S); /* a living session lives on */
            assert_true(agree());
            assert_true(w.end[0].begun == begun[0] && w.end[1].begun == begun[1]);
            die(i);
            since = w.now;
            pass(SILENT + 10 * MS);
            assert_false(session_open(&w.end[!i].s)); /* and a dead machine is dead */
            pass(rand() % (3 * S));
            assert_false(session_open(&w.end[!i].s));
            assert_true(w.end[!i].begun_ns < since);
            start(i);
            pass(300 * MS);
            assert_true(agree());
        }
    }
}

/* Not a bit of the state, for all that was sent in sessions before, at any later time. */
static void what_was_sent_before_changes_nothing(void **state)
{
    (void)state;
    begin(9);
    start(0), start(1);
    for (unsigned round = 0; round < 4; round++) {
        unsigned before;

        pass(3 * S);
        before = w.n_kept;
        start(round % 2);
        if (round == 2)
            start(1);
        pass(2 * SESSION_FRESH_NS + 100 * MS);
        assert_true(agree());
        if (round == 3) {
            die(0);
            pass(SILENT + S);
        }
        for (unsigned k = 0; k < before; k++) {
            struct trunk_session was = w.end[w.kept[k].to].s, is;

            if (!w.end[w.kept[k].to].up)
                continue;
            hear(&w.kept[k]);
            is = w.end[w.kept[k].to].s;
            is.answered_ns = was.answered_ns;
            is.hello_ns = was.hello_ns;
            assert_memory_equal(&was, &is, sizeof(is));
        }
        for (unsigned i = 0; i < FLIGHT; i++)
            w.flight[i].flies = false;
        if (round == 3)
            start(0);
    }
}

/* HELLOs of all their lives are sent again to both ends: they meet as if there were none. */
static void ends_meet_in_a_flood_of_questions(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 12; seed++) {
        begin(seed);
        for (unsigned life = 0; life < 8; life++) {
            start(life % 2);
            pass(rand() % (3 * S));
            die(life % 2);
        }
        w.floods = true;
        start(0), start(1);
        pass(3 * MS);
        assert_true(agree());
        start(seed % 2);
        pass(3 * MS);
        assert_true(agree());
        die(seed % 2);
        pass(SILENT + 100 * MS);
        assert_false(session_open(&w.end[!(seed % 2)].s));
        start(seed % 2);
        pass(3 * MS);
        assert_true(agree());
    }
}

/* A message that was held back for longer than a nonce lives is refused, within its session too. */
static void what_was_held_back_is_too_old(void **state)
{
    struct message held;
    (void)state;

    begin(4);
    start(0), start(1);
    pass(5 * S);
    say(0, TRUNK_ORDER, 0);
    held = w.kept[w.n_kept - 1];
    for (unsigned i = 0; i < FLIGHT; i++)
        w.flight[i].flies = false;
    pass(SESSION_FRESH_NS / 2);
    {
        struct trunk_session copy = w.end[1].s;

        assert_int_equal(session_input(&copy, &held.h, w.now), SESSION_TAKE);
    }
    pass(2 * SESSION_FRESH_NS);
    assert_true(agree());
    assert_int_equal(session_input(&w.end[1].s, &held.h, w.now), SESSION_REPLAY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machines_that_start_find_a_session),
        cmocka_unit_test(one_that_starts_anew_has_a_session_in_milliseconds),
        cmocka_unit_test(a_lost_datagram_costs_a_tick),
        cmocka_unit_test(ends_agree_whatever_the_network_does),
        cmocka_unit_test(what_was_sent_before_never_counts),
        cmocka_unit_test(what_was_sent_before_changes_nothing),
        cmocka_unit_test(what_was_held_back_is_too_old),
        cmocka_unit_test(ends_meet_in_a_flood_of_questions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
