/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose clock a machine takes, and how its own is made to follow that one: on a clock of wall time that stands still. */
#include "tests/io/trunk/machines.h"

#include <stdint.h>

#define NOW    (100 * S) /* of wall time in all cases */
#define LEAD   (5 * MS)
#define PS     1000ll /* of fabric time in a ns of wall time without dilation */
#define SECOND 1000000000

static struct trunk *t;

/* ---- what the others have said ---- */

/* A machine that is there, and has no clock. */
static struct trunk_peer *alive(unsigned i)
{
    struct trunk_peer *p = &t->peer[i];

    p->session.mine = p->session.theirs = 1;
    p->state = (struct trunk_state){.sent_ns = 1, .owner = i};
    return p;
}

/* One that has a clock at the same speed as ours, and so much ahead of it; exchanges with it took 400 ns. */
static struct trunk_peer *with_clock(unsigned i, int64_t ahead_ps)
{
    struct clock_state ours = clock_state_of(t->sh->clock);
    struct trunk_peer *p = alive(i);

    p->state.has_clock = 1;
    p->state.change_ns = NOW;
    p->state.change_ps = (uint64_t)(clock_line_ps(&ours, NOW) + ahead_ps);
    p->state.before = p->state.dilation = ours.dilation;
    p->follow.point[0] = (struct follow_point){.at_ns = NOW, .way_ns = 400};
    p->follow.n = p->follow.next = 1;
    p->received = 3;
    return p;
}

/* This is machine `me`, whose clock has run at `dilation` for 10 s, and nobody else is there. */
static void alone(unsigned me, uint32_t dilation)
{
    t->me = t->owner = me;
    t->cfg.dilation = t->dilation = dilation;
    for (unsigned i = 0; i < MACHINES; i++) {
        struct trunk_peer *p = &t->peer[i];

        p->session.mine = p->session.theirs = 0;
        memset(&p->state, 0, sizeof(p->state));
        memset(&p->follow, 0, sizeof(p->follow));
        p->received = 0;
        p->far = false;
        p->near_ns = 0;
    }
    memset(&t->owner_was, 0, sizeof(t->owner_was));
    clock_start_at(
        t->sh->own_clock,
        &(struct clock_state){.change_ns = NOW - 10 * S, .before = dilation, .dilation = dilation});
    atomic_store(&t->sh->own_clock->unsure_ns, 7);
}

static int begin(void **state)
{
    setup(state);
    t = w.t[0];
    still_ns = NOW;
    alone(0, 1);
    return 0;
}

static int end(void **state)
{
    t->me = 0;
    return teardown(state);
}

/* ---- the clock that a machine begins with ---- */

static void one_that_is_alone_makes_the_clock_after_a_while(void **state)
{
    struct clock_state line = {.change_ps = 5, .skew_ppb = 5};
    (void)state;

    alone(1, 70);
    t->dilation = 0;
    t->owner = 2;
    t->began_ns = NOW - SECOND;
    assert_false(trunk_clock_agree(t, NOW, &line));
    assert_int_equal(t->owner, 2);
    assert_true(trunk_clock_agree(t, NOW + 1, &line));
    assert_int_equal(t->owner, 1);
    assert_int_equal(line.change_ns, NOW + 1);
    assert_int_equal(line.change_ps, 0);
    assert_true(line.before == 70 && line.dilation == 70 && t->dilation == 70);
    assert_true(!line.skew_ppb && !line.before_skew_ppb);
}

/* At once if all are there; one that waits for its session with a lower one makes none. */
static void the_lowest_of_those_that_start_makes_the_clock(void **state)
{
    struct clock_state line;
    (void)state;

    t->began_ns = NOW;
    alive(1);
    assert_false(trunk_clock_agree(t, NOW, &line));
    alive(2);
    assert_true(trunk_clock_agree(t, NOW, &line));
    alone(1, 1);
    alive(2);
    t->peer[0].session.mine = 1;
    t->began_ns = NOW - 5 * S;
    assert_false(trunk_clock_agree(t, NOW, &line));
    alive(0);
    assert_false(trunk_clock_agree(t, NOW, &line));
    t->peer[0].session.mine = 0;
    assert_true(trunk_clock_agree(t, NOW, &line));
}

