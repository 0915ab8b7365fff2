/* SPDX-License-Identifier: BSD-3-Clause */
/* Forwarding: all equal-cost next hops and no others, never down and up again, and both ways to
 * choose among them. */
#include "tests/fabric/load.h"

#include <stdlib.h>

/* Follows every choice from `at` to dest; fails on a loop, a dead end, a host on the way, or a
 * climb after a descent. Returns paths. */
static unsigned walk(const struct fabric *f, uint16_t at, unsigned dest, bool went_down,
                     unsigned hops)
{
    const struct fab_node *n = &f->nodes[at];
    uint16_t port[64];
    unsigned k = fabric_hops(f, at, dest, port, LEN(port)), paths = 0;

    if (at == f->dests[dest].node)
        return 1;
    assert_true(hops < 8);
    assert_in_range(k, 1, LEN(port));
    assert_true(n->kind == FAB_SWITCH || hops == 0);
    for (unsigned i = 0; i < k; i++) {
        uint16_t next = n->ports[port[i]].peer_node;
        int up = (int)f->nodes[next].tier - (int)n->tier;

        assert_true(!i || port[i] > port[i - 1]);
        assert_false(went_down && up > 0);
        paths += walk(f, next, dest, went_down || up < 0, hops + 1);
    }
    return paths;
}

static void all_shortest_paths_are_offered_and_none_climbs_twice(void **state)
{
    struct fabric *f = load_leaf_spine(3, 2, 2, 3, "");

    (void)state;
    for (unsigned i = 0; i < f->n_hosts; i++) {
        for (unsigned j = 0; j < f->n_hosts; j++) {
            unsigned dest = f->nodes[f->hosts[j]].dest;

            if (i == j)
                assert_int_equal(fabric_hops(f, f->hosts[i], dest, NULL, 0), 0);
            else /* two spines, three cables up and three down */
                assert_int_equal(walk(f, f->hosts[i], dest, false, 0),
                                 i / 2 == j / 2 ? 1 : 2 * 3 * 3);
        }
    }
    fabric_free(f);
    f = load_file(THREE_TIER);
    assert_int_equal(walk(f, node(f, "h0"), fabric_node(f, "h1")->dest, false, 0), 1);
    assert_int_equal(walk(f, node(f, "h0"), fabric_node(f, "h3")->dest, false, 0), 2);
    assert_int_equal(walk(f, node(f, "h0"), fabric_node(f, "h7")->dest, false, 0), 2 * 2 * 2);
    fabric_free(f);
}

static void switches_are_reached_where_no_leaf_must_be_climbed_from(void **state)
{
    struct fabric *f = load_leaf_spine(2, 2, 2, 1, "");

    (void)state;
    assert_int_equal(walk(f, node(f, "h0"), fabric_node(f, "spine1")->dest, false, 0), 1);
    assert_int_equal(walk(f, node(f, "h0"), fabric_node(f, "leaf1")->dest, false, 0), 2);
    assert_int_equal(walk(f, node(f, "spine0"), fabric_node(f, "leaf1")->dest, false, 0), 1);
    /* spine0 to spine1 would go down and up. */
    assert_int_equal(fabric_hops(f, node(f, "spine0"), fabric_node(f, "spine1")->dest, NULL, 0), 0);
    fabric_free(f);
}

/* spine0 has lost its link to leaf1: the way round by leaf2 and spine1 would go down and up. */
static void a_broken_fabric_does_not_bounce_off_a_leaf(void **state)
{
    struct fabric *f;

    (void)state;
    f = load_text(
        LINKS
        "nodes = ( { name = (\"a\", \"b\", \"c\"); kind = \"host\"; }, { name = (\"l0\", \"l1\", "
        "\"l2\"); role = \"leaf\"; },\n"
        "{ name = (\"s0\", \"s1\"); role = \"spine\"; } );\n"
        "links = ( { a = \"a\"; b = \"l0\"; }, { a = \"b\"; b = \"l1\"; }, { a = \"c\"; b = "
        "\"l2\"; },\n"
        "{ a = (\"l0\", \"l2\"); b = \"s0\"; }, { a = (\"l0\", \"l1\", \"l2\"); b = \"s1\"; } );");
    assert_int_equal(fabric_hops(f, node(f, "s0"), fabric_node(f, "b")->dest, NULL, 0), 0);
    assert_int_equal(walk(f, node(f, "a"), fabric_node(f, "b")->dest, false, 0), 1);
    assert_int_equal(walk(f, node(f, "a"), fabric_node(f, "c")->dest, false, 0), 2);
    fabric_free(f);
}

