/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the launcher names as the cause of a failure: its decisions about ranks that are only the far ends of sockets,
 * with times put where the decisions change.
 */
#include "host/launch/job_processes_priv.h"

#include "tests/host/launch/far_ranks.h"

#include "machine/shared.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct job_processes j;
    struct job_process rank[N];
    struct pollfd pfd[N + 1];
    struct inbox in[N];
    int fd[N]; /* the ranks' ends */
    unsigned progress, answers;
    bool refuse;
};

static int64_t now_ms(void)
{
    return clock_mono_ns() / 1000000;
}

static struct fixture *set_up(void)
{
    struct fixture *b = calloc(1, sizeof(*b));

    assert_non_null(b);
    far_ranks_open(&b->j, b->rank, b->pfd, b->fd);
    return b;
}

static void tear_down(struct fixture *b)
{
    far_ranks_close(b->rank, b->fd, b->in);
    free(b);
}

static int on_answer(void *ctx, unsigned rank, const struct msg *m)
{
    struct fixture *b = ctx;

    (void)rank;
    assert_int_equal(m->type, MSG_DONE);
    b->answers++;
    return b->refuse ? -EPROTO : 0;
}

static int on_progress(void *ctx, unsigned rank, const struct msg *m)
{
    (void)rank;
    assert_true(m->type == MSG_PROGRESS || m->type == MSG_EVENTS);
    ((struct fixture *)ctx)->progress++;
    return 0;
}

static void say(struct fixture *b, unsigned rank, uint32_t type, const char *text)
{
    assert_int_equal(msg_send(b->fd[rank], type, text, strlen(text) + 1), 0);
}

/* Looks once or twice at what has come, and waits no longer. */
static int gather(struct fixture *b, const char *bound)
{
    const struct job_limits l = {.seconds = 0, .bound = bound};

    return job_gather_within(&b->j, MSG_DONE, &l, on_answer, on_progress, b);
}

/* The text that a rank was sent as the cause; "": it was sent none. */
static const char *heard(struct fixture *b, unsigned rank)
{
    static char text[MSG_TEXT];
    struct msg m;

    *text = '\0';
    while (msg_fill(&b->in[rank], b->fd[rank]) > 0)
        while (msg_next(&b->in[rank], &m) > 0)
            if (m.type == MSG_ABORT) {
                assert_string_equal(text, ""); /* once */
                msg_read_text(&m, text, sizeof(text));
            }
    return text;
}

/* for_s: the seconds that somebody is stopped by now, which the machine's load decides, are at least so many. */
static void assert_cause_after(struct fixture *b, const char *want, double for_s)
{
    static const char says[] = " is stopped, for ";
    char cause[MSG_TEXT], *number;

    strcpy(cause, job_cause(&b->j));
    number = strstr(cause, says);
    if (number) {
        char *end;
        double s = strtod(number += sizeof(says) - 1, &end);

        assert_true(s >= for_s && s < for_s + 60);
        memmove(number + 1, end, strlen(end) + 1);
        *number = '*';
    }
    assert_string_equal(cause, want);
    for (unsigned r = 0; r < N; r++)
        if (b->rank[r].fd >= 0)
            assert_string_equal(heard(b, r), job_cause(&b->j));
}

static void assert_cause(struct fixture *b, const char *want)
{
    assert_cause_after(b, want, 0);
}

