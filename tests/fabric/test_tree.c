/* SPDX-License-Identifier: BSD-3-Clause */
/* Aggregation trees and groups on them. */
#include "fabric/tree_rate.h"
#include "tests/fabric/load.h"

static void add_hosts(const struct fabric *f, struct fab_members *m, const char *const *names,
                      unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        for (unsigned r = 0; r < m->ranks_per_host; r++)
            fab_members_add(m, fabric_node(f, names[i])->host_index * m->ranks_per_host + r);
}

static void every_spine_is_the_root_of_a_tree(void **state)
{
    struct fabric *f = load_leaf_spine(4, 3, 2, 2, "");

    (void)state;
    assert_int_equal(f->n_trees, 3);
    for (unsigned i = 0; i < f->n_trees; i++) {
        const struct fab_tree *t = &f->trees[i];

        assert_int_equal(t->id, i);
        assert_int_equal(t->root, node(f, "spine0") + i);
        assert_int_equal(t->depth, 2);
        for (unsigned u = 0; u < f->n_nodes; u++) {
            const struct fab_node *n = &f->nodes[u];

            if (n->role == FAB_ROLE_SPINE)
                assert_int_equal(t->parent[u], FAB_NONE);
            else if (n->role == FAB_ROLE_LEAF)
                assert_int_equal(t->parent[u], t->root);
            else
                assert_int_equal(t->parent[u], n->ports[0].peer_node);
        }
    }
    fabric_free(f);
}

static void of_two_switches_above_the_same_hosts_the_higher_one_is_the_root(void **state)
{
    struct fabric *f = load_leaf_spine(1, 2, 4, 1, "");

    (void)state;
    assert_int_equal(f->n_trees, 2);
    assert_int_equal(f->trees[0].root, node(f, "spine0"));
    fabric_free(f);
}

/* Hosts in pairs on a switch of their own, and all of them on a leaf by a second port. */
static void a_network_within_a_node_keeps_its_tree_beside_the_one_that_joins_all(void **state)
{
    struct fabric *f;

    (void)state;
    f = load_text(
        LINKS REDUCE
        "nodes = ( { name = (\"a\", \"b\", \"c\", \"d\"); kind = \"host\"; },\n"
        "{ name = (\"n0\", \"n1\"); role = \"nvswitch\"; }, { name = \"leaf\"; role = \"leaf\"; } "
        ");\n"
        "links = ( { a = (\"a\", \"b\"); b = \"n0\"; }, { a = (\"c\", \"d\"); b = \"n1\"; },\n"
        "{ a = (\"a\", \"b\", \"c\", \"d\"); b = \"leaf\"; } );");
    assert_int_equal(f->n_trees, 3);
    assert_int_equal(f->trees[1].root, node(f, "n0"));
    assert_int_equal(f->trees[1].parent[node(f, "b")], node(f, "n0"));
    assert_int_equal(f->trees[1].parent[node(f, "c")], FAB_NONE);
    assert_int_equal(f->trees[0].root, node(f, "leaf"));
    assert_int_equal(f->trees[0].parent[node(f, "c")], node(f, "leaf"));
    fabric_free(f);
}

static void a_single_switch_is_a_tree_of_depth_1(void **state)
{
    struct fabric *f = load_file("conf/single-switch-4.conf");

    (void)state;
    assert_int_equal(f->n_trees, 1);
    assert_int_equal(f->trees[0].depth, 1);
    assert_int_equal(f->trees[0].root, node(f, "switch0"));
    fabric_free(f);
}

static void three_tiers_make_trees_of_depth_3_that_share_no_spine(void **state)
{
    struct fabric *f = load_file(THREE_TIER);

    (void)state;
    assert_int_equal(f->n_trees, 2);
    for (unsigned i = 0; i < 2; i++) {
        const struct fab_tree *t = &f->trees[i];

        assert_int_equal(t->depth, 3);
        assert_int_equal(t->root, node(f, i ? "core1" : "core0"));
        assert_int_equal(t->parent[node(f, "leaf0")], node(f, i ? "spine1" : "spine0"));
        assert_int_equal(t->parent[node(f, "leaf3")], node(f, i ? "spine3" : "spine2"));
        assert_int_equal(t->parent[node(f, i ? "spine1" : "spine0")], t->root);
        assert_int_equal(t->parent[node(f, i ? "spine0" : "spine1")], FAB_NONE);
    }
    fabric_free(f);
}