static void switches_of_one_tier_forward_along_a_ring_the_short_way(void **state)
{
    struct fabric *f;

    (void)state;
    f = load_text(LINKS
                  "nodes = ( { name = (\"a\", \"b\", \"c\", \"d\", \"e\"); kind = \"host\"; },\n"
                  "{ name = (\"s0\", \"s1\", \"s2\", \"s3\", \"s4\"); role = \"leaf\"; } );\n"
                  "links = ( { a = \"a\"; b = \"s0\"; }, { a = \"b\"; b = \"s1\"; }, { a = \"c\"; "
                  "b = \"s2\"; }, { a = \"d\"; b = \"s3\"; },\n"
                  "{ a = \"e\"; b = \"s4\"; }, { a = \"s0\"; b = \"s1\"; }, { a = \"s1\"; b = "
                  "\"s2\"; }, { a = \"s2\"; b = \"s3\"; },\n"
                  "{ a = \"s3\"; b = \"s4\"; }, { a = \"s4\"; b = \"s0\"; } );");
    for (unsigned i = 0; i < 5; i++) {
        for (unsigned j = 0; j < 5; j++) {
            unsigned apart = (j + 5 - i) % 5, shorter = apart < 5 - apart ? apart : 5 - apart;
            uint32_t path[8];

            if (i == j)
                continue;
            assert_int_equal(walk(f, f->hosts[i], f->nodes[f->hosts[j]].dest, false, 0), 1);
            assert_int_equal(fabric_path(f, f->hosts[i], f->hosts[j], path, 8), shorter + 2);
        }
    }
    fabric_free(f);
}

static void hosts_do_not_forward(void **state)
{
    static struct fab_errors errs;

    (void)state;
    assert_null(fabric_load_string(
        LINKS "nodes = ( { name = (\"a\", \"m\", \"b\"); kind = \"host\"; } );\n"
              "links = ( { a = \"a\"; b = \"m\"; }, { a = \"m\"; b = \"b\"; } );",
        "t.conf", &errs));
    assert_int_equal(errs.total, 1);
    assert_non_null(strstr(errs.e[0].text, "no path between \"a\" and \"b\""));
}

static void hosts_that_only_a_valley_joins_are_refused(void **state)
{
    static struct fab_errors errs;

    (void)state;
    assert_null(fabric_load_string(
        LINKS "nodes = ( { name = (\"a\", \"b\", \"c\"); kind = \"host\"; },\n"
              "{ name = (\"l0\", \"l1\", \"l2\"); role = \"leaf\"; }, { name = (\"s0\", \"s1\"); "
              "role = \"spine\"; } );\n"
              "links = ( { a = \"a\"; b = \"l0\"; }, { a = \"b\"; b = \"l1\"; }, { a = \"c\"; b = "
              "\"l2\"; },\n"
              "{ a = (\"l0\", \"l1\"); b = \"s0\"; }, { a = (\"l1\", \"l2\"); b = \"s1\"; } );",
        "t.conf", &errs));
    assert_int_equal(errs.total, 1);
    assert_non_null(
        strstr(errs.e[0].text,
               "no path between \"a\" and \"c\", expected one that goes up and then down"));
}

/* b hangs on a leaf whose only neighbour is another leaf: from above, that would be down and then
 * sideways. */
static void hosts_that_only_a_side_way_below_a_spine_joins_are_refused(void **state)
{
    static struct fab_errors errs;

    (void)state;
    assert_null(fabric_load_string(
        LINKS "nodes = ( { name = (\"a\", \"b\", \"c\"); kind = \"host\"; },\n"
              "{ name = (\"l0\", \"l1\", \"l2\"); role = \"leaf\"; }, { name = \"s\"; role = "
              "\"spine\"; } );\n"
              "links = ( { a = \"a\"; b = \"l0\"; }, { a = \"b\"; b = \"l1\"; }, { a = \"c\"; b = "
              "\"l2\"; },\n"
              "{ a = \"l0\"; b = \"l1\"; }, { a = (\"l0\", \"l2\"); b = \"s\"; } );",
        "t.conf", &errs));
    assert_int_equal(errs.total, 1);
    assert_non_null(strstr(errs.e[0].text, "no path between \"b\" and \"c\""));
}

