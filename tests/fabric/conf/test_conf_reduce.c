/* SPDX-License-Identifier: BSD-3-Clause */
/* `reduce` of a conf: of the fabric and of single switches, and keys that only a protocol knows. */
#include "tests/fabric/load.h"

#include <stdio.h>
#include <string.h>

static void a_switch_reduces_as_it_says_and_else_as_the_fabric_says(void **state)
{
    struct fabric *f;

    (void)state;
    f = load_text(
        LINKS
        "reduce = { window = 5; };\n"
        "nodes = ( { name = (\"s0\", \"s1\"); role = \"leaf\"; reduce = { window = 9; }; },\n"
        " { name = \"s2\"; role = \"leaf\"; }, { name = \"s3\"; role = \"leaf\"; reduce = false; "
        "},\n"
        " { name = \"h\"; kind = \"host\"; } );\n"
        "links = ( { a = \"h\"; b = \"s0\"; }, { a = \"s0\"; b = (\"s1\", \"s2\", \"s3\"); } );");
    assert_int_equal(fabric_node(f, "s1")->reduce.window, 9);
    assert_int_equal(fabric_node(f, "s1")->reduce.max_groups, 64);
    assert_int_equal(fabric_node(f, "s2")->reduce.window, 5);
    assert_false(fabric_node(f, "s3")->reduce.on);
    assert_int_equal(fabric_node(f, "s3")->reduce.max_slots, 0);
    fabric_free(f);
}

/* As many keys as a protocol may have, whose names only the protocol knows: one more is refused,
 * and none is lost. */
static void keys_of_a_protocol_are_all_read_or_refused(void **state)
{
    (void)state;
    for (unsigned n = FAB_PROTOCOL_KEYS - 1; n <= FAB_PROTOCOL_KEYS + 4; n++) {
        struct fab_errors errs = {.n = 0};
        struct fabric *f;
        char text[1024];
        int at =
            snprintf(text, sizeof(text),
                     LINKS "single_switch = { hosts = 2; };\nreduce = { groups = 4; slots = 64; "
                           "window = 8;\nprotocol = \"tally\";");

        for (unsigned i = 0; i < n; i++)
            at += snprintf(text + at, sizeof(text) - (size_t)at, " key%u = %u;", i, i);
        snprintf(text + at, sizeof(text) - (size_t)at, " };\n");
        f = fabric_load_string(text, "keys.conf", &errs);
        if (n > FAB_PROTOCOL_KEYS) {
            assert_null(f);
            assert_int_equal(errs.total, 1);
            assert_int_equal(errs.e[0].line, 4);
            assert_non_null(strstr(errs.e[0].text,
                                   "key16: found more keys of a protocol, expected at most 16"));
            continue;
        }
        assert_non_null(f);
        for (fab_id i = 0; i < f->n_nodes; i++) {
            const struct fab_protocol *p = f->nodes[i].reduce.protocol;

            if (f->nodes[i].kind == FAB_HOST)
                continue;
            assert_int_equal(p->n_keys, n);
            assert_string_equal(p->key[n - 1].name, n == 15 ? "key14" : "key15");
            assert_int_equal(p->key[n - 1].value, n - 1);
        }
        fabric_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_switch_reduces_as_it_says_and_else_as_the_fabric_says),
        cmocka_unit_test(keys_of_a_protocol_are_all_read_or_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
