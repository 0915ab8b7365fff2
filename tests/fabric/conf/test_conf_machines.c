/* SPDX-License-Identifier: BSD-3-Clause */
/* `machines` of a conf: who runs what, and every mistake by line. */
#include "tests/fabric/load.h"

#define FABRIC                                                                                     \
    LINKS "leaf_spine = { leaves = 2; spines = 1; hosts_per_leaf = 2; };\n"                        \
          "trunk_key = \"a secret that the lab shares\";\n"

static unsigned machine_of(const struct fabric *f, const char *node)
{
    return fabric_node(f, node)->machine;
}

static const char *process_of(const struct fabric *f, const char *node)
{
    return f->procs[fabric_node(f, node)->proc].name;
}

static void hosts_live_with_their_switch_unless_named(void **state)
{
    struct fabric *f = load_text(FABRIC "machines = ( { name = \"east\"; address = \"192.0.2.1\"; "
                                        "nodes = (\"leaf0\", \"spine0\"); },\n"
                                        " { name = \"west\"; address = \"192.0.2.2\"; port = 99; "
                                        "nodes = (\"leaf1\", \"h0\"); } );");
    (void)state;

    assert_int_equal(f->n_machines, 2);
    assert_int_equal(f->machines[0].ip, 0xc0000201);
    assert_int_equal(f->machines[0].port, 4795);
    assert_int_equal(f->machines[1].port, 99);
    assert_int_equal(f->n_procs, 2);
    assert_int_equal(machine_of(f, "leaf0"), 0);
    assert_int_equal(machine_of(f, "h1"), 0);
    assert_int_equal(machine_of(f, "h0"), 1); /* named */
    assert_int_equal(machine_of(f, "h3"), 1);
    assert_string_equal(process_of(f, "h0"), "west");
    assert_string_equal(process_of(f, "h1"), "east");
    assert_string_equal(process_of(f, "spine0"), "east");
    fabric_free(f);
}

static void processes_divide_a_machine(void **state)
{
    struct fabric *f =
        load_text(FABRIC "processes = \"per_node\";\n"
                         "machines = ( { name = \"east\"; address = \"192.0.2.1\"; nodes = "
                         "(\"leaf0\", \"spine0\"); },\n"
                         " { name = \"west\"; address = \"192.0.2.2\"; nodes = (\"leaf1\"); } );");
    (void)state;

    assert_int_equal(f->n_procs, 3);
    for (unsigned i = 0; i < f->n_procs; i++)
        assert_int_equal(f->procs[i].machine, i == 1 ? 1 : 0);
    assert_string_equal(process_of(f, "h2"), "leaf1");
    fabric_free(f);
}

static void without_machines_nothing_changes(void **state)
{
    struct fabric *f =
        load_text(LINKS "leaf_spine = { leaves = 2; spines = 1; hosts_per_leaf = 2; };");
    (void)state;

    assert_int_equal(f->n_machines, 0);
    assert_int_equal(f->n_procs, 1);
    assert_string_equal(f->procs[0].name, "fabric");
    assert_int_equal(machine_of(f, "h0"), FAB_NONE);
    fabric_free(f);
}

#define TWO(a, b) FABRIC "machines = ( { " a " },\n { " b " } );"
#define EAST      "name = \"east\"; address = \"192.0.2.1\"; nodes = (\"leaf0\", \"spine0\");"
#define WEST      "name = \"west\"; address = \"192.0.2.2\"; nodes = (\"leaf1\");"

#define LONG16 "0123456789abcdef"
#define LONG   LONG16 LONG16 LONG16 LONG16 LONG16 LONG16 LONG16 LONG16

static void ports_are_in_order_of_preference(void **state)
{
    struct fabric *f = load_text(
        TWO(EAST " ports = (\"0000:3b:00.0\", \"net_af_packet0,iface=eth1\", \"udp\");", WEST));
    (void)state;

    assert_int_equal(f->machines[0].n_devices, 3);
    assert_string_equal(f->machines[0].device[0], "0000:3b:00.0");
    assert_string_equal(f->machines[0].device[1], "net_af_packet0,iface=eth1");
    assert_string_equal(f->machines[0].device[2], FAB_UDP);
    assert_int_equal(f->machines[1].n_devices, 0);
    fabric_free(f);
}

struct mistake {
    const char *text;
    int line;
    const char *says;
};

static void all_named(const struct mistake *cases, size_t n)
{
    static struct fab_errors errs;

    for (size_t i = 0; i < n; i++) {
        memset(&errs, 0, sizeof(errs));
        assert_null(fabric_load_string(cases[i].text, "test.conf", &errs));
        if (!strstr(errs.e[0].text, cases[i].says) || errs.e[0].line != cases[i].line)
            fail_msg("case %zu: line %d: %s", i, errs.e[0].line, errs.e[0].text);
    }
}