/* Spines that do not reduce are passed over: leaves are children of the core. */
static void switches_that_do_not_reduce_are_passed_over(void **state)
{
    const struct fab_tree *t;
    struct fabric *f;

    (void)state;
    f = load_text(LINKS REDUCE
                  "nodes = ( { name = (\"a\", \"b\", \"c\"); kind = \"host\"; }, { name = (\"l0\", "
                  "\"l1\"); role = \"leaf\"; },\n"
                  "{ name = \"l2\"; role = \"leaf\"; reduce = false; }, { name = \"s\"; role = "
                  "\"spine\"; reduce = false; },\n"
                  "{ name = \"core\"; role = \"core\"; } );\n"
                  "links = ( { a = \"a\"; b = \"l0\"; }, { a = \"b\"; b = \"l1\"; }, { a = \"c\"; "
                  "b = \"l2\"; },\n"
                  "{ a = (\"l0\", \"l1\", \"l2\"); b = \"s\"; }, { a = \"s\"; b = \"core\"; } );");
    assert_int_equal(f->n_trees, 1);
    t = &f->trees[0];
    assert_int_equal(t->depth, 2);
    assert_int_equal(t->parent[node(f, "l0")], node(f, "core"));
    assert_int_equal(t->parent[node(f, "s")], FAB_NONE);
    assert_int_equal(t->parent[node(f, "c")], node(f, "core"));
    fabric_free(f);
}

static void each_plane_of_a_node_has_a_tree(void **state)
{
    struct fabric *f;

    (void)state;
    f = load_text(LINKS REDUCE "nodes = ( { name = (\"a\", \"b\"); kind = \"host\"; }, { name = "
                               "(\"s0\", \"s1\"); role = \"nvswitch\"; } );\n"
                               "links = ( { a = (\"a\", \"b\"); b = (\"s0\", \"s1\"); } );");
    assert_int_equal(f->n_trees, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(f->trees[i].root, node(f, i ? "s1" : "s0"));
        assert_int_equal(f->trees[i].parent[node(f, "b")], f->trees[i].root);
    }
    fabric_free(f);
}

static void a_group_starts_at_the_lowest_node_above_all_members(void **state)
{
    static const struct {
        const char *hosts[4];
        unsigned n;
        const char *top;
    } rows[] = {
        {{"h0"}, 1, "leaf0"},        {{"h0", "h1"}, 2, "leaf0"},
        {{"h1", "h2"}, 2, "spine0"}, {{"h4", "h5", "h7"}, 3, "spine2"},
        {{"h0", "h7"}, 2, "core0"},  {{"h1", "h2", "h4"}, 3, "core0"},
    };
    struct fabric *f = load_file(THREE_TIER);

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        for (uint16_t ranks = 1; ranks <= 3; ranks++) {
            struct fab_members m = {.ranks_per_host = ranks};

            add_hosts(f, &m, rows[i].hosts, rows[i].n);
            assert_int_equal(fab_members_count(&m), rows[i].n * ranks);
            assert_int_equal(fab_group_top(f, &f->trees[0], &m), node(f, rows[i].top));
        }
    }
    fabric_free(f);
}

/* Each AN's children, one walk down from the top. Returns how many members were met; checks the
 * order of reduction. */
