/* SPDX-License-Identifier: BSD-3-Clause */
/* Grants that are smaller than what was asked for, and what the ranks' agreement makes of them. */
#include "host/coll/comm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIM(a) (sizeof(a) / sizeof((a)[0]))

/* Two trees of all ranks with windows of 100, and a rail's of 50. */
static struct comm *two_trees(void)
{
    static const char *const names[COMM_EVENTS];
    static const struct event_kinds kinds = {"coll", names, COMM_EVENTS};
    struct comm *c = calloc(1, sizeof(*c));

    assert_non_null(c);
    c->events.kinds = &kinds;
    c->n_aggs = 3;
    for (unsigned i = 0; i < 2; i++)
        c->agg[i] = (struct agg){
            .kind = GROUP_ALL, .chan = i, .state = JOIN_GRANTED, .window = 100, .credit = 90};
    c->agg[2] = (struct agg){
        .kind = GROUP_RAIL, .chan = 0, .state = JOIN_GRANTED, .window = 50, .credit = 45};
    return c;
}

/* Of parts that are given up nobody waits for an answer. */
static void grants_are_known_when_all_have_answered(void **state)
{
    struct comm *c = two_trees();

    (void)state;
    assert_true(fit_known(c));
    for (unsigned i = 0; i < 3; i++) {
        c->agg[i].state = JOIN_ASKED;
        assert_false(fit_known(c));
        c->failover.stopped = i < 2 ? PART_RAIL : PART_TREES;
        assert_false(fit_known(c));
        c->failover.stopped = i < 2 ? PART_TREES : PART_RAIL;
        assert_true(fit_known(c));
        c->failover.stopped = 0;
        c->agg[i].state = JOIN_REFUSED;
        assert_true(fit_known(c));
    }
    free(c);
}

/* What fit_answered() has told. */
static unsigned told_parts, told_answered;
static char told_why[COMM_TEXT];

static void on_failed(struct comm *c, unsigned parts, const char *why)
{
    (void)c;
    told_parts = parts;
    snprintf(told_why, sizeof(told_why), "%s", why);
}

static void on_answered(struct comm *c)
{
    (void)c;
    told_answered++;
}

/* Nothing is told before the last answer; the first text of a switch that grants less counts. */
static void less_than_asked_is_told_when_all_have_answered(void **state)
{
    static const struct transport_events events = {.failed = on_failed,
                                                   .joins_answered = on_answered};
    struct comm *c = two_trees();

    (void)state;
    told_parts = told_answered = 0;
    c->tell = &events;
    c->agg[2].state = JOIN_ASKED;
    fit_answered(c, "leaf0 has 50 slots");
    assert_int_equal(told_answered, 0);
    assert_int_equal(told_parts, 0);
    c->agg[2].state = JOIN_GRANTED;
    fit_answered(c, "leaf1 has 40 slots");
    assert_int_equal(told_answered, 1);
    assert_int_equal(told_parts, PART_FIT);
    assert_string_equal(told_why, "leaf0 has 50 slots");
    free(c);
}

/* Windows never grow; a rail's 0 is no grant. The first windows are those of agg[0] to agg[2] afterwards. */
static void windows_shrink_to_what_is_agreed_on(void **state)
{
    static const struct {
        uint32_t fit[2], rail;
        uint32_t window[3], credit[3];
    } rows[] = {
        {{100, 100}, 50, {100, 100, 50}, {90, 90, 45}},
        {{99, 101}, 51, {99, 100, 50}, {90, 90, 45}},
        {{90, 89}, 45, {90, 89, 45}, {90, 89, 45}},
        {{1, 200}, 44, {1, 100, 44}, {1, 90, 44}},
        {{100, 100}, 0, {100, 100, 50}, {90, 90, 45}},
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct comm *c = two_trees();
        uint32_t fit[COLL_TREES] = {0};

        memcpy(fit, rows[i].fit, sizeof(rows[i].fit));
        assert_false(fit_apply(c, fit, rows[i].rail, "leaf0 has less"));
        assert_string_equal(c->fit.why, "leaf0 has less");
        assert_int_equal(agg_in_use(c), 3);
        for (unsigned k = 0; k < 3; k++) {
            assert_int_equal(c->agg[k].window, rows[i].window[k]);
            assert_int_equal(c->agg[k].credit, rows[i].credit[k]);
            assert_false(c->agg[k].out);
        }
        free(c);
    }
}

static void a_tree_that_is_out_or_lost_stays_as_it_is(void **state)
{
    struct comm *c = two_trees();
    const uint32_t fit[COLL_TREES] = {0, 7};
    char why[AGG_TEXT + 10];

    (void)state;
    c->agg[0].out = true;
    memset(why, 'w', sizeof(why));
    why[sizeof(why) - 1] = 0;
    assert_false(fit_apply(c, fit, 50, why));
    assert_int_equal(c->agg[0].window, 100);
    assert_int_equal(c->agg[1].window, 7);
    assert_int_equal(strlen(c->fit.why), AGG_TEXT - 1); /* cut */
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grants_are_known_when_all_have_answered),
        cmocka_unit_test(less_than_asked_is_told_when_all_have_answered),
        cmocka_unit_test(windows_shrink_to_what_is_agreed_on),
        cmocka_unit_test(a_tree_that_is_out_or_lost_stays_as_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
