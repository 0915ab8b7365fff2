/* SPDX-License-Identifier: BSD-3-Clause */
/* A directory in which others could exchange files is refused, by name; a file is opened only where
 * it is a plain one of this user's; output follows no link of another user's. */
#include "system/own_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#define OTHER 65534

static char base[64], why[OWN_WHY];

static int setup(void **state)
{
    (void)state;
    umask(022);
    snprintf(base, sizeof(base), "/tmp/test_own.XXXXXX");
    return mkdtemp(base) ? chdir(base) : -1;
}

static int teardown(void **state)
{
    char cmd[128];

    (void)state;
    snprintf(cmd, sizeof(cmd), "rm -rf %s", base);
    return chdir("/") || system(cmd);
}

static int opened(const char *path, bool make)
{
    int fd = own_dir_open(path, make, why, sizeof(why));

    if (fd >= 0)
        close(fd);
    return fd < 0 ? fd : 0;
}

/* Only root can make files of another user's. */
static void need_root(void)
{
    if (geteuid())
        skip();
}

static void a_directory_is_made_and_is_private(void **state)
{
    struct stat st;

    (void)state;
    assert_int_equal(opened("a/b/c", false), -ENOENT);
    assert_string_equal(why, "");
    assert_int_equal(opened("a/b/c", true), 0);
    assert_int_equal(stat("a/b", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(opened("a/./b/../b/c", false), 0);
    assert_int_equal(symlink("a/b", "mine"), 0);
    assert_int_equal(opened("mine/c", false), 0);
    assert_int_equal(symlink("a", "m"), 0); /* to a name of one letter */
    assert_int_equal(opened("m/b/c", false), 0);
    assert_int_equal(symlink("loop", "loop"), 0);
    assert_int_equal(opened("loop", false), -ELOOP);
}

static void a_directory_that_others_can_write_to_is_refused(void **state)
{
    static const struct {
        mode_t parent, dir;
        int rc;
    } row[] = {{0755, 0700, 0},      {0700, 0755, 0},      {0777, 0700, -EPERM},
               {0775, 0700, -EPERM}, {01777, 0700, 0},     {01775, 0700, 0},
               {0755, 0777, -EPERM}, {0755, 0770, -EPERM}, {0755, 01777, -EPERM}};

    (void)state;
    assert_int_equal(opened("p/d", true), 0);
    for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        assert_int_equal(chmod("p", row[i].parent), 0);
        assert_int_equal(chmod("p/d", row[i].dir), 0);
        assert_int_equal(opened("p/d", false), row[i].rc);
        assert_int_equal(opened("p/d", true), row[i].rc);
    }
    assert_non_null(strstr(why, "/p/d: found a directory of user"));
    assert_non_null(strstr(why, "mode 1777"));
}

static void another_users_directory_or_link_on_the_way_is_refused(void **state)
{
    (void)state;
    need_root();
    assert_int_equal(opened("p/d/e", true), 0);
    assert_int_equal(chown("p/d", OTHER, OTHER), 0);
    assert_int_equal(opened("p/d/e", false), -EPERM);
    assert_non_null(strstr(why, "/p/d: found a directory of user 65534"));
    assert_int_equal(opened("p/d", false), -EPERM);
    assert_int_equal(chown("p/d", 0, 0), 0);
    assert_int_equal(symlink("p", "theirs"), 0);
    assert_int_equal(lchown("theirs", OTHER, OTHER), 0);
    assert_int_equal(opened("theirs/d", false), -EPERM);
    assert_non_null(strstr(why, "theirs: found a link of user 65534"));
}

static int dir_fd(void)
{
    int fd = own_dir_open("p", true, why, sizeof(why));

    assert_true(fd >= 0);
    return fd;
}

static int file(int dir, const char *name, int flags)
{
    int fd = own_file_open(dir, name, flags);

    if (fd >= 0)
        close(fd);
    return fd < 0 ? fd : 0;
}

static void only_a_plain_file_of_ones_own_is_opened(void **state)
{
    int dir = dir_fd(), fd;
    struct stat st;

    (void)state;
    assert_int_equal(file(dir, "f", O_RDONLY), -ENOENT);
    assert_int_equal(file(dir, "f", O_CREAT | O_WRONLY), 0);
    assert_int_equal(file(dir, "f", O_CREAT | O_EXCL | O_WRONLY), -EEXIST);
    fd = own_file_open(dir, "f", O_WRONLY);
    assert_int_equal(write(fd, "kept", 4), 4);
    close(fd);
    assert_int_equal(symlink("f", "p/l"), 0);
    assert_int_equal(file(dir, "l", O_CREAT | O_TRUNC | O_WRONLY), -EPERM);
    assert_int_equal(link("p/f", "p/h"), 0);
    assert_int_equal(file(dir, "h", O_TRUNC | O_WRONLY), -EPERM);
    assert_int_equal(fstatat(dir, "f", &st, 0), 0);
    assert_int_equal(st.st_size, 4);
    own_file_why(dir, "h", why, sizeof(why));
    assert_non_null(strstr(why, "2 names"));
    assert_int_equal(mkfifo("p/fifo", 0600), 0); /* and nobody waits for its other end */
    assert_int_equal(file(dir, "fifo", O_RDONLY), -EPERM);
    assert_int_equal(file(dir, "fifo", O_WRONLY), -EPERM);
    assert_int_equal(file(dir, "fifo", O_RDWR | O_CREAT), -EPERM);
    assert_int_equal(unlink("p/h"), 0);
    assert_int_equal(chmod("p/f", 0666), 0);
    assert_int_equal(file(dir, "f", O_RDONLY), -EPERM);
    assert_int_equal(symlink(".", "p/self"), 0);
    assert_int_equal(chmod("p/f", 0600), 0);
    assert_int_equal(file(dir, "self/f", O_RDONLY), -EPERM);
    assert_int_equal(mkdir("p/sub", 0700), 0);
    assert_int_equal(file(dir, "sub/f", O_CREAT | O_RDWR), 0);
    assert_int_equal(chmod("p/sub", 0777), 0);
    assert_int_equal(file(dir, "sub/f", O_RDWR), -EPERM);
    close(dir);
}

static int output(const char *path, char *last)
{
    int fd = own_output_dir(path, last, NAME_MAX + 1);

    if (fd >= 0)
        close(fd);
    return fd < 0 ? fd : 0;
}

static void output_follows_no_link_of_another_user(void **state)
{
    char last[NAME_MAX + 1];
    int fd;

    (void)state;
    assert_int_equal(mkdir("shared", 0777), 0);
    assert_int_equal(chmod("shared", 01777), 0);
    assert_int_equal(output("shared/x", last), 0);
    assert_string_equal(last, "x");
    assert_int_equal(output("shared", last), 0);
    assert_int_equal(output("shared/..", last), -EISDIR);
    assert_int_equal(symlink("../y", "shared/x"), 0); /* this user's own link */
    assert_int_equal(output("shared/x", last), 0);
    assert_string_equal(last, "y");
    need_root();
    assert_int_equal(lchown("shared/x", OTHER, OTHER), 0);
    assert_int_equal(output("shared/x", last), -EPERM);
    close(open("shared/z", O_CREAT | O_WRONLY,
               0666)); /* nor a file that another user made where all may */
    assert_int_equal(chown("shared/z", OTHER, OTHER), 0);
    assert_int_equal(own_output_open("shared/z", 0), -EPERM);
    assert_int_equal(chown("shared", OTHER, OTHER), 0);
    assert_true((fd = own_output_open("shared/z", 0)) >= 0);
    close(fd);
    assert_int_equal(unlink("shared/z"), 0);
    assert_int_equal(chown("shared", 0, 0), 0);
    assert_int_equal(chown("shared", OTHER, OTHER), 0); /* the directory's owner's */
    assert_int_equal(output("shared/x", last), 0);
}

static void only_devices_and_descriptors_are_written_as_they_are(void **state)
{
    static const char *const special[] = {"/dev/stdout", "/dev/null",       "/dev/fd/1",
                                          "/dev/pts/0",  "/proc/self/fd/1", NULL};
    static const char *const plain[] = {"/dev/shm/x",         "/dev//shm/x", "/dev/",
                                        "/dev/fd/../shm/x",   "x",           "/dev/mqueue/x",
                                        "/proc/../dev/shm/x", "/devs/x",     NULL};

    (void)state;
    for (unsigned i = 0; special[i]; i++)
        if (!own_output_is_special(special[i]))
            fail_msg("%s", special[i]);
    for (unsigned i = 0; plain[i]; i++)
        if (own_output_is_special(plain[i]))
            fail_msg("%s", plain[i]);
}

static int code(const char *path)
{
    return own_code_check(path, why, sizeof(why));
}

static void code_is_what_nobody_else_can_write(void **state)
{
    static const struct {
        mode_t dir, file;
        int rc;
    } row[] = {{0755, 0755, 0},       {0700, 0600, 0},       {01777, 0755, 0},
               {0777, 0755, -EPERM},  {0755, 0757, -EPERM},  {0757, 0755, -EPERM},
               {01777, 0766, -EPERM}, {01777, 0757, -EPERM}, {0755, 0666, -EPERM}};
    int fd;

    (void)state;
    assert_int_equal(code("c/x.so"), -ENOENT);
    assert_int_equal(mkdir("c", 0755), 0);
    fd = open("c/x.so", O_CREAT | O_WRONLY, 0644);
    assert_true(fd >= 0);
    close(fd);
    for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        assert_int_equal(chmod("c", row[i].dir), 0);
        assert_int_equal(chmod("c/x.so", row[i].file), 0);
        assert_int_equal(code("c/x.so"), row[i].rc);
    }
    assert_non_null(strstr(why, "/c/x.so: found a file of user"));
    assert_non_null(strstr(why, "mode 0666"));
    assert_int_equal(chmod("c/x.so", 0644), 0);
    assert_int_equal(symlink("../c/x.so", "c/link.so"), 0);
    assert_int_equal(code("./c/../c/link.so"), 0);
}