static unsigned check_subtree(const struct fabric *f, const struct fab_tree *t, uint16_t at,
                              const struct fab_members *m, struct fab_members *met)
{
    struct fab_child c[64];
    unsigned n = fab_group_children(f, t, at, m, c, LEN(c)), members = 0;

    assert_in_range(n, 1, LEN(c));
    for (unsigned i = 0; i < n; i++) {
        assert_true(!i || c[i].first_member > c[i - 1].first_member);
        if (c[i].is_member) {
            assert_int_equal(c[i].member, c[i].first_member);
            assert_true(fab_members_has(m, c[i].member));
            assert_false(fab_members_has(met, c[i].member));
            assert_int_equal(c[i].node, f->hosts[c[i].member / m->ranks_per_host]);
            assert_int_equal(fab_group_leaf(f, t, c[i].member, m), at);
            fab_members_add(met, c[i].member);
            members++;
        } else {
            assert_int_equal(t->parent[c[i].node], at);
            assert_false(fab_members_has(met, c[i].first_member));
            members += check_subtree(f, t, c[i].node, m, met);
            assert_true(fab_members_has(met, c[i].first_member));
        }
    }
    return members;
}

static void every_member_is_reduced_once_on_every_tree(void **state)
{
    uint32_t seed = 1;

    (void)state;
    for (unsigned round = 0; round < 60; round++) {
        struct fabric *f = round % 3 == 0 ? load_file(THREE_TIER)
                                          : load_leaf_spine(round % 5 + 1, 2, round % 4 + 1, 1, "");
        struct fab_members m = {.ranks_per_host = (uint16_t)(round % 4 + 1)};

        for (unsigned id = 0; id < f->n_hosts * m.ranks_per_host; id++) {
            seed = seed * 1664525 + 1013904223;
            if (seed >> 31)
                fab_members_add(&m, id);
        }
        fab_members_add(&m, 0);
        for (unsigned i = 0; i < f->n_trees; i++) {
            struct fab_members met = {.ranks_per_host = m.ranks_per_host};
            uint16_t top = fab_group_top(f, &f->trees[i], &m);

            assert_int_not_equal(top, FAB_NONE);
            assert_int_equal(check_subtree(f, &f->trees[i], top, &m, &met), fab_members_count(&m));
            assert_memory_equal(met.bits, m.bits, sizeof(m.bits));
        }
        fabric_free(f);
    }
}

static void children_come_by_their_lowest_member(void **state)
{
    struct fab_members m = {.ranks_per_host = 2};
    struct fab_child c[2] = {{0}};
    struct fabric *f;

    (void)state;
    /* Host order and leaf order differ: h0 and h3 on l1, h1 and h2 on l0. */
    f = load_text(
        LINKS REDUCE
        "nodes = ( { name = (\"h0\", \"h1\", \"h2\", \"h3\"); kind = \"host\"; },\n"
        "{ name = (\"l0\", \"l1\"); role = \"leaf\"; }, { name = \"s\"; role = \"spine\"; } );\n"
        "links = ( { a = (\"h1\", \"h2\"); b = \"l0\"; }, { a = (\"h0\", \"h3\"); b = \"l1\"; },\n"
        "{ a = (\"l0\", \"l1\"); b = \"s\"; } );");
    for (unsigned id = 1; id < 8; id++)
        fab_members_add(&m, id);
    assert_int_equal(fab_group_children(f, &f->trees[0], node(f, "s"), &m, c, 2), 2);
    assert_int_equal(c[0].node, node(f, "l1"));
    assert_int_equal(c[0].first_member, 1);
    assert_int_equal(c[1].node, node(f, "l0"));
    assert_int_equal(c[1].first_member, 2);
    assert_false(c[0].is_member);
    /* More children than fit: all are counted, and nothing is written beyond the array. */
    assert_int_equal(fab_group_children(f, &f->trees[0], node(f, "l0"), &m, c, 1), 4);
    assert_true(c[0].is_member);
    assert_int_equal(c[0].member, 2);
    assert_int_equal(c[1].node, node(f, "l0"));
    fabric_free(f);
}

