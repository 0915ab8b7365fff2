/* SPDX-License-Identifier: BSD-3-Clause */
/* The telemetry socket in front of DPDK's, for which a thread stands here that answers "<command>". */
#include "io/telemetry/telemetry_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LIMIT 1023 /* DPDK's longest command */

static struct sockaddr_un at = {.sun_family = AF_UNIX};
static int dpdk;

static void *answer(void *arg)
{
    char text[4096];
    int fd = accept(dpdk, NULL, NULL);
    ssize_t n;

    (void)arg;
    if (write(fd, "greeting", 8) != 8)
        return NULL;
    while ((n = recv(fd, text + 1, sizeof(text) - 2, 0)) > 0) {
        text[0] = '<';
        text[n + 1] = '>';
        (void)!write(fd, text, (size_t)n + 2);
    }
    return NULL;
}

static _Atomic bool full; /* no descriptor is free */
static _Atomic unsigned tried;

int accept4(int fd, struct sockaddr *from, socklen_t *len, int flags)
{
    tried++;
    errno = EMFILE;
    return full ? -1 : (int)syscall(SYS_accept4, fd, from, len, flags);
}

static int setup(void **state)
{
    pthread_t t;

    (void)state;
    snprintf(at.sun_path, sizeof(at.sun_path), "/tmp/trib-tel%d", (int)getpid());
    dpdk = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (bind(dpdk, (struct sockaddr *)&at, sizeof(at)) || listen(dpdk, 1) ||
        pthread_create(&t, NULL, answer, NULL))
        return -1;
    return telemetry_server_start(at.sun_path);
}

static int teardown(void **state)
{
    (void)state;
    return unlink(at.sun_path);
}

static int call(void)
{
    struct timeval tv = {.tv_sec = 10};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    char text[64] = "";

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(recv(fd, text, sizeof(text), 0), 8);
    assert_string_equal(text, "greeting");
    return fd;
}

static void answers(int fd, const char *cmd)
{
    char text[4096] = "", want[4096];
    size_t len = strlen(cmd);

    assert_int_equal(send(fd, cmd, len, MSG_NOSIGNAL), (ssize_t)len);
    assert_int_equal(recv(fd, text, sizeof(text), 0), (ssize_t)len + 2);
    snprintf(want, sizeof(want), "<%s>", cmd);
    assert_string_equal(text, want);
}

static bool is_over(int fd)
{
    char text[4096];
    ssize_t n;

    while ((n = recv(fd, text, sizeof(text), 0)) > 0)
        ;
    return !n || errno == ECONNRESET;
}

static void commands_and_answers_pass(void **state)
{
    int a = call(), b = call();

    (void)state;
    answers(a, "/one");
    answers(b, "/two,with,more");
    answers(a, "/three");
    close(b);
    answers(a, "/four");
    close(a);
}

static void a_command_is_no_longer_than_what_dpdk_reads(void **state)
{
    static char text[8192];
    int fd = call();

    (void)state;
    memset(text, 'x', LIMIT);
    answers(fd, text);
    memset(text, 'x', LIMIT + 1);
    assert_int_equal(send(fd, text, LIMIT + 1, MSG_NOSIGNAL), LIMIT + 1);
    assert_true(is_over(fd));
    close(fd);
}

static void whoever_is_idle_makes_room(void **state)
{
    int fd[3 * TELEMETRY_CLIENTS], busy = call();

    (void)state;
    for (unsigned i = 0; i < 3 * TELEMETRY_CLIENTS; i++) {
        fd[i] = call();
        answers(busy, "/still");
    }
    answers(fd[3 * TELEMETRY_CLIENTS - 1], "/last");
    assert_true(is_over(fd[0]));
    for (unsigned i = 0; i < 3 * TELEMETRY_CLIENTS; i++)
        close(fd[i]);
    close(busy);
}

#define TALKS 50

/* TALKS clients one after the other, two commands each; ms. */
static int64_t talk(void)
{
    struct timespec from, to;

    clock_gettime(CLOCK_MONOTONIC, &from);
    for (unsigned i = 0; i < TALKS; i++) {
        int fd = call();

        answers(fd, "/first");
        answers(fd, "/second");
        close(fd);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    return (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000;
}

/* Each had 20 ms of waiting or more when the server looked whether the client had read. */
static void who_reads_at_once_is_answered_at_once(void **state)
{
    int64_t best = INT64_MAX;

    (void)state;
    for (unsigned i = 0; i < 5 && best >= TALKS * 12; i++) {
        int64_t ms = talk();

        best = ms < best ? ms : best;
    }
    assert_true(best < TALKS * 12);
}

/* One answer waits for it; the rest of its questions are not asked. */
static void who_does_not_read_is_not_served_and_leaves(void **state)
{
    int slow = call(), other;

    (void)state;
    for (unsigned i = 0; i < 20; i++)
        (void)!send(slow, "/slow", 5, MSG_NOSIGNAL | MSG_DONTWAIT);
    other = call();
    answers(other, "/quick");
    sleep(2);
    answers(other, "/quick");
    assert_int_equal(send(slow, "/slow", 5, MSG_NOSIGNAL), -1);
    assert_true(is_over(slow));
    close(slow);
    close(other);
}

/* Who comes then waits, is answered when there is one again, and costs no time meanwhile. */
static void without_a_descriptor_it_pauses(void **state)
{
    int idle[32], busy, fd; /* the idle make room, one at each try */
    char text[64];

    (void)state;
    for (unsigned i = 0; i < 32; i++)
        idle[i] = call();
    busy = call();
    full = true;
    tried = 0;
    fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    for (unsigned i = 0; i < 10; i++) {
        answers(busy, "/still"); /* wakes it each time */
        usleep(50000);
    }
    assert_true(tried && tried < 20);
    full = false;
    assert_int_equal(recv(fd, text, sizeof(text), 0), 8);
    answers(fd, "/now");
    close(fd);
    close(busy);
    for (unsigned i = 0; i < 32; i++)
        close(idle[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_and_answers_pass),
        cmocka_unit_test(a_command_is_no_longer_than_what_dpdk_reads),
        cmocka_unit_test(whoever_is_idle_makes_room),
        cmocka_unit_test(without_a_descriptor_it_pauses),
        cmocka_unit_test(who_reads_at_once_is_answered_at_once),
        cmocka_unit_test(who_does_not_read_is_not_served_and_leaves),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
