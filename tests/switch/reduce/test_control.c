/* SPDX-License-Identifier: BSD-3-Clause */
/* Repeated and late control messages: answered alike, and without effect on other groups. */
#include "tests/switch/reduce/control.h"

static void a_repeated_join_gets_the_same_answer(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LEAVES, 5);
    struct member *m = joined(b, six, 6);
    struct agg_ctl c;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        agg_fixture_fill_join(&m[1], &c);
        agg_fixture_say(&m[1], AGG_JOIN, &c); /* the member compares the answers */
        agg_fixture_settle(b, PS_PER_MS);
    }
    assert_true(m[1].joins >= 4);
    assert_int_equal(an_counters(an_of(b, "leaf0"))->joins_granted, 3);
    agg_fixture_destroy(b);
}

static void a_join_from_another_queue_pair_is_a_duplicate(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LEAVES, 6);
    struct member *m = joined(b, six, 6);
    struct agg_ctl c;

    (void)state;
    agg_fixture_fill_join(&m[1], &c);
    m[1].state = MEMBER_ASKING;
    m[1].retry_ps = PS_NEVER;
    c.qpn = rte_cpu_to_be_32(qp_num(m[1].qp) + 1);
    agg_fixture_say(&m[1], AGG_JOIN, &c);
    assert_true(agg_fixture_run(b, agg_fixture_all_in, 10 * PS_PER_MS));
    expect(&m[1], MEMBER_REFUSED, AGG_E_DUPLICATE, "another queue pair");
    assert_int_equal(m[0].state, MEMBER_IN);
    agg_fixture_destroy(b);
}

static void a_join_that_comes_after_its_group_ended_does_not_found_it_anew(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LEAVES, 7);
    struct member *m = joined(b, six, 6);
    struct agg_ctl c;

    (void)state;
    for (unsigned i = 0; i < 6; i++)
        agg_fixture_leave(&m[i]);
    assert_true(agg_fixture_run(b, agg_fixture_all_left, 100 * PS_PER_MS));
    agg_fixture_fill_join(&m[1], &c);
    agg_fixture_say(&m[1], AGG_JOIN, &c);
    agg_fixture_settle(b, 100 * PS_PER_US);
    assert_int_equal(an_counters(an_of(b, "leaf0"))->joins_stale, 1);
    nothing_is_held(b);
    agg_fixture_destroy(b);
}

static void leave_all(struct agg_fixture *b, struct member *m)
{
    for (unsigned i = 0; i < 6; i++)
        agg_fixture_leave(&m[i]);
    assert_true(agg_fixture_run(b, agg_fixture_all_left, 100 * PS_PER_MS));
}

/* The switches remember both ends; the JOIN is one of the second time. */
static void a_join_that_comes_after_its_group_ended_twice_does_not_found_it_anew(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LEAVES, 7);
    struct member *m = joined(b, six, 6);
    struct agg_ctl c;

    (void)state;
    leave_all(b, m);
    for (unsigned i = 0; i < 6; i++) {
        m[i].psn++;
        qp_modify(m[i].qp, &(struct qp_attr){.state = QP_RESET});
    }
    join_some(b, m, 6);
    expect_all(b, MEMBER_IN, AGG_OK, "");
    leave_all(b, m);
    agg_fixture_fill_join(&m[1], &c);
    agg_fixture_say(&m[1], AGG_JOIN, &c);
    agg_fixture_settle(b, 100 * PS_PER_US);
    assert_int_equal(an_counters(an_of(b, "leaf0"))->joins_stale, 1);
    nothing_is_held(b);
    agg_fixture_destroy(b);
}

static void a_group_id_serves_again_after_its_group_ended(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LEAVES, 8);
    struct member *m = joined(b, six, 6), *k;

    (void)state;
    for (unsigned i = 0; i < 6; i++)
        agg_fixture_leave(&m[i]);
    assert_true(agg_fixture_run(b, agg_fixture_all_left, 100 * PS_PER_MS));
    for (unsigned i = 0; i < 6; i++)
        m[i].deaf = true;
    k = joined(b, six, 6); /* the same id, another key */
    for (unsigned i = 0; i < 6; i++)
        start(&k[i], floats(4000));
    assert_true(agg_fixture_run(b, agg_fixture_all_done, 100 * PS_PER_MS));
    expect_all(b, MEMBER_IN, AGG_OK, "");
    agg_fixture_destroy(b);
}