static void mistakes_of_ports_are_named(void **state)
{
    static const struct mistake cases[] = {
        {TWO(EAST, WEST " ports = ();"), 5, "ports: found 0, expected a list of 1 to 4 devices"},
        {TWO(EAST, WEST " ports = \"udp\";"), 5, "ports: found 0, expected a list"},
        {TWO(EAST, WEST " ports = (\"a\", \"b\", \"c\", \"d\", \"udp\");"), 5, "ports: found 5"},
        {TWO(EAST, WEST " ports = (3);"), 5, "ports: found \"no text\", expected a device"},
        {TWO(EAST, WEST " ports = (\"\");"), 5, "ports: found \"\", expected a device"},
        {TWO(EAST, WEST " ports = (\"udp\", \"0000:3b:00.0\");"), 5,
         "ports: found \"udp\", expected it as the last one"},
        {TWO(EAST, WEST " ports = (\"vhost:g.sock\");"), 5, "no socket of a guest"},
        {TWO(EAST, WEST " ports = (\"" LONG "\");"), 5, "expected at most 127 characters"},
    };
    (void)state;

    all_named(cases, LEN(cases));
}

static void every_mistake_is_named(void **state)
{
    static const struct mistake cases[] = {
        {FABRIC "machines = ();", 4, "machines: found 0, expected a list"},
        {FABRIC "machines = 3;", 4, "machines: found 0, expected a list"},
        {FABRIC "machines = ( 3 );", 4, "found 3, expected a group { name; address; nodes; }"},
        {TWO(EAST, "name = \"west\"; address = \"192.0.2.2\";"), 5,
         "found a machine without nodes"},
        {TWO(EAST, "address = \"192.0.2.2\"; nodes = (\"leaf1\");"), 5, "name: found \"\""},
        {TWO(EAST, "name = \"trunk\"; address = \"192.0.2.2\"; nodes = (\"leaf1\");"), 5,
         "name: found \"trunk\""},
        {TWO(EAST, "name = \"east\"; address = \"192.0.2.2\"; nodes = (\"leaf1\");"), 5,
         "that no other machine has"},
        {TWO(EAST, "name = \"west\"; address = \"west.lab\"; nodes = (\"leaf1\");"), 5,
         "address: found \"west.lab\""},
        {TWO(EAST, "name = \"west\"; nodes = (\"leaf1\");"), 5, "address: found \"\""},
        {TWO(EAST, "name = \"west\"; address = \"192.0.2.1\"; nodes = (\"leaf1\");"), 5,
         "which machine \"east\" has"},
        {TWO(EAST, "name = \"west\"; address = \"192.0.2.2\"; port = 0; nodes = (\"leaf1\");"), 5,
         "port: found 0"},
        {TWO(EAST, "name = \"west\"; address = \"192.0.2.2\"; nodes = (\"leaf9\");"), 5,
         "found \"leaf9\""},
        {TWO(EAST, "name = \"west\"; address = \"192.0.2.2\"; nodes = (\"leaf1\", \"leaf0\");"), 5,
         "found \"leaf0\" on machine \"east\" already"},
        {TWO("name = \"east\"; address = \"192.0.2.1\"; nodes = (\"leaf0\");", WEST), 4,
         "found switch \"spine0\" on none"},
        {TWO(EAST, WEST) "\nprocesses = ( { name = \"p\"; nodes = (\"leaf0\", \"leaf1\", "
                         "\"spine0\"); } );",
         6, "of process \"p\" on machine \"west\", expected all of its nodes on \"east\""},
        {TWO(EAST, WEST) "\nprocesses = ( { name = \"trunk\"; nodes = (\"leaf0\", \"spine0\"); },"
                         " { name = \"q\"; nodes = (\"leaf1\"); } );",
         6, "processes: found \"trunk\""},
        {LINKS "leaf_spine = { leaves = 2; spines = 1; hosts_per_leaf = 2; };\nmachines = ( { " EAST
               " },\n { " WEST " } );",
         3, "found no trunk_key"},
        {LINKS
         "leaf_spine = { leaves = 2; spines = 1; hosts_per_leaf = 2; };\ntrunk_key = \"short\";",
         3, "trunk_key: found 5 characters"},
    };
    (void)state;

    all_named(cases, LEN(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_live_with_their_switch_unless_named),
        cmocka_unit_test(processes_divide_a_machine),
        cmocka_unit_test(without_machines_nothing_changes),
        cmocka_unit_test(ports_are_in_order_of_preference),
        cmocka_unit_test(mistakes_of_ports_are_named),
        cmocka_unit_test(every_mistake_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