/* After three messages and an exchange; the clock's line is by our own CLOCK_MONOTONIC. */
static void the_clock_of_one_that_has_it_is_taken_over(void **state)
{
    struct trunk_peer *p;
    struct clock_state line;
    (void)state;

    t->owner = 0;
    t->began_ns = NOW - 5 * S;
    alive(1);
    p = with_clock(2, 0);
    p->follow.point[0].offset_ns = 1000;
    p->state.skew_ppb = 3;
    p->state.before_skew_ppb = 4;
    p->state.before = 2;
    p->received = 2;
    assert_false(trunk_clock_agree(t, NOW, &line));
    p->received = 3;
    p->follow.n = 0;
    assert_false(trunk_clock_agree(t, NOW, &line));
    p->follow.n = 1;
    assert_true(trunk_clock_agree(t, NOW, &line));
    assert_int_equal(t->owner, 2);
    assert_int_equal(line.change_ns, NOW - 1000);
    assert_int_equal(line.change_ps, 10 * S * PS);
    assert_true(line.before == 2 && line.dilation == 1);
    assert_true(line.skew_ppb == 3 && line.before_skew_ppb == 4);
    assert_int_equal(t->owner_was.change_ns, NOW);
    assert_int_equal(t->owner_was.change_ps, line.change_ps);
}

/* Of the one that it says it follows, if that is there. */
static void the_owners_clock_is_taken_over(void **state)
{
    static const struct {
        unsigned says;
        bool there, has_clock;
        unsigned owner;
    } rows[] = {{2, true, true, 2},
                {2, true, false, 1},
                {2, false, true, 1},
                {0, true, true, 1},
                {1, true, true, 1}};
    struct clock_state line;
    (void)state;

    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        alone(0, 1);
        with_clock(1, 0)->state.owner = rows[i].says;
        with_clock(2, 0)->state.has_clock = rows[i].has_clock;
        t->peer[2].session.mine = rows[i].there;
        t->owner = 9;
        assert_true(trunk_clock_agree(t, NOW, &line));
        assert_int_equal(t->owner, rows[i].owner);
    }
}

/* ---- who owns it later ---- */

static unsigned owner_after_tick(void)
{
    trunk_clock_tick(t);
    return t->owner;
}

static void a_clock_is_followed_while_its_owner_is_there(void **state)
{
    struct trunk_peer *p;
    (void)state;

    p = with_clock(1, 0);
    t->owner = 1;
    t->owner_was.dilation = 9;
    assert_int_equal(owner_after_tick(), 1);
    assert_int_equal(t->owner_was.dilation, 9);
    p->state.owner = 2; /* it has found one that is ahead */
    assert_int_equal(owner_after_tick(), 1);
    alive(2);
    assert_int_equal(owner_after_tick(), 2);
    assert_int_equal(t->owner_was.dilation, 0);
    assert_int_equal(atomic_load(&t->sh->own_clock->unsure_ns), 7);
    with_clock(2, 0);
    t->owner = 1;
    p->state.owner = 0; /* us: each has found the other one ahead, and the lower one remains */
    assert_int_equal(owner_after_tick(), 0);
    alone(2, 1);
    with_clock(1, 0)->state.owner = 2;
    t->owner = 1;
    assert_int_equal(owner_after_tick(), 1);
}

static void the_lowest_that_is_there_owns_it_then(void **state)
{
    (void)state;
    alone(1, 1);
    with_clock(0, 0);
    t->owner = 2; /* which is gone */
    assert_int_equal(owner_after_tick(), 0);
    assert_int_equal(atomic_load(&t->sh->own_clock->unsure_ns), 7);
    alone(1, 1);
    with_clock(2, 0);
    t->owner = 0;
    assert_int_equal(owner_after_tick(), 1);
    assert_int_equal(atomic_load(&t->sh->own_clock->unsure_ns), 0);
    alone(2, 1);
    alive(0); /* without a clock */
    with_clock(1, 0);
    t->owner = 0;
    assert_int_equal(owner_after_tick(), 1);
}

/* The owner whose clock is ahead remains of two, or the lower one if neither is ahead. */
static void of_two_clocks_that_meet_one_remains(void **state)
{
    static const struct {
        unsigned me, other;
        int64_t ahead_ns;
        unsigned owner;
    } rows[] = {
        {0, 1, 5 * MS, 0}, {0, 1, 5 * MS + 1, 1},  {0, 2, S, 2},           {0, 2, -S, 0},
        {1, 0, 5 * MS, 0}, {1, 0, -5 * MS + 1, 0}, {1, 0, -5 * MS, 1},     {1, 2, 5 * MS, 1},
        {1, 2, 6 * MS, 2}, {2, 1, 0, 1},           {2, 1, -5 * MS - 1, 2},
    };
    (void)state;

    for (unsigned i = 0; i < RTE_DIM(rows); i++)
        for (unsigned dilation = 1; dilation <= 10; dilation += 9) {
            alone(rows[i].me, dilation);
            with_clock(rows[i].other, rows[i].ahead_ns * PS / dilation);
            if (owner_after_tick() != rows[i].owner)
                fail_msg("row %u: found %u, expected %u", i, t->owner, rows[i].owner);
        }
    alone(0, 1);
    with_clock(1, S * PS)->state.owner = 2; /* not its own */
    assert_int_equal(owner_after_tick(), 0);
    with_clock(1, S * PS)->follow.n = 0; /* nothing is known of its time */
    assert_int_equal(owner_after_tick(), 0);
    with_clock(1, S * PS)->session.mine = 0;
    assert_int_equal(owner_after_tick(), 0);
}

