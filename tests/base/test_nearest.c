/* SPDX-License-Identifier: BSD-3-Clause */
/* The name that a mistyped one was meant to be. */
#include "base/nearest.h"
#include "tests/fabric/load.h"

#include <errno.h>

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

/* Of a list of its own: two letters at most, and less than half of them. */
static void two_letters_and_less_than_half_may_be_wrong(void **state)
{
    static const struct {
        const char *found, *names[4], *meant;
    } rows[] = {
        {"abcde", {"abcde"}, "abcde"},
        {"abcde", {"abxyz"}, NULL},
        {"abcde", {"abcxy"}, "abcxy"}, /* 2 of 5 */
        {"abcd", {"abxy"}, NULL},      /* 2 of 4 */
        {"abcd", {"abcx"}, "abcx"},
        {"ab", {"ax"}, NULL}, /* 1 of 2 */
        {"a", {"a"}, "a"},
        {"a", {"A"}, "A"},
        {"abcdef", {"abcdefgh"}, "abcdefgh"},
        {"abcdefgh", {"abcdef"}, "abcdef"},
        {"abcdefghi", {"abcdef"}, NULL},
        {"abcdef", {"cdef"}, "cdef"},
        {"abcdef", {"xyabcdef"}, "xyabcdef"},
        {"abcdef", {"badcef"}, "badcef"}, /* two exchanges */
        {"abcdef", {"badcfe"}, NULL},     /* three */
        {"abc", {"bac"}, "bac"},
        {"abcxdef", {"abcdefy"}, "abcdefy"},
        {"ace", {"abcde"}, NULL}, /* 2 of 3 */
        {"abc", {"abcdefghij"}, "abcdefghij"},
        {"ab", {"abcdefghij"}, NULL},
        {"abcd", {"abcdefgh", "abxd"}, "abxd"}, /* close before what begins so */
        {"abcd", {"abxd", "abcx", "abcd"}, "abcd"},
        {"abcd", {"abxd", "abcx"}, "abxd"}, /* the first of several alike */
        {"abc", {"abcdefg", "abcdefgh"}, "abcdefg"},
        {"one-two", {"two_one", "onetwo"}, "two_one"},
        {"one-two-three", {"three two.one"}, "three two.one"},
        {"b:a.c", {"a b-c"}, "a b-c"},
        {"abcd", {"", "abcd"}, "abcd"},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        unsigned n = 0;
        const char *near;

        while (n < 4 && rows[i].names[n])
            n++;
        near = nearest_of(rows[i].found, rows[i].names, n);
        if (rows[i].meant ? !near || strcmp(near, rows[i].meant) != 0 : near != NULL)
            fail_msg("\"%s\" was taken for \"%s\"", rows[i].found, near ? near : "nothing");
    }
}

static const char *one_of_two(const void *ctx, unsigned i)
{
    return i < 2 ? ((const char *const *)ctx)[i] : NULL;
}

static void names_of_120_letters_are_compared(void **state)
{
    char name[2][128], found[128];
    const char *two[] = {name[0], name[1]};

    (void)state;
    memset(name, 'x', sizeof(name));
    memset(found, 'x', sizeof(found));
    strcpy(name[0] + 119, "yz"); /* 121 */
    strcpy(name[1] + 119, "y");  /* 120 */
    strcpy(found + 119, "z");
    assert_int_equal(nearest_index(found, one_of_two, two), 1);
    strcpy(found + 119, "zz");
    assert_int_equal(nearest_index(found, one_of_two, two), -ENOENT);
    /* of words, the first 16 are put in order */
    strcpy(found, "p o n m l k j i h g f e d c b a q");
    strcpy(name[0], "a b c d e f g h i j k l m n o p");
    strcpy(name[1], "q");
    assert_int_equal(nearest_index(found, one_of_two, two), 0);
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
        cmocka_unit_test(two_letters_and_less_than_half_may_be_wrong),
        cmocka_unit_test(names_of_120_letters_are_compared),
        cmocka_unit_test(hints_end_a_message),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
