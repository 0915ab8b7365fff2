/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/provenance.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static json_t *run_of(int argc, const char *const *argv, bool real)
{
    struct provenance p;
    json_t *top = json_object(), *run;

    provenance_begin(&p, argc, argv);
    provenance_add(&p, top, real);
    provenance_end(&p);
    run = json_incref(json_object_get(top, "run"));
    json_decref(top);
    return run;
}

static void the_command_is_without_its_file_of_results(void **state)
{
    const char *argv[] = {
        "/usr/bin/trib-sim", "x.conf", "-J",      "a",     "-Jb", "--json", "c", "--json=d",
        "--output_f",        "e",      "--csv=f", "--csv", "g",   "-n",     "3", "-J"};
    json_t *run = run_of((int)(sizeof(argv) / sizeof(argv[0])), argv, false),
           *c = json_object_get(run, "command");
    static const char *const want[] = {"trib-sim", "x.conf", "-n", "3"};

    (void)state;
    assert_int_equal(json_array_size(c), 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(json_string_value(json_array_get(c, i)), want[i]);
    json_decref(run);
}

static void only_real_time_has_a_date_and_a_machine(void **state)
{
    const char *argv[] = {"trib-perf", "x.conf"};
    json_t *run = run_of(2, argv, true), *date = json_object_get(run, "date");

    (void)state;
    assert_int_equal(strlen(json_string_value(date)), strlen("2026-01-01T00:00:00Z"));
    assert_true(json_integer_value(json_object_get(json_object_get(run, "machine"), "cpus")) >= 1);
    json_decref(run);
    run = run_of(2, argv, false);
    assert_null(json_object_get(run, "date"));
    assert_null(json_object_get(run, "machine"));
    json_decref(run);
}

static void a_file_that_is_not_there_is_named_alone(void **state)
{
    struct provenance p;
    json_t *top = json_object(), *f;
    const char *argv[] = {"trib-sim"};

    (void)state;
    provenance_begin(&p, 1, argv);
    provenance_file(&p, NULL);
    provenance_file(&p, "");
    provenance_file(&p, "/nonexistent");
    provenance_file(&p, "/");
    provenance_add(&p, top, false);
    f = json_object_get(json_object_get(top, "run"), "files");
    assert_int_equal(json_array_size(f), 2);
    assert_int_equal(json_object_size(json_array_get(f, 0)), 1);
    assert_int_equal(json_object_size(json_array_get(f, 1)), 1);
    json_decref(top);
    provenance_end(&p);
}

static void a_shared_object_is_named_by_its_hash(void **state)
{
    /* printf 'a\0b' | sha256sum */
    static const char want[] = "59b271ae1bbcb1d31d41929817f4b16fb439eb4f31520b5ad1d5ce98920a7138";
    struct provenance p;
    json_t *top = json_object(), *f;
    const char *argv[] = {"trib-sim"};
    char path[] = "/tmp/provenance.XXXXXX";
    int fd = mkstemp(path);

    (void)state;
    assert_int_equal(write(fd, "a\0b", 3), 3);
    close(fd);
    provenance_begin(&p, 1, argv);
    provenance_file(&p, path);
    provenance_add(&p, top, false);
    f = json_array_get(json_object_get(json_object_get(top, "run"), "files"), 0);
    assert_string_equal(json_string_value(json_object_get(f, "sha256")), want);
    assert_null(json_object_get(f, "text"));
    json_decref(top);
    provenance_end(&p);
    unlink(path);
}

/* The file's entry: {"path", ...}, of a file with this text. */
static json_t *entry_of(const char *text)
{
    const char *argv[] = {"trib-sim"};
    char path[] = "/tmp/provenance.XXXXXX";
    json_t *top = json_object(), *f;
    struct provenance p;
    int fd = mkstemp(path);

    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    provenance_begin(&p, 1, argv);
    provenance_file(&p, path);
    provenance_add(&p, top, false);
    f = json_incref(json_array_get(json_object_get(json_object_get(top, "run"), "files"), 0));
    json_decref(top);
    provenance_end(&p);
    unlink(path);
    return f;
}

static void neither_text_nor_hash_tells_a_secret(void **state)
{
    json_t *a = entry_of("trunk_key = \"one secret of many\" \"x\";"),
           *b = entry_of("trunk_key = /* y */ \"another of them\";"),
           *broken = entry_of("trunk_key = \"one secret of many\"; }");

    (void)state;
    assert_string_equal(json_string_value(json_object_get(a, "text")),
                        "trunk_key = \"****************\";\n");
    assert_string_equal(json_string_value(json_object_get(a, "secrets")), "hidden");
    assert_string_equal(json_string_value(json_object_get(a, "sha256")),
                        json_string_value(json_object_get(b, "sha256")));
    assert_null(json_object_get(broken, "text"));
    assert_null(json_object_get(broken, "sha256"));
    assert_string_equal(json_string_value(json_object_get(broken, "secrets")), "hidden");
    json_decref(a);
    json_decref(b);
    json_decref(broken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_command_is_without_its_file_of_results),
        cmocka_unit_test(only_real_time_has_a_date_and_a_machine),
        cmocka_unit_test(a_file_that_is_not_there_is_named_alone),
        cmocka_unit_test(a_shared_object_is_named_by_its_hash),
        cmocka_unit_test(neither_text_nor_hash_tells_a_secret),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
