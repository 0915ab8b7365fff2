/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts with several ports in networks that are not joined: GPU nodes, channels, paths from port to
 * port, and the nodes at which they join trees. */
#include "tests/fabric/load.h"

/* Two nodes of two GPUs and two planes; GPU i of each node on rail i; the rails meet in a spine. */
static const char two_nodes[] =
    "link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; };\n"
    "ecmp = \"balanced\"; reduce = { };\n"
    "nodes = ( { name = (\"a0\", \"a1\", \"b0\", \"b1\"); kind = \"host\"; },\n"
    "  { name = (\"na0\", \"na1\", \"nb0\", \"nb1\"); role = \"nvswitch\"; multimem = true; },\n"
    "  { name = (\"leaf0\", \"leaf1\"); role = \"leaf\"; }, { name = \"spine\"; role = \"spine\"; "
    "} );\n"
    "links = ( { a = (\"a0\", \"a1\"); b = \"na0\"; rate = \"125GB/s\"; },\n"
    "  { a = (\"a0\", \"a1\"); b = \"na1\"; rate = \"100GB/s\"; },\n"
    "  { a = (\"b0\", \"b1\"); b = \"nb0\"; rate = \"125GB/s\"; },\n"
    "  { a = (\"b0\", \"b1\"); b = \"nb1\"; rate = \"100GB/s\"; },\n"
    "  { a = (\"a0\", \"b0\"); b = \"leaf0\"; }, { a = (\"a1\", \"b1\"); b = \"leaf1\"; },\n"
    "  { a = (\"leaf0\", \"leaf1\"); b = \"spine\"; cables = 2; } );\n";

static unsigned host(const struct fabric *f, const char *name)
{
    return fabric_node(f, name)->host_index;
}

/* Hosts of a GPU node, by host_index; their number. */
static unsigned domain_hosts(const struct fabric *f, fab_id domain, uint16_t *host_index,
                             unsigned max)
{
    unsigned n = 0;

    for (unsigned i = 0; i < f->n_hosts && domain != FAB_NONE; i++) {
        if (f->nodes[f->hosts[i]].domain != domain)
            continue;
        if (n < max)
            host_index[n] = (uint16_t)i;
        n++;
    }
    return n;
}

static void hosts_that_share_an_nvswitch_are_a_node(void **state)
{
    struct fabric *f = load_text(two_nodes);
    uint16_t list[8];

    (void)state;
    assert_int_equal(f->n_domains, 2);
    assert_int_equal(fabric_domain(f, host(f, "a0")), 0);
    assert_int_equal(fabric_domain(f, host(f, "a1")), 0);
    assert_int_equal(fabric_domain(f, host(f, "b1")), 1);
    assert_int_equal(domain_hosts(f, 1, list, LEN(list)), 2);
    assert_int_equal(list[0], host(f, "b0"));
    assert_int_equal(list[1], host(f, "b1"));
    assert_int_equal(fabric_domain_planes(f, 1, list, LEN(list)), 2);
    assert_int_equal(list[0], node(f, "nb0"));
    assert_int_equal(list[1], node(f, "nb1"));
    assert_int_equal(fabric_node(f, "leaf0")->domain, FAB_NONE);
    assert_true(fabric_node(f, "nb1")->multimem);
    assert_false(fabric_node(f, "leaf1")->multimem);
    assert_int_equal(fabric_domain(f, 4), FAB_NONE);
    assert_int_equal(domain_hosts(f, FAB_NONE, list, LEN(list)), 0);
    fabric_free(f);
    f = load_file("conf/leaf-spine-8.conf");
    assert_int_equal(f->n_domains, 0);
    assert_int_equal(fabric_domain(f, 0), FAB_NONE);
    fabric_free(f);
}

