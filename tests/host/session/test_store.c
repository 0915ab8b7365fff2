/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that are threads meet over TCP, at an address of this process alone: who is taken, who is not and what each is told. */
#include "host/session/oob.h"
#include "host/session/session.h"
#include "host/session/store_tcp.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MOST   4

static char address[32];

static void name_address(void)
{
    unsigned pid = (unsigned)getpid();

    snprintf(address, sizeof(address), "127.%u.%u.%u:4711", 64 + (pid >> 16) % 64, pid >> 8 & 255,
             pid & 255);
}

/* ---- ranks ---- */

struct rank {
    pthread_t thread;
    struct tcp_store s;
    int fd[MOST];
    struct store_secret secret;
    int patience_ms, rc;
    char err[TRIB_TEXT];
};

static void *meet(void *ctx)
{
    struct rank *r = ctx;
    struct addrinfo *list;
    int64_t until = store_now_ms() + r->patience_ms;

    assert_int_equal(store_resolve(address, !r->s.rank, &list, r->err), 0);
    r->rc = r->s.rank ? store_reach(&r->s, list, &r->secret, until, r->err)
                      : store_serve(&r->s, list, &r->secret, until, r->err);
    freeaddrinfo(list);
    return NULL;
}

static struct rank make_rank(uint32_t rank, uint32_t size, const char *secret, int patience_ms)
{
    struct rank r = {.s = {.rank = rank, .size = size}, .patience_ms = patience_ms};

    snprintf(r.secret.text, sizeof(r.secret.text), "%s", secret);
    snprintf(r.secret.from, sizeof(r.secret.from), "file %u", rank);
    for (int i = 0; i < MOST; i++)
        r.fd[i] = -1;
    return r;
}

static void run(struct rank *r, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        r[i].s.fd = r[i].fd;
        assert_int_equal(pthread_create(&r[i].thread, NULL, meet, &r[i]), 0);
    }
    for (unsigned i = 0; i < n; i++)
        pthread_join(r[i].thread, NULL);
}

static void leave(struct rank *r, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        for (int k = 0; k < MOST; k++)
            if (r[i].fd[k] >= 0)
                close(r[i].fd[k]);
}

#define LONG 20000 /* ms: nothing waits as long */

static void ranks_that_know_the_secret_meet(void **state)
{
    struct rank r[3] = {make_rank(2, 3, "s", LONG), make_rank(0, 3, "s", LONG),
                        make_rank(1, 3, "s", LONG)};

    (void)state;
    run(r, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(r[i].rc, 0);
    assert_true(r[1].fd[1] >= 0 && r[1].fd[2] >= 0 && r[1].fd[0] < 0);
    assert_true(r[0].fd[0] >= 0 && r[2].fd[0] >= 0);
    for (unsigned to = 1; to < 3; to++) { /* each connection is that of its rank */
        char one = (char)to, got = 0;

        assert_int_equal(write(r[1].fd[to], &one, 1), 1);
        assert_int_equal(
            store_transfer(r[to == 1 ? 2 : 0].fd[0], false, &got, 1, store_now_ms() + LONG), 0);
        assert_int_equal(got, to);
    }
    leave(r, 3);
}

static void ranks_that_do_not_come_are_named(void **state)
{
    struct rank r = make_rank(0, 4, "s", 20);

    (void)state;
    r.s.fd = r.fd;
    r.fd[2] = dup(STDERR_FILENO); /* who is there already */
    meet(&r);
    assert_int_equal(r.rc, -ETIMEDOUT);
    assert_string_equal(r.err, "store: ranks that have not connected: 1, 3");
    leave(&r, 1);
}

/* Whoever is too slow for it here gets more time. */
static void another_secret_is_named_at_both_ends(void **state)
{
    const char *lied = "store: ranks that have not connected: 1; hung up on ";
    struct rank r[2];
    int ms = 50;

    (void)state;
    do {
        ms *= 2;
        r[0] = make_rank(0, 2, "s", 2 * ms), r[1] = make_rank(1, 2, "t", ms);
        run(r, 2);
        assert_int_equal(r[0].rc, -ETIMEDOUT);
        leave(r, 2);
    } while (r[1].rc != -EACCES && ms < LONG);
    assert_memory_equal(r[0].err, lied, strlen(lied));
    assert_non_null(strstr(r[0].err, " that had another secret than the one found here in file 0"));
    assert_string_equal(r[1].err,
                        "store: rank 1 cannot reach rank 0: who listens there has another "
                        "secret than found here in file 1, expected one for all ranks: "
                        "TRIB_STORE_SECRET_FILE, a file of mode 0600");
}

/* A rank that knows the secret has mistakes of its own. */
static void mistakes_are_told_to_both(void **state)
{
    static const struct {
        uint32_t rank, size;
        const char *at_0, *at_rank;
    } rows[] = {
        {1, 3, "store: found rank 1 of 3, expected 1 to 3 of 4",
         "store: rank 0 has refused rank 1 of 3: its size is another one"},
        {7, 4, "store: found rank 7 of 4, expected 1 to 3 of 4",
         "store: rank 0 has refused rank 7 of 4: its size is another one"},
        {4, 4, "store: found rank 4 of 4, expected 1 to 3 of 4",
         "store: rank 0 has refused rank 4 of 4: its size is another one"},
    };

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        struct rank r[2] = {make_rank(0, 4, "s", LONG),
                            make_rank(rows[i].rank, rows[i].size, "s", LONG)};

        run(r, 2);
        assert_int_equal(r[0].rc, -EINVAL);
        assert_string_equal(r[0].err, rows[i].at_0);
        assert_int_equal(r[1].rc, -EINVAL);
        assert_string_equal(r[1].err, rows[i].at_rank);
        leave(r, 2);
    }
}

