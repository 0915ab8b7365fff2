/* SPDX-License-Identifier: BSD-3-Clause */
/* A grant belongs to the slot of its process: nobody joins, leaves or squats in the name of another
 * process. */
#include "tests/switch/reduce/control.h"

/* A JOIN whose edge would be of another slot, which PEER_DOWN would never give back. */
static void a_join_for_a_queue_pair_of_another_slot_is_refused(void **state)
{
    static const uint32_t slots[] = {0, 2, 200, 255};

    (void)state;
    for (unsigned i = 0; i < LEN(slots); i++) {
        struct agg_fixture *b = agg_fixture_of(LEAVES, i + 1);
        struct member *m = agg_fixture_group(b, 0, 7, 1024, 16, 1, (unsigned[]){0}, 1);
        struct agg_ctl c;

        agg_fixture_fill_join(m, &c);
        c.qpn = rte_cpu_to_be_32(slots[i] << 16 | 5);
        m->state = MEMBER_ASKING;
        m->retry_ps = PS_NEVER;
        agg_fixture_say(m, AGG_JOIN, &c);
        assert_true(agg_fixture_run(b, agg_fixture_all_in, 10 * PS_PER_MS));
        expect(m, MEMBER_REFUSED, AGG_E_NOT_MEMBER, "is not of the sender's process (0x01");
        m->deaf = true;
        nothing_is_held(b);
        agg_fixture_destroy(b);
    }
}

/* It is not enough to know key and queue pair: the LEAVE comes from the process. */
static void another_process_of_the_host_cannot_leave_for_a_member(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LEAVES, 3);
    struct member *m = joined(b, six, 6);
    struct member *other = agg_fixture_group(b, 0, 8, 1024, 16, 1, (unsigned[]){1}, 1);
    struct agg_ctl c;

    (void)state;
    assert_int_equal(other->host, m[1].host);
    assert_int_not_equal(other->slot, m[1].slot);
    agg_fixture_fill_join(&m[1], &c);
    agg_fixture_say(other, AGG_LEAVE, &c);
    agg_fixture_say(other, AGG_ABORT, &c);
    agg_fixture_settle(b, PS_PER_MS);
    assert_int_equal(an_counters(an_of(b, "leaf0"))->leaves, 0);
    for (unsigned i = 0; i < 6; i++)
        start(&m[i], floats(4000));
    other->deaf = true;
    assert_true(agg_fixture_run(b, agg_fixture_all_done, 100 * PS_PER_MS));
    expect_all(b, MEMBER_IN, AGG_OK, "");
    agg_fixture_destroy(b);
}

/* Somebody has taken the id of a job that is about to start. */
static void a_squatted_group_id_keeps_no_job_from_it(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LEAVES, 4);
    struct member *squatter = agg_fixture_group(b, 0, 7, 1024, 16, 1, (unsigned[]){0, 3}, 2), *m;

    (void)state;
    join_some(b, squatter, 2);
    assert_int_equal(squatter[0].state, MEMBER_IN);
    m = joined(b, six, 6); /* the same id, another key */
    for (unsigned i = 0; i < 6; i++)
        start(&m[i], floats(4000));
    assert_true(agg_fixture_run(b, agg_fixture_all_done, 100 * PS_PER_MS));
    for (unsigned i = 0; i < 6; i++)
        expect(&m[i], MEMBER_IN, AGG_OK, "");
    agg_fixture_destroy(b);
}

static void all_of_a_process_goes_with_its_slot(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LEAVES, 5);
    struct member *m[4];

    (void)state;
    for (unsigned i = 0; i < LEN(m); i++) {
        m[i] = agg_fixture_group(b, 0, 7 + i, 1024, 16, 1, (unsigned[]){0}, 1);
        join_some(b, m[i], 1);
        assert_int_equal(m[i]->state, MEMBER_IN);
    }
    assert_int_equal(an_counters(an_of(b, "leaf0"))->groups, LEN(m));
    for (unsigned i = 0; i < LEN(m); i++)
        agg_fixture_kill(m[i], true);
    agg_fixture_settle(b, 5 * PS_PER_MS);
    nothing_is_held(b);
    agg_fixture_destroy(b);
}