/* a0 has plane 0 only and a1 plane 1 only, m both: one node all the same. */
static void nodes_are_joined_by_any_shared_plane(void **state)
{
    struct fabric *f;

    (void)state;
    f = load_text(LINKS "nodes = ( { name = (\"a0\", \"a1\", \"m\"); kind = \"host\"; },\n"
                        "{ name = (\"s0\", \"s1\"); role = \"nvswitch\"; }, { name = \"l\"; role = "
                        "\"leaf\"; } );\n"
                        "links = ( { a = (\"a0\", \"m\"); b = \"s0\"; }, { a = (\"a1\", \"m\"); b "
                        "= \"s1\"; }, { a = (\"a0\", \"a1\", \"m\"); b = \"l\"; } );");
    assert_int_equal(f->n_domains, 1);
    assert_int_equal(fabric_domain(f, 1), 0);
    fabric_free(f);
}

static void channels_are_planes_inside_a_node_and_rails_between_nodes(void **state)
{
    struct fabric *f = load_text(two_nodes);
    struct fab_channel ch[4];

    (void)state;
    assert_int_equal(fabric_channels(f, host(f, "a0"), host(f, "a1"), ch, LEN(ch)), 2);
    for (unsigned p = 0; p < 2; p++) {
        assert_int_equal(ch[p].port_a, p);
        assert_int_equal(ch[p].port_b, p);
        assert_int_equal(ch[p].rate_bps, p ? 800000000000 : 1000000000000);
    }
    assert_int_equal(fabric_channels(f, host(f, "a0"), host(f, "b0"), ch, LEN(ch)), 1);
    assert_int_equal(ch[0].port_a, 2);
    assert_int_equal(ch[0].port_b, 2);
    assert_int_equal(ch[0].rate_bps, 400000000000);
    assert_int_equal(fabric_channels(f, host(f, "a0"), host(f, "b1"), ch, LEN(ch)), 1);
    assert_int_equal(ch[0].port_b, 2);
    assert_int_equal(fabric_channels(f, host(f, "a0"), host(f, "a0"), ch, LEN(ch)), 1);
    assert_int_equal(ch[0].port_a + ch[0].port_b, 0);
    assert_int_equal(fabric_channels(f, host(f, "a0"), host(f, "a1"), ch, 1), 2);
    assert_int_equal(fabric_channels(f, 0, 4, ch, LEN(ch)), 0);
    fabric_free(f);
    f = load_file("conf/leaf-spine-8.conf");
    for (unsigned i = 0; i < f->n_hosts; i++)
        for (unsigned j = 0; j < f->n_hosts; j++) {
            assert_int_equal(fabric_channels(f, i, j, ch, LEN(ch)), 1);
            assert_int_equal(ch[0].port_a + ch[0].port_b, 0);
        }
    fabric_free(f);
}

/* Two leaves that no switch joins, and hosts at them in different order: ends agree on numbers. */
static void channels_have_the_same_number_from_either_end(void **state)
{
    struct fab_channel ab[4], ba[4];
    struct fabric *f;

    (void)state;
    f = load_text(LINKS "nodes = ( { name = (\"a\", \"b\"); kind = \"host\"; }, { name = (\"l0\", "
                        "\"l1\", \"l2\"); role = \"leaf\"; } );\n"
                        "links = ( { a = \"a\"; b = (\"l0\", \"l1\", \"l2\"); }, { a = \"b\"; b = "
                        "(\"l2\", \"l1\"); } );");
    assert_int_equal(fabric_channels(f, 0, 1, ab, LEN(ab)), 2);
    assert_int_equal(fabric_channels(f, 1, 0, ba, LEN(ba)), 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(ab[i].port_a, ba[i].port_b);
        assert_int_equal(ab[i].port_b, ba[i].port_a);
        assert_int_equal(ab[i].port_a + ab[i].port_b, 2);
    }
    fabric_free(f);
}

