/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server of metrics, in a process of its own, whose clock and descriptors are the test's: what a look
 * at slow switches takes is on nobody's account, and without a descriptor it pauses.
 */
#include "io/live/metrics.h"
#include "io/live/metrics_http.h"
#include "machine/shared.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define S    1000000000ll
#define BODY (16u << 20) /* more than sockets hold */

static struct {
    _Atomic int64_t ahead_ns; /* of the server's clock */
    _Atomic int64_t look_ns;  /* what a look takes by it */
    _Atomic bool full;        /* no descriptor is free */
    _Atomic unsigned tried;   /* accept4() */
    _Atomic unsigned body;    /* bytes of an answer */
} * shared;
static unsigned port;
static int told; /* the server's stderr */
static pid_t server;

/* ---- in the server ---- */

int64_t clock_mono_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * S + ts.tv_nsec + shared->ahead_ns;
}

int accept4(int fd, struct sockaddr *from, socklen_t *len, int flags)
{
    shared->tried++;
    errno = EMFILE;
    return shared->full ? -1 : (int)syscall(SYS_accept4, fd, from, len, flags);
}

void live_look(struct live *l)
{
    (void)l;
    shared->ahead_ns += shared->look_ns;
}

void metrics_print(const struct live *l, enum metrics_format format, FILE *out)
{
    (void)l, (void)format;
    for (unsigned i = 0; i < shared->body; i++)
        fputc('#', out);
}

/* ---- clients ---- */

static int call(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval tv = {.tv_sec = 20};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

static void ask(int fd)
{
    static const char text[] = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

    assert_int_equal(send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL), sizeof(text) - 1);
}

/* Bytes until the end, without the head's; 0: there is no answer. */
static size_t answer(int fd)
{
    static char text[BODY + 4096];
    size_t got = 0;
    ssize_t n = 1;
    char *end;

    while (n > 0 && got < sizeof(text) - 1) {
        n = recv(fd, text + got, sizeof(text) - 1 - got, 0);
        got += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    text[got] = 0;
    end = strncmp(text, "HTTP/1.1 200", 12) ? NULL : strstr(text, "\r\n\r\n");
    return end ? got - (size_t)(end + 4 - text) : 0;
}

/* Whether the server holds the connection by now: it has answered one that came later. */
static void settle(void)
{
    int fd = call();

    ask(fd);
    assert_int_equal(answer(fd), shared->body);
}

/* ---- cases ---- */

static void a_slow_look_does_not_end_who_waits_for_it(void **state)
{
    int fd = call();

    (void)state;
    shared->body = BODY;
    shared->look_ns = 11 * S; /* longer than a client has for its own part */
    ask(fd);
    assert_int_equal(answer(fd), BODY);
}

static void a_slow_look_does_not_end_others(void **state)
{
    int other = call(), fd;

    (void)state;
    shared->body = 100;
    settle();
    shared->look_ns = 11 * S;
    fd = call();
    ask(fd);
    assert_int_equal(answer(fd), 100);
    ask(other);
    assert_int_equal(answer(other), 100);
}

/* Nor does it keep them for ever. */
static void who_says_nothing_is_hung_up_on(void **state)
{
    int silent = call();

    (void)state;
    shared->body = 100;
    settle();
    shared->ahead_ns += 11 * S;
    assert_int_equal(answer(silent), 0);
}

static void without_a_descriptor_it_pauses(void **state)
{
    static const char line[] = "cannot take a connection, trying on: Too many open files\n";
    char text[4096] = "";
    int fd;

    (void)state;
    shared->body = 100;
    settle();
    shared->full = true;
    shared->tried = 0;
    fd = call();
    ask(fd);
    usleep(1000000);
    assert_true(shared->tried > 1 && shared->tried < 12);
    shared->full = false;
    assert_int_equal(answer(fd), 100);
    assert_true(read(told, text, sizeof(text) - 1) > 0);
    assert_non_null(strstr(text, line)); /* once */
    assert_null(strstr(strstr(text, line) + 1, line));
}

/* ---- set-up ---- */

static int setup(void **state)
{
    char text[256] = "", *at = NULL;
    int out[2];

    (void)state;
    memset(shared, 0, sizeof(*shared));
    if (pipe(out))
        return -1;
    server = fork();
    if (!server) {
        struct live l = {.n = 0};

        dup2(out[1], STDERR_FILENO);
        _exit(metrics_serve(&l, "127.0.0.1:0") ? 1 : 0);
    }
    close(out[1]);
    told = out[0];
    for (size_t n = 0; !at && n < sizeof(text) - 1 && read(told, text + n, 1) == 1; n++)
        at = text[n] == '\n' ? strstr(text, " port ") : NULL;
    port = at ? (unsigned)atoi(at + 6) : 0;
    return !port;
}

static int teardown(void **state)
{
    int status = 1;

    (void)state;
    kill(server, SIGTERM);
    waitpid(server, &status, 0);
    close(told);
    return status;
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_slow_look_does_not_end_who_waits_for_it),
        CASE(a_slow_look_does_not_end_others),
        CASE(who_says_nothing_is_hung_up_on),
        CASE(without_a_descriptor_it_pauses),
    };

#ifndef TRIB_MICROHTTPD
    puts("built without libmicrohttpd");
    return 77;
#endif
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