/* ---- how it is followed ---- */

static struct clock_state heard(unsigned from, bool interval_over)
{
    trunk_clock_heard(t, from, interval_over, NOW);
    return clock_state_of(t->sh->clock);
}

static void it_is_followed_when_there_is_news(void **state)
{
    struct trunk_peer *p = with_clock(1, 0);
    struct shared *sh = t->sh;
    (void)state;

    t->owner = 1;
    t->sh = NULL; /* clocks are not agreed on */
    trunk_clock_heard(t, 1, true, NOW);
    t->sh = sh;
    with_clock(2, 0);
    assert_int_equal(heard(2, true).change_ns, NOW - 10 * S); /* not the owner */
    p->state.has_clock = 0;
    assert_int_equal(heard(1, true).change_ns, NOW - 10 * S);
    p->state.has_clock = 1;
    p->follow.n = 0;
    assert_int_equal(heard(1, true).change_ns, NOW - 10 * S);
    p->follow.n = 1;
    assert_int_equal(heard(1, false).change_ns, NOW + LEAD); /* its line is new */
    assert_int_equal(t->owner_was.change_ns, NOW);
    alone(0, 1);
    with_clock(1, 0);
    t->owner = 1;
    t->owner_was = (struct clock_state){
        .change_ns = NOW, .change_ps = 10 * S * PS, .before = 1, .dilation = 1};
    assert_int_equal(heard(1, false).change_ns, NOW - 10 * S);
    assert_int_equal(heard(1, true).change_ns, NOW + LEAD);
    p->state.skew_ppb = 5;
    assert_int_equal(heard(1, true).skew_ppb, 0); /* a change is under way already */
}

/* In half a second the two meet: the speed is that of the owner, and so much off. */
static void the_two_meet_half_a_second_later(void **state)
{
    static const struct {
        uint32_t dilation;
        int64_t ahead_ps;
        uint32_t is;
        int32_t skew_ppb;
        int64_t unsure_ns;
    } rows[] = {
        {1, 1, 1, 0, 200},
        {1, 500000001, 1, 1000000, 500200},
        {1, -499999999, 1, -1000000, 500200},
        {10, 50000001, 10, 1000000, 500200},
        {10, 9000000001, 10, 180000000, 90000200},
        {10, 25000000001, 6, -100000000, 250000200}, /* another dilation is nearer */
        {10, -25000000000, 20, 0, 250000200},
        {1, -600000000000, 5, 0, 600000200},           /* it is crept along, and never back */
        {1, 1500000000001, 1, 2000000000, 1500000200}, /* no faster than that */
    };
    (void)state;

    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        struct clock_state s;
        int64_t unsure;

        alone(0, rows[i].dilation);
        with_clock(1, rows[i].ahead_ps);
        t->owner = 1;
        s = heard(1, true);
        unsure = atomic_load(&t->sh->own_clock->unsure_ns);
        if (s.dilation != rows[i].is || abs(s.skew_ppb - rows[i].skew_ppb) > 1 ||
            llabs(unsure - rows[i].unsure_ns) > 1)
            fail_msg("row %u: found dilation %u, skew %d, unsure %lld", i, s.dilation, s.skew_ppb,
                     (long long)unsure);
        assert_int_equal(s.change_ns, NOW + LEAD);
        assert_true(s.before == rows[i].dilation && t->dilation == rows[i].dilation);
    }
}

/* A change of the owner's that is about to come is made with it; of a far one the end is not waited for. */
static void a_change_of_the_owners_is_made_with_it(void **state)
{
    static const struct {
        int64_t in_ns, at_ns;
    } rows[] = {{4 * MS, LEAD}, {LEAD, LEAD},     {LEAD + 1, LEAD + 1},        {300 * MS, 300 * MS},
                {-S, LEAD},     {S + LEAD, LEAD}, {S + LEAD - 1, S + LEAD - 1}};
    (void)state;

    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        struct trunk_peer *p;

        alone(0, 4);
        p = with_clock(1, 0);
        p->state.change_ns = (uint64_t)(NOW + rows[i].in_ns);
        p->state.change_ps += (uint64_t)(rows[i].in_ns * PS / 4);
        p->state.dilation = rows[i].in_ns < 0 ? 4 : 2;
        t->owner = 1;
        assert_int_equal(heard(1, true).change_ns, NOW + rows[i].at_ns);
    }
}