/* A tombstone of an aborted group affects that group only. */
static void a_group_that_was_aborted_keeps_no_other_from_joining(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LEAVES, 8);
    struct member *m = joined(b, six, 6), *k;

    (void)state;
    an_peer_down(an_of(b, "leaf0"), m[0].host, b->now);
    agg_fixture_settle(b, PS_PER_MS);
    for (unsigned i = 0; i < 6; i++)
        m[i].deaf = true;
    for (unsigned id = 7; id < 10; id++) { /* the same id has another key */
        k = agg_fixture_group(b, 0, id, 1024, 16, 1, six, 6);
        join_some(b, k, 6);
        for (unsigned i = 0; i < 6; i++)
            if (k[i].state != MEMBER_IN)
                fail_msg("group %u: %s: %s", id, agg_status_name(k[i].status), k[i].text);
    }
    agg_fixture_destroy(b);
}

static void a_member_that_gave_up_before_anything_was_sent_may_join_again(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LEAVES, 9);
    struct member *m = agg_fixture_group(b, 0, 7, 1024, 16, 1, six, 6);

    (void)state;
    join_some(b, m, 1);
    join_some(b, m + 3, 3);
    agg_fixture_leave(m);
    assert_true(agg_fixture_run(b, agg_fixture_all_left, 100 * PS_PER_MS));
    agg_fixture_settle(b, 5 * PS_PER_MS);
    m->psn++;
    qp_modify(m->qp, &(struct qp_attr){.state = QP_RESET});
    join_some(b, m, 3);
    for (unsigned i = 0; i < 6; i++)
        start(&m[i], floats(4000));
    assert_true(agg_fixture_run(b, agg_fixture_all_done, 100 * PS_PER_MS));
    expect_all(b, MEMBER_IN, AGG_OK, "");
    agg_fixture_destroy(b);
}

static void probes_are_answered_truly(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LEAVES, 10);
    struct member *m = joined(b, six, 6);
    struct agg_ctl c;

    (void)state;
    m->status = AGG_E_NO_GROUP;
    agg_fixture_fill_join(m, &c);
    agg_fixture_say(m, AGG_PROBE, &c);
    agg_fixture_settle(b, PS_PER_MS);
    assert_int_equal(m->status, AGG_OK);
    c.key++;
    agg_fixture_say(m, AGG_PROBE, &c);
    agg_fixture_settle(b, PS_PER_MS);
    assert_int_equal(m->status, AGG_E_NO_GROUP);
    agg_fixture_destroy(b);
}

static void joins_and_leaves_work_when_a_third_of_all_frames_is_lost(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct agg_fixture *b = agg_fixture_create(
            &(struct agg_fixture_cfg){.conf = LEAVES, .seed = seed, .loss = 3300, .dup = 1000});
        struct member *m = joined(b, six, 6);

        (void)m;
        agg_fixture_destroy(b); /* leaves, and finds everything given back */
    }
}

static void control_messages_that_are_none_are_counted_and_do_nothing(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LEAVES, 11);
    struct member *m = joined(b, six, 6);
    struct agg_ctl c;

    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        agg_fixture_fill_join(&m[i % 6], &c);
        for (unsigned k = 0; k < 8; k++)
            ((uint8_t *)&c)[12 + agg_fixture_random(b, sizeof(c) - 12)] =
                (uint8_t)agg_fixture_random(b, 256);
        /* beyond the last type that there is */
        agg_fixture_say(&m[i % 6], (enum agg_type)(AGG_WINDOW + 1 + agg_fixture_random(b, 200)),
                        &c);
        agg_fixture_settle(b, 100 * PS_PER_US);
    }
    assert_int_equal(an_counters(an_of(b, "leaf0"))->control_bad +
                         an_counters(an_of(b, "leaf1"))->control_bad,
                     200);
    expect_all(b, MEMBER_IN, AGG_OK, "");
    agg_fixture_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repeated_join_gets_the_same_answer),
        cmocka_unit_test(a_join_from_another_queue_pair_is_a_duplicate),
        cmocka_unit_test(a_join_that_comes_after_its_group_ended_does_not_found_it_anew),
        cmocka_unit_test(a_join_that_comes_after_its_group_ended_twice_does_not_found_it_anew),
        cmocka_unit_test(a_group_id_serves_again_after_its_group_ended),
        cmocka_unit_test(a_group_that_was_aborted_keeps_no_other_from_joining),
        cmocka_unit_test(a_member_that_gave_up_before_anything_was_sent_may_join_again),
        cmocka_unit_test(probes_are_answered_truly),
        cmocka_unit_test(joins_and_leaves_work_when_a_third_of_all_frames_is_lost),
        cmocka_unit_test(control_messages_that_are_none_are_counted_and_do_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
