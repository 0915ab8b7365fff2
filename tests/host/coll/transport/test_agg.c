/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows and slots of edges, who is a member, which trees are in use, and why a JOIN was refused. */
#include "host/coll/comm.h"

#include "base/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIM(a) (sizeof(a) / sizeof((a)[0]))

/* Two hosts at each of two leaves, two spines. */
static struct fabric *fab;

static int load(void **state)
{
    (void)state;
    fab = fabric_load_string(
        "name = \"a\"; mtu = 1024; leaf_spine = { leaves = 2; spines = 3; hosts_per_leaf = 2; "
        "host_link = { rate = \"100Gb/s\"; latency = \"300ns\"; }; spine_link = { rate = "
        "\"100Gb/s\"; latency = \"1us\"; }; }; reduce = { groups = 8; slots = 1024; window = 128; "
        "};",
        "agg.conf", NULL);
    return fab ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    fabric_free(fab);
    return 0;
}

/* Two round trips, or 10 us, at the rate of the fastest port; 64 slots at least and 2048 at most. */
static void a_window_is_what_two_round_trips_take(void **state)
{
    static const struct {
        uint32_t asked;
        int64_t round_trip_ps;
        uint64_t rate_bps; /* of the last host's port */
        uint32_t slots;
    } rows[] = {
        {1, 0, 0, 1}, /* as asked, */
        {2048, 0, 0, 2048},
        {2049, 0, 0, 2048}, /* up to the most */
        {0, 0, 0, 122},     /* 100 Gb/s for 10 us are 125000 bytes */
        {0, 5 * PS_PER_US, 0, 122},
        {0, 10 * PS_PER_US, 0, 244},
        {0, 10 * PS_PER_US, 400000000000, 976},
        {0, 20 * PS_PER_US, 400000000000, 1953},
        {0, 30 * PS_PER_US, 400000000000, 2048},
        {0, 1, 1, 122}, /* a slow one does not count */
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct fab_port *last = &fab->nodes[fab->hosts[fab->n_hosts - 1]].ports[0];

        fab->transport.stored_round_trip_ps = rows[i].round_trip_ps;
        last->rate_bps = rows[i].rate_bps ? rows[i].rate_bps : 100000000000;
        assert_int_equal(agg_window(fab, rows[i].asked), rows[i].slots);
    }
    for (unsigned h = 0; h < fab->n_hosts; h++)
        fab->nodes[fab->hosts[h]].ports[0].rate_bps = 10000000000;
    fab->transport.stored_round_trip_ps = 0;
    assert_int_equal(agg_window(fab, 0), 64);
    for (unsigned h = 0; h < fab->n_hosts; h++)
        fab->nodes[fab->hosts[h]].ports[0].rate_bps = 100000000000;
}

/* A header of 32 bytes, and the elements, in packets. */
static void a_message_takes_a_slot_for_each_packet(void **state)
{
    (void)state;
    assert_int_equal(agg_slots(0, 1024), 1);
    assert_int_equal(agg_slots(992, 1024), 1);
    assert_int_equal(agg_slots(993, 1024), 2);
    assert_int_equal(agg_slots(AGG_MSG_BYTES(1024), 1024), AGG_MSG_PKTS);
    assert_int_equal(agg_slots(AGG_MSG_BYTES(4096), 4096), AGG_MSG_PKTS);
    assert_int_equal(agg_slots(AGG_MSG_BYTES(4096) + 1, 4096), AGG_MSG_PKTS + 1);
}

