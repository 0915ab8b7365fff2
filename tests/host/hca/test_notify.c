/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that count events, also where a program has put another file in their place. */
#include "host/hca/hca_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1 && p.revents & POLLIN;
}

static void each_post_is_one_wait(void **state)
{
    int fd = notify_open();

    (void)state;
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_false(readable(fd));
    notify_post(fd);
    notify_post(fd);
    assert_true(readable(fd));
    assert_int_equal(notify_wait(fd), 0);
    assert_true(readable(fd));
    assert_int_equal(notify_wait(fd), 0);
    assert_false(readable(fd));
    fcntl(fd, F_SETFL, O_NONBLOCK);
    assert_int_equal(notify_wait(fd), -EAGAIN);
    notify_close(fd);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void a_post_can_be_taken_back(void **state)
{
    int fd = notify_open();

    (void)state;
    errno = 7;
    notify_cancel(fd); /* without waiting for one */
    assert_int_equal(errno, 7);
    notify_post(fd);
    notify_post(fd);
    notify_cancel(fd);
    assert_true(readable(fd));
    notify_cancel(fd);
    assert_false(readable(fd));
    notify_close(fd);
}

/* In a child: what it does reaches the parent no more. */
static void a_detached_descriptor_counts_by_itself(void **state)
{
    int fd = notify_open(), parent = dup(fd);

    (void)state;
    notify_post(fd);
    notify_detach(fd);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_false(readable(fd));
    assert_true(readable(parent));
    assert_int_equal(notify_wait(parent), 0);
    notify_post(fd);
    assert_true(readable(fd));
    assert_false(readable(parent));
    notify_close(fd);
    notify_close(parent);
}

/* Its number is the program's by now. */
static void another_file_in_its_place_is_left_alone(void **state)
{
    char got[8];
    int fd = notify_open(), p[2];

    (void)state;
    assert_int_equal(pipe(p), 0);
    notify_close(fd);
    assert_int_equal(dup2(p[1], fd), fd);
    errno = 7;
    notify_post(fd);
    notify_cancel(fd);
    notify_detach(fd);
    assert_int_equal(errno, 7);
    assert_int_equal(notify_wait(fd), -EBADF);
    notify_close(fd);
    assert_int_equal(write(fd, "x", 1), 1); /* still the pipe */
    assert_int_equal(read(p[0], got, sizeof(got)), 1);
    close(fd), close(p[0]), close(p[1]);
    notify_post(-1);
    notify_close(-1);
    notify_detach(-1);
    notify_cancel(-1);
    assert_int_equal(notify_wait(-1), -EBADF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_post_is_one_wait),
        cmocka_unit_test(a_post_can_be_taken_back),
        cmocka_unit_test(a_detached_descriptor_counts_by_itself),
        cmocka_unit_test(another_file_in_its_place_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
