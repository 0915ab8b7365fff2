/* SPDX-License-Identifier: BSD-3-Clause */
/* Run directories: which are a fabric's, and what is left of them. */
#include "host/session/store_secret.h"
#include "tests/host/keep/scratch.h"

#include <signal.h>
#include <sys/wait.h>

static void directories_are_of_three_kinds(void **state)
{
    static const struct {
        const char *has[4]; /* a name that ends with / is a directory */
        int kind;
    } rows[] = {
        {{NULL}, DIR_EMPTY},
        {{"proc/"}, DIR_EMPTY},
        {{"keeper"}, DIR_EMPTY},
        {{"proc/a.log", "proc/b.pid", "proc/c.ready"}, DIR_EMPTY},
        {{"proc/a.ended", "proc/b.page", "keeper"}, DIR_OURS},
        {{"proc/", "keeper"}, DIR_OURS},
        {{"proc/", "shared"}, DIR_OURS},
        {{"shared", "fabric.path"}, DIR_OURS},
        {{"proc/", "fabric.path"}, DIR_OURS},
        {{"proc/a.log", "port/"}, DIR_OURS},
        {{"keeper", "port/", "fabric.conf"}, DIR_OURS},
        {{"port/", "link/"}, DIR_FOREIGN},
        {{"keeper", "port/", "letter"}, DIR_FOREIGN},
        {{"shared"}, DIR_FOREIGN},
        {{"fabric.path"}, DIR_FOREIGN},
        {{"proc", "keeper"}, DIR_EMPTY}, /* no directory, and so nothing is in it */
        {{"proc/a.txt"}, DIR_FOREIGN},
        {{"proc/log"}, DIR_FOREIGN},
        {{"proc/a.log", "proc/a.logs"}, DIR_FOREIGN},
        {{"letter"}, DIR_FOREIGN},
        {{".hidden"}, DIR_FOREIGN},
        {{"proc/", "letter"}, DIR_FOREIGN},
    };

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        char name[32], one[64];
        int fd;

        snprintf(name, sizeof(name), "kind%zu", i);
        put(name, NULL);
        for (unsigned k = 0; k < 4 && rows[i].has[k]; k++) {
            size_t n = strlen(rows[i].has[k]);

            snprintf(one, sizeof(one), "%s/%s", name, rows[i].has[k]);
            put(one, rows[i].has[k][n - 1] == '/' ? NULL : "x");
        }
        fd = open(at(name), O_RDONLY | O_DIRECTORY);
        assert_true(fd >= 0);
        if (dir_kind(fd) != rows[i].kind)
            fail_msg("row %zu is of kind %d", i, dir_kind(fd));
        assert_int_equal(dir_kind(fd), rows[i].kind); /* asked twice */
        close(fd);
    }
}

/* ---- small files ---- */

static void files_are_replaced(void **state)
{
    char text[16] = "";
    int fd, f;

    (void)state;
    put("files", NULL);
    fd = open(at("files"), O_RDONLY | O_DIRECTORY);
    dir_write(fd, "a", "longer");
    dir_write(fd, "a", "short");
    f = open(at("files/a"), O_RDONLY);
    assert_int_equal(read(f, text, sizeof(text)), 5);
    assert_string_equal(text, "short");
    close(f);
    dir_write(fd, "not/there", "x");
    assert_false(is_there("files/not"));
    close(fd);
}

static const char *tail(const char *text)
{
    struct heard h;
    int fd;
    bool any;

    put("tail/log", text);
    fd = open(at("tail"), O_RDONLY | O_DIRECTORY);
    h = listen_to(stderr);
    any = dir_tail(fd, "log");
    close(fd);
    return any ? what_was_said(&h) : (what_was_said(&h), "nothing");
}

/* Twenty of them, of the last 4,096 bytes. */
static void the_last_lines_are_shown(void **state)
{
    char many[8192] = "", *last = many;
    struct heard h;
    int fd;

    (void)state;
    assert_string_equal(tail(""), "nothing");
    assert_string_equal(tail("\n \n"), "nothing");
    assert_string_equal(tail("one"), "one\n");
    assert_string_equal(tail("one\ntwo \n\n"), "one\ntwo\n");
    for (int i = 1; i <= 20; i++)
        sprintf(many + strlen(many), "line %d\n", i);
    assert_string_equal(tail(many), many);
    for (int i = 21; i <= 25; i++)
        sprintf(many + strlen(many), "line %d\n", i);
    for (int i = 0; i < 5; i++)
        last = strchr(last, '\n') + 1;
    assert_string_equal(tail(many), last);
    memset(many, 'x', 5000);
    strcpy(many + 5000, "\n");
    assert_int_equal(strlen(tail(many)), 4096); /* 4,095 of the line, and its end */
    fd = open(at("tail"), O_RDONLY | O_DIRECTORY);
    h = listen_to(stderr);
    assert_false(dir_tail(fd, "no log"));
    assert_string_equal(what_was_said(&h), "");
    close(fd);
}