static void the_source_address_picks_the_port_of_a_host(void **state)
{
    const struct fab_node *a, *b;
    struct fabric *f;
    uint16_t port[2];

    (void)state;
    f = load_text(LINKS "nodes = ( { name = (\"a\", \"b\"); kind = \"host\"; }, { name = (\"s0\", "
                        "\"s1\"); role = \"nvswitch\"; } );\n"
                        "links = ( { a = (\"a\", \"b\"); b = (\"s0\", \"s1\"); } );");
    b = fabric_node(f, "b");
    /* Two planes that are not joined: a port reaches the other host's port of its own plane. */
    assert_int_equal(fabric_hops(f, node(f, "a"), b->dest, port, 2), 1);
    assert_int_equal(port[0], 0);
    assert_int_equal(fabric_hops(f, node(f, "a"), b->dest + 1, port, 2), 1);
    assert_int_equal(port[0], 1);
    fabric_free(f);
    f = load_text(LINKS "nodes = ( { name = (\"a\", \"b\"); kind = \"host\"; }, { name = (\"s0\", "
                        "\"s1\"); role = \"leaf\"; } );\n"
                        "links = ( { a = \"a\"; b = (\"s0\", \"s1\"); }, { a = \"b\"; b = \"s0\"; "
                        "}, { a = \"s0\"; b = \"s1\"; } );");
    a = fabric_node(f, "a");
    b = fabric_node(f, "b");
    assert_int_equal(fabric_hops(f, node(f, "a"), b->dest, NULL, 0), 2);
    assert_int_equal(fabric_next_port(f, node(f, "a"), b->dest, 7, a->ip_of_port[1]), 1);
    assert_int_equal(fabric_next_port(f, node(f, "a"), b->dest, 8, a->ip_of_port[0]), 0);
    fabric_free(f);
}

static void hashing_spreads_flows_evenly_at_both_tiers(void **state)
{
    struct fabric *f = load_leaf_spine(2, 4, 2, 4, "");
    unsigned up[64] = {0}, down[4][64] = {{0}};
    int dest = fabric_node(f, "h3")->dest;
    uint16_t leaf = node(f, "leaf0");

    (void)state;
    assert_int_equal(f->ecmp, FAB_ECMP_HASH);
    for (unsigned flow = 0; flow < 16000; flow++) {
        uint16_t port = fabric_next_port(f, leaf, dest, flow, 0x0a000001),
                 spine = f->nodes[leaf].ports[port].peer_node;

        assert_int_equal(port, fabric_next_port(f, leaf, dest, flow, 0x0a000001));
        up[port]++;
        down[spine - node(f, "spine0")][fabric_next_port(f, spine, dest, flow, 0x0a000001)]++;
    }
    for (unsigned p = 2; p < 18; p++)
        assert_in_range(up[p], 850, 1150);
    for (unsigned s = 0; s < 4; s++)
        for (unsigned p = 4; p < 8; p++)
            assert_in_range(down[s][p], 850, 1150);
    assert_int_equal(fabric_next_port(f, leaf, -1, 0, 0), FAB_NONE);
    assert_int_equal(fabric_next_port(f, node(f, "spine0"), fabric_node(f, "spine1")->dest, 0, 0),
                     FAB_NONE);
    fabric_free(f);
}

/* Most frames that one direction of a link carries when host i sends to host (i + k) mod n, for all
 * i. */
static unsigned busiest(const struct fabric *f, unsigned k)
{
    unsigned *load = calloc(2u * f->n_links, sizeof(*load)), most = 0;
    uint32_t path[16];

    for (unsigned i = 0; i < f->n_hosts; i++) {
        unsigned n = fabric_path(f, f->hosts[i], f->hosts[(i + k) % f->n_hosts], path, LEN(path));

        assert_true(n >= 2);
        for (unsigned h = 0; h < n; h++)
            if (++load[path[h]] > most)
                most = load[path[h]];
    }
    free(load);
    return most;
}

static void balanced_paths_of_a_shift_never_share_a_link(void **state)
{
    static const unsigned rows[][4] = {
        {2, 4, 4, 1}, {4, 4, 4, 1}, {4, 2, 4, 2}, {8, 8, 8, 1}, {3, 4, 4, 1}};

    (void)state;
    for (unsigned r = 0; r <= LEN(rows); r++) {
        struct fabric *f = r < LEN(rows) ? load_leaf_spine(rows[r][0], rows[r][1], rows[r][2],
                                                           rows[r][3], "ecmp = \"balanced\";")
                                         : load_file(THREE_TIER);

        for (unsigned k = 1; k < f->n_hosts; k++)
            if (busiest(f, k) != 1)
                fail_msg("row %u, shift %u", r, k);
        fabric_free(f);
    }
}

/* Two pods of two leaves, four hosts a leaf, two cables everywhere above: as many links up as down
 * at each tier. */
