/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that meet by trib_store_open(): at every kind of address, beside somebody in the middle who passes
 * them on to another job of the same user, and what they say of the last that they found. */
#include <tributary/coll.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#define PATIENCE_S 20. /* of ranks that are to meet */

/* ---- ranks ---- */

struct rank {
    char address[64];
    uint32_t rank, size;
    double timeout_s;
    pthread_t thread;
    struct trib_store *store;
    int rc;
    char err[TRIB_TEXT];
};

static void *rank_run(void *arg)
{
    struct rank *r = arg;

    r->rc = trib_store_open(&r->store, r->address, r->rank, r->size, r->timeout_s, r->err);
    return NULL;
}

static void rank_start(struct rank *r, const char *host, unsigned port, uint32_t rank,
                       uint32_t size, double timeout_s)
{
    *r = (struct rank){.rank = rank, .size = size, .timeout_s = timeout_s};
    snprintf(r->address, sizeof(r->address), "%s:%u", host, port);
    assert_int_equal(pthread_create(&r->thread, NULL, rank_run, r), 0);
}

static void rank_end(struct rank *r)
{
    pthread_join(r->thread, NULL);
    if (!r->rc)
        trib_store_close(r->store);
}

static void met(struct rank *r)
{
    rank_end(r);
    if (r->rc)
        fail_msg("rank %u of %u at %s: %s", r->rank, r->size, r->address, r->err);
}

static void refused(struct rank *r, int rc, const char *why)
{
    rank_end(r);
    if (r->rc != rc || !strstr(r->err, why))
        fail_msg("rank %u at %s: found %d, \"%s\", expected %d, \"%s\"", r->rank, r->address, r->rc,
                 r->err, rc, why);
}

/* ---- sockets ---- */

static struct sockaddr_in local(unsigned port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int door_open(unsigned port)
{
    struct sockaddr_in a = local(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

static unsigned free_port(void)
{
    struct sockaddr_in a;
    socklen_t bytes = sizeof(a);
    int fd = door_open(0);

    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &bytes), 0);
    close(fd);
    return ntohs(a.sin_port);
}

static bool has_ipv6(void)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool yes = fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a));

    close(fd);
    return yes;
}

/* ---- somebody in the middle ---- */

struct relay {
    int door;
    unsigned to;
    _Atomic unsigned passed; /* connections whose ends have both said something */
    _Atomic bool stop;
    pthread_t thread;
};

static void pass_on(struct relay *y, int from)
{
    struct sockaddr_in a = local(y->to);
    int end[2] = {from, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    bool open = !connect(end[1], (struct sockaddr *)&a, sizeof(a)), said[2] = {false, false};

    while (open && !y->stop) {
        struct pollfd p[2] = {{end[0], POLLIN, 0}, {end[1], POLLIN, 0}};
        char buf[512];

        poll(p, 2, 20);
        for (int i = 0; i < 2 && open; i++) {
            ssize_t n = p[i].revents ? recv(end[i], buf, sizeof(buf), 0) : -1;

            open = !p[i].revents || (n > 0 && send(end[!i], buf, (size_t)n, MSG_NOSIGNAL) == n);
            said[i] |= n > 0;
        }
    }
    y->passed += said[0] && said[1];
    close(end[0]);
    close(end[1]);
}

static void *relay_run(void *arg)
{
    struct relay *y = arg;

    while (!y->stop) {
        struct pollfd p = {y->door, POLLIN, 0};

        if (poll(&p, 1, 20) == 1)
            pass_on(y, accept(y->door, NULL, NULL));
    }
    close(y->door);
    return NULL;
}

static void relay_start(struct relay *y, unsigned at, unsigned to)
{
    *y = (struct relay){.door = door_open(at), .to = to};
    assert_int_equal(pthread_create(&y->thread, NULL, relay_run, y), 0);
}

static void relay_stop(struct relay *y)
{
    y->stop = true;
    pthread_join(y->thread, NULL);
}

static void relay_has_passed(struct relay *y)
{
    for (unsigned i = 0; i < 1000 && !y->passed; i++)
        usleep(10000);
    assert_true(y->passed);
}

/* ---- cases ---- */

static void ranks_meet_at(void **state)
{
    static const char *const row[][2] = {{"127.0.0.1", "127.0.0.1"}, {"0.0.0.0", "127.0.0.1"},
                                         {"0.0.0.0", "0.0.0.0"},     {"0.0.0.0", "127.0.0.2"},
                                         {"[::1]", "[::1]"},         {"[::]", "[::1]"},
                                         {"[::]", "127.0.0.1"}};

    (void)state;
    for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        unsigned port = free_port();
        struct rank zero, one;

        if (row[i][0][0] == '[' && !has_ipv6())
            continue;
        rank_start(&zero, row[i][0], port, 0, 2, PATIENCE_S);
        rank_start(&one, row[i][1], port, 1, 2, PATIENCE_S);
        met(&one);
        met(&zero);
    }
}