static void a_rank_is_there_once(void **state)
{
    struct rank r[3] = {make_rank(0, 3, "s", LONG), make_rank(1, 3, "s", LONG),
                        make_rank(1, 3, "s", LONG)};
    unsigned refused;

    (void)state;
    run(r, 3);
    assert_int_equal(r[0].rc, -EINVAL);
    assert_string_equal(r[0].err, "store: found rank 1 twice, expected each once");
    refused = r[1].rc ? 1 : 2;
    assert_int_equal(r[3 - refused].rc, 0);
    assert_string_equal(r[refused].err,
                        "store: rank 0 has refused rank 1 of 3: it has that rank already");
    leave(r, 3);
}

/* ---- others ---- */

static int connect_now(void)
{
    struct addrinfo *list;
    char err[TRIB_TEXT];
    int fd = -1;

    assert_int_equal(store_resolve(address, false, &list, err), 0);
    while (fd < 0)
        fd = store_connect(list, store_now_ms() + 1000);
    freeaddrinfo(list);
    return fd;
}

static void strangers_change_nothing(void **state)
{
    struct rank r[2] = {make_rank(0, 2, "s", LONG), make_rank(1, 2, "s", LONG)};
    char noise[200], challenge[36];
    int fd[3];

    (void)state;
    r[0].s.fd = r[0].fd;
    assert_int_equal(pthread_create(&r[0].thread, NULL, meet, &r[0]), 0);
    for (int i = 0; i < 3; i++) {
        fd[i] = connect_now();
        assert_int_equal(store_transfer(fd[i], false, challenge, 36, store_now_ms() + LONG), 0);
        assert_memory_equal(challenge, "3MRT", 4);
    }
    memset(noise, 'x', sizeof(noise));
    assert_int_equal(send(fd[0], noise, 95, MSG_NOSIGNAL), 95); /* not a whole answer */
    assert_int_equal(send(fd[1], noise, 96, MSG_NOSIGNAL), 96);
    assert_int_equal(store_transfer(fd[1], false, noise, 1, store_now_ms() + LONG), -ECONNRESET);
    close(fd[2]);
    run(r + 1, 1);
    pthread_join(r[0].thread, NULL);
    assert_int_equal(r[0].rc, 0);
    assert_int_equal(r[1].rc, 0);
    close(fd[0]), close(fd[1]);
    leave(r, 2);
}

static void *talk(void *ctx)
{
    int at = *(int *)ctx, fd = -1;
    char text[40] = "SSH-2.0-x, which is no store of anybody";

    for (int i = 0; i < 200 && fd < 0; i++) {
        fd = accept(at, NULL, NULL);
        if (fd < 0)
            usleep(5000);
    }
    send(fd, text, sizeof(text), MSG_NOSIGNAL);
    close(fd);
    return NULL;
}

/* Until it is another failure than a want of time. */
static void meet_in_time(struct rank *r)
{
    r->patience_ms = 20;
    do {
        r->patience_ms *= 2;
        meet(r);
    } while (r->rc == -ETIMEDOUT && r->patience_ms < LONG);
}

static void something_else_that_listens_is_named(void **state)
{
    struct rank r = make_rank(1, 2, "s", 0);
    struct addrinfo *list;
    char err[TRIB_TEXT];
    pthread_t thread;
    int at;

    (void)state;
    r.s.fd = r.fd;
    assert_int_equal(store_resolve(address, true, &list, err), 0);
    meet_in_time(&r);
    assert_int_equal(r.rc, -ECONNREFUSED);
    assert_string_equal(r.err, "store: rank 1 cannot reach rank 0: Connection refused");
    at = store_listen(list, err);
    assert_true(at >= 0);
    assert_true(store_listen(list, err) < 0);
    assert_string_equal(err, "store: rank 0 cannot listen: Address already in use");
    assert_int_equal(pthread_create(&thread, NULL, talk, &at), 0);
    meet_in_time(&r);
    pthread_join(thread, NULL);
    assert_int_equal(r.rc, -EPROTO);
    assert_string_equal(r.err, "store: rank 1 cannot reach rank 0: found something else that "
                               "listens there");
    close(at);
    freeaddrinfo(list);
}

