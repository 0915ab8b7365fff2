/* SPDX-License-Identifier: BSD-3-Clause */
/* Secrets of confs are hidden whatever their spelling; what has none stays as it is. */
#include "base/secret.h"

#include <libconfig.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Parts of the key are "swordfish" and "marlin", in plain letters or escaped. */
static const char *const spellings[] = {
    "trunk_key = \"swordfish\";",
    "trunk_key : \"swordfish\"",
    "trunk_key = \"swordfish\" \"marlin\";",
    "trunk_key = \"swordfish\"\n   \"marlin\"\n;",
    "trunk_key = /* \"no\" */ \"swordfish\";",
    "trunk_key // \"no\"\n = # \"no\"\n \"swordfish\";",
    "trunk_key = \"sword\\\"fish swordfish\";",
    "trunk_key = \"\\x73wordfish marlin\";",
    "# trunk_key = \"swordfish\"\nname = \"x\";",
    "a = \"/* trunk_key\"; trunk_key = \"swordfish\";",
    "a = { b = ( { trunk_key = \"swordfish\"; } ); };",
    "machines = ( ( { x = 1; trunk_key = \"swordfish\"; }, 2 ) );",
    "trunk_key = [ \"swordfish\", \"marlin\" ];",
    "trunk_key = ( \"swordfish\", { a = \"marlin\"; } );",
    "trunk_key = { a = \"swordfish\"; };",
    "TRUNK_KEY = \"swordfish\";",
    "trunk-key = \"swordfish\";",
    "trunkKey = \"swordfish\";",
    "my_trunk_key2 = \"swordfish\";",
    "\xef\xbb\xbftrunk_key = \"swordfish\";",
};

static void no_spelling_shows_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < LEN(spellings); i++) {
        char *shown = secret_hide(spellings[i]);
        config_t c;

        assert_true(secret_named(spellings[i]));
        assert_non_null(shown);
        assert_null(strstr(shown, "word"));
        assert_null(strstr(shown, "marlin"));
        assert_null(strstr(shown, "\\x73"));
        config_init(&c);
        assert_int_equal(config_read_string(&c, shown), CONFIG_TRUE);
        config_destroy(&c);
        free(shown);
    }
}

static void where_it_is_unknown_nothing_is_shown(void **state)
{
    static const char *const broken[] = {"trunk_key = \"swordfish\"; trunk_key = \"marlin\";",
                                         "trunk_key = \"swordfish", "trunk_key = swordfish;",
                                         "@include \"x\"\ntrunk_key = \"swordfish\";",
                                         "}{ trunk_key = \"swordfish\";"};

    (void)state;
    for (size_t i = 0; i < LEN(broken); i++)
        assert_null(secret_hide(broken[i]));
}

static void what_has_none_stays(void **state)
{
    static const char text[] = "# a comment\nname  =  \"trunk\"; key = 0x1F; broken = ";
    char *shown = secret_hide(text);

    (void)state;
    assert_false(secret_named(text));
    assert_string_equal(shown, text);
    free(shown);
}

static void the_rest_is_the_same_when_it_is_read_again(void **state)
{
    static const char text[] =
        "trunk_key = \"swordfish\"; a = 0.1; b = 1e-12; c = 3.0; d = -7; e = 5000000000L; f = true;"
        "g = \"q\\\"b\\\\ \\n\\x01 \xc3\xa9\"; h = [ 1, 2 ]; i = ( 1, \"x\", { y = 2.5; }, () ); j "
        "= {};";
    static const char want[] =
        "trunk_key = \"" SECRET_HIDDEN
        "\";\na = 0.10000000000000001;\nb = 9.9999999999999998e-13;\n"
        "c = 3.0;\nd = -7;\ne = 5000000000L;\nf = true;\ng = \"q\\\"b\\\\ \\x0a\\x01 \xc3\xa9\";\n"
        "h = [1, 2];\ni = (1, \"x\", {\n        y = 2.5;\n    }, ());\nj = {\n};\n";
    char *once = secret_hide(text), *twice;

    (void)state;
    assert_string_equal(once, want);
    twice = secret_hide(once);
    assert_string_equal(twice, once);
    free(twice);
    free(once);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_spelling_shows_it),
        cmocka_unit_test(where_it_is_unknown_nothing_is_shown),
        cmocka_unit_test(what_has_none_stays),
        cmocka_unit_test(the_rest_is_the_same_when_it_is_read_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
