/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports, addresses, tiers, flooding and processes computed from a file's nodes and links. */
#include "tests/fabric/load.h"

#include <errno.h>

/* Every link and its two ports agree. */
static void check_ports(const struct fabric *f)
{
    unsigned linked = 0;

    for (unsigned i = 0; i < f->n_links; i++) {
        const struct fab_link *l = &f->links[i];
        const struct fab_port *a = &f->nodes[l->a].ports[l->a_port],
                              *b = &f->nodes[l->b].ports[l->b_port];

        assert_true(a->link == i && a->peer_node == l->b && a->peer_port == l->b_port);
        assert_true(b->link == i && b->peer_node == l->a && b->peer_port == l->a_port);
    }
    for (unsigned i = 0; i < f->n_nodes; i++)
        for (unsigned p = 0; p < f->nodes[i].n_ports; p++)
            linked += f->nodes[i].ports[p].link != FAB_NONE;
    assert_int_equal(linked, 2 * f->n_links);
}

static void links_and_ports_agree(void **state)
{
    static const unsigned rows[][4] = {
        {1, 1, 1, 1}, {2, 2, 4, 1}, {4, 3, 2, 2}, {32, 16, 32, 2}, {8, 4, 100, 1}};
    struct fabric *f;

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        f = load_leaf_spine(rows[i][0], rows[i][1], rows[i][2], rows[i][3], "");
        assert_int_equal(f->n_hosts, rows[i][0] * rows[i][2]);
        assert_int_equal(f->n_switches, rows[i][0] + rows[i][1]);
        assert_int_equal(f->n_links, f->n_hosts + rows[i][0] * rows[i][1] * rows[i][3]);
        check_ports(f);
        fabric_free(f);
    }
    f = load_file(THREE_TIER);
    check_ports(f);
    fabric_free(f);
}

static void hosts_of_a_template_come_leaf_by_leaf(void **state)
{
    struct fabric *f = load_leaf_spine(2, 2, 4, 1, "");

    (void)state;
    for (unsigned i = 0; i < f->n_hosts; i++) {
        const struct fab_node *h = &f->nodes[f->hosts[i]];

        assert_int_equal(h->host_index, i);
        assert_int_equal(h->ordinal, i % 4);
        assert_int_equal(h->ports[0].peer_node, node(f, i < 4 ? "leaf0" : "leaf1"));
        assert_int_equal(h->ports[0].peer_port, i % 4);
    }
    assert_string_equal(f->nodes[f->hosts[5]].name, "h5");
    fabric_free(f);
}

static void named_ports_are_kept_and_others_take_the_lowest_free_one(void **state)
{
    struct fabric *f;

    (void)state;
    f = load_text(LINKS "nodes = ( { name = (\"a\", \"b\", \"c\", \"d\"); kind = \"host\"; }, { "
                        "name = \"s\"; kind = \"switch\"; } );\n"
                        "links = ( { a = (\"a\", \"b\"); b = \"s\"; }, { a = \"s:1\"; b = \"c\"; "
                        "}, { a = \"d:0\"; b = \"s:5\"; } );");
    assert_int_equal(fabric_node(f, "a")->ports[0].peer_port, 0);
    assert_int_equal(fabric_node(f, "b")->ports[0].peer_port, 2);
    assert_int_equal(fabric_node(f, "c")->ports[0].peer_port, 1);
    assert_int_equal(fabric_node(f, "d")->ports[0].peer_port, 5);
    assert_int_equal(fabric_node(f, "s")->n_ports, 6);
    assert_string_equal(f->links[2].name, "s:1-c:0");
    check_ports(f);
    fabric_free(f);
}

