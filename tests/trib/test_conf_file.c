/* SPDX-License-Identifier: BSD-3-Clause */
/* Confs and the files beside them, in a checkout of the test's own: which word is one, and what a name means. */
#include "trib/conf_file.h"

#include "tests/trib/words_test.h"
#include "trib/find.h"
#include "trib/run/text.h"
#include "trib/where.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[PATH_MAX];

static const char *at(const char *name)
{
    return text_of("%s/%s", top, name);
}

static void file_make(const char *name)
{
    FILE *f = fopen(at(name), "w");

    assert_non_null(f);
    fclose(f);
}

static int checkout_make(void **state)
{
    static const char *const folders[] = {"scripts", "conf",        "conf/faults", "conf/schedules",
                                          "run",     "tributary-x", "work"};

    (void)state;
    strcpy(top, "/tmp/test_conf_file.XXXXXX");
    assert_non_null(mkdtemp(top));
    for (unsigned i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        assert_int_equal(mkdir(at(folders[i]), 0700), 0);
    file_make("scripts/trib");
    file_make("conf/two.conf");
    file_make("conf/faults/flap.conf");
    file_make("conf/schedules/ring-8.sched");
    setenv("XDG_RUNTIME_DIR", at("run"), 1);
    unsetenv("TRIB_RUN");
    find_begin(at("scripts/trib"));
    where_begin();
    assert_int_equal(mkdir(where_base(), 0700), 0);
    assert_int_equal(mkdir(text_of("%s/mine", where_base()), 0700), 0);
    assert_int_equal(chdir(at("work")), 0);
    file_make("work/two");
    return 0;
}

static int checkout_remove(void **state)
{
    static const char *const files[] = {"scripts/trib", "conf/two.conf", "conf/faults/flap.conf",
                                        "conf/schedules/ring-8.sched", "work/two"};
    static const char *const folders[] = {"conf/faults", "conf/schedules", "conf", "scripts",
                                          "tributary-x", "work",           "run"};

    (void)state;
    for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        unlink(at(files[i]));
    rmdir(text_of("%s/mine", where_base()));
    rmdir(where_base());
    for (unsigned i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        rmdir(at(folders[i]));
    return rmdir(top);
}

static void which_word_is_a_conf(void **state)
{
    static const struct {
        const char *word;
        bool is;
    } rows[] = {{"two", true},   {"x.conf", true},   {"a/b", true},    {"mine", true},
                {"flap", false}, {"nothing", false}, {"", false},      {"-b", false},
                {".two", false}, {"t wo", false},    {"ring-8", false}};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(conf_file_is_conf(rows[i].word), rows[i].is);
}

static void names_are_plain(void **state)
{
    (void)state;
    assert_true(conf_file_is_name("a") && conf_file_is_name("_A.b-9"));
    assert_false(conf_file_is_name("") || conf_file_is_name("-a") || conf_file_is_name(".a") ||
                 conf_file_is_name("a/b") || conf_file_is_name("a b"));
}

static void files_by_name_and_path(void **state)
{
    static const struct {
        const char *word, *kind, *found;
    } rows[] = {{"two", NULL, "work/two"},
                {"two.conf", NULL, "conf/two.conf"},
                {"conf/two.conf", NULL, "conf/two.conf"},
                {"./conf/two", "", "conf/two.conf"},
                {"flap", NULL, "conf/faults/flap.conf"},
                {"flap", "faults", "conf/faults/flap.conf"},
                {"conf/faults/flap.conf", "faults", "conf/faults/flap.conf"},
                {"faults/flap", NULL, "conf/faults/flap.conf"},
                {"ring-8", "schedules", "conf/schedules/ring-8.sched"},
                {"flap", "schedules", NULL},
                {"/two.conf", NULL, NULL},
                {"nothing", NULL, NULL}};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *found = conf_file_find(rows[i].word, rows[i].kind, NULL);

        assert_int_equal(!found, !rows[i].found);
        if (found)
            assert_string_equal(found, at(rows[i].found));
    }
}

static void says_why_there_is_none(void **state)
{
    char *why;

    (void)state;
    assert_null(conf_file_find("tow.conf", NULL, &why));
    assert_string_equal(why, "found no conf file 'tow.conf', expected a path such as "
                             "conf/two-hosts.conf or a name such as two-hosts; did "
                             "you mean two?");
    assert_null(conf_file_find("ring-9", "schedules", &why));
    assert_string_equal(why, "found no schedule file 'ring-9', expected a path such as "
                             "conf/schedules/ring-8.sched or a name such as "
                             "ring-8; did you mean ring-8?");
    assert_null(conf_file_find(".", NULL, &why));
    assert_string_equal(
        why, "found the directory '.', expected a conf file such as conf/two-hosts.conf");
}

static void names_that_are_offered(void **state)
{
    struct words names = conf_file_names(NULL);

    (void)state;
    assert_words(&names, "mine|two");
    names = conf_file_names("schedules");
    assert_words(&names, "ring-8");
    names = conf_file_names("jobs");
    assert_int_equal(names.n, 0);
}

static void files_beside_a_conf(void **state)
{
    static char *const words[] = {
        (char *)"--faults", (char *)"flap",      (char *)"--schedule=ring-8", (char *)"-b",
        (char *)"flap",     (char *)"--jobs",    (char *)"/dev/null",         (char *)"--faults",
        (char *)"",         (char *)"--workload"};
    struct words all = conf_file_beside(10, words);

    (void)state;
    assert_words(&all,
                 text_of("--faults|%s|--schedule=%s|-b|flap|--jobs|/dev/null|--faults||--workload",
                         at("conf/faults/flap.conf"), at("conf/schedules/ring-8.sched")));
}

static void paths_from_the_root(void **state)
{
    (void)state;
    assert_string_equal(where_absolute("/a//b/./c/../d/"), "/a/b/d");
    assert_string_equal(where_absolute("/../.."), "/");
    assert_string_equal(where_absolute("x"), at("work/x"));
    assert_string_equal(where_absolute("../x/."), at("x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_word_is_a_conf),   cmocka_unit_test(names_are_plain),
        cmocka_unit_test(files_by_name_and_path), cmocka_unit_test(says_why_there_is_none),
        cmocka_unit_test(names_that_are_offered), cmocka_unit_test(files_beside_a_conf),
        cmocka_unit_test(paths_from_the_root),
    };

    return cmocka_run_group_tests(tests, checkout_make, checkout_remove);
}