/* ---- bytes ---- */

static void transfers_are_whole_or_fail(void **state)
{
    char out[6] = "abcdef", in[7] = "";
    int fd[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    assert_int_equal(store_transfer(fd[0], true, out, 6, 0), 0);
    assert_int_equal(store_transfer(fd[1], false, in, 4, 0), 0);
    assert_string_equal(in, "abcd");
    assert_int_equal(store_transfer(fd[1], false, in, 3, store_now_ms() + 20), -ETIMEDOUT);
    assert_string_equal(in, "efcd"); /* what there was */
    assert_int_equal(store_transfer(fd[1], false, in, 0, 0), 0);
    close(fd[0]);
    assert_int_equal(store_transfer(fd[1], false, in, 1, store_now_ms() + LONG), -ECONNRESET);
    assert_int_equal(store_transfer(fd[1], true, out, 1, 0), -EPIPE);
    close(fd[1]);
    assert_int_equal(store_transfer(-1, true, out, 1, 0), -EBADF);
}

static void addresses_have_a_port(void **state)
{
    static const struct {
        const char *text, *says; /* NULL: it is one */
    } rows[] = {
        {"127.0.0.1:80", NULL},
        {"[::1]:80", NULL},
        {NULL, "store: found 'nothing', expected ADDRESS:PORT"},
        {"", "store: found '', expected ADDRESS:PORT"},
        {"127.0.0.1", "store: found '127.0.0.1', expected ADDRESS:PORT"},
        {":80", "store: found ':80', expected ADDRESS:PORT"},
        {"127.0.0.1:", "store: found '127.0.0.1:', expected ADDRESS:PORT"},
        {"127.0.0.1:http", "store: found '127.0.0.1:http', expected ADDRESS:PORT: "},
    };

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        struct addrinfo *list = NULL;
        char err[TRIB_TEXT] = "";

        assert_int_equal(store_resolve(rows[i].text, false, &list, err),
                         rows[i].says ? -EINVAL : 0);
        if (rows[i].says)
            assert_memory_equal(err, rows[i].says, strlen(rows[i].says));
        else
            freeaddrinfo(list);
    }
}

static void places_are_the_same_for_both_families(void **state)
{
    struct addrinfo *list;
    struct store_place here, there;
    struct sockaddr_in v4;
    socklen_t n = sizeof(v4);
    char err[TRIB_TEXT];
    int at, fd[2];

    (void)state;
    assert_int_equal(store_resolve(address, true, &list, err), 0);
    at = store_listen(list, err);
    assert_true(at >= 0);
    fd[0] = connect_now();
    fd[1] = accept(at, NULL, NULL);
    assert_true(fd[1] >= 0);
    assert_int_equal(store_place(fd[0], true, &there), 0);
    assert_int_equal(store_place(fd[1], false, &here), 0);
    assert_memory_equal(&here, &there, sizeof(here));
    assert_int_equal(getsockname(fd[1], (struct sockaddr *)&v4, &n), 0);
    assert_memory_equal(here.address, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
    assert_memory_equal(here.address + 12, &v4.sin_addr, 4);
    assert_int_equal(here.port[0] << 8 | here.port[1], 4711);
    assert_int_equal(here.zero[0] | here.zero[1], 0);
    close(fd[0]), close(fd[1]), close(at);
    freeaddrinfo(list);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    assert_int_equal(store_place(fd[0], true, &here), -EAFNOSUPPORT);
    close(fd[0]), close(fd[1]);
    assert_int_equal(store_place(-1, false, &here), -EBADF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_that_know_the_secret_meet),
        cmocka_unit_test(ranks_that_do_not_come_are_named),
        cmocka_unit_test(another_secret_is_named_at_both_ends),
        cmocka_unit_test(mistakes_are_told_to_both),
        cmocka_unit_test(a_rank_is_there_once),
        cmocka_unit_test(strangers_change_nothing),
        cmocka_unit_test(something_else_that_listens_is_named),
        cmocka_unit_test(transfers_are_whole_or_fail),
        cmocka_unit_test(addresses_have_a_port),
        cmocka_unit_test(places_are_the_same_for_both_families),
    };

    name_address();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
