/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of trunks of two machines that seeds of test_trunk_seeds.c have found. */
#include "holds.h"

static void trouble(unsigned i, unsigned what)
{
    (void)i, (void)what;
}

/* Two machines that know each other; the first has the clock. */
static void two_machines(void)
{
    sim_begin(0, 2);
    memset(&sim.net, 0, sizeof(sim.net));
    sim.net.way_ns = 100 * US;
    machine_start(0);
    run_until(1500 * MS);
    machine_start(1);
    run_until(5 * S);
    all_are_there();
    one_clock(0);
    assert_int_equal(sim.machine[1].t->owner, 0);
}

static void dilate(unsigned i, uint32_t dilation)
{
    sim.at = i;
    trunk_clock_dilate(sim.machine[i].t, dilation);
    sim.at = OUTSIDE;
}

/* The second is asked for while the first lies ahead. */
static void dilations_in_a_row(void **state)
{
    (void)state;
    two_machines();
    dilate(0, 20);
    run_until(sim.now + 60 * MS);
    dilate(0, 3);
    run_until(sim.now + S);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(clock_dilation(sim.machine[i].sh), 3);
    one_clock(0);
    sim_end();
}

/* Either was ahead for the other, within the error of what they knew. */
static void two_that_follow_each_other(void **state)
{
    (void)state;
    two_machines();
    sim.machine[0].t->owner = 1;
    run_until(sim.now + 2 * S);
    assert_int_equal(sim.machine[0].t->owner, 0);
    one_clock(0);
    sim_end();
}

/* The machine that gave the order has sent it once, is stopped until there is another session, and
 * goes on. */
static void an_order_in_two_sessions(void **state)
{
    (void)state;
    two_machines();
    orders_link(0);
    sim.machine[0].stopped_at = sim.now;
    sim.machine[0].stopped_until = sim.now + 4 * S;
    sim.at = OUTSIDE;
    run_until(sim.now + 6 * S);
    all_are_there();
    assert_int_equal(sim.machine[1].executed[run.orders], 1);
    sim_end();
}

/* It was ahead, and slow, when the owner died. */
static void an_owner_keeps_no_correction(void **state)
{
    struct clock_state s;

    (void)state;
    two_machines();
    sim.at = 1;
    clock_follow(sim.machine[1].sh->own_clock, clock_mono_ns() + 5 * MS, 25, -400000000);
    sim.at = OUTSIDE;
    machine_die(0);
    run_until(sim.now + 6 * S);
    s = clock_state_of(sim.machine[1].sh->clock);
    assert_int_equal(sim.machine[1].t->owner, 1);
    assert_int_equal(s.dilation, 10);
    assert_int_equal(s.skew_ppb, 0);
    sim_end();
}

/* The machine has a session, and others call it the owner, before it has agreed on a clock. */
static void who_has_no_clock_is_asked_for_a_dilation(void **state)
{
    (void)state;
    two_machines();
    machine_die(0);
    run_until(sim.now + 4 * S);
    machine_start(0);
    while (!session_open(&sim.machine[1].t->peer[0].session))
        run_until(sim.now + MS);
    assert_null(sim.machine[0].sh);
    sim.machine[0].t->owner = sim.machine[1].t->owner = 0; /* as before it has heard of the clock */
    dilate(1, 5);
    run_until(sim.now + 4 * S);
    all_are_there();
    one_clock(0);
    sim_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dilations_in_a_row),
        cmocka_unit_test(two_that_follow_each_other),
        cmocka_unit_test(an_order_in_two_sessions),
        cmocka_unit_test(an_owner_keeps_no_correction),
        cmocka_unit_test(who_has_no_clock_is_asked_for_a_dilation),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
