/* SPDX-License-Identifier: BSD-3-Clause */
/* Which trees are in use, and why a JOIN was refused. */
#include "host/coll/comm.h"

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

/* Another algorithm avoids a fault of a switch; it does not avoid a fault of a member. */
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
    assert_int_equal(topo_members(fab, 4, hosts, &c->group[GROUP_ALL].members, NULL), 1);
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
        cmocka_unit_test(members_faults_end_the_job),
        cmocka_unit_test(a_tree_that_is_out_or_lost_is_not_in_use),
        cmocka_unit_test(trees_keep_their_numbers),
        cmocka_unit_test(a_refusal_names_the_switch_and_the_reason),
    };

    return cmocka_run_group_tests(tests, load, unload);
}