static void addresses_are_unique_and_lead_back_to_their_owner(void **state)
{
    struct fabric *f = load_leaf_spine(32, 16, 32, 1, "");

    (void)state;
    assert_int_equal(f->n_dests, 1024 + 48);
    for (unsigned d = 0; d < f->n_dests; d++) {
        const struct fab_node *n = &f->nodes[f->dests[d].node];

        /* Going back to exactly d is what makes them unique. */
        assert_int_equal(fabric_dest_of_ip(f, f->dests[d].ip), d);
        assert_int_equal(f->dests[d].ip >> 24, 10);
        assert_int_equal(n->dest + f->dests[d].port, d);
        if (n->kind == FAB_HOST)
            assert_int_equal(n->ip_of_port[f->dests[d].port], f->dests[d].ip);
        else
            assert_int_equal(n->ip, f->dests[d].ip);
    }
    fabric_free(f);
}

static void every_port_of_a_host_has_an_address(void **state)
{
    struct fabric *f;

    (void)state;
    f = load_text(LINKS "nodes = ( { name = (\"a\", \"b\"); kind = \"host\"; }, { name = (\"s0\", "
                        "\"s1\"); role = \"nvswitch\"; } );\n"
                        "links = ( { a = (\"a\", \"b\"); b = (\"s0\", \"s1\"); cables = 2; } );");
    assert_int_equal(f->n_dests, 2 * 4 + 2);
    for (unsigned d = 0; d < f->n_dests; d++)
        assert_int_equal(fabric_dest_of_ip(f, f->dests[d].ip), d);
    fabric_free(f);
}

static void strange_addresses_are_nobodys(void **state)
{
    static const uint32_t strange[] = {0,          0x0a000000, 0x0a000005, 0x0a0000ff, 0x0a000801,
                                       0x0a010000, 0x0a010002, 0x0b000001, 0xffffffff, 0x0a0001fb};
    struct fabric *f = load_text(LINKS "single_switch = { hosts = 4; };");

    (void)state;
    assert_int_equal(fabric_dest_of_ip(f, 0x0a000001), 0);
    for (unsigned i = 0; i < LEN(strange); i++)
        assert_int_equal(fabric_dest_of_ip(f, strange[i]), -ENOENT);
    fabric_free(f);
}

static void plain_switches_rise_with_their_distance_from_hosts(void **state)
{
    struct fabric *f;

    (void)state;
    f = load_text(LINKS "nodes = ( { name = (\"a\", \"b\"); kind = \"host\"; }, { name = (\"s0\", "
                        "\"s1\", \"s2\"); kind = \"switch\"; } );\n"
                        "links = ( { a = \"a\"; b = \"s0\"; }, { a = \"b\"; b = \"s2\"; }, { a = "
                        "\"s0\"; b = \"s1\"; },\n"
                        "{ a = \"s1\"; b = \"s2\"; } );");
    assert_int_equal(fabric_node(f, "s0")->tier, 1);
    assert_int_equal(fabric_node(f, "s1")->tier, 2);
    assert_int_equal(fabric_node(f, "s2")->tier, 1);
    fabric_free(f);
    f = load_file(THREE_TIER);
    assert_int_equal(fabric_node(f, "leaf3")->tier, 1);
    assert_int_equal(fabric_node(f, "spine3")->tier, 2);
    assert_int_equal(fabric_node(f, "core1")->tier, 3);
    assert_int_equal(fabric_node(f, "h0")->tier, 0);
    fabric_free(f);
}

/* Floods from node and counts the nodes that get a copy; a second copy would be a loop. */
static unsigned flood(const struct fabric *f, uint16_t at, uint16_t in_port, uint8_t *seen)
{
    const struct fab_node *n = &f->nodes[at];
    unsigned got = 1;

    assert_int_equal(seen[at]++, 0);
    for (unsigned p = 0; p < n->n_ports; p++)
        if (p != in_port && n->ports[p].flood && (n->kind == FAB_SWITCH || in_port == FAB_NONE))
            got += flood(f, n->ports[p].peer_node, n->ports[p].peer_port, seen);
    return got;
}

static void a_flooded_frame_reaches_every_node_once(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct fabric *f = i == 0 ? load_leaf_spine(4, 3, 3, 2, "")
                                  : load_file(i == 1 ? THREE_TIER : "conf/two-hosts.conf");
        uint8_t seen[64] = {0};

        assert_int_equal(flood(f, f->hosts[1], FAB_NONE, seen), f->n_nodes);
        fabric_free(f);
    }
}