/* host * ranks of the fullest host + its place there. */
static void members_are_numbered_by_their_hosts(void **state)
{
    static const struct {
        uint16_t host[6];
        unsigned n, per_host;
        uint16_t id[6];
    } rows[] = {
        {{0, 1, 2, 3}, 4, 1, {0, 1, 2, 3}},
        {{3, 0}, 2, 1, {3, 0}},
        {{0, 0, 1, 1}, 4, 2, {0, 1, 2, 3}},
        {{2, 0, 2, 0, 2}, 5, 3, {6, 0, 7, 1, 8}},
        {{1}, 1, 1, {1}},
    };
    uint16_t many[FAB_MAX_MEMBERS + 1] = {0};
    struct fab_members m;

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        uint16_t id[6];

        assert_int_equal(comm_members(fab, rows[i].n, rows[i].host, &m, id), rows[i].per_host);
        assert_memory_equal(id, rows[i].id, rows[i].n * sizeof(id[0]));
        assert_int_equal(m.ranks_per_host, rows[i].per_host);
        assert_int_equal(fab_members_count(&m), rows[i].n);
        for (unsigned r = 0; r < rows[i].n; r++)
            assert_true(fab_members_has(&m, id[r]));
        assert_int_equal(comm_members(fab, rows[i].n, rows[i].host, &m, NULL), rows[i].per_host);
    }
    assert_int_equal(comm_members(fab, FAB_MAX_MEMBERS, many, &m, NULL), FAB_MAX_MEMBERS);
    assert_int_equal(comm_members(fab, FAB_MAX_MEMBERS + 1, many, &m, NULL), 0);
    many[0] = 1; /* the last id */
    assert_int_equal(comm_members(fab, FAB_MAX_MEMBERS, many, &m, NULL), FAB_MAX_MEMBERS - 1);
    assert_true(fab_members_has(&m, FAB_MAX_MEMBERS - 1));
    many[0] = 2; /* beyond it */
    assert_int_equal(comm_members(fab, FAB_MAX_MEMBERS, many, &m, NULL), 0);
}

/* What a switch is the cause of another algorithm avoids; a member takes its fault with it. */
static void members_faults_end_the_job(void **state)
{
    static const enum agg_status theirs[] = {
        AGG_E_VERSION,   AGG_E_NOT_MEMBER,  AGG_E_MTU,         AGG_E_MISMATCH,
        AGG_E_DUPLICATE, AGG_E_OP_MISMATCH, AGG_E_MEMBER_LOST, AGG_E_MEMBER_LEFT,
        AGG_E_PROTOCOL,  AGG_E_NO_MULTIMEM, AGG_E_REGION};

    (void)state;
    for (unsigned s = 0; s < AGG_STATUS_COUNT; s++) {
        bool of_member = false;

        for (unsigned i = 0; i < DIM(theirs); i++)
            of_member = of_member || s == (unsigned)theirs[i];
        assert_int_equal(join_recoverable((enum agg_status)s), !of_member);
    }
    assert_false(join_recoverable(AGG_STATUS_COUNT));
}

/* Trees 0 to 2 of all ranks and one of the rail. */
static struct comm *three_trees(void)
{
    static const uint16_t hosts[] = {0, 1, 2, 3};
    struct comm *c = calloc(1, sizeof(*c));

    assert_non_null(c);
    assert_int_equal(topo_init(&c->topo, fab, 0, 4, hosts, 0), 0);
    assert_int_equal(comm_members(fab, 4, hosts, &c->group[GROUP_ALL].members, NULL), 1);
    c->n_aggs = 4;
    for (unsigned i = 0; i < 3; i++)
        c->agg[i] = (struct agg){.kind = GROUP_ALL, .chan = i, .tree = (uint16_t)i};
    c->agg[3] = (struct agg){.kind = GROUP_RAIL};
    return c;
}

static void a_tree_that_is_out_or_lost_is_not_in_use(void **state)
{
    struct comm *c = three_trees();

    (void)state;
    assert_int_equal(agg_in_use(c), 7);
    c->agg[1].out = true;
    assert_int_equal(agg_in_use(c), 5);
    c->agg[0].lost = true;
    assert_int_equal(agg_in_use(c), 4);
    agg_fails(c, &c->agg[2]);
    agg_fails(c, &c->agg[3]); /* of no tree of all ranks */
    assert_int_equal(c->failover.lost, 4);
    agg_fails(c, &c->agg[0]);
    assert_int_equal(c->failover.lost, 5);
    topo_free(&c->topo);
    free(c);
}

