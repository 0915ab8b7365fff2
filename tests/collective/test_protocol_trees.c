/* SPDX-License-Identifier: BSD-3-Clause */
/* Which trees a protocol's job takes, and what each of them carries. */
#include "tests/collective/asking_protocol.h"

#include "collective/protocol_trees.h"
#include "collective/topo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#define DIM(a) (sizeof(a) / sizeof((a)[0]))

/* Two ports of each of four hosts, to a leaf each. */
#define PORTS(a, b)                                                                                \
    "nodes = ( { name = (\"h0\", \"h1\", \"h2\", \"h3\"); kind = \"host\"; }, { name = (\"l0\", "  \
    "\"l1\"); role = \"leaf\"; } ); link_defaults = { latency = \"300ns\"; }; links = ( { a = "    \
    "(\"h0\", \"h1\", \"h2\", \"h3\"); b = \"l0\"; rate = \"" a                                    \
    "\"; }, { a = (\"h0\", \"h1\", \"h2\", \"h3\"); b = \"l1\"; rate = \"" b "\"; } ); reduce = "  \
    "{ };"
/* Two leaves of two hosts, whose port has so much; three spines. */
#define SPINES(port, rate)                                                                         \
    "leaf_spine = { leaves = 2; spines = 3; hosts_per_leaf = 2; host_link = { rate = \"" port      \
    "\"; latency = \"300ns\"; }; spine_link = { rate = \"" rate                                    \
    "\"; latency = \"300ns\"; }; }; reduce = { };"

static const uint16_t hosts[] = {0, 1, 2, 3}, list[] = {0, 1, 2}, back[] = {1, 0},
                      strange[] = {77, 1, 0};

static struct fabric *load(const char *conf, struct fab_members *m)
{
    struct fabric *f = fabric_load_string(conf, "trees.conf", NULL);

    assert_non_null(f);
    assert_int_equal(topo_members(f, 4, hosts, m, NULL), 1);
    return f;
}

static void a_tree_is_taken_if_all_carry_more_with_it(void **state)
{
    static const struct {
        const char *conf;
        bool climbs;
        const uint16_t *list;
        unsigned n, most;
        uint16_t tree[3];
        unsigned taken;
    } rows[] = {
        /* another port of each host */
        {PORTS("100Gb/s", "100Gb/s"), false, list, 2, 8, {0, 1}, 2},
        {PORTS("100Gb/s", "100Gb/s"), false, list, 1, 8, {0}, 1},
        {PORTS("100Gb/s", "100Gb/s"), false, list, 2, 1, {0}, 1},
        {PORTS("100Gb/s", "100Gb/s"), false, back, 2, 8, {1, 0}, 2},
        {PORTS("100Gb/s", "100Gb/s"), false, strange, 3, 8, {1, 0}, 2}, /* no such tree */
        {PORTS("100Gb/s", "100Gb/s"), true, list, 2, 8, {0, 1}, 2},
        {PORTS("100Gb/s", "1Gb/s"), true, list, 2, 8, {0}, 1}, /* less than a 64th more */
        {PORTS("100Gb/s", "2Gb/s"), true, list, 2, 8, {0, 1}, 2},
        {PORTS("100Gb/s", "1Gb/s"), false, list, 2, 8, {0, 1}, 2},
        /* one port: it matters to those that climb, until the port is full */
        {SPINES("400Gb/s", "100Gb/s"), false, list, 3, 8, {0}, 1},
        {SPINES("400Gb/s", "100Gb/s"), true, list, 3, 8, {0, 1, 2}, 3},
        {SPINES("400Gb/s", "100Gb/s"), true, list, 3, 2, {0, 1}, 2},
        {SPINES("200Gb/s", "100Gb/s"), true, list, 3, 8, {0, 1}, 2},
        {SPINES("100Gb/s", "100Gb/s"), true, list, 3, 8, {0}, 1},
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct fab_members m;
        struct fabric *f = load(rows[i].conf, &m);
        struct protocol_trees t;

        does.says = 1000000;
        does.climbs = rows[i].climbs;
        t = protocol_choose_trees(f, &by_switch, rows[i].list, rows[i].n, &m, rows[i].most);
        assert_int_equal(t.climbs, rows[i].climbs && rows[i].n > 1 && rows[i].most > 1);
        if (t.n != rows[i].taken)
            fail_msg("row %u: %u trees", i, t.n);
        assert_memory_equal(t.tree, rows[i].tree, t.n * sizeof(t.tree[0]));
        fabric_free(f);
    }
}

/* A protocol without a switch half needs no tree; for a protocol with one there may be no tree. */
static void ranks_alone_need_no_tree(void **state)
{
    struct fab_members m;
    struct fabric *f = load(PORTS("100Gb/s", "100Gb/s"), &m);
    struct protocol_trees t;

    (void)state;
    does.climbs = false;
    t = protocol_choose_trees(f, &by_ranks, list, 0, &m, 8);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.tree[0], FAB_NONE);
    t = protocol_choose_trees(f, &by_ranks, strange, 1, &m, 8);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.tree[0], FAB_NONE);
    t = protocol_choose_trees(f, &by_ranks, list, 2, &m, 8);
    assert_int_equal(t.n, 2);
    assert_false(t.climbs);
    does.climbs = true; /* it has nothing that climbs */
    t = protocol_choose_trees(f, &by_ranks, list, 2, &m, 8);
    assert_false(t.climbs);
    t = protocol_choose_trees(f, &by_switch, list, 0, &m, 8);
    assert_int_equal(t.n, 0);
    t = protocol_choose_trees(f, &by_switch, strange, 1, &m, 8);
    assert_int_equal(t.n, 0);
    fabric_free(f);
}

static void shares_are_what_ports_or_links_carry(void **state)
{
    static const struct {
        const char *conf;
        bool climbs;
        unsigned n, without;
        uint64_t bps[3];
    } rows[] = {
        {PORTS("100Gb/s", "50Gb/s"), false, 2, 0, {100000000000, 50000000000}},
        {PORTS("100Gb/s", "50Gb/s"), false, 2, 1, {0, 50000000000}},
        {PORTS("100Gb/s", "50Gb/s"), false, 2, 2, {100000000000, 0}},
        {PORTS("100Gb/s", "50Gb/s"), false, 2, 3, {0, 0}},
        {PORTS("100Gb/s", "50Gb/s"), false, 1, 0, {1}}, /* all of it, whatever that is */
        {PORTS("100Gb/s", "50Gb/s"), true, 2, 0, {100000000000, 50000000000}},
        {SPINES("400Gb/s", "100Gb/s"), true, 3, 2, {100000000000, 0, 100000000000}},
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct fab_members m;
        struct fabric *f = load(rows[i].conf, &m);
        const struct protocol_trees t = {
            .climbs = rows[i].climbs, .n = rows[i].n, .tree = {0, 1, 2}};
        const struct sched_trees s = protocol_shares(f, &t, &m, rows[i].without);

        assert_int_equal(s.n, rows[i].n);
        for (unsigned k = 0; k < 3; k++)
            if (s.bps[k] != rows[i].bps[k])
                fail_msg("row %u, tree %u: %lu", i, k, s.bps[k]);
        fabric_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_is_taken_if_all_carry_more_with_it),
        cmocka_unit_test(ranks_alone_need_no_tree),
        cmocka_unit_test(shares_are_what_ports_or_links_carry),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
