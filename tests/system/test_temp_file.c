/* SPDX-License-Identifier: BSD-3-Clause */
/* A file in the making has a name that cannot be guessed, and is there whole, with the permissions of what it replaces, or not at all. */
#include "system/atomic_output.h"
#include "system/own_clear.h"
#include "system/temp_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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

static char base[] = "/tmp/test_tmp.XXXXXX";
static int dir;

static unsigned entries(void)
{
    DIR *d = opendir(base);
    unsigned n = 0;

    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static int setup(void **state)
{
    (void)state;
    dir = mkdtemp(base) ? open(base, O_RDONLY | O_DIRECTORY) : -1;
    return dir < 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(own_clear(dir, NULL), 0);
    close(dir);
    return own_rmdir(AT_FDCWD, base);
}

static void put(const char *name, const char *text, int mode)
{
    struct temp_file t;
    int fd = temp_file_open(&t, dir, name, mode);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    assert_int_equal(temp_file_publish(&t, name, false), 0);
}

static mode_t mode_of(const char *name)
{
    struct stat st;

    assert_int_equal(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISREG(st.st_mode));
    return st.st_mode & 0777;
}

static void a_file_has_the_permissions_of_what_it_replaces(void **state)
{
    (void)state;
    umask(022);
    put("x", "1", TEMP_MODE_THERE);
    assert_int_equal(mode_of("x"), 0644);
    assert_int_equal(fchmodat(dir, "x", 0640, 0), 0);
    put("x", "2", TEMP_MODE_THERE);
    assert_int_equal(mode_of("x"), 0640);
    put("x", "3", 0600);
    assert_int_equal(mode_of("x"), 0600);
    assert_int_equal(symlinkat("x", dir, "link"), 0);
    put("link", "4", TEMP_MODE_THERE); /* the link itself is replaced */
    assert_int_equal(mode_of("link"), 0644);
    assert_int_equal(entries(), 2);
}

static void the_first_of_two_stays(void **state)
{
    struct temp_file a, b;
    int fd = temp_file_open(&a, dir, "once", 0600), fd2 = temp_file_open(&b, dir, "once", 0600);

    (void)state;
    assert_true(fd >= 0 && fd2 >= 0);
    assert_string_not_equal(a.at, b.at);
    close(fd);
    close(fd2);
    assert_int_equal(temp_file_publish(&a, "once", true), 0);
    assert_int_equal(temp_file_publish(&b, "once", true), -EEXIST);
    assert_int_equal(entries(), 3); /* with the two of the case before */
}

static void what_cannot_be_written_leaves_nothing(void **state)
{
    struct rlimit was, small = {1000, RLIM_INFINITY};
    static char text[5000];
    char path[64];

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    signal(SIGXFSZ, SIG_IGN);
    snprintf(path, sizeof(path), "%s/large", base);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small.rlim_max = was.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(atomic_output_text(path, text), -EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_int_equal(entries(), 3);
    assert_int_equal(mkdirat(dir, "full", 0700), 0);
    assert_int_equal(mkdirat(dir, "full/x", 0700), 0);
    put("y", "1", 0600);
    {
        struct temp_file t; /* a directory cannot be replaced */
        int fd = temp_file_open(&t, dir, "full", 0600);

        close(fd);
        assert_int_equal(temp_file_publish(&t, "full", false), -EISDIR);
    }
    assert_int_equal(entries(), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_has_the_permissions_of_what_it_replaces),
        cmocka_unit_test(the_first_of_two_stays),
        cmocka_unit_test(what_cannot_be_written_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
