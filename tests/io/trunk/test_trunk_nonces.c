/* SPDX-License-Identifier: BSD-3-Clause */
/* What an end of a session takes of questions and answers: a nonce serves once, a new question is answered
 * at once and old ones now and then, and nothing is offered that could not be drawn. */
#include "io/trunk/trunk_session.h"

#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#define MS 1000000ll
#define S  (1000 * MS)

static bool dry; /* the kernel has no random numbers */

ssize_t getrandom(void *to, size_t bytes, unsigned flags)
{
    errno = ENOSYS;
    return dry ? -1 : syscall(SYS_getrandom, to, bytes, flags);
}

/* A nonce has one session, and none that has not asked is given one. */
static void a_challenge_counts_for_who_has_asked(void **state)
{
    struct trunk_session a, b;
    struct trunk_header hello = {.type = TRUNK_HELLO}, answer = {.type = TRUNK_CHALLENGE}, h;
    (void)state;

    session_init(&a, S);
    session_init(&b, S);
    session_stamp(&a, &hello, 0, 0);
    assert_int_equal(session_input(&b, &hello, S), SESSION_ASKED);
    session_stamp(&b, &answer, be64toh(hello.session), 0);
    assert_false(session_open(&b));
    h = answer;
    h.peer_session = htobe64(be64toh(h.peer_session) + 1);
    assert_int_equal(session_input(&a, &h, S), SESSION_STALE);
    h.peer_session = 0;
    a.offer[1] = 0;
    assert_int_equal(session_input(&a, &h, S), SESSION_STALE);
    assert_int_equal(session_input(&a, &answer, S), SESSION_BEGINS);
    assert_int_equal(session_input(&a, &answer, S), SESSION_STALE);
    session_stamp(&b, &answer, a.offer[0], 0); /* with a session it has asked for nothing */
    assert_int_equal(session_input(&a, &answer, S), SESSION_STALE);
    session_end(&a);
    session_stamp(&b, &answer, be64toh(hello.session), 0);
    assert_int_equal(session_input(&a, &answer, S), SESSION_STALE); /* that nonce was used */
    session_stamp(&a, &hello, 0, 0);
    session_stamp(&b, &answer, be64toh(hello.session), 0);
    assert_int_equal(session_input(&a, &answer, S + 2 * SESSION_FRESH_NS), SESSION_STALE);
}

/* The one before the newest, too. */
static void a_nonce_has_one_session(void **state)
{
    struct trunk_header hello = {.type = TRUNK_HELLO}, answer = {.type = TRUNK_CHALLENGE};
    struct trunk_session a, b;
    (void)state;

    for (unsigned old = 0; old < 2; old++) {
        session_init(&a, S);
        session_init(&b, S);
        session_stamp(&a, &hello, 0, 0);
        session_stamp(&b, &answer, be64toh(hello.session), 0);
        session_tick(&a, S + old * SESSION_FRESH_NS);
        assert_int_equal(session_input(&a, &answer, S + old * SESSION_FRESH_NS), SESSION_BEGINS);
        session_end(&a);
        assert_int_equal(session_input(&a, &answer, S + old * SESSION_FRESH_NS), SESSION_STALE);
    }
}

static void a_flood_of_questions_is_answered_now_and_then(void **state)
{
    struct trunk_header hello = {.type = TRUNK_HELLO, .session = 5};
    struct trunk_session a;
    unsigned n = 0;
    (void)state;

    session_init(&a, S);
    for (int64_t now = S; now < 2 * S; now += MS / 100)
        n += session_input(&a, &hello, now) == SESSION_ASKED;
    assert_int_equal(n, S / SESSION_ANSWER_NS);
}

/* One that is later than all before at once; another, of a clock that was set back, among the others. */
static void a_new_question_is_answered_at_once(void **state)
{
    static const struct {
        int64_t at_ns;
        uint64_t wall_ns;
        enum session_says says;
    } row[] = {{S, 1000, SESSION_ASKED},          {S, 1000, SESSION_ASKED},
               {S + 1, 1000, SESSION_STALE},      {S + 2, 1001, SESSION_ASKED},
               {S + 3, 1002, SESSION_ASKED},      {S + 4, 1001, SESSION_STALE},
               {S + 2 * MS, 999, SESSION_ASKED},  {S + 2 * MS + 1, 999, SESSION_STALE},
               {S + 2 * MS, 1003, SESSION_ASKED}, {S + 4 * MS, UINT64_MAX, SESSION_ASKED},
               {S + 6 * MS, 0, SESSION_ASKED}};
    struct trunk_session a;
    (void)state;

    session_init(&a, S);
    for (unsigned i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct trunk_header hello = {
            .type = TRUNK_HELLO, .session = 5, .seq = htobe64(row[i].wall_ns)};

        if (session_input(&a, &hello, row[i].at_ns) != row[i].says)
            fail_msg("HELLO %u", i);
    }
}

/* It offers none, takes none, and goes on when there are some. */
static void no_nonce_is_none_that_was_not_drawn(void **state)
{
    struct trunk_header hello = {.type = TRUNK_HELLO, .session = 5}, answer;
    struct trunk_session a, b;
    (void)state;

    session_init(&b, S);
    dry = true;
    session_init(&a, S);
    assert_false(session_can_ask(&a));
    assert_int_equal(session_input(&a, &hello, S), SESSION_STALE);
    answer = (struct trunk_header){.type = TRUNK_CHALLENGE, .session = 7};
    assert_int_equal(session_input(&a, &answer, S), SESSION_STALE);
    session_stamp(&b, &hello, 0, 1); /* it drew before */
    answer =
        (struct trunk_header){.type = TRUNK_CHALLENGE, .session = 7, .peer_session = hello.session};
    assert_int_equal(session_input(&b, &answer, S), SESSION_BEGINS);
    assert_false(session_can_ask(&b));
    session_end(&b);
    assert_int_equal(session_input(&b, &answer, S), SESSION_STALE);
    dry = false;
    session_tick(&a, S + 1);
    session_tick(&b, S + 1);
    assert_true(session_can_ask(&a) && session_can_ask(&b) && a.offer[0] != b.offer[0]);
    session_stamp(&a, &hello, 0, 1);
    assert_int_equal(session_input(&b, &hello, S + 1), SESSION_ASKED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_challenge_counts_for_who_has_asked),
        cmocka_unit_test(a_nonce_has_one_session),
        cmocka_unit_test(a_flood_of_questions_is_answered_now_and_then),
        cmocka_unit_test(a_new_question_is_answered_at_once),
        cmocka_unit_test(no_nonce_is_none_that_was_not_drawn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
