/* SPDX-License-Identifier: BSD-3-Clause */
/* The node, link or host that somebody meant. */
#include "tests/fabric/load.h"

static void a_node_or_a_host_is_found_by_a_wrong_name(void **state)
{
    struct fabric *f = load_leaf_spine(2, 2, 2, 1, "");

    (void)state;
    assert_string_equal(fabric_near_node(f, "laef0", false), "leaf0");
    assert_null(fabric_near_node(f, "laef0", true));
    assert_string_equal(fabric_near_node(f, "spine-1", false), "spine1");
    assert_null(fabric_near_node(f, "core0", false));
    assert_string_equal(fabric_near_node(f, "H-3", true), "h3");
    assert_string_equal(fabric_near_node(f, "H-3", false), "h3");
    fabric_free(f);
}

static void a_link_is_found_by_its_ends_in_either_order_with_ports_or_without(void **state)
{
    static const struct {
        const char *name, *hint;
    } rows[] = {
        {"h1-laef0", "; did you mean h1-leaf0?"},
        {"laef0-h1", "; did you mean leaf0-h1?"},
        {"leaf1-h3x", "; did you mean leaf1-h3?"},
        {"h1:0-laef0:1", "; did you mean h1:0-leaf0:1?"},
        {"laef1:1-h3:0", "; did you mean leaf1:1-h3:0?"},
        {"h0:leaf0", "; did you mean h0:0-leaf0:0?"},
        {"h3:laef1", "; did you mean h3-leaf1?"},
        {"leaf0-spin0", "; did you mean leaf0:2-spine0:0?"}, /* one of two cables */
        {"spin1-leaf1", "; did you mean leaf1:4-spine1:2?"},
        {"xyz-abc", ""},
        {"", ""},
    };
    struct fabric *f = load_leaf_spine(2, 2, 2, 2, "");
    char buf[FABRIC_HINT];

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++)
        assert_string_equal(fabric_link_hint(f, rows[i].name, buf, sizeof(buf)), rows[i].hint);
    fabric_free(f);
}

static void a_host_is_named_or_all_there_are(void **state)
{
    struct fabric *f = load_leaf_spine(2, 2, 2, 1, "");
    char buf[FABRIC_HINT];

    (void)state;
    assert_string_equal(fabric_host_hint(f, "H_2", buf, sizeof(buf)), "; did you mean h2?");
    assert_string_equal(fabric_host_hint(f, "leaf0", buf, sizeof(buf)), ", which has 4: h0 to h3");
    fabric_free(f);
    f = load_text(LINKS "single_switch = { hosts = 1; };");
    assert_string_equal(fabric_host_hint(f, "other", buf, sizeof(buf)), ", which has h0");
    fabric_free(f);
    f = load_text(LINKS "nodes = ( { name = \"s\"; role = \"leaf\"; } );\n"
                        "links = ( { a = \"s\"; port = \"net_tap0\"; } );");
    assert_string_equal(fabric_host_hint(f, "other", buf, sizeof(buf)), ", which has none");
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_or_a_host_is_found_by_a_wrong_name),
        cmocka_unit_test(a_link_is_found_by_its_ends_in_either_order_with_ports_or_without),
        cmocka_unit_test(a_host_is_named_or_all_there_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
