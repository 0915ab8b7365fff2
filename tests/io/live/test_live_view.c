/* SPDX-License-Identifier: BSD-3-Clause */
/* What two looks say of links and of hand-offs. */
#include "tests/io/live/looked.h"

static void rates_are_of_the_time_between_the_looks(void **state)
{
    struct live_fabric *x = looked_new();

    (void)state;
    assert_int_equal(live_window_ps(x, 0), S / 2);
    assert_int_equal(live_window_ps(x, 5), 0); /* not known */
    assert_int_equal(live_delta(x, 0, PORT_link_bytes), 5000000000);
    assert_true(live_GBps(x, 0) == 10);
    assert_true(live_GBps(x, 2) == 0);
    assert_true(live_GBps(x, 7) == 5);
    assert_true(live_utilisation(x, 0) == 0.2);
    assert_true(live_utilisation(x, 2) == 0);
    assert_true(live_utilisation(x, 5) == 0); /* no time */
    assert_true(live_utilisation(x, 6) < 0);  /* of a sender outside nobody knows */
    assert_true(live_utilisation(x, 7) == 1);
    x->f->links[0].rate_bps = 0;
    assert_true(live_utilisation(x, 0) < 0);
    x->before.dir[0].v[PORT_link_bytes] = 6000000001; /* a process that was started anew */
    assert_int_equal(live_delta(x, 0, PORT_link_bytes), 6000000000);
    x->before.dir[0].v[PORT_link_bytes] = 6000000000;
    assert_int_equal(live_delta(x, 0, PORT_link_bytes), 0);
    x->before.dir[0].now_ps = x->now.dir[0].now_ps + 1;
    assert_int_equal(live_window_ps(x, 0), 0);
    assert_true(live_GBps(x, 0) == 0);
    looked_free(x);
}

static void ends_are_those_of_the_direction(void **state)
{
    struct live_fabric *x = looked_new();
    struct live_ends e = live_ends(x->f, 4);

    (void)state;
    assert_true(e.from == H1 && e.from_port == 1 && e.to == LEAF && e.to_port == 2);
    e = live_ends(x->f, 5);
    assert_true(e.from == LEAF && e.from_port == 2 && e.to == H1 && e.to_port == 1);
    looked_free(x);
}

static void lateness_is_of_the_hand_offs_since_the_last_look(void **state)
{
    struct live_fabric *x = looked_new();

    (void)state;
    assert_int_equal(live_handoffs(x), 100);
    assert_int_equal(live_lag_ns(x, 0), 800);
    assert_int_equal(live_lag_ns(x, 0.5), 800);
    assert_int_equal(live_lag_ns(x, 0.96), 800);
    assert_int_equal(live_lag_ns(x, 0.97), 50000);
    assert_int_equal(live_lag_ns(x, 0.98), 50000);
    assert_int_equal(live_lag_ns(x, 0.99), 1000000);
    assert_int_equal(live_lag_ns(x, 1), 1000000);
    x->lag_top[6] = LATENESS_BOUND_NS;
    assert_true(live_late_share(x) == 0.01);
    x->lag_top[6] = LATENESS_BOUND_NS + 1;
    assert_true(live_late_share(x) == 0.03);
    x->before.lag[6] = 3; /* a process that was started anew */
    assert_int_equal(live_handoffs(x), 100);
    memset(x->now.lag, 0, sizeof(x->now.lag));
    x->before = (struct live_look){.dir = x->before.dir};
    assert_int_equal(live_handoffs(x), 0);
    assert_int_equal(live_lag_ns(x, 0.5), 0);
    assert_true(live_late_share(x) == 0);
    x->now.lag[LIVE_LAG - 1] = 1;
    x->lag_top[LIVE_LAG - 1] = 7;
    assert_int_equal(live_lag_ns(x, 0.5), 7);
    assert_int_equal(live_handoffs(x), 1);
    looked_free(x);
}

static void kinds_have_names(void **state)
{
    struct live_fabric *x = looked_new();

    (void)state;
    assert_string_equal(live_kind(x, 0), "reduce");
    assert_string_equal(live_kind(x, 1), "multimem");
    assert_string_equal(live_kind(x, 2), "unknown");
    x->n_kinds = 9;
    assert_string_equal(live_kind(x, 7), "");
    assert_string_equal(live_kind(x, 8), "unknown");
    looked_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_of_the_time_between_the_looks),
        cmocka_unit_test(ends_are_those_of_the_direction),
        cmocka_unit_test(lateness_is_of_the_hand_offs_since_the_last_look),
        cmocka_unit_test(kinds_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