static void nodes_outside_a_group_have_no_children_in_it(void **state)
{
    static const char *const hosts[] = {"h0", "h1"};
    struct fabric *f = load_file(THREE_TIER);
    struct fab_members m = {.ranks_per_host = 1}, none = {.ranks_per_host = 1},
                       bad = {.ranks_per_host = 1}, zero = {0};
    struct fab_child c[4];

    (void)state;
    add_hosts(f, &m, hosts, LEN(hosts));
    assert_int_equal(fab_group_children(f, &f->trees[0], node(f, "leaf0"), &m, c, 4), 2);
    assert_int_equal(fab_group_children(f, &f->trees[0], node(f, "core0"), &m, c, 4),
                     0); /* above the top */
    assert_int_equal(fab_group_children(f, &f->trees[0], node(f, "leaf1"), &m, c, 4),
                     0); /* beside it */
    assert_int_equal(fab_group_children(f, &f->trees[0], node(f, "spine1"), &m, c, 4),
                     0); /* not in the tree */
    assert_int_equal(fab_group_top(f, &f->trees[0], &none), FAB_NONE);
    assert_int_equal(fab_group_children(f, &f->trees[0], node(f, "leaf0"), &none, c, 4), 0);
    fab_members_add(&bad, 0);
    fab_members_add(&bad, 8); /* no such host */
    assert_int_equal(fab_group_top(f, &f->trees[0], &bad), FAB_NONE);
    assert_int_equal(fab_group_children(f, &f->trees[0], node(f, "leaf0"), &bad, c, 4), 0);
    fab_members_add(&zero, 0);
    assert_int_equal(fab_group_top(f, &f->trees[0], &zero), FAB_NONE);
    assert_int_equal(fab_group_leaf(f, &f->trees[0], 5, &m), FAB_NONE);
    fabric_free(f);
}

static void member_ids_beyond_the_limit_are_nobody(void **state)
{
    struct fab_members m = {.ranks_per_host = 1};

    (void)state;
    fab_members_add(&m, FAB_MAX_MEMBERS);
    fab_members_add(&m, 4000000000u);
    assert_int_equal(fab_members_count(&m), 0);
    fab_members_add(&m, FAB_MAX_MEMBERS - 1);
    fab_members_add(&m, 64);
    assert_int_equal(fab_members_count(&m), 2);
    assert_true(fab_members_has(&m, 64));
    assert_false(fab_members_has(&m, FAB_MAX_MEMBERS));
}

#define TWO_PORTS                                                                                  \
    LINKS REDUCE "nodes = ( { name = (\"a\", \"b\", \"c\"); kind = \"host\"; },\n"                 \
                 "{ name = (\"slow\", \"fast\"); role = \"leaf\"; }"

/* Spines above two leaves, at which hosts have ports of different rates, b in the other order. */
static struct fabric *load_two_ports(const char *spines)
{
    char text[1024];

    snprintf(text, sizeof(text),
             TWO_PORTS ", { name = (%s); role = \"spine\"; } );\n"
                       "links = ( { a = \"b\"; b = \"fast\"; },\n"
                       "{ a = (\"a\", \"b\", \"c\"); b = \"slow\"; rate = \"100Gb/s\"; },\n"
                       "{ a = (\"a\", \"c\"); b = \"fast\"; },\n"
                       "{ a = (\"slow\", \"fast\"); b = (%s); } );",
             spines, spines);
    return load_text(text);
}

static void a_root_has_a_tree_for_each_port_of_hosts(void **state)
{
    struct fabric *f = load_two_ports("\"s0\"");

    (void)state;
    assert_int_equal(f->n_trees, 2);
    for (unsigned i = 0; i < f->n_trees; i++) {
        const struct fab_tree *t = &f->trees[i];
        uint16_t leaf = node(f, i ? "slow" : "fast"); /* the fastest ports first */

        assert_int_equal(t->root, node(f, "s0"));
        assert_int_equal(t->turn, i);
        assert_int_equal(t->parent[leaf], t->root);
        for (unsigned h = 0; h < f->n_hosts; h++) {
            const struct fab_node *n = &f->nodes[f->hosts[h]];

            assert_int_equal(t->parent[f->hosts[h]], leaf);
            assert_int_equal(n->ports[fabric_tree_port(f, t, h)].peer_node, leaf);
        }
    }
    fabric_free(f);
}

