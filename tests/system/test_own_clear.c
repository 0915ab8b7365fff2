/* SPDX-License-Identifier: BSD-3-Clause */
/* What is removed is what is in the directory, and never what a link leads to. */
#include "system/own_clear.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

static char base[] = "/tmp/test_clear.XXXXXX";
static int top, dir; /* base and base/run; base/kept has the files that stay */

static void file(const char *name)
{
    int fd = openat(top, name, O_CREAT | O_WRONLY, 0600);

    assert_true(fd >= 0);
    close(fd);
}

static bool there(const char *name)
{
    struct stat st;

    return !fstatat(top, name, &st, AT_SYMLINK_NOFOLLOW);
}

static int setup(void **state)
{
    (void)state;
    top = mkdtemp(base) ? open(base, O_RDONLY | O_DIRECTORY) : -1;
    if (top < 0 || mkdirat(top, "run", 0700) || mkdirat(top, "kept", 0700))
        return 1;
    dir = openat(top, "run", O_RDONLY | O_DIRECTORY);
    file("kept/x.sock");
    return dir < 0;
}

static int teardown(void **state)
{
    (void)state;
    close(dir);
    assert_int_equal(own_clear(top, NULL), 0);
    close(top);
    return own_rmdir(AT_FDCWD, base);
}

static enum own_takes sockets(const char *name)
{
    return strstr(name, ".sock") ? OWN_FILE : strstr(name, ".d") ? OWN_TREE : OWN_LEAVE;
}

static void links_are_removed_and_not_followed(void **state)
{
    (void)state;
    assert_int_equal(symlinkat("../kept", top, "run/a.d"), 0);
    assert_int_equal(mkdirat(top, "run/b.d", 0700), 0);
    assert_int_equal(symlinkat("../../kept", top, "run/b.d/in"), 0);
    assert_int_equal(symlinkat("../kept/x.sock", top, "run/c.sock"), 0);
    assert_int_equal(linkat(top, "kept/x.sock", top, "run/d.sock", 0), 0);
    file("run/log");
    assert_int_equal(own_clear_if(dir, sockets), 0);
    assert_true(there("kept/x.sock") && there("run/log"));
    assert_false(there("run/a.d") || there("run/b.d") || there("run/c.sock") ||
                 there("run/d.sock"));
    assert_int_equal(own_clear(dir, "log"), 0);
    assert_true(there("run/log"));
    assert_int_equal(own_clear(dir, NULL), 0);
    assert_false(there("run/log"));
}

static void a_file_behind_a_link_is_not_found(void **state)
{
    (void)state;
    assert_int_equal(symlinkat("../kept", top, "run/port"), 0);
    assert_int_equal(own_unlink(dir, "port/x.sock"), -EPERM);
    assert_true(there("kept/x.sock"));
    assert_int_equal(own_remove(dir, "port"), 0);
    assert_true(there("kept/x.sock"));
    assert_int_equal(own_unlink(dir, "port/x.sock"), -ENOENT);
    assert_int_equal(own_remove(dir, "port"), 0);
}

static void what_is_shut_or_deep_goes_too(void **state)
{
    char path[200] = "run/deep";

    (void)state;
    for (unsigned i = 0; i < 40; i++) {
        assert_int_equal(mkdirat(top, path, 0700), 0);
        strcat(path, "/d");
    }
    assert_int_equal(mkdirat(top, "run/shut", 0700), 0);
    file("run/shut/x");
    assert_int_equal(fchmodat(top, "run/shut", 0, 0), 0);
    assert_int_equal(own_clear(dir, NULL), 0);
    assert_false(there("run/deep") || there("run/shut"));
}

static void only_a_socket_makes_room_for_a_socket(void **state)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)state;
    file("run/s");
    snprintf(un.sun_path, sizeof(un.sun_path), "%s/run/s", base);
    own_socket_clear(un.sun_path);
    assert_true(there("run/s"));
    assert_int_equal(own_unlink(dir, "s"), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
    own_socket_clear(un.sun_path);
    assert_false(there("run/s"));
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_are_removed_and_not_followed),
        cmocka_unit_test(a_file_behind_a_link_is_not_found),
        cmocka_unit_test(what_is_shut_or_deep_goes_too),
        cmocka_unit_test(only_a_socket_makes_room_for_a_socket),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