static void code_of_another_user_is_refused(void **state)
{
    (void)state;
    code_is_what_nobody_else_can_write(state);
    need_root();
    assert_int_equal(chown("c/x.so", OTHER, OTHER), 0);
    assert_int_equal(code("c/x.so"), -EPERM);
    assert_non_null(strstr(why, "/c/x.so: found a file of user 65534"));
    assert_int_equal(code("c/link.so"), -EPERM);
    assert_int_equal(chown("c/x.so", 0, OTHER), 0);
    assert_int_equal(code("c/link.so"), 0);
    assert_int_equal(chmod("c/x.so", 0664), 0); /* of a group that is not the owner's own */
    assert_int_equal(code("c/x.so"), -EPERM);
    assert_int_equal(chown("c/x.so", 0, 0), 0); /* root's group has root alone */
    assert_int_equal(code("c/x.so"), 0);
    assert_int_equal(lchown("c/link.so", OTHER, OTHER), 0);
    assert_int_equal(code("c/link.so"), -EPERM);
    assert_non_null(strstr(why, "link.so: found a link of user 65534"));
    assert_int_equal(chown("c", OTHER, OTHER), 0);
    assert_int_equal(code("c/x.so"), -EPERM);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_directory_is_made_and_is_private),
        T(a_directory_that_others_can_write_to_is_refused),
        T(another_users_directory_or_link_on_the_way_is_refused),
        T(only_a_plain_file_of_ones_own_is_opened),
        T(output_follows_no_link_of_another_user),
        T(only_devices_and_descriptors_are_written_as_they_are),
        T(code_is_what_nobody_else_can_write),
        T(code_of_another_user_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
