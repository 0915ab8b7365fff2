/* SPDX-License-Identifier: BSD-3-Clause */
/* The token of a host: made once, handed over as a copy that cannot be changed, else found by path. */
#include "machine/token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char base[32], dir[64];
static struct rundir rd;

static int setup(void **state)
{
    (void)state;
    snprintf(base, sizeof(base), "/tmp/trib-token-XXXXXX");
    if (!mkdtemp(base))
        return -1;
    snprintf(dir, sizeof(dir), "%s/run", base);
    unsetenv(TOKEN_ENV);
    return rundir_open(&rd, dir, NULL, true);
}

static int teardown(void **state)
{
    char cmd[64];

    (void)state;
    snprintf(cmd, sizeof(cmd), "rm -rf %s", base);
    return system(cmd);
}

static void every_host_has_one_and_keeps_it(void **state)
{
    char a[TOKEN_BYTES], b[TOKEN_BYTES], again[TOKEN_BYTES];

    (void)state;
    assert_int_equal(token_make(&rd, "h0", a), 0);
    assert_int_equal(token_make(&rd, "h1", b), 0);
    assert_int_equal(strlen(a), TOKEN_BYTES - 1);
    assert_string_not_equal(a, b);
    assert_int_equal(token_make(&rd, "h0", again), 0); /* its NIC's process was started again */
    assert_string_equal(a, again);
    assert_int_equal(token_find(&rd, "h1", again), 0);
    assert_string_equal(b, again);
    assert_true(token_find(&rd, "h2", again) < 0);
}

static void what_is_handed_over_cannot_be_changed(void **state)
{
    char a[TOKEN_BYTES], got[TOKEN_BYTES], path[128];
    int fd;

    (void)state;
    assert_int_equal(token_make(&rd, "h0", a), 0);
    assert_int_equal(token_hand_over(&rd, "h0"), 0);
    fd = atoi(getenv(TOKEN_ENV));
    assert_int_equal(fcntl(fd, F_GETFD), 0); /* inherited by what is executed */
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    fd = open(path, O_RDWR);
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_ptr_equal(mmap(NULL, 24, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    close(fd);
    snprintf(path, sizeof(path), "%s/port/h0.token", dir);
    unlink(path); /* nor is the file needed */
    assert_int_equal(token_find(&rd, "h0", got), 0);
    assert_string_equal(a, got);
}

/* Programs close descriptors and use the numbers again. */
static void a_number_that_means_something_else_is_no_token(void **state)
{
    static const char texts[][32] = {"", "short", "0123456789abcdef01234567",
                                     "0123456789abcdefg123456", "\n"};
    char a[TOKEN_BYTES], got[TOKEN_BYTES];
    int fd;

    (void)state;
    assert_int_equal(token_make(&rd, "h0", a), 0);
    for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(token_hand_over(&rd, "h0"), 0);
        fd = memfd_create("other", 0);
        assert_int_equal(write(fd, texts[i], 24), 24);
        assert_true(dup2(fd, atoi(getenv(TOKEN_ENV))) >= 0);
        close(fd);
        memset(got, 0, sizeof(got));
        assert_int_equal(token_find(&rd, "h0", got), 0);
        assert_string_equal(a, got);
        close(atoi(getenv(TOKEN_ENV)));
    }
    setenv(TOKEN_ENV, "nonsense", 1);
    assert_int_equal(token_find(&rd, "h0", got), 0);
    setenv(TOKEN_ENV, "-1", 1);
    assert_int_equal(token_find(&rd, "h0", got), 0);
    assert_string_equal(a, got);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(every_host_has_one_and_keeps_it),
        T(what_is_handed_over_cannot_be_changed),
        T(a_number_that_means_something_else_is_no_token),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