/* NICs of different rates under one spine: fast ones are a channel, and the first one. */
static void fast_nics_are_a_channel(void **state)
{
    struct fab_channel ch[4];
    struct fabric *f;

    (void)state;
    f = load_text(LINKS
                  "nodes = ( { name = (\"a\", \"b\", \"one\"); kind = \"host\"; }, { name = "
                  "(\"l0\", \"l1\"); role = \"leaf\"; }, { name = \"s\"; role = \"spine\"; } );\n"
                  "links = ( { a = \"a\"; b = \"l0\"; rate = \"100Gb/s\"; }, { a = (\"a\", "
                  "\"b\"); b = \"l1\"; }, { a = \"b\"; b = \"l0\"; rate = \"100Gb/s\"; },\n"
                  "{ a = \"one\"; b = \"l0\"; }, { a = (\"l0\", \"l1\"); b = \"s\"; } );");
    assert_int_equal(fabric_channels(f, 0, 1, ch, LEN(ch)), 2);
    assert_true(ch[0].port_a == 1 && ch[0].port_b == 0 && ch[0].rate_bps == 400000000000);
    assert_true(ch[1].port_a == 0 && ch[1].port_b == 1 && ch[1].rate_bps == 100000000000);
    assert_int_equal(fabric_channels(f, 2, 0, ch, LEN(ch)), 1);
    assert_true(ch[0].port_a == 0 && ch[0].port_b == 1);
    fabric_free(f);
}

/* Three hosts in a triangle: each cable is a channel; the port is the peer's own. */
static void a_cable_between_two_hosts_is_their_channel(void **state)
{
    struct fab_channel ch[4];
    struct fabric *f;
    uint32_t path[4];

    (void)state;
    f = load_text(LINKS "nodes = ( { name = (\"a\", \"b\", \"c\"); kind = \"host\"; } );\n"
                        "links = ( { a = \"a\"; b = \"b\"; cables = 2; }, { a = \"a\"; b = \"c\"; "
                        "}, { a = \"b\"; b = \"c\"; } );");
    assert_int_equal(fabric_channels(f, 0, 1, ch, LEN(ch)), 2);
    assert_int_equal(ch[1].port_a, 1);
    assert_int_equal(ch[1].port_b, 1);
    assert_int_equal(fabric_channels(f, 1, 2, ch, LEN(ch)), 1);
    assert_int_equal(ch[0].port_a, 2);
    assert_int_equal(ch[0].port_b, 1);
    assert_int_equal(fabric_path_ports(f, node(f, "b"), 2, node(f, "c"), 1, path, LEN(path)), 1);
    assert_int_equal(path[0], 2 * fabric_link_by_name(f, "b-c"));
    assert_int_equal(fabric_path_ports(f, node(f, "c"), 1, node(f, "b"), 2, path, LEN(path)), 1);
    assert_int_equal(path[0], 2 * fabric_link_by_name(f, "b-c") + 1);
    assert_int_equal(fabric_path_ports(f, node(f, "c"), 0, node(f, "b"), 2, path, LEN(path)), 0);
    assert_int_equal(fabric_path_ports(f, node(f, "a"), 0, node(f, "b"), 1, path, LEN(path)), 0);
    fabric_free(f);
}

static void paths_go_from_port_to_port_within_one_network(void **state)
{
    struct fabric *f = load_text(two_nodes);
    uint16_t a0 = node(f, "a0"), a1 = node(f, "a1"), b1 = node(f, "b1");
    uint32_t path[8];

    (void)state;
    assert_int_equal(fabric_path_ports(f, a0, 1, a1, 1, path, LEN(path)), 2);
    assert_int_equal(path[0], 2 * fabric_link_by_name(f, "a0-na1"));
    assert_int_equal(path[1], 2 * fabric_link_by_name(f, "a1-na1") + 1);
    assert_int_equal(fabric_path_ports(f, a0, 2, a1, 2, path, LEN(path)), 4);
    assert_int_equal(fabric_path_ports(f, a0, 2, b1, 2, path, LEN(path)), 4);
    /* planes lead out of no node, and not from one to another */
    assert_int_equal(fabric_path_ports(f, a0, 0, b1, 0, path, LEN(path)), 0);
    assert_int_equal(fabric_path_ports(f, a0, 0, a1, 1, path, LEN(path)), 0);
    assert_int_equal(fabric_path_ports(f, a0, 0, a1, 2, path, LEN(path)), 0);
    assert_int_equal(fabric_path_ports(f, a0, 3, a1, 0, path, LEN(path)), 0);
    assert_int_equal(fabric_path_ports(f, a0, 0, a1, 3, path, LEN(path)), 0);
    assert_int_equal(fabric_path_ports(f, a0, 0, a0, 0, path, LEN(path)), 0);
    assert_int_equal(fabric_path_ports(f, a0, 2, node(f, "spine"), 77, path, LEN(path)), 2);
    assert_int_equal(fabric_path_ports(f, node(f, "spine"), 77, b1, 2, path, LEN(path)), 2);
    assert_int_equal(fabric_path_ports(f, a0, 2, b1, 2, path, 3), 0);
    fabric_free(f);
}

