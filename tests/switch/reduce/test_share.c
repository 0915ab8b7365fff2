/* SPDX-License-Identifier: BSD-3-Clause */
/* One host cannot take what a switch has: its share of groups, slots and buffers, groups whose
 * members never come, and what gives way to others. */
#include "tests/switch/reduce/control.h"

#define HOSTILE 40u /* groups of the hostile host */

/* Groups of the members given, of which the first joins; returns how many it is in. */
static unsigned join_alone(struct agg_fixture *b, struct member **m, unsigned n,
                           const unsigned *ids, unsigned n_ids)
{
    unsigned in = 0;

    for (unsigned i = 0; i < n; i++) {
        m[i] = agg_fixture_group(b, 0, 100 + i, 1024, 16, 1, ids, 1);
        for (unsigned k = 1; k < n_ids; k++)
            fab_members_add(&m[i]->g.members, ids[k]);
        join_some(b, m[i], 1);
        if (m[i]->state == MEMBER_IN)
            in++;
        else
            m[i]->deaf = true; /* it has nothing to give back */
    }
    return in;
}

static void the_job_of_other_hosts_is_right(struct agg_fixture *b)
{
    static const unsigned others[] = {1, 2, 4, 5, 6};
    struct member *m = joined(b, others, LEN(others));

    for (unsigned i = 0; i < LEN(others); i++)
        start(&m[i], floats(40000));
    assert_true(agg_fixture_run(b, agg_fixture_all_done, 100 * PS_PER_MS));
    for (unsigned i = 0; i < LEN(others); i++)
        expect(&m[i], MEMBER_IN, AGG_OK, "");
}

static const struct {
    const char *reduce;
    uint32_t budget;
    unsigned in; /* groups that a host may hold alone */
    const char *words;
} shares[] = {
    {"groups = 16", 0, 12, "h0 alone has 12 groups"},
    {"groups = 20; host_share = 0.5", 0, 10, "h0 alone has 10 groups"},
    {"groups = 9; host_share = 0.5", 0, 8, "h0 alone has 8 groups"}, /* as one communicator has */
    {"groups = 64; slots = 256; window = 16", 0, 12, "192 slots"},
    /* A group of one child takes 16 + 16 + 32 buffers. */
    {"groups = 64; window = 16", 1600, 19, "alone has 19 groups"},
};

static void a_host_alone_gets_its_share_and_leaves_room_for_others(void **state)
{
    (void)state;
    for (unsigned r = 0; r < LEN(shares); r++) {
        struct member *m[HOSTILE];
        struct agg_fixture *b;
        char conf[256];
        unsigned in;

        snprintf(conf, sizeof(conf), "%sreduce = { %s; };\n%s", LINKS, shares[r].reduce, SHAPE);
        b = agg_fixture_create(&(struct agg_fixture_cfg){
            .conf = conf, .seed = r + 1, .mbuf_budget = shares[r].budget});
        in = join_alone(b, m, HOSTILE, (unsigned[]){0}, 1);
        if (in != shares[r].in)
            fail_msg("%s: %u groups, %s", shares[r].reduce, in, m[HOSTILE - 1]->text);
        expect(m[HOSTILE - 1], MEMBER_REFUSED, AGG_E_QUOTA_HOST, shares[r].words);
        assert_int_equal(an_counters(an_of(b, "leaf0"))->joins_over_share, HOSTILE - in);
        the_job_of_other_hosts_is_right(b);
        agg_fixture_destroy(b);
    }
}