/* With as many roots as ports, each port has a root among the first trees; the second trees come
 * last. */
static void roots_begin_with_different_ports(void **state)
{
    static const char *const root[] = {"s0", "s1", "s0", "s1"};
    static const char *const leaf[] = {"fast", "slow", "slow", "fast"};
    struct fabric *f = load_two_ports("\"s0\", \"s1\"");

    (void)state;
    assert_int_equal(f->n_trees, 4);
    for (unsigned i = 0; i < f->n_trees; i++) {
        const struct fab_tree *t = &f->trees[i];

        assert_int_equal(t->turn, i / 2);
        assert_int_equal(t->root, node(f, root[i]));
        for (unsigned h = 0; h < f->n_hosts; h++)
            assert_int_equal(t->parent[f->hosts[h]], node(f, leaf[i]));
    }
    fabric_free(f);
}

static void ports_at_one_leaf_have_a_tree_each(void **state)
{
    struct fabric *f;

    (void)state;
    f = load_text(LINKS REDUCE
                  "nodes = ( { name = (\"a\", \"b\"); kind = \"host\"; }, { name = \"one\"; kind = "
                  "\"host\"; }, { name = \"leaf\"; role = \"leaf\"; } );\n"
                  "links = ( { a = (\"a\", \"b\"); b = \"leaf\"; }, { a = (\"a\", \"b\"); b = "
                  "\"leaf\"; rate = \"800Gb/s\"; }, { a = \"one\"; b = \"leaf\"; } );");
    assert_int_equal(f->n_trees, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(f->trees[i].root, node(f, "leaf"));
        assert_int_equal(fabric_tree_port(f, &f->trees[i], 0), 1 - i);
        assert_int_equal(fabric_tree_port(f, &f->trees[i], 2), 0); /* on both by its only port */
    }
    fabric_free(f);
}

/* Leaves that are linked are roots alike; a port is on the tree of its own leaf first. */
static void a_near_port_comes_before_a_fast_one(void **state)
{
    struct fabric *f;

    (void)state;
    f = load_text(TWO_PORTS
                  " );\nlinks = ( { a = (\"a\", \"b\", \"c\"); b = \"slow\"; rate = \"100Gb/s\"; "
                  "}, { a = (\"a\", \"b\", \"c\"); b = \"fast\"; }, { a = \"slow\"; b = "
                  "\"fast\"; } );");
    assert_int_equal(f->n_trees, 4);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(f->trees[i].root, node(f, i ? "fast" : "slow"));
        assert_int_equal(f->trees[i].parent[node(f, "a")], f->trees[i].root);
        assert_int_equal(f->trees[i].depth, 1);
    }
    fabric_free(f);
}

/* Two rails of two GPU nodes: each has one tree, by the faster NIC of its GPUs. */
static void the_root_of_each_rail_begins_with_the_fastest_port(void **state)
{
    struct fabric *f;

    (void)state;
    f = load_text(
        LINKS REDUCE
        "nodes = ( { name = (\"a0\", \"a1\", \"b0\", \"b1\"); kind = \"host\"; },\n"
        "{ name = (\"n0\", \"n1\"); role = \"nvswitch\"; reduce = false; },\n"
        "{ name = (\"r0\", \"r1\"); role = \"leaf\"; },\n"
        "{ name = \"s\"; role = \"spine\"; reduce = false; } );\n"
        "links = ( { a = (\"a0\", \"a1\"); b = \"n0\"; }, { a = (\"b0\", \"b1\"); b = \"n1\"; },\n"
        "{ a = (\"a0\", \"b0\"); b = \"r0\"; rate = \"100Gb/s\"; },\n"
        "{ a = (\"a0\", \"b0\"); b = \"r0\"; }, { a = (\"r0\", \"r1\"); b = \"s\"; },\n"
        "{ a = (\"a1\", \"b1\"); b = \"r1\"; rate = \"100Gb/s\"; },\n"
        "{ a = (\"a1\", \"b1\"); b = \"r1\"; } );");
    assert_int_equal(f->n_trees, 4);
    for (unsigned i = 0; i < 2; i++)
        for (unsigned h = 0; h < f->n_hosts; h++)
            assert_int_equal(fabric_tree_port(f, &f->trees[i], h), h % 2 == i ? 2 : FAB_NONE);
    fabric_free(f);
}

