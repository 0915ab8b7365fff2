/* SPDX-License-Identifier: BSD-3-Clause */
/* Results are written completely or not at all, links and devices are not replaced, and a path can
 * be checked before a run. */
#include "system/atomic_output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

static char dir[] = "/tmp/test_out.XXXXXX";

static const char *at(const char *name)
{
    static char path[2][128];
    static unsigned i;

    i ^= 1;
    snprintf(path[i], sizeof(path[i]), "%s/%s", dir, name);
    return path[i];
}

static int write_number(const char *path, int n)
{
    json_t *j = json_pack("{s:i}", "n", n);
    int rc = atomic_output_json(path, j, 0);

    json_decref(j);
    return rc;
}

static int number_in(const char *path)
{
    json_t *j = json_load_file(path, 0, NULL);
    int n = j ? (int)json_integer_value(json_object_get(j, "n")) : -1;

    json_decref(j);
    return n;
}

static bool any_temporary(void)
{
    bool any = false;
    DIR *d = opendir(dir);

    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        any |= strstr(e->d_name, ".tmp") != NULL;
    closedir(d);
    return any;
}

static void a_file_is_replaced(void **state)
{
    (void)state;
    assert_true(atomic_output_is_file(at("x")));
    assert_int_equal(atomic_output_can_write(at("x")), 0);
    assert_int_equal(access(at("x"), F_OK), -1); /* asking leaves nothing */
    assert_int_equal(write_number(at("x"), 1), 0);
    assert_int_equal(write_number(at("x"), 2), 0);
    assert_int_equal(number_in(at("x")), 2);
    assert_false(any_temporary());
}

static void a_link_stays(void **state)
{
    struct stat st;

    (void)state;
    assert_int_equal(write_number(at("target"), 1), 0);
    assert_int_equal(symlink("target", at("link")), 0);
    assert_int_equal(write_number(at("link"), 5), 0);
    assert_int_equal(lstat(at("link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(number_in(at("target")), 5);
}

static void a_pipe_stays(void **state)
{
    char text[64] = "";
    struct stat st;
    int fd;

    (void)state;
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    fd = open(at("pipe"), O_RDWR | O_NONBLOCK);
    assert_true(fd >= 0);
    assert_false(atomic_output_is_file(at("pipe")));
    assert_int_equal(atomic_output_can_write(at("pipe")), 0);
    assert_int_equal(write_number(at("pipe"), 7), 0);
    assert_true(read(fd, text, sizeof(text) - 1) > 0);
    assert_string_equal(text, "{\"n\": 7}\n");
    assert_int_equal(stat(at("pipe"), &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    close(fd);
}

static void what_cannot_be_written_is_told(void **state)
{
    (void)state;
    assert_int_equal(atomic_output_can_write(at("no/x")), -ENOENT);
    assert_int_equal(write_number(at("no/x"), 1), -ENOENT);
    assert_int_equal(atomic_output_can_write(dir), -EISDIR);
    assert_int_equal(write_number(dir, 1), -EISDIR);
    assert_false(atomic_output_is_file("/dev/full"));
    assert_int_equal(write_number("/dev/full", 1), -ENOSPC);
}

/* As on a full disk: the file that was there stays, and the temporary file does not (tear_down). */
static void a_file_that_cannot_be_written_whole_is_left_as_it_was(void **state)
{
    static char text[10000];
    struct rlimit before, little = {.rlim_cur = 4096};
    FILE *from = tmpfile();

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    assert_true(from && fputs(text, from) >= 0 && !fflush(from));
    assert_int_equal(write_number(at("x"), 3), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    little.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    assert_int_equal(atomic_output_text(at("x"), text), -EFBIG);
    assert_int_equal(atomic_output_copy(at("x"), from), -EFBIG);
    assert_int_equal(atomic_output_text(at("new"), text), -EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    fclose(from);
    assert_int_equal(number_in(at("x")), 3);
    assert_int_equal(access(at("new"), F_OK), -1);
    for (unsigned i = 0; i < 2; i++) { /* neither is a temporary file left of one that is refused */
        assert_int_equal(mkdir(at("sub"), 0700), 0);
        assert_int_equal(i ? write_number(at("sub"), 1) : atomic_output_can_write(at("sub")),
                         -EISDIR);
        assert_int_equal(rmdir(at("sub")), 0);
    }
    assert_false(any_temporary());
}

/* The source itself is not whole: its last bytes are still in a buffer, and find no room. */
static void what_is_not_whole_is_not_copied(void **state)
{
    struct rlimit before, little = {.rlim_cur = 10};
    FILE *from = tmpfile();

    (void)state;
    assert_true(from && fputs("more than ten characters", from) >= 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    little.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    assert_int_equal(atomic_output_copy("/dev/null", from), -EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    fclose(from);
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"x", "target", "link", "pipe"};

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        unlink(at(names[i]));
    return rmdir(dir); /* and no temporary file */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_replaced),
        cmocka_unit_test(a_link_stays),
        cmocka_unit_test(a_pipe_stays),
        cmocka_unit_test(what_cannot_be_written_is_told),
        cmocka_unit_test(a_file_that_cannot_be_written_whole_is_left_as_it_was),
        cmocka_unit_test(what_is_not_whole_is_not_copied),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
