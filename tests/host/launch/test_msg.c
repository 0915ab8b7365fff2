/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages over a stream: whole, in order, whatever pieces they come in. */
#include "host/launch/msg.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define HEAD 8u /* bytes before a body */

static int fd[2];
static struct inbox in;

static void begin(void)
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    in = (struct inbox){0};
}

static void end(void)
{
    msg_free(&in);
    assert_null(in.buf);
    assert_int_equal(in.size + in.head + in.tail, 0);
    for (int i = 0; i < 2; i++)
        if (fd[i] >= 0)
            close(fd[i]);
}

/* ---- many, of all lengths ---- */

static const size_t lengths[] = {0, 1, 4095, 4096, 4097, 300000, 0, 16384 - HEAD, 7, 1000000, 3};
#define MANY (sizeof(lengths) / sizeof(lengths[0]))

static uint8_t *body_of(unsigned i)
{
    uint8_t *body = malloc(lengths[i] + 1);

    for (size_t k = 0; k < lengths[i]; k++)
        body[k] = (uint8_t)(i + k * 7 + k / 251);
    return body;
}

static void *send_all(void *ctx)
{
    (void)ctx;
    for (unsigned i = 0; i < MANY; i++) {
        uint8_t *body = body_of(i);

        if (msg_send(fd[0], 10 + i, lengths[i] ? body : NULL, lengths[i]))
            i = MANY;
        free(body);
    }
    return NULL;
}

static void messages_come_whole_and_in_order(void **state)
{
    struct pollfd p;
    pthread_t thread;
    unsigned got = 0;
    struct msg m;
    int rc;

    (void)state;
    begin();
    assert_int_equal(pthread_create(&thread, NULL, send_all, NULL), 0);
    while (got < MANY) {
        p = (struct pollfd){.fd = fd[1], .events = POLLIN};
        assert_int_equal(poll(&p, 1, 5000), 1);
        rc = msg_fill(&in, fd[1]);
        assert_true(rc >= 0);
        while (msg_next(&in, &m) > 0) {
            uint8_t *body = body_of(got);

            assert_int_equal(m.type, 10 + got);
            assert_int_equal(m.len, lengths[got]);
            assert_memory_equal(m.body, body, m.len);
            free(body);
            got++;
        }
    }
    pthread_join(thread, NULL);
    assert_int_equal(msg_fill(&in, fd[1]), 0); /* there is no more */
    assert_int_equal(msg_next(&in, &m), 0);
    end();
}

static void a_message_is_there_with_its_last_byte(void **state)
{
    static const uint32_t head[2] = {5, 3};
    uint8_t bytes[HEAD + 3];
    struct msg m;

    (void)state;
    begin();
    memcpy(bytes, head, HEAD);
    memcpy(bytes + HEAD, "abc", 3);
    for (unsigned i = 0; i < sizeof(bytes); i++) {
        assert_int_equal(msg_next(&in, &m), 0);
        assert_int_equal(write(fd[0], bytes + i, 1), 1);
        assert_int_equal(msg_fill(&in, fd[1]), 1);
    }
    assert_int_equal(msg_next(&in, &m), 1);
    assert_int_equal(m.type, 5);
    assert_int_equal(m.len, 3);
    assert_memory_equal(m.body, "abc", 3);
    assert_int_equal(msg_next(&in, &m), 0);
    end();
}

/* ---- what is wrong ---- */

static void lengths_have_a_limit(void **state)
{
    static const struct {
        uint32_t len;
        int rc;
    } rows[] = {{MSG_MAX, 0}, {MSG_MAX + 1, -EPROTO}, {UINT32_MAX, -EPROTO}};
    struct msg m;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t head[2] = {1, rows[i].len};

        begin();
        assert_int_equal(write(fd[0], head, HEAD), HEAD);
        assert_int_equal(msg_fill(&in, fd[1]), 1);
        assert_int_equal(msg_next(&in, &m), rows[i].rc);
        end();
    }
}

/* It grows by half a message's worth of room at a time, until two of the longest fit. */
static void an_inbox_grows_up_to_a_limit(void **state)
{
    static const struct {
        size_t size, free; /* as it is */
        int rc;
        size_t then;
    } rows[] = {
        {16384, 4096, 1, 16384},
        {16384, 4095, 1, 32768},
        {2 * MSG_MAX, 0, 1, 4 * MSG_MAX},
        {2 * MSG_MAX + 1, 0, -EPROTO, 2 * MSG_MAX + 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin();
        in.buf = malloc(rows[i].size);
        in.size = rows[i].size;
        in.tail = rows[i].size - rows[i].free;
        assert_int_equal(write(fd[0], "x", 1), 1);
        assert_int_equal(msg_fill(&in, fd[1]), rows[i].rc);
        assert_int_equal(in.size, rows[i].then);
        if (rows[i].rc > 0)
            assert_int_equal(in.buf[in.tail - 1], 'x');
        end();
    }
    begin();
    assert_int_equal(write(fd[0], "x", 1), 1);
    assert_int_equal(msg_fill(&in, fd[1]), 1);
    assert_int_equal(in.size, 16384);
    end();
}

static void the_end_of_the_other_side_is_seen(void **state)
{
    (void)state;
    begin();
    assert_int_equal(msg_fill(&in, fd[1]), 0);
    close(fd[0]);
    fd[0] = -1;
    assert_int_equal(msg_fill(&in, fd[1]), -EPIPE);
    assert_int_equal(msg_send(fd[1], 1, NULL, 0), -EPIPE);
    end();
    begin(); /* what the other end has not read is lost with it */
    assert_int_equal(msg_send(fd[1], 1, NULL, 0), 0);
    close(fd[0]);
    fd[0] = -1;
    assert_int_equal(msg_fill(&in, fd[1]), -EPIPE);
    end();
    begin();
    assert_int_equal(msg_send(-1, 1, NULL, 0), -EBADF);
    assert_int_equal(msg_fill(&in, -1), -EBADF);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_whole_and_in_order),
        cmocka_unit_test(a_message_is_there_with_its_last_byte),
        cmocka_unit_test(lengths_have_a_limit),
        cmocka_unit_test(an_inbox_grows_up_to_a_limit),
        cmocka_unit_test(the_end_of_the_other_side_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