/* Without an end to either: both jobs meet once it is gone. The sizes of a rank's job and the other one. */
static void rank_passed_on_to_another_job(void **state)
{
    static const uint32_t size[][2] = {{2, 2}, {2, 3}};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        unsigned here = free_port(), there = free_port();
        struct rank own[2], other[3];
        struct relay y;

        relay_start(&y, here, there);
        rank_start(&other[0], "127.0.0.1", there, 0, size[i][1], PATIENCE_S);
        rank_start(&own[1], "127.0.0.1", here, 1, size[i][0], PATIENCE_S);
        relay_has_passed(&y);
        relay_stop(&y);
        rank_start(&own[0], "127.0.0.1", here, 0, size[i][0], PATIENCE_S);
        for (uint32_t r = 1; r < size[i][1]; r++)
            rank_start(&other[r], "127.0.0.1", there, r, size[i][1], PATIENCE_S);
        for (uint32_t r = 0; r < size[i][1]; r++)
            met(&other[r]);
        met(&own[0]);
        met(&own[1]);
    }
}

static void both_ends_say_that_somebody_passes_on(void **state)
{
    unsigned here = free_port(), there = free_port();
    struct rank zero, one;
    struct relay y;

    (void)state;
    relay_start(&y, here, there);
    rank_start(&zero, "127.0.0.1", there, 0, 2, 2);
    rank_start(&one, "127.0.0.1", here, 1, 2, 1.5);
    refused(&one, -EACCES, "who listens there passes connections on to a rank 0 at another");
    refused(&zero, -ETIMEDOUT, "not connected: 1; hung up on ");
    assert_non_null(strstr(zero.err, " that somebody has passed on"));
    relay_stop(&y);
}

/* A rank reports what its last try found, not what the first one did. */
static void reason_is_that_of_the_last_try(void **state)
{
    unsigned port = free_port();
    struct rank one;
    int door = door_open(port), fd;

    (void)state;
    rank_start(&one, "127.0.0.1", port, 1, 2, 1.5);
    fd = accept(door, NULL, NULL);
    close(door);
    assert_int_equal(send(fd, (char[64]){"no store"}, 64, MSG_NOSIGNAL), 64);
    close(fd);
    refused(&one, -ECONNREFUSED, strerror(ECONNREFUSED));
}

/* A try that the deadline has cut short does not replace the reason of the one before it. */
static void reason_is_not_that_of_a_try_cut_short(void **state)
{
    unsigned port = free_port();
    char challenge[36] = "3MRT", answer[96];
    struct rank one;
    int door = door_open(port), fd;

    (void)state;
    rank_start(&one, "127.0.0.1", port, 1, 2, 1);
    fd = accept(door, NULL, NULL);
    assert_int_equal(send(fd, challenge, sizeof(challenge), MSG_NOSIGNAL), sizeof(challenge));
    assert_int_equal(recv(fd, answer, sizeof(answer), MSG_WAITALL), sizeof(answer));
    close(fd);
    fd = accept(door, NULL, NULL);
    refused(&one, -EACCES, "who listens there has another secret");
    close(fd);
    close(door);
}

static int setup(void **state)
{
    (void)state;
    return setenv("TRIB_STORE_SECRET", "one secret for all jobs of a user", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_meet_at),
        cmocka_unit_test(rank_passed_on_to_another_job),
        cmocka_unit_test(both_ends_say_that_somebody_passes_on),
        cmocka_unit_test(reason_is_that_of_the_last_try),
        cmocka_unit_test(reason_is_not_that_of_a_try_cut_short),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