static void processes_hold_every_node_once(void **state)
{
    static const char *const modes[] = {
        "", "processes = \"one\";", "processes = \"per_node\";",
        "processes = ( { name = \"x\"; nodes = (\"leaf0\", \"spine1\"); },\n"
        "{ name = \"y\"; nodes = [\"leaf1\", \"spine0\", \"h0\"]; } );"};
    static const unsigned count[] = {1, 1, 4, 2};

    (void)state;
    for (unsigned m = 0; m < LEN(modes); m++) {
        struct fabric *f = load_leaf_spine(2, 2, 4, 1, modes[m]);
        unsigned nodes = 0;

        assert_int_equal(f->n_procs, count[m]);
        for (unsigned p = 0; p < f->n_procs; p++) {
            nodes += f->procs[p].n_nodes;
            for (unsigned i = 0; i < f->procs[p].n_nodes; i++)
                assert_int_equal(f->nodes[f->procs[p].nodes[i]].proc, p);
        }
        assert_int_equal(nodes, f->n_nodes);
        /* A NIC runs in the process of its leaf unless the file says otherwise. */
        assert_int_equal(fabric_node(f, "h1")->proc, fabric_node(f, "leaf0")->proc);
        assert_int_equal(fabric_node(f, "h7")->proc, fabric_node(f, "leaf1")->proc);
        if (m == 3)
            assert_string_equal(f->procs[fabric_node(f, "h0")->proc].name, "y");
        if (m == 2)
            assert_string_equal(f->procs[fabric_node(f, "spine1")->proc].name, "spine1");
        fabric_free(f);
    }
}

static void two_hosts_back_to_back_share_a_process(void **state)
{
    struct fabric *f;

    (void)state;
    f = load_text(
        LINKS
        "processes = \"per_node\";\nnodes = ( { name = (\"a\", \"b\"); kind = \"host\"; } );\n"
        "links = ( { a = \"a\"; b = \"b\"; } );");
    assert_int_equal(f->n_procs, 1);
    assert_string_equal(f->procs[0].name, "a");
    assert_int_equal(f->procs[0].n_nodes, 2);
    fabric_free(f);
}

static void links_are_found_by_full_and_by_short_name(void **state)
{
    struct fabric *f = load_leaf_spine(2, 2, 2, 2, "");

    (void)state;
    assert_int_equal(fabric_link_by_name(f, "h1:0-leaf0:1"), 1);
    assert_int_equal(fabric_link_by_name(f, "leaf0:1-h1:0"), 1);
    assert_int_equal(fabric_link_by_name(f, "h1-leaf0"), 1);
    assert_int_equal(fabric_link_by_name(f, "leaf0-h1"), 1);
    assert_int_equal(fabric_link_by_name(f, "leaf0-spine0"), -EINVAL);
    assert_int_equal(fabric_link_by_name(f, "leaf0:3-spine0:1"), 5);
    assert_int_equal(fabric_link_by_name(f, "h1-leaf1"), -ENOENT);
    assert_int_equal(fabric_link_by_name(f, ""), -ENOENT);
    for (unsigned i = 0; i < f->n_links; i++)
        assert_int_equal(fabric_link_by_name(f, f->links[i].name), i);
    assert_null(fabric_node(f, "leaf2"));
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_and_ports_agree),
        cmocka_unit_test(hosts_of_a_template_come_leaf_by_leaf),
        cmocka_unit_test(named_ports_are_kept_and_others_take_the_lowest_free_one),
        cmocka_unit_test(addresses_are_unique_and_lead_back_to_their_owner),
        cmocka_unit_test(every_port_of_a_host_has_an_address),
        cmocka_unit_test(strange_addresses_are_nobodys),
        cmocka_unit_test(plain_switches_rise_with_their_distance_from_hosts),
        cmocka_unit_test(a_flooded_frame_reaches_every_node_once),
        cmocka_unit_test(processes_hold_every_node_once),
        cmocka_unit_test(two_hosts_back_to_back_share_a_process),
        cmocka_unit_test(links_are_found_by_full_and_by_short_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
