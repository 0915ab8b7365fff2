/* SPDX-License-Identifier: BSD-3-Clause */
/* `access` of a conf: who may use which hosts, and every mistake by line. */
#include "tests/fabric/load.h"

#define FABRIC LINKS "single_switch = { hosts = 4; };\n"

static void users_and_groups_have_hosts(void **state)
{
    struct fabric *f =
        load_text(FABRIC "access = ( { user = \"alice\"; hosts = ( \"h1\", \"h3\" ); },\n"
                         " { group = \"teachers\"; hosts = \"all\"; } );");
    (void)state;

    assert_int_equal(f->n_access, 2);
    assert_string_equal(f->access[0].name, "alice");
    assert_false(f->access[0].group);
    assert_false(f->access[0].all);
    assert_int_equal(f->access[0].n_hosts, 2);
    assert_string_equal(f->nodes[f->access[0].hosts[1]].name, "h3");
    assert_string_equal(f->access[1].name, "teachers");
    assert_true(f->access[1].group);
    assert_true(f->access[1].all);
    fabric_free(f);
}

static void mistakes_are_named(void **state)
{
    static const struct {
        const char *text;
        int line;
        const char *says;
    } cases[] = {
        {FABRIC "access = ();", 3, "access: found 0, expected a list"},
        {FABRIC "access = \"alice\";", 3, "access: found 0, expected a list"},
        {FABRIC "access = ( 3 );", 3, "expected a group { user or group; hosts; }"},
        {FABRIC "access = ( { hosts = \"all\"; } );", 3,
         "found access with neither user nor group"},
        {FABRIC "access = ( { user = \"a\"; group = \"b\"; hosts = \"all\"; } );", 3,
         "found access with user and group"},
        {FABRIC "access = ( { user = \"a\"; } );", 3, "found access without hosts"},
        {FABRIC "access = ( { user = \"a\"; hosts = ( ); } );", 3, "found access without hosts"},
        {FABRIC "access = ( { user = \"a\"; hosts = \"some\"; } );", 3,
         "found access without hosts"},
        {FABRIC "access = ( { user = \"a\"; hosts = ( \"h9\" ); } );", 3, "h9"},
        {FABRIC "access = ( { user = \"a\"; hosts = ( \"switch0\" ); } );", 3,
         "found \"switch0\", which is a switch, expected a host"},
        {FABRIC "access = ( { user = \"a\"; host = ( \"h0\" ); } );", 3, "unknown key \"host\""},
        {FABRIC
         "trunk_key = \"0123456789abcdef\";\naccess = ( { user = \"a\"; hosts = \"all\"; } );",
         4, "found a trunk_key"},
    };
    static struct fab_errors errs;
    (void)state;

    for (size_t i = 0; i < LEN(cases); i++) {
        memset(&errs, 0, sizeof(errs));
        assert_null(fabric_load_string(cases[i].text, "test.conf", &errs));
        if (!strstr(errs.e[0].text, cases[i].says) || errs.e[0].line != cases[i].line)
            fail_msg("case %zu: line %d: %s", i, errs.e[0].line, errs.e[0].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_and_groups_have_hosts),
        cmocka_unit_test(mistakes_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