/* ---- the end of a directory ---- */

static void an_empty_directory_goes_with_that_of_all_fabrics(void **state)
{
    (void)state;
    put("tributary-7/one/x", "");
    put("tributary-7/two", NULL);
    put("tributary-7/" STORE_SECRET_FILE, "");
    assert_int_equal(dir_drop(at("tributary-7/one")), 0);
    assert_true(is_there("tributary-7/one/x")); /* it is not empty */
    unlink(at("tributary-7/one/x"));
    assert_int_equal(dir_drop(at("tributary-7/one")), 0);
    assert_false(is_there("tributary-7/one"));
    assert_true(is_there("tributary-7/" STORE_SECRET_FILE)); /* another fabric is there */
    assert_int_equal(dir_drop(at("tributary-7/two")), 0);
    assert_false(is_there("tributary-7"));
    put("other/one", NULL);
    assert_int_equal(dir_drop(at("other/one")), 0);
    assert_true(is_there("other")); /* nobody knows whose */
    assert_int_equal(dir_drop(at("other/one")), 0);
    assert_int_equal(dir_drop(at("no/such/thing")), 0);
}

static void a_directory_is_removed_with_all_that_is_in_it(void **state)
{
    int fd;

    (void)state;
    put("gone/proc/a.log", "x");
    put("gone/keeper", "up\n");
    put("gone/fabric.conf", "");
    fd = open(at("gone"), O_RDONLY | O_DIRECTORY);
    rename(at("gone"), at("moved"));
    put("gone/new", ""); /* another one that has taken its name stays */
    assert_int_equal(dir_remove(at("gone"), fd), 0);
    assert_true(is_there("gone/new"));
    assert_true(is_there("moved"));
    assert_false(is_there("moved/proc"));
    assert_false(is_there("moved/keeper"));
    close(fd);
    put("whole/proc/a.pid", "x");
    put("whole/keeper", "");
    fd = open(at("whole"), O_RDONLY | O_DIRECTORY);
    assert_int_equal(dir_remove(at("whole"), fd), 0);
    assert_false(is_there("whole"));
    close(fd);
}

/* ---- how a process ended ---- */

static void ends_are_described(void **state)
{
    static const struct {
        int status;
        bool oom;
        const char *says;
    } rows[] = {
        {0, false, "ended with exit code 0"},
        {7 << 8, true, "ended with exit code 7"},
        {SIGKILL, false, "killed by signal 9 (Killed)"},
        {SIGKILL, true,
         "killed by signal 9 (Killed), since the machine or its control group ran out of memory"},
        {SIGTERM, true, "killed by signal 15 (Terminated)"},
        {SIGSEGV | 0x80, false, "killed by signal 11 (Segmentation fault), core dumped"},
    };
    char text[256];

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        oom_describe(text, sizeof(text), rows[i].status, rows[i].oom);
        assert_string_equal(text, rows[i].says);
    }
}

static void kills_for_want_of_memory_are_counted_by_the_kernel(void **state)
{
    unsigned long long n = 0, before = oom_kills();
    char line[128];
    FILE *f = fopen("/proc/vmstat", "r");

    (void)state;
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, "oom_kill ", 9) == 0)
            n = strtoull(line + 9, NULL, 10);
    if (f)
        fclose(f);
    assert_true(before <= n && n <= oom_kills());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directories_are_of_three_kinds),
        cmocka_unit_test(files_are_replaced),
        cmocka_unit_test(the_last_lines_are_shown),
        cmocka_unit_test(an_empty_directory_goes_with_that_of_all_fabrics),
        cmocka_unit_test(a_directory_is_removed_with_all_that_is_in_it),
        cmocka_unit_test(ends_are_described),
        cmocka_unit_test(kills_for_want_of_memory_are_counted_by_the_kernel),
    };

    return cmocka_run_group_tests(tests, scratch_make, scratch_drop);
}
