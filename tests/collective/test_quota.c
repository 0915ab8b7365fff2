/* SPDX-License-Identifier: BSD-3-Clause */
/* How a job's groups divide the slots of switches, by hand. */
#include "collective/quota.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#define DIM(a) (sizeof(a) / sizeof((a)[0]))

static const uint16_t ranks[] = {0, 1, 2, 3}, alone[] = {0, 1, 2, 3}, trees[] = {0, 1, 99};
static struct fabric *fab;

/* Two hosts at each of two leaves, two spines: two trees that share the leaves. */
static int load(void **state)
{
    (void)state;
    fab = fabric_load_string(
        "name = \"q\"; mtu = 1024; leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 2; "
        "host_link = { rate = \"100Gb/s\"; latency = \"300ns\"; }; spine_link = { rate = "
        "\"100Gb/s\"; latency = \"1us\"; }; }; reduce = { groups = 8; slots = 1024; window = 1024; "
        "};",
        "quota.conf", NULL);
    return fab ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    fabric_free(fab);
    return 0;
}

/* What a switch has; the others have plenty. */
struct limit {
    const char *name;
    uint32_t groups, slots, window;
};

static void limit(const struct limit *l)
{
    for (unsigned i = 0; i < fab->n_nodes; i++) {
        bool it = l->name && !strcmp(fab->nodes[i].name, l->name);

        fab->nodes[i].reduce.max_groups = it && l->groups ? l->groups : 8;
        fab->nodes[i].reduce.max_slots = it && l->slots ? l->slots : 1u << 20;
        fab->nodes[i].reduce.window = it && l->window ? l->window : 1u << 20;
    }
}

static struct quota_request of_all(uint32_t asked)
{
    return (struct quota_request){.fab = fab,
                                  .nranks = 4,
                                  .host_of_rank = ranks,
                                  .domain = alone,
                                  .tree = trees,
                                  .n_trees = 2,
                                  .all = true,
                                  .asked = asked};
}

static void slots_are_divided_by_the_trees_that_meet(void **state)
{
    static const struct {
        struct limit l;
        uint32_t asked;
        unsigned n;
        uint16_t tree[2];
        uint32_t window[2], levels; /* levels: groups at the leaves, and at the spines */
        const char *why;
    } rows[] = {
        {{"leaf0", 0, 200, 0}, 100, 2, {0, 1}, {100, 100}, 0x02020202, ""},
        {{"leaf0", 0, 199, 0}, 100, 2, {0, 1}, {99, 99}, 0x0102, "leaf0 has 199 slots for 2 trees"},
        {{"leaf0", 0, 150, 0}, 100, 2, {0, 1}, {75, 75}, 0x0102, "leaf0 has 150 slots for 2 trees"},
        {{"leaf1", 0, 0, 60}, 100, 2, {0, 1}, {60, 60}, 0x0102, "leaf1 has 60 slots for a group"},
        {{"leaf1", 0, 0, 100}, 100, 2, {0, 1}, {100, 100}, 0x02020202, ""},
        {{"leaf1", 0, 0, 99}, 100, 2, {0, 1}, {99, 99}, 0x0102, "leaf1 has 99 slots for a group"},
        /* a spine has one tree */
        {{"spine0", 0, 150, 0}, 100, 2, {0, 1}, {100, 100}, 0x0102, ""},
        {{"spine0", 0, 90, 0}, 100, 2, {0, 1}, {90, 100}, 0x0102, "spine0 has 90 slots for 1 tree"},
        {{"spine1", 0, 90, 0}, 100, 2, {0, 1}, {100, 90}, 0x0102, "spine1 has 90 slots for 1 tree"},
        {{"spine0", 2, 0, 0}, 100, 2, {0, 1}, {100, 100}, 0x02020202, ""},
        {{"spine0", 1, 0, 0}, 100, 2, {0, 1}, {100, 100}, 0x0102, ""},
        /* a tree with less than two messages is left out */
        {{"spine0", 0, 16, 0}, 100, 2, {0, 1}, {16, 100}, 0x0102, "spine0 has 16 slots for 1 tree"},
        {{"spine0", 0, 15, 0}, 100, 1, {1}, {100}, 0x0101, "spine0 has 15 slots for 1 tree"},
        {{"spine1", 0, 15, 0}, 100, 1, {0}, {100}, 0x0101, "spine1 has 15 slots for 1 tree"},
        {{"spine1", 0, 0, 15}, 100, 1, {0}, {100}, 0x0101, "spine1 has 15 slots for a group"},
        {{"leaf0", 0, 32, 0}, 100, 2, {0, 1}, {16, 16}, 0x0102, "leaf0 has 32 slots for 2 trees"},
        {{"leaf0", 0, 31, 0}, 100, 1, {0}, {31}, 0x0101, "leaf0 has 31 slots for 2 trees"},
        {{"leaf0", 1, 0, 0}, 100, 1, {0}, {100}, 0x0101, "leaf0 has 1 groups, 2 needed"},
        /* unless the other has no more then, and both can be used */
        {{"leaf0", 0, 0, 10}, 100, 2, {0, 1}, {10, 10}, 0x0102, "leaf0 has 10 slots for a group"},
        {{"leaf0", 0, 0, 8}, 100, 2, {0, 1}, {8, 8}, 0x0102, "leaf0 has 8 slots for a group"},
        {{"leaf0", 0, 0, 7}, 100, 1, {0}, {7}, 0x0101, "leaf0 has 7 slots for a group"},
        /* who asks for little has enough */
        {{"leaf0", 0, 20, 0}, 10, 2, {0, 1}, {10, 10}, 0x02020202, ""},
        {{"leaf0", 0, 18, 0}, 10, 1, {0}, {10}, 0x0101, "leaf0 has 18 slots for 2 trees"},
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct quota_request j = of_all(rows[i].asked);
        struct quota_grant s;

        limit(&rows[i].l);
        assert_int_equal(quota_split(&j, &s), 0);
        if (s.n != rows[i].n || strcmp(s.why, rows[i].why))
            fail_msg("row %u: %u trees, \"%s\"", i, s.n, s.why);
        for (unsigned k = 0; k < s.n; k++)
            if (s.tree[k] != rows[i].tree[k] || s.window[k] != rows[i].window[k] ||
                s.job_groups[k] != rows[i].levels)
                fail_msg("row %u: tree %u, window %u, levels %x", i, s.tree[k], s.window[k],
                         s.job_groups[k]);
        assert_int_equal(s.rail, rows[i].asked); /* no rails: not bound */
    }
}

