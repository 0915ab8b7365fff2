/* SPDX-License-Identifier: BSD-3-Clause */
/* Results are written completely or not at all, links and devices are not replaced, and a path can
 * be checked before a run. */
#include "base/atomic_output.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static void a_file_is_replaced(void **state)
{
    (void)state;
    assert_true(atomic_output_is_file(at("x")));
    assert_int_equal(atomic_output_can_write(at("x")), 0);
    assert_int_equal(access(at("x"), F_OK), -1); /* asking leaves nothing */
    assert_int_equal(write_number(at("x"), 1), 0);
    assert_int_equal(write_number(at("x"), 2), 0);
    assert_int_equal(number_in(at("x")), 2);
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
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