static void balanced_paths_of_a_shift_never_share_a_link_with_three_tiers_and_cables(void **state)
{
    struct fabric *f;

    (void)state;
    f = load_text("ecmp = \"balanced\";\n" LINKS
                  "nodes = ( { name = (\"h00\", \"h01\", \"h02\", \"h03\", \"h04\", \"h05\", "
                  "\"h06\", \"h07\", \"h08\", \"h09\", \"h10\", \"h11\", "
                  "\"h12\", \"h13\", \"h14\", \"h15\"); kind = \"host\"; },\n"
                  "{ name = (\"l0\", \"l1\", \"l2\", \"l3\"); role = \"leaf\"; },\n"
                  "{ name = (\"s0\", \"s1\", \"s2\", \"s3\"); role = \"spine\"; }, { name = "
                  "(\"c0\", \"c1\"); role = \"core\"; } );\n"
                  "links = ( { a = (\"h00\", \"h01\", \"h02\", \"h03\"); b = \"l0\"; }, { a = "
                  "(\"h04\", \"h05\", \"h06\", \"h07\"); b = \"l1\"; },\n"
                  "{ a = (\"h08\", \"h09\", \"h10\", \"h11\"); b = \"l2\"; }, { a = (\"h12\", "
                  "\"h13\", \"h14\", \"h15\"); b = \"l3\"; },\n"
                  "{ a = (\"l0\", \"l1\"); b = (\"s0\", \"s1\"); cables = 2; }, { a = (\"l2\", "
                  "\"l3\"); b = (\"s2\", \"s3\"); cables = 2; },\n"
                  "{ a = (\"s0\", \"s1\", \"s2\", \"s3\"); b = (\"c0\", \"c1\"); cables = 2; } );");
    for (unsigned k = 1; k < f->n_hosts; k++)
        if (busiest(f, k) != 1)
            fail_msg("shift %u: %u", k, busiest(f, k));
    fabric_free(f);
}

/* Half as many uplinks as hosts: two flows a link, not more. */
static void balanced_paths_of_an_oversubscribed_leaf_share_links_evenly(void **state)
{
    struct fabric *f = load_leaf_spine(4, 2, 4, 1, "ecmp = \"balanced\";");

    (void)state;
    assert_int_equal(busiest(f, 4), 2);
    assert_int_equal(busiest(f, 1), 1);
    fabric_free(f);
}

static void paths_are_links_and_directions_in_order(void **state)
{
    struct fabric *f = load_file("conf/leaf-spine-8.conf");
    uint32_t path[8];

    (void)state;
    /* h1's ordinal at its leaf is 1: its frames use spine1. */
    assert_int_equal(fabric_path(f, node(f, "h1"), node(f, "h6"), path, 8), 4);
    assert_int_equal(path[0], 2 * fabric_link_by_name(f, "h1-leaf0"));
    assert_int_equal(path[1], 2 * fabric_link_by_name(f, "leaf0-spine1"));
    assert_int_equal(path[2], 2 * fabric_link_by_name(f, "leaf1-spine1") + 1);
    assert_int_equal(path[3], 2 * fabric_link_by_name(f, "h6-leaf1") + 1);
    assert_int_equal(fabric_path(f, node(f, "h1"), node(f, "h6"), path, 3), 0);
    assert_int_equal(fabric_path(f, node(f, "h1"), node(f, "h1"), path, 8), 0);
    assert_int_equal(fabric_path(f, node(f, "leaf0"), node(f, "spine1"), path, 8), 1);
    assert_int_equal(fabric_path(f, node(f, "spine0"), node(f, "spine1"), path, 8), 0);
    assert_int_equal(fabric_path(f, node(f, "spine0"), node(f, "h0"), path, 8), 2);
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_shortest_paths_are_offered_and_none_climbs_twice),
        cmocka_unit_test(switches_are_reached_where_no_leaf_must_be_climbed_from),
        cmocka_unit_test(a_broken_fabric_does_not_bounce_off_a_leaf),
        cmocka_unit_test(switches_of_one_tier_forward_along_a_ring_the_short_way),
        cmocka_unit_test(hosts_do_not_forward),
        cmocka_unit_test(hosts_that_only_a_valley_joins_are_refused),
        cmocka_unit_test(hosts_that_only_a_side_way_below_a_spine_joins_are_refused),
        cmocka_unit_test(the_source_address_picks_the_port_of_a_host),
        cmocka_unit_test(hashing_spreads_flows_evenly_at_both_tiers),
        cmocka_unit_test(balanced_paths_of_a_shift_never_share_a_link),
        cmocka_unit_test(balanced_paths_of_a_shift_never_share_a_link_with_three_tiers_and_cables),
        cmocka_unit_test(balanced_paths_of_an_oversubscribed_leaf_share_links_evenly),
        cmocka_unit_test(paths_are_links_and_directions_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