/* Hosts at one leaf meet there, whichever spine their tree has. */
static void a_group_does_not_count_above_its_top(void **state)
{
    struct quota_request j = of_all(100);
    struct quota_grant s;

    (void)state;
    j.nranks = 2;
    limit(&(struct limit){"spine0", 0, 8, 0});
    assert_int_equal(quota_split(&j, &s), 0);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.window[0], 100);
    assert_int_equal(s.window[1], 100);
    assert_int_equal(s.job_groups[0], 2);
    assert_string_equal(s.why, "");
    limit(&(struct limit){"leaf0", 0, 60, 0});
    assert_int_equal(quota_split(&j, &s), 0);
    assert_int_equal(s.window[0], 30);
    assert_int_equal(s.window[1], 30);
    limit(&(struct limit){"leaf1", 0, 8, 0}); /* it is not theirs */
    assert_int_equal(quota_split(&j, &s), 0);
    assert_int_equal(s.window[0], 100);
}

static void a_job_without_groups_has_none(void **state)
{
    struct quota_request j = of_all(100);
    struct quota_grant s;

    (void)state;
    j.all = false;
    limit(&(struct limit){"leaf0", 1, 1, 1});
    assert_int_equal(quota_split(&j, &s), 0);
    assert_int_equal(s.n, 0);
    assert_int_equal(s.rail, 100);
    assert_int_equal(s.job_groups[0], 0);
    assert_int_equal(s.rail_groups, 0);
    assert_string_equal(s.why, "");
}

/* A tree that the fabric does not have takes no slots. */
static void a_tree_that_is_not_there_takes_nothing(void **state)
{
    struct quota_request j = of_all(100);
    struct quota_grant s;

    (void)state;
    j.n_trees = 3;
    limit(&(struct limit){"leaf0", 0, 150, 0});
    assert_int_equal(quota_split(&j, &s), 0);
    assert_int_equal(s.window[0], 75);
    assert_int_equal(s.window[1], 75);
}

