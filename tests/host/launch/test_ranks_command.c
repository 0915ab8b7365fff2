/* SPDX-License-Identifier: BSD-3-Clause */
/* How the answers of ranks to a command add up: from ranks that are the far ends of sockets, which answer before they are
 * asked. */
#include "host/launch/job_processes_priv.h"
#include "tests/host/launch/far_ranks.h"

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

#define ITERS 4

struct fixture {
    struct job_processes j;
    struct job_process rank[N];
    struct pollfd pfd[N + 1];
    struct inbox in[N];
    int fd[N]; /* the ranks' ends */
    struct perf_opts o;
    struct sweep s;
    struct answers a;
    int64_t ends[ITERS];
};

static struct fixture *set_up(void)
{
    struct fixture *b = calloc(1, sizeof(*b));

    assert_non_null(b);
    far_ranks_open(&b->j, b->rank, b->pfd, b->fd);
    b->o.max_wall = 1000;
    b->s.o = &b->o;
    b->s.fab = &fab;
    b->s.job = &b->j;
    b->s.nranks = N;
    b->s.until = b->s.row_until = clock_mono_ns() + 1000 * 1000000000ll;
    b->a = (struct answers){.s = &b->s, .ends = b->ends, .iters = ITERS, .label = "all_reduce 8"};
    return b;
}

static void tear_down(struct fixture *b)
{
    far_ranks_close(b->rank, b->fd, b->in);
    free(b);
}

static void answer(struct fixture *b, unsigned rank, const struct msg_done *d, const int64_t *ends)
{
    uint8_t body[sizeof(*d) + ITERS * sizeof(*ends)];

    memcpy(body, d, sizeof(*d));
    if (d->ops)
        memcpy(body + sizeof(*d), ends, d->ops * sizeof(*ends));
    assert_int_equal(msg_send(b->fd[rank], MSG_DONE, body, sizeof(*d) + d->ops * sizeof(*ends)), 0);
}

static int command(struct fixture *b, uint32_t type)
{
    return ranks_command(&b->s, type, "x", 2, 10, &b->a);
}

/* How many messages of a type the rank was sent. */
static unsigned was_sent(struct fixture *b, unsigned rank, uint32_t type)
{
    unsigned n = 0;
    struct msg m;

    while (msg_fill(&b->in[rank], b->fd[rank]) > 0)
        while (msg_next(&b->in[rank], &m) > 0)
            n += m.type == type;
    return n;
}

static void numbers_of_ranks_are_summed_or_the_worst_of_them_counts(void **state)
{
    struct msg_done d[N] = {
        {.wrong = 1,
         .entered_ps = -30,
         .left_ps = 300,
         .aggregated = 7,
         .staging_ns = 5,
         .late_ns = 40,
         .ulp = {1.5, 10, 100},
         .counted = {[0] = 1, [TRIB_COUNTERS - 1] = 2}},
        {.wrong = 20,
         .entered_ps = -10,
         .left_ps = 200,
         .aggregated = 5,
         .staging_ns = 50,
         .late_ns = 4,
         .ulp = {2.5, 20, 200},
         .counted = {[0] = 10, [TRIB_COUNTERS - 1] = 20}},
        {.wrong = 300,
         .entered_ps = -20,
         .left_ps = 400,
         .aggregated = 6,
         .staging_ns = 15,
         .late_ns = 14,
         .ulp = {0.5, 30, 300},
         .counted = {[0] = 100, [TRIB_COUNTERS - 1] = 200},
         .goes_on = 1,
         .algo = ALGO_TREE},
    };

    (void)state;
    for (unsigned again = 0; again < 2; again++) { /* a command's answers, and no older ones */
        struct fixture *b = set_up();

        for (unsigned k = 0; k <= again; k++) {
            for (unsigned r = 0; r < N; r++)
                answer(b, r, &d[r], NULL);
            assert_int_equal(command(b, MSG_CHECK), 0);
        }
        assert_int_equal(b->a.wrong, 321);
        assert_int_equal(b->a.entered_ps, -10);
        assert_int_equal(b->a.left_ps, 200);
        assert_int_equal(b->a.aggregated, 5);
        assert_int_equal(b->a.staging_ns, 50);
        assert_int_equal(b->a.late_ns, 40);
        assert_true(b->a.ulp.max == 2.5 && b->a.ulp.sum == 60 && b->a.ulp.n == 600);
        assert_int_equal(b->a.counted[0], 111);
        assert_int_equal(b->a.counted[TRIB_COUNTERS - 1], 222);
        assert_int_equal(b->a.algo, ALGO_TREE); /* all say the same */
        assert_true(b->a.end.goes_on && !b->a.end.lacks_trees);
        assert_int_equal(was_sent(b, 1, MSG_CHECK), 1 + again);
        tear_down(b);
    }
}

static void an_operation_ends_when_its_last_rank_has_seen_that_and_after_those_before(void **state)
{
    static const int64_t ends[N][ITERS] = {{10, 20, 15, 40}, {11, 12, 13, 50}, {9, 19, 18, 17}};
    struct fixture *b = set_up();

    (void)state;
    for (unsigned r = 0; r < N; r++)
        answer(b, r, &(struct msg_done){.ops = ITERS}, ends[r]);
    assert_int_equal(command(b, MSG_RUN), 0);
    assert_int_equal(b->a.ops, ITERS);
    assert_int_equal(b->ends[0], 11);
    assert_int_equal(b->ends[1], 20);
    assert_int_equal(b->ends[2], 20);
    assert_int_equal(b->ends[3], 50);
    assert_int_equal(b->a.n_begun, N);
    assert_int_equal(b->a.foremost, ITERS);
    for (unsigned r = 0; r < N; r++)
        assert_int_equal(was_sent(b, r, MSG_LIMIT), 0); /* nothing is to end early */
    tear_down(b);
}

