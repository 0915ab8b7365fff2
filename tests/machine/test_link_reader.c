/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process answers about its links: it is read page by page, and a process that answers something
 * else is refused. */
#include "machine/link_reader.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define LINKS 200u

static struct fabric fab = {.n_links = LINKS};
static uint64_t sent[2 * LINKS];

/* Asks a process whose answers are these, and then none. */
static int ask(const char *const *answers, unsigned n)
{
    int fd[2], rc;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd), 0);
    for (unsigned i = 0; i < n; i++)
        assert_true(send(fd[1], answers[i], strlen(answers[i]), 0) > 0);
    shutdown(fd[1], SHUT_WR);
    rc = link_reader_ask(fd[0], &fab, sent);
    close(fd[0]);
    close(fd[1]);
    return rc;
}

/* Pairs of [from, to), each direction with itself * 10 bytes. */
static const char *page(unsigned from, unsigned to)
{
    static char text[2][16384];
    static unsigned turn;
    char *t = text[turn++ % 2];
    size_t at = (size_t)sprintf(t, "{\"/trib/link_bytes\":[");

    for (unsigned d = from; d < to; d++)
        at += (size_t)sprintf(t + at, "%s%u,%u", d == from ? "" : ",", d, 10 * d);
    sprintf(t + at, "]}");
    return t;
}

static void pages_follow_each_other(void **state)
{
    const char *answers[] = {page(0, LINK_READER_PAGE), page(LINK_READER_PAGE, 2 * LINKS)};

    (void)state;
    assert_int_equal(ask(answers, 2), 0);
    for (unsigned d = 0; d < 2 * LINKS; d++)
        assert_int_equal(sent[d], 10 * d);
}

static void another_answer_is_refused(void **state)
{
    static const struct {
        const char *answer;
        int rc;
    } rows[] = {
        {"", -ETIMEDOUT},
        {"{", -ETIMEDOUT},
        {"{\"/trib/link_bytes\":{}}", -EPROTO},
        {"{\"/trib/link_bytes\":[1]}", -EPROTO},
        {"{\"/trib/link_bytes\":[-1,7]}", -EPROTO},
        {"{\"/trib/link_bytes\":[400,7]}", -EPROTO},
        {"{\"/trib/link_bytes\":[5,7,4,7]}", -EPROTO},
        {"{\"/trib/link_bytes\":[]}", 0},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(ask(&rows[i].answer, *rows[i].answer != 0), rows[i].rc);
}

/* A process that answers every question with the first page would be asked for ever. */
static void the_same_page_again_is_refused(void **state)
{
    const char *first = page(0, LINK_READER_PAGE), *answers[] = {first, first};

    (void)state;
    assert_int_equal(ask(answers, 2), -EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_follow_each_other),
        cmocka_unit_test(another_answer_is_refused),
        cmocka_unit_test(the_same_page_again_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