/* ---- edges on which nothing comes ---- */

static void an_idle_member_is_asked_and_stays(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LEAVES, 6);
    struct member *m = joined(b, six, 6);
    uint64_t asked;

    (void)state;
    agg_fixture_settle(b, 60 * PS_PER_S);
    expect_all(b, MEMBER_IN, AGG_OK, "");
    asked = an_counters(an_of(b, "leaf0"))->keepalives;
    assert_in_range(asked, 4 * 10, 4 * 16); /* three members and the parent, every other look */
    for (unsigned i = 0; i < 6; i++)
        start(&m[i], floats(40000));
    assert_true(agg_fixture_run(b, agg_fixture_all_done, 100 * PS_PER_MS));
    expect_all(b, MEMBER_IN, AGG_OK, "");
    agg_fixture_destroy(b);
}

/* PEER_DOWN is lost, and nobody sends anything that would find out. */
static void a_member_that_dies_unannounced_while_idle_ends_its_group(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LEAVES, 7);
    struct member *m = joined(b, six, 6);

    (void)state;
    agg_fixture_settle(b, 7 * PS_PER_S);
    agg_fixture_kill(&m[4], false);
    assert_true(agg_fixture_run(b, agg_fixture_all_aborted, 20 * PS_PER_S));
    expect_all(b, MEMBER_ABORTED, AGG_E_MEMBER_LOST, "rank 4 (h5) missing at leaf1");
    assert_int_equal(an_counters(an_of(b, "leaf1"))->edges_silent, 1);
    agg_fixture_settle(b, 10 * PS_PER_MS);
    nothing_is_held(b);
    agg_fixture_destroy(b);
}

static void a_parent_that_forgot_its_groups_is_found_while_idle(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LEAVES, 8);

    (void)state;
    joined(b, six, 6);
    b->an_dead[b->f->trees[0].root] = true;
    assert_true(agg_fixture_run(b, agg_fixture_all_aborted, 30 * PS_PER_S));
    expect_all(b, MEMBER_ABORTED, AGG_E_PARENT, "spine0 missing at leaf");
    agg_fixture_settle(b, 100 * PS_PER_MS);
    nothing_is_held(b);
    agg_fixture_destroy(b);
}

/* ---- groups that come and go ---- */

static void the_groups_of_one_host_do_not_make_an_abort_forgotten(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LEAVES, 9);
    struct member *m = joined(b, six, 6);

    (void)state;
    m[4].mute_acks = true;
    agg_fixture_kill(&m[3], true);
    agg_fixture_settle(b, 200 * PS_PER_US);
    for (unsigned i = 0; i < 80; i++) {
        struct member *k = agg_fixture_group(b, 0, 100 + i, 1024, 16, 1, (unsigned[]){7}, 1);

        join_some(b, k, 1);
        assert_int_equal(k->state, MEMBER_IN);
        agg_fixture_leave(k);
        assert_true(agg_fixture_run(b, agg_fixture_all_left, 10 * PS_PER_MS));
    }
    agg_fixture_settle(b, 500 * PS_PER_MS);
    assert_int_equal(m[4].aborts, 16);
    agg_fixture_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_join_for_a_queue_pair_of_another_slot_is_refused),
        cmocka_unit_test(another_process_of_the_host_cannot_leave_for_a_member),
        cmocka_unit_test(a_squatted_group_id_keeps_no_job_from_it),
        cmocka_unit_test(all_of_a_process_goes_with_its_slot),
        cmocka_unit_test(the_groups_of_one_host_do_not_make_an_abort_forgotten),
        cmocka_unit_test(an_idle_member_is_asked_and_stays),
        cmocka_unit_test(a_member_that_dies_unannounced_while_idle_ends_its_group),
        cmocka_unit_test(a_parent_that_forgot_its_groups_is_found_while_idle),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