/* Each keeps its number; those before it that are not used carry nothing. */
static void trees_keep_their_numbers(void **state)
{
    static const struct {
        unsigned use, trees;
        uint64_t bps[4]; /* 1: any that is the same */
    } rows[] = {
        {7, 3, {0}},       {1, 1, {0}},       {3, 2, {0}},       {2, 2, {0, 1}},
        {4, 3, {0, 0, 1}}, {5, 3, {1, 0, 1}}, {6, 3, {0, 1, 1}}, {0, 0, {0}},
    };
    struct comm *c = three_trees();

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        agg_use_trees(c, rows[i].use);
        assert_int_equal(c->trees_shown, rows[i].use);
        assert_int_equal(c->topo.sched.trees, rows[i].trees);
        for (unsigned k = 0; k < 4; k++)
            assert_true(c->topo.sched.tree_bps[k] == rows[i].bps[k]);
    }
    c->trees_shown = 3;
    c->topo.sched.trees = 77;
    agg_use_trees(c, 3); /* they are shown already */
    assert_int_equal(c->topo.sched.trees, 77);
    topo_free(&c->topo);
    free(c);
}

static void a_refusal_names_the_switch_and_the_reason(void **state)
{
    char buf[COMM_TEXT], words[COMM_TEXT], want[2 * COMM_TEXT];

    (void)state;
    assert_ptr_equal(agg_refusal(buf, "leaf0", AGG_E_QUOTA_SLOTS, "no room"), buf);
    assert_string_equal(buf, "JOIN refused by leaf0: over quota: slots: no room (E_QUOTA_SLOTS)");
    agg_refusal(buf, "leaf0", AGG_E_QUOTA_SLOTS, "");
    assert_string_equal(buf, "JOIN refused by leaf0: over quota: slots (E_QUOTA_SLOTS)");
    agg_refusal(buf, "leaf0", AGG_E_QUOTA_SLOTS, "over quota: slots"); /* the same once */
    assert_string_equal(buf, "JOIN refused by leaf0: over quota: slots (E_QUOTA_SLOTS)");
    agg_refusal(buf, "leaf0", AGG_STATUS_COUNT, "");
    assert_string_equal(buf, "JOIN refused by leaf0: unknown status (?)");
    for (unsigned n = 40; n < 100;
         n++) { /* words that do not go round the ranks with the meaning */
        memset(words, 'x', n);
        words[n] = 0;
        snprintf(want, sizeof(want), "JOIN refused by leaf0: over quota: slots: %s (E_QUOTA_SLOTS)",
                 words);
        if (strlen(want) >= FAILOVER_TEXT)
            snprintf(want, sizeof(want), "JOIN refused: %s (E_QUOTA_SLOTS)", words);
        agg_refusal(buf, "leaf0", AGG_E_QUOTA_SLOTS, words);
        assert_string_equal(buf, want);
    }
    memset(buf, 'l', 120); /* without words there is nothing shorter */
    buf[120] = 0;
    snprintf(want, sizeof(want), "JOIN refused by %s: wrong key for the group (E_KEY)", buf);
    memcpy(words, buf, 121);
    agg_refusal(buf, words, AGG_E_KEY, "");
    assert_string_equal(buf, want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_is_what_two_round_trips_take),
        cmocka_unit_test(a_message_takes_a_slot_for_each_packet),
        cmocka_unit_test(members_are_numbered_by_their_hosts),
        cmocka_unit_test(members_faults_end_the_job),
        cmocka_unit_test(a_tree_that_is_out_or_lost_is_not_in_use),
        cmocka_unit_test(trees_keep_their_numbers),
        cmocka_unit_test(a_refusal_names_the_switch_and_the_reason),
    };

    return cmocka_run_group_tests(tests, load, unload);
}
