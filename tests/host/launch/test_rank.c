/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank elsewhere until it has a device, which this process has none of: what it is sent, what it refuses and
 * what it says of it.
 */
#include "host/launch/rank.h"

#include "host/launch/msg_read.h"

#include <errno.h>
#include <poll.h>
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

#define CONF                                                                                       \
    "link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; };\nsingle_switch = { hosts = 2; " \
    "};\n"

static int fd[2]; /* the launcher's end, the rank's */
static struct inbox in;
static pthread_t thread;
static int ended_with;

static void *be_rank(void *ctx)
{
    (void)ctx;
    ended_with = rank_main(fd[1], true);
    return NULL;
}

static void begin(void)
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    in = (struct inbox){0};
    ended_with = -1;
    assert_int_equal(pthread_create(&thread, NULL, be_rank, NULL), 0);
}

/* The rank has said all that it was heard to say. */
static void end(void)
{
    struct msg m;

    pthread_join(thread, NULL);
    (void)msg_fill(&in, fd[0]);
    assert_int_equal(msg_next(&in, &m), 0);
    msg_free(&in);
    if (fd[0] >= 0)
        close(fd[0]);
    close(fd[1]);
}

static void send_init(uint32_t rank, uint32_t schedule)
{
    struct {
        struct msg_init init;
        uint16_t host[2];
    } body = {{.rank = rank, .nranks = 2, .schedule = schedule, .gpu = BUFFER_HOST}, {0, 1}};

    assert_int_equal(msg_send(fd[0], MSG_INIT, &body, sizeof(body.init) + sizeof(body.host)), 0);
}

static void send_text(uint32_t type, const char *text)
{
    assert_int_equal(msg_send(fd[0], type, text, strlen(text)), 0);
}

/* The rank's next message, or its end. */
static bool hear(struct msg *m)
{
    for (;;) {
        struct pollfd p = {.fd = fd[0], .events = POLLIN};

        if (msg_next(&in, m) > 0)
            return true;
        if (poll(&p, 1, 20000) != 1 || msg_fill(&in, fd[0]) < 0)
            return false;
    }
}

/* The rank says what is wrong, waits for the verdict, and fails. */
static void expect_failure(const char *says)
{
    char text[MSG_TEXT];
    struct msg m;

    assert_true(hear(&m));
    assert_int_equal(m.type, MSG_FAIL);
    msg_read_text(&m, text, sizeof(text));
    assert_string_equal(text, says);
    send_text(MSG_ABORT, "because");
    end();
    assert_int_equal(ended_with, 1);
}

static void what_is_malformed_is_refused(void **state)
{
    static const struct {
        uint32_t schedule;
        struct {
            uint32_t type;
            const char *text;
        } sent[3];
        const char *says;
    } rows[] = {
        {0, {{MSG_SCHEDULE, CONF}}, "malformed FABRIC"},
        {0, {{MSG_FABRIC, "hosts = ;"}}, "cannot load the fabric's conf"},
        {0, {{MSG_FABRIC, ""}}, "cannot load the fabric's conf"},
        {0, {{MSG_FABRIC, CONF}}, "found no RDMA device"},
        {4, {{MSG_FABRIC, CONF}, {MSG_RUN, "1234"}}, "malformed SCHEDULE"},
        {4, {{MSG_FABRIC, CONF}, {MSG_SCHEDULE, "12345"}}, "malformed SCHEDULE"},
        {4,
         {{MSG_FABRIC, CONF}, {MSG_SCHEDULE, "12"}, {MSG_SCHEDULE, "345"}},
         "malformed SCHEDULE"},
        {4, {{MSG_FABRIC, CONF}, {MSG_SCHEDULE, "1234"}}, "malformed SCHEDULE"}, /* which is none */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin();
        send_init(1, rows[i].schedule);
        for (unsigned k = 0; k < 3 && rows[i].sent[k].type; k++)
            send_text(rows[i].sent[k].type, rows[i].sent[k].text);
        expect_failure(rows[i].says);
    }
    begin();
    send_text(MSG_INIT, "short");
    expect_failure("malformed INIT");
    begin();
    send_text(MSG_RUN, "x");
    expect_failure("malformed INIT");
    begin();
    send_init(2, 0); /* of two */
    expect_failure("malformed INIT");
}

/* In pieces, up to its last byte. */
static void a_schedule_comes_whole(void **state)
{
    char text[8192], conf[256];
    FILE *f = fopen("conf/schedules/ring-8.sched", "r");
    size_t n, at;

    (void)state;
    assert_non_null(f);
    n = fread(text, 1, sizeof(text), f);
    fclose(f);
    assert_true(n > 100 && n < sizeof(text));
    snprintf(conf, sizeof(conf), "%s", CONF);
    begin();
    send_init(0, (uint32_t)n);
    send_text(MSG_FABRIC, conf);
    for (at = 0; at < n; at += 100)
        assert_int_equal(msg_send(fd[0], MSG_SCHEDULE, text + at, n - at < 100 ? n - at : 100), 0);
    expect_failure("found no RDMA device"); /* beyond it */
}

/* Then nobody is told. */
static void an_abort_or_the_launchers_end_ends_a_rank(void **state)
{
    (void)state;
    begin();
    send_init(0, 0);
    send_text(MSG_ABORT, "interrupted");
    end();
    assert_int_equal(ended_with, 1);
    begin();
    send_init(0, 0);
    shutdown(fd[0], SHUT_WR);
    end();
    assert_int_equal(ended_with, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_malformed_is_refused),
        cmocka_unit_test(a_schedule_comes_whole),
        cmocka_unit_test(an_abort_or_the_launchers_end_ends_a_rank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