static const uint16_t node[] = {0, 0, 1, 1}, single[] = {0, 0, 1, 2};
static const struct {
    struct limit l;
    const uint16_t *node;
    bool all;
    unsigned n_trees;
    uint32_t rail, window, rail_levels, levels;
    const char *why;
} rails[] = {
    {{"leaf0", 0, 200, 0}, node, false, 1, 100, 0, 0x02020202, 0, ""},
    {{"leaf0", 0, 199, 0}, node, false, 1, 99, 0, 0x0202, 0, "leaf0 has 199 slots for 2 groups"},
    {{"leaf0", 2, 199, 0}, node, false, 1, 99, 0, 0x0202, 0, "leaf0 has 199 slots for 2 groups"},
    {{"leaf0", 1, 0, 0}, node, false, 1, 0, 0, 0x0202, 0, "leaf0 has 1 groups, 2 needed"},
    {{"leaf0", 0, 0, 99}, node, false, 1, 99, 0, 0x0202, 0, "leaf0 has 99 slots for a group"},
    {{"spine0", 0, 150, 0}, node, false, 1, 75, 0, 0x0202, 0, "spine0 has 150 slots for 2 groups"},
    {{"spine1", 0, 150, 0}, node, false, 1, 100, 0, 0x0202, 0, ""},
    /* with the group of all ranks */
    {{"leaf0", 0, 300, 0}, node, true, 1, 100, 100, 0x03030303, 0x03030303, ""},
    {{"leaf0", 0, 299, 0},
     node,
     true,
     1,
     99,
     99,
     0x0303,
     0x0303,
     "leaf0 has 299 slots for 3 groups"},
    /* a rail each on a tree of its own: at a leaf both meet */
    {{"spine0", 0, 150, 0}, node, false, 2, 100, 0, 0x0102, 0, ""},
    {{"spine0", 0, 99, 0}, node, false, 2, 99, 0, 0x0102, 0, "spine0 has 99 slots for 1 group"},
    {{"spine1", 0, 99, 0}, node, false, 2, 99, 0, 0x0102, 0, "spine1 has 99 slots for 1 group"},
    /* ranks 0, 2 and 3 are a rail, rank 1 is alone on its own */
    {{"leaf0", 0, 150, 0}, single, false, 1, 100, 0, 0x0101, 0, ""},
};

/* Two GPU nodes of two: rail 0 is ranks 0 and 2, rail 1 ranks 1 and 3. One tree for both. */
static void rails_are_groups_of_their_own(void **state)
{

    (void)state;
    for (unsigned i = 0; i < DIM(rails); i++) {
        struct quota_request j = of_all(100);
        struct quota_grant s;

        j.all = rails[i].all, j.rails = true;
        j.domain = rails[i].node, j.n_trees = rails[i].n_trees;
        limit(&rails[i].l);
        assert_int_equal(quota_split(&j, &s), 0);
        assert_int_equal(s.n, rails[i].all);
        if (s.rail != rails[i].rail || s.rail_groups != rails[i].rail_levels ||
            strcmp(s.why, rails[i].why) || s.window[0] != rails[i].window ||
            s.job_groups[0] != rails[i].levels)
            fail_msg("row %u: rail %u of %x, all %u of %x, \"%s\"", i, s.rail, s.rail_groups,
                     s.window[0], s.job_groups[0], s.why);
    }
}

/* Each is a GPU node of its own: what would be their rail is the group of all. */
static void ranks_without_nodes_have_no_rails(void **state)
{
    struct quota_request j = of_all(100);
    struct quota_grant s;

    (void)state;
    j.all = false, j.rails = true;
    limit(&(struct limit){"leaf0", 0, 99, 0});
    assert_int_equal(quota_split(&j, &s), 0);
    assert_int_equal(s.rail, 100);
    assert_int_equal(s.rail_groups, 0);
    assert_string_equal(s.why, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_divided_by_the_trees_that_meet),
        cmocka_unit_test(a_group_does_not_count_above_its_top),
        cmocka_unit_test(a_job_without_groups_has_none),
        cmocka_unit_test(a_tree_that_is_not_there_takes_nothing),
        cmocka_unit_test(rails_are_groups_of_their_own),
        cmocka_unit_test(ranks_without_nodes_have_no_rails),
    };

    return cmocka_run_group_tests(tests, load, unload);
}