static void what_rank_0_says_of_the_job_is_kept(void **state)
{
    struct fixture *b = set_up();

    (void)state;
    for (unsigned r = 0; r < N; r++) {
        struct msg_done d = {.last_trees = 1 + r % 2, .last_tree = {(uint16_t)(r == 0)}};

        d.granted = (struct coll_grant){.asked = r == 2 ? 0 : 5 + r, .window = 100 + r};
        snprintf(d.memory, sizeof(d.memory), "memory %u", r);
        if (r == 1)
            snprintf(d.fell_back, sizeof(d.fell_back), "leaf%u is gone", r);
        answer(b, r, &d, NULL);
    }
    assert_int_equal(command(b, MSG_CHECK), 0);
    assert_string_equal(b->s.memory, "memory 0");
    assert_string_equal(b->s.fell_back, "leaf1 is gone"); /* whoever says it */
    assert_int_equal(b->s.last_trees, 1);
    assert_int_equal(b->s.last_tree[0], 1);
    assert_int_equal(b->s.granted.asked, 5);
    assert_int_equal(b->s.granted.window, 100);
    for (unsigned r = 0; r < N; r++) /* what is not said now stays */
        answer(b, r, &(struct msg_done){.last_trees = r == 0}, NULL);
    assert_int_equal(command(b, MSG_CHECK), 0);
    assert_string_equal(b->s.memory, "memory 0");
    assert_string_equal(b->s.fell_back, "leaf1 is gone");
    assert_int_equal(b->s.granted.asked, 5);
    assert_int_equal(b->s.last_tree[0], 0);
    tear_down(b);
}

/* ---- a run whose time is over ---- */

struct player {
    pthread_t thread;
    int fd;
    unsigned begun; /* when it is told to stop; 0: it is done before */
    unsigned limit, stops;
};

static void play_done(int fd)
{
    static const int64_t ends[ITERS] = {1, 2, 3, 4};
    struct msg_done d = {.ops = ITERS};
    uint8_t body[sizeof(d) + sizeof(ends)];

    memcpy(body, &d, sizeof(d));
    memcpy(body + sizeof(d), ends, sizeof(ends));
    msg_send(fd, MSG_DONE, body, sizeof(body));
}

/* A rank that runs, says what it has begun when it is told to stop, and ends as it is told. */
static void *play(void *ctx)
{
    struct player *p = ctx;
    struct inbox in = {0};
    struct msg m;
    bool over = false;

    if (!p->begun)
        play_done(p->fd);
    while (!over) {
        struct pollfd w = {.fd = p->fd, .events = POLLIN};

        if (poll(&w, 1, 5000) != 1 || msg_fill(&in, p->fd) < 0)
            break;
        while (msg_next(&in, &m) > 0)
            if (m.type == MSG_STOP) {
                struct msg_progress said = {.begun = p->begun};

                p->stops++;
                msg_send(p->fd, MSG_PROGRESS, &said, sizeof(said));
            } else if (m.type == MSG_LIMIT) {
                struct msg_progress to;

                memcpy(&to, m.body, sizeof(to));
                p->limit = to.done;
                if (p->begun)
                    play_done(p->fd);
                over = true;
            }
    }
    msg_free(&in);
    return NULL;
}

/* All end one operation after the foremost, when each has said where it is. */
static void a_run_ends_one_operation_after_the_foremost_rank(void **state)
{
    static const struct {
        unsigned begun[N], limit;
    } rows[] = {{{1, 1, 1}, 2}, {{1, 2, 1}, 3}, {{3, 1, 1}, 4}, {{1, 2, 4}, 4}, {{1, 0, 1}, 4}};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture *b = set_up();
        struct player p[N];

        b->s.until = clock_mono_ns(); /* at once */
        for (unsigned r = 0; r < N; r++) {
            p[r] = (struct player){.fd = b->fd[r], .begun = rows[i].begun[r]};
            assert_int_equal(pthread_create(&p[r].thread, NULL, play, &p[r]), 0);
        }
        assert_int_equal(command(b, MSG_RUN), 0);
        for (unsigned r = 0; r < N; r++) {
            pthread_join(p[r].thread, NULL);
            assert_int_equal(p[r].limit, rows[i].limit);
            if (p[r].begun) /* who is done may be told before that is known */
                assert_int_equal(p[r].stops, 1);
        }
        assert_true(b->a.stopping);
        assert_int_equal(b->a.n_begun, N);
        tear_down(b);
    }
}

static void a_row_whose_time_is_over_is_named(void **state)
{
    struct fixture *b = set_up();

    (void)state;
    b->o.max_wall = 0.5;
    b->s.row_until = clock_mono_ns() - 10 * 1000000000ll; /* long ago: a second is left */
    assert_int_equal(command(b, MSG_CHECK), -ETIMEDOUT);
    assert_int_equal(b->s.unmeasured, 1);
    assert_string_equal(job_cause(&b->j), "all_reduce 8 not measured: --max-wall 0.5 s is over: no "
                                          "answer from rank 0 (h0), 1 (h1), 2 (h2)");
    assert_int_equal(command(b, MSG_CHECK), -ECANCELED);
    assert_int_equal(b->s.unmeasured, 1);
    tear_down(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_ranks_are_summed_or_the_worst_of_them_counts),
        cmocka_unit_test(an_operation_ends_when_its_last_rank_has_seen_that_and_after_those_before),
        cmocka_unit_test(what_rank_0_says_of_the_job_is_kept),
        cmocka_unit_test(a_run_ends_one_operation_after_the_foremost_rank),
        cmocka_unit_test(a_row_whose_time_is_over_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