static void who_has_not_answered_is_listed(void **state)
{
    static const struct {
        unsigned answered; /* bits */
        const char *bound, *cause;
    } rows[] = {
        {0, NULL, "no answer within 0 s from rank 0 (h0), 1 (h1), 2 (h2)"},
        {0x2, NULL, "no answer within 0 s from rank 0 (h0), 2 (h2)"},
        {0x3, "row 7: too long", "row 7: too long: no answer from rank 2 (h2)"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture *b = set_up();

        for (unsigned r = 0; r < N; r++)
            if (rows[i].answered >> r & 1)
                say(b, r, MSG_DONE, "");
        assert_int_equal(gather(b, rows[i].bound), -ETIMEDOUT);
        assert_cause(b, rows[i].cause);
        tear_down(b);
    }
}

/* of: since when rank 1 is stopped and for how long, in ms; 0 long: it still is. */
static void a_stopped_rank_is_named_while_it_is_there(void **state)
{
    static const struct {
        int64_t ago, lasted;
        pid_t pid;
        const char *bound;
        int rc;
        const char *cause;
    } rows[] = {
        {2000, 0, PID, NULL, -ETIMEDOUT,
         "rank 1 (h1, pid 1) is stopped, for * s now; no answer within 0 s from rank 0 (h0), 1 "
         "(h1), 2 (h2)"},
        {2000, 0, PID, "too long", -ETIMEDOUT,
         "rank 1 (h1, pid 1) is stopped, for * s now; too long: no answer from rank 0 (h0), 1 "
         "(h1), 2 (h2)"},
        {2000, 1200, PID, "too long", -ETIMEDOUT,
         "rank 1 (h1, pid 1) was stopped for 1.2 s; too long: no answer from rank 0 (h0), 1 (h1), "
         "2 (h2)"},
        /* it has been reaped: whatever it was, it is not stopped now */
        {2000, 0, 0, "too long", -ETIMEDOUT,
         "too long: no answer from rank 0 (h0), 1 (h1), 2 (h2)"},
        {16000, 0, 0, "too long", -ETIMEDOUT,
         "too long: no answer from rank 0 (h0), 1 (h1), 2 (h2)"},
        /* nobody has to wait for it to be missed */
        {16000, 0, PID, NULL, -ECANCELED, "rank 1 (h1, pid 1) is stopped, for * s now"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture *b = set_up();
        struct suspect *s = &b->rank[1].stop;

        s->since_ms = now_ms() - rows[i].ago;
        s->until_ms = rows[i].lasted ? s->since_ms + rows[i].lasted : 0;
        b->rank[1].pid = rows[i].pid;
        assert_int_equal(gather(b, rows[i].bound), rows[i].rc);
        assert_cause_after(b, rows[i].cause, (double)rows[i].ago / 1000);
        tear_down(b);
    }
}

/* A failure that a rank reports is held for a while: somebody's death may show up as its cause. */
static void a_reported_failure_is_the_cause_after_a_moment(void **state)
{
    struct fixture *b = set_up();

    (void)state;
    say(b, 2, MSG_FAIL, "connection lost");
    say(b, 0, MSG_FAIL, "another"); /* the first counts */
    b->j.held_since = 0;
    assert_int_equal(gather(b, "too long"), -ETIMEDOUT);
    assert_true(b->j.held_since > 0);
    assert_true(b->rank[0].failed && b->rank[2].failed && !b->rank[1].failed);
    assert_string_equal(b->j.held,
                        "rank 0 (h0, pid 1): another"); /* of what comes at once, by rank */
    tear_down(b);
}

static void what_is_held_is_named_with_what_explains_it(void **state)
{
    static const struct {
        int64_t held_ago, stopped_ago;
        const char *lost;
        int rc;
        const char *cause;
    } rows[] = {
        {-60000, 0, "", -ETIMEDOUT, "late: no answer from rank 0 (h0), 1 (h1), 2 (h2)"},
        {450, 0, "", -ECANCELED, "rank 2 (h2, pid 1): connection lost"},
        {450, 0, "spine0 has died", -ECANCELED,
         "rank 2 (h2, pid 1): connection lost (spine0 has died)"},
        {450, 3000, "spine0 has died", -ECANCELED,
         "rank 1 (h1, pid 1) is stopped, for * s now; noticed first: rank 2 (h2, pid 1): "
         "connection lost"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture *b = set_up();

        b->j.held_since = now_ms() - rows[i].held_ago;
        strcpy(b->j.held, "rank 2 (h2, pid 1): connection lost");
        strcpy(b->j.lost, rows[i].lost);
        if (rows[i].stopped_ago)
            b->rank[1].stop.since_ms = now_ms() - rows[i].stopped_ago;
        assert_int_equal(gather(b, "late"), rows[i].rc);
        assert_cause_after(b, rows[i].cause, (double)rows[i].stopped_ago / 1000);
        tear_down(b);
    }
}

static void answers_and_progress_are_told_apart(void **state)
{
    struct fixture *b = set_up();

    (void)state;
    for (unsigned r = 0; r < N; r++) {
        say(b, r, MSG_PROGRESS, "");
        say(b, r, MSG_DONE, "");
    }
    say(b, 1, MSG_EVENTS, "[]");
    assert_int_equal(gather(b, NULL), 0);
    assert_int_equal(b->answers, N);
    assert_int_equal(b->progress, N + 1);
    assert_cause(b, "");
    /* Nobody asks for progress: it is no answer either. */
    assert_int_equal(job_bcast(&b->j, MSG_RUN, NULL, 0), 0);
    say(b, 0, MSG_PROGRESS, "");
    assert_int_equal(job_gather(&b->j, MSG_DONE, 0, on_answer, NULL, b), -ETIMEDOUT);
    assert_int_equal(b->progress, N + 1);
    assert_cause(b, "no answer within 0 s from rank 0 (h0), 1 (h1), 2 (h2)");
    tear_down(b);
}

static void a_wrong_answer_names_its_rank(void **state)
{
    struct fixture *b = set_up();

    (void)state;
    b->refuse = true;
    say(b, 1, MSG_DONE, "");
    assert_int_equal(gather(b, NULL), -ECANCELED);
    assert_cause(b, "rank 1 (h1, pid 1): unusable answer");
    tear_down(b);

    b = set_up();
    say(b, 1, MSG_DONE, "");
    say(b, 1, MSG_DONE, ""); /* twice */
    assert_int_equal(gather(b, NULL), -ECANCELED);
    assert_int_equal(b->answers, 1);
    snprintf(b->j.held, sizeof(b->j.held), "rank 1 (h1, pid 1): unexpected message %u",
             (unsigned)MSG_DONE);
    assert_cause(b, b->j.held);
    tear_down(b);
}

static void a_job_that_has_failed_says_so_once_and_sends_nothing_more(void **state)
{
    struct fixture *b = set_up();

    (void)state;
    close(b->fd[2]);
    b->fd[2] = -1;
    job_look_interrupted(&b->j);
    assert_int_equal(gather(b, "late"), -ETIMEDOUT); /* its end is noticed */
    assert_int_equal(b->rank[2].fd, -1);
    job_abort(&b->j, "another reason");
    assert_cause(b, "late: no answer from rank 0 (h0), 1 (h1), 2 (h2)");
    assert_int_equal(job_bcast(&b->j, MSG_RUN, NULL, 0), -ECANCELED);
    assert_int_equal(job_send(&b->j, 2, MSG_RUN, NULL, 0), -EPIPE);
    assert_int_equal(job_interrupted(&b->j), 0);
    tear_down(b);

    b = set_up();
    job_abort(&b->j, "the table is full");
    assert_cause(b, "the table is full");
    assert_int_equal(gather(b, NULL), -ECANCELED);
    tear_down(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_not_answered_is_listed),
        cmocka_unit_test(a_stopped_rank_is_named_while_it_is_there),
        cmocka_unit_test(a_reported_failure_is_the_cause_after_a_moment),
        cmocka_unit_test(what_is_held_is_named_with_what_explains_it),
        cmocka_unit_test(answers_and_progress_are_told_apart),
        cmocka_unit_test(a_wrong_answer_names_its_rank),
        cmocka_unit_test(a_job_that_has_failed_says_so_once_and_sends_nothing_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