static void a_host_joins_each_tree_by_the_port_that_leads_there(void **state)
{
    struct fabric *f = load_text(two_nodes);
    const struct fab_tree *t = f->trees;

    (void)state;
    assert_int_equal(f->n_trees, 5);
    assert_int_equal(t[0].root, node(f, "spine"));
    assert_int_equal(t[0].domain, FAB_NONE);
    assert_int_equal(t[0].depth, 2);
    for (unsigned i = 0; i < f->n_hosts; i++)
        assert_int_equal(fabric_tree_port(f, &t[0], i), 2);
    assert_int_equal(t[0].parent[node(f, "b1")], node(f, "leaf1"));
    assert_int_equal(t[4].root, node(f, "nb1"));
    assert_int_equal(t[4].domain, 1);
    assert_int_equal(fabric_tree_port(f, &t[4], host(f, "b0")), 1);
    assert_int_equal(fabric_tree_port(f, &t[4], host(f, "a0")), FAB_NONE);
    assert_int_equal(fabric_tree_port(f, &t[4], 99), FAB_NONE);
    fabric_free(f);
}

/* Each rail has two cables to the spine; since a host's ordinal is counted at its rail, not at its
 * first port, a shift of the nodes uses both. */
static void balanced_paths_of_a_rail_never_share_a_link(void **state)
{
    struct fabric *f;
    unsigned load[64] = {0};
    uint32_t path[8];

    (void)state;
    f = load_text(two_nodes);
    assert_int_equal(fabric_path_ports(f, node(f, "a0"), 2, node(f, "a1"), 2, path, LEN(path)), 4);
    load[path[1]]++;
    assert_int_equal(fabric_path_ports(f, node(f, "b0"), 2, node(f, "b1"), 2, path, LEN(path)), 4);
    load[path[1]]++;
    for (unsigned i = 0; i < LEN(load); i++)
        assert_in_range(load[i], 0, 1);
    fabric_free(f);
}

static void multimem_is_for_nvswitches(void **state)
{
    static struct fab_errors errs;

    (void)state;
    assert_null(fabric_load_string(
        LINKS "single_switch = { hosts = 2; };\n"
              "nodes = ( { name = \"l\"; role = \"leaf\"; multimem = true; } );\n"
              "links = ( { a = \"h0\"; b = \"l\"; } );",
        "t.conf", &errs));
    assert_int_equal(errs.total, 1);
    assert_int_equal(errs.e[0].line, 3);
    assert_non_null(strstr(errs.e[0].text, "multimem: found it at \"leaf\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_that_share_an_nvswitch_are_a_node),
        cmocka_unit_test(nodes_are_joined_by_any_shared_plane),
        cmocka_unit_test(channels_are_planes_inside_a_node_and_rails_between_nodes),
        cmocka_unit_test(a_cable_between_two_hosts_is_their_channel),
        cmocka_unit_test(channels_have_the_same_number_from_either_end),
        cmocka_unit_test(fast_nics_are_a_channel),
        cmocka_unit_test(paths_go_from_port_to_port_within_one_network),
        cmocka_unit_test(a_host_joins_each_tree_by_the_port_that_leads_there),
        cmocka_unit_test(balanced_paths_of_a_rail_never_share_a_link),
        cmocka_unit_test(multimem_is_for_nvswitches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