/* The list of members names many that never come, so that the group reserves everything. */
static void groups_that_wait_for_members_give_way_to_one_that_finds_no_room(void **state)
{
    static const char *const reduce[] = {"groups = 4", "slots = 64; window = 16",
                                         "groups = 64; window = 16"};
    static const enum agg_status why[] = {AGG_E_QUOTA_GROUPS, AGG_E_QUOTA_SLOTS,
                                          AGG_E_QUOTA_BUFFERS};

    (void)state;
    for (unsigned r = 0; r < LEN(reduce); r++) {
        struct member *m[4], *other;
        struct agg_fixture *b;
        char conf[256];

        snprintf(conf, sizeof(conf), "%sreduce = { %s; };\n%s", LINKS, reduce[r], SHAPE);
        b = agg_fixture_create(&(struct agg_fixture_cfg){
            .conf = conf, .seed = r + 1, .mbuf_budget = r == 2 ? 420 : 0});
        assert_int_equal(join_alone(b, m, 4, (unsigned[]){0, 1, 3}, 3), 4);
        /* They wait for a moment only: they may be about to be complete. */
        other = agg_fixture_group(b, 0, 8, 1024, 16, 1, (unsigned[]){2}, 1);
        join_some(b, other, 1);
        expect(other, MEMBER_REFUSED, why[r], "leaf0 has ");
        other->deaf = true;
        agg_fixture_settle(b, 15 * PS_PER_MS);
        the_job_of_other_hosts_is_right(b);
        assert_in_range(an_counters(an_of(b, "leaf0"))->groups_gave_way, 1, 4);
        for (unsigned i = 0; i < 4; i++)
            if (m[i]->state != MEMBER_IN)
                expect(m[i], MEMBER_ABORTED, why[r], "gave way at leaf0: 2 of 3 had not joined");
        agg_fixture_destroy(b);
    }
}

static void a_group_whose_members_never_come_ends_in_time_by_name(void **state)
{
    struct agg_fixture *b =
        agg_fixture_of(LINKS "reduce = { join_timeout = \"50ms\"; };\n" SHAPE, 3);
    struct member *m = agg_fixture_group(b, 0, 7, 1024, 16, 1, six, 6);

    (void)state;
    join_some(b, m, 2); /* nobody at leaf1, and not rank 2 */
    agg_fixture_settle(b, 40 * PS_PER_MS);
    assert_int_equal(m[0].state, MEMBER_IN);
    for (unsigned i = 2; i < 6; i++)
        m[i].deaf = true;
    assert_true(agg_fixture_run(b, agg_fixture_all_aborted, 20 * PS_PER_MS));
    expect_all(b, MEMBER_ABORTED, AGG_E_MEMBER_LOST, " has not joined ");
    agg_fixture_settle(b, 10 * PS_PER_MS);
    nothing_is_held(b);
    agg_fixture_destroy(b);
}

static void a_complete_group_outlives_the_time_to_join(void **state)
{
    struct agg_fixture *b =
        agg_fixture_of(LINKS "reduce = { join_timeout = \"50ms\"; };\n" SHAPE, 3);
    struct member *m = joined(b, six, 6);

    (void)state;
    agg_fixture_leave(&m[1]);
    agg_fixture_settle(b, 500 * PS_PER_MS);
    expect_all(b, MEMBER_IN, AGG_OK, "");
    assert_int_equal(an_counters(an_of(b, "leaf0"))->groups_incomplete, 0);
    agg_fixture_destroy(b);
}

/* A group that a host shares with others does not count as its own: it may be in any number of
 * them. */
static void groups_of_several_hosts_do_not_count(void **state)
{
    struct agg_fixture *b = agg_fixture_of(LINKS "reduce = { groups = 10; };\n" SHAPE, 5);

    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        struct member *m = agg_fixture_group(b, 0, 100 + i, 1024, 16, 1, six, 6);

        join_some(b, m, 6);
        for (unsigned k = 0; k < 6; k++)
            assert_int_equal(m[k].state, MEMBER_IN);
    }
    agg_fixture_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_alone_gets_its_share_and_leaves_room_for_others),
        cmocka_unit_test(groups_that_wait_for_members_give_way_to_one_that_finds_no_room),
        cmocka_unit_test(a_group_whose_members_never_come_ends_in_time_by_name),
        cmocka_unit_test(a_complete_group_outlives_the_time_to_join),
        cmocka_unit_test(groups_of_several_hosts_do_not_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