/* While a change of our own is to come nothing is changed. */
static void a_change_of_our_own_comes_first(void **state)
{
    struct clock_state s;
    (void)state;

    with_clock(1, MS);
    t->owner = 1;
    clock_follow(t->sh->own_clock, NOW + 1, 8, 0);
    assert_int_equal(heard(1, true).change_ns, NOW + 1);
    clock_follow(t->sh->own_clock, NOW, 8, 0);
    s = heard(1, true);
    assert_int_equal(s.change_ns, NOW + LEAD);
    assert_true(s.before == 8 && s.dilation < 8);
}

/* ---- clocks that differ ---- */

/* Links to it are down then: at once where it has none, after a second where they drift apart. */
static void a_clock_that_differs_is_far(void **state)
{
    static const struct {
        bool was;
        int64_t ahead_ns, near_ago_ns;
        bool far, near;
    } rows[] = {
        {false, 5 * MS - 1, 2 * S, false, true},
        {false, 5 * MS, SECOND, false, false},
        {false, 5 * MS, SECOND + 1, true, false},
        {false, -5 * MS, SECOND + 1, true, false},
        {true, MS, 5, true, false},
        {true, MS - 1, 5, false, true},
        {true, -MS, 5, true, false},
        {true, -MS + 1, 5, false, true},
    };
    (void)state;

    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        struct trunk_peer *p;

        alone(0, 1);
        p = with_clock(2, rows[i].ahead_ns * PS);
        p->far = rows[i].was;
        p->near_ns = NOW - rows[i].near_ago_ns;
        heard(2, true);
        if (p->far != rows[i].far || (p->near_ns == NOW) != rows[i].near)
            fail_msg("row %u: found far %d", i, p->far);
    }
    with_clock(2, 0)->follow.n = 0;
    heard(2, true);
    assert_true(t->peer[2].far);
}

/* ---- a change of its speed ---- */

static void a_dilation_changes_a_moment_later(void **state)
{
    struct clock_state s;
    (void)state;

    trunk_clock_dilate(t, 1);
    assert_int_equal(clock_state_of(t->sh->clock).change_ns, NOW - 10 * S); /* it has this one */
    clock_follow(t->sh->own_clock, NOW - 1, 1, 17);
    trunk_clock_dilate(t, 6);
    s = clock_state_of(t->sh->clock);
    assert_int_equal(s.change_ns, NOW + 150 * MS);
    assert_true(s.dilation == 6 && s.before == 1 && !s.skew_ppb && s.before_skew_ppb == 17);
    trunk_clock_dilate(t, 9); /* once the one that is to come is over */
    assert_int_equal(clock_state_of(t->sh->clock).dilation, 6);
    still_ns = NOW + 150 * MS - 1;
    trunk_clock_tick(t);
    assert_int_equal(clock_state_of(t->sh->clock).dilation, 6);
    still_ns = NOW + 150 * MS;
    trunk_clock_tick(t);
    s = clock_state_of(t->sh->clock);
    assert_int_equal(s.change_ns, NOW + 300 * MS);
    assert_true(s.dilation == 9 && s.before == 6);
    still_ns = NOW + S;
    clock_follow(t->sh->own_clock, NOW + S, 9, 17);
    trunk_clock_tick(t); /* its own speed is without a correction */
    s = clock_state_of(t->sh->clock);
    assert_true(s.change_ns == NOW + S + 150 * MS && s.dilation == 9 && !s.skew_ppb);
    alive(1);
    t->owner = 1;
    trunk_clock_dilate(t, 3); /* the owner is asked */
    assert_int_equal(t->dilation, 9);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(one_that_is_alone_makes_the_clock_after_a_while),
        CASE(the_lowest_of_those_that_start_makes_the_clock),
        CASE(the_clock_of_one_that_has_it_is_taken_over),
        CASE(the_owners_clock_is_taken_over),
        CASE(a_clock_is_followed_while_its_owner_is_there),
        CASE(the_lowest_that_is_there_owns_it_then),
        CASE(of_two_clocks_that_meet_one_remains),
        CASE(it_is_followed_when_there_is_news),
        CASE(the_two_meet_half_a_second_later),
        CASE(a_change_of_the_owners_is_made_with_it),
        CASE(a_change_of_our_own_comes_first),
        CASE(a_clock_that_differs_is_far),
        CASE(a_dilation_changes_a_moment_later),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
