/* SPDX-License-Identifier: BSD-3-Clause */
/* The name that a mistyped one was meant to be. */
#include "base/nearest.h"
#include "tests/fabric/load.h"

static const char *const names[] = {
    "leaf-spine-8",    "leaf-spine-8-procs", "leaf-spine-64", "two-hosts", "h100-node", "h100-su",
    "cluster-128-edr", "h0-leaf0",           "h0:0-leaf1:3",  "ring",      "tree",      "",
};

static void finds_what_was_meant(void **state)
{
    static const struct {
        const char *found, *meant;
    } rows[] = {
        {"leafspine-8", "leaf-spine-8"},
        {"leafspine8", "leaf-spine-8"},
        {"Leaf_Spine_8", "leaf-spine-8"},
        {"spine-leaf-8", "leaf-spine-8"},
        {"leaf-spin-8", "leaf-spine-8"},
        {"leaf-spien-8", "leaf-spine-8"},
        {"laefspine-8", "leaf-spine-8"},
        {"leaf-spine-8-proc", "leaf-spine-8-procs"},
        {"leaf-spine", "leaf-spine-8"},
        {"host-two", NULL},
        {"hosts-two", "two-hosts"},
        {"cluster", "cluster-128-edr"},
        {"h100", "h100-node"}, /* the first that begins so */
        {"h100-n", "h100-su"},
        {"leaf0-h0", "h0-leaf0"},
        {"h0:leaf0", "h0-leaf0"},
        {"leaf1:3-h0:0", "h0:0-leaf1:3"},
        {"rnig", "ring"},
        {"RING", "ring"},
        {"rg", NULL},
        {"xyz", NULL},
        {"", NULL},
        {"---", NULL},
        {"trees of more letters than any of the names that are compared with what was found by the "
         "program, and of more than a line",
         NULL},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        const char *near = nearest_of(rows[i].found, names, LEN(names));

        if (rows[i].meant ? !near || strcmp(near, rows[i].meant) != 0 : near != NULL)
            fail_msg("\"%s\" was taken for \"%s\", expected \"%s\"", rows[i].found,
                     near ? near : "nothing", rows[i].meant ? rows[i].meant : "nothing");
    }
}

static void hints_end_a_message(void **state)
{
    char buf[40];

    (void)state;
    assert_string_equal(nearest_hint("ring", buf, sizeof(buf)), "; did you mean ring?");
    assert_string_equal(nearest_hint(NULL, buf, sizeof(buf)), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_was_meant),
        cmocka_unit_test(hints_end_a_message),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