/* ---- rates of trees that are used at the same time ---- */

static void rates(const struct fabric *f, unsigned n, const uint64_t *gbps)
{
    const uint16_t tree[] = {0, 1, 2, 3, 4};
    struct fab_members m = {.ranks_per_host = 1};
    uint64_t bps[5];

    for (unsigned h = 0; h < f->n_hosts; h++)
        fab_members_add(&m, h);
    assert_true(n <= LEN(tree));
    assert_true(fabric_tree_rates(f, tree, n, &m, bps));
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(bps[i], gbps[i] * 1000000000);
}

static void trees_divide_the_links_that_they_share(void **state)
{
    struct fabric *f = load_two_ports("\"s0\"");

    (void)state;
    rates(f, 1, (const uint64_t[]){400});
    rates(f, 2, (const uint64_t[]){400, 100});
    fabric_free(f);
    f = load_two_ports("\"s0\", \"s1\"");
    rates(f, 2, (const uint64_t[]){400, 100});
    rates(f, 3, (const uint64_t[]){400, 50, 50});
    rates(f, 4, (const uint64_t[]){200, 50, 50, 200});
    fabric_free(f);
    f = load_leaf_spine(2, 4, 2, 1, "");
    rates(f, 4, (const uint64_t[]){100, 100, 100, 100});
    fabric_free(f);
}

/* A slow spine's tree leaves what it cannot use to the others. */
static void what_a_slow_tree_leaves_others_have(void **state)
{
    struct fabric *f = load_leaf_spine(2, 4, 2, 1,
                                       "links = ( { of = \"leaf0-spine2\"; rate = \"40Gb/s\"; }, "
                                       "{ of = \"leaf1-spine2\"; rate = \"40Gb/s\"; } );");

    (void)state;
    rates(f, 4, (const uint64_t[]){120, 120, 40, 120});
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spine_is_the_root_of_a_tree),
        cmocka_unit_test(of_two_switches_above_the_same_hosts_the_higher_one_is_the_root),
        cmocka_unit_test(a_network_within_a_node_keeps_its_tree_beside_the_one_that_joins_all),
        cmocka_unit_test(a_single_switch_is_a_tree_of_depth_1),
        cmocka_unit_test(three_tiers_make_trees_of_depth_3_that_share_no_spine),
        cmocka_unit_test(switches_that_do_not_reduce_are_passed_over),
        cmocka_unit_test(each_plane_of_a_node_has_a_tree),
        cmocka_unit_test(a_group_starts_at_the_lowest_node_above_all_members),
        cmocka_unit_test(every_member_is_reduced_once_on_every_tree),
        cmocka_unit_test(children_come_by_their_lowest_member),
        cmocka_unit_test(nodes_outside_a_group_have_no_children_in_it),
        cmocka_unit_test(member_ids_beyond_the_limit_are_nobody),
        cmocka_unit_test(a_root_has_a_tree_for_each_port_of_hosts),
        cmocka_unit_test(roots_begin_with_different_ports),
        cmocka_unit_test(ports_at_one_leaf_have_a_tree_each),
        cmocka_unit_test(a_near_port_comes_before_a_fast_one),
        cmocka_unit_test(the_root_of_each_rail_begins_with_the_fastest_port),
        cmocka_unit_test(trees_divide_the_links_that_they_share),
        cmocka_unit_test(what_a_slow_tree_leaves_others_have),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
