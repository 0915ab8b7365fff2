/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks with a device: threads of this process, which is a host of a fabric that runs in another thread. The test
 * is their launcher: what each command answers, and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host/launch/msg_read.h"
#include "host/launch/rank.h"
#include "machine/shared.h"
#include "tests/host/live_fabric.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define RANKS 2
#define COUNT 1000

static const char conf[] = "name = \"rankop\"; dilation = 10; mtu = 1024;\n"
                           "single_switch = { hosts = 2; host_link = { rate = \"400Gb/s\"; "
                           "latency = \"300ns\"; }; };\n"
                           "reduce = { groups = 4; slots = 16; window = 16; };\n";

static int fabric_start(void **state)
{
    (void)state;
    return live_fabric_start(conf, 10);
}

/* ---- a job ---- */

static struct rank_end {
    int fd, at_rank, ended_with;
    struct inbox in;
    pthread_t thread;
} rank[RANKS];
static unsigned n_ranks;

static void *be_rank(void *ctx)
{
    struct rank_end *r = ctx;

    r->ended_with = rank_main(r->at_rank, false);
    close(r->at_rank);
    return NULL;
}

/* The rank's next message, or its end. */
static bool hear(unsigned r, struct msg *m)
{
    for (;;) {
        struct pollfd p = {.fd = rank[r].fd, .events = POLLIN};

        if (msg_next(&rank[r].in, m) > 0)
            return true;
        if (poll(&p, 1, 20000) != 1 || msg_fill(&rank[r].in, rank[r].fd) < 0)
            return false;
    }
}

static void ask(uint32_t type, const void *body, size_t len)
{
    for (unsigned r = 0; r < n_ranks; r++)
        assert_int_equal(msg_send(rank[r].fd, type, body, len), 0);
}

static struct msg_done done[RANKS];
static int64_t ends[RANKS][64];

static void hear_done(unsigned r)
{
    struct msg m;

    assert_true(hear(r, &m));
    if (m.type == MSG_FAIL)
        fail_msg("rank %u: %.*s", r, (int)m.len, (const char *)m.body);
    assert_int_equal(m.type, MSG_DONE);
    assert_int_equal(msg_read_done(&m, net.fab, 64, &done[r]), 0);
    memcpy(ends[r], m.body + sizeof(done[r]), done[r].ops * sizeof(int64_t));
}

static void all_done(void)
{
    for (unsigned r = 0; r < n_ranks; r++)
        hear_done(r);
}

static void begin(unsigned n, uint32_t timeline)
{
    struct {
        struct msg_init init;
        uint16_t host[RANKS];
    } body = {{.nranks = n,
               .algos = 1u << ALGO_RING | 1u << ALGO_HALVING,
               .group = 77,
               .key = 4711,
               .timeline = timeline,
               .buf_bytes = 65536,
               .gpu = BUFFER_HOST},
              {1, 1}};
    uint8_t blobs[RANKS * COMM_BLOB];
    int fd[2];
    struct msg m;

    n_ranks = n;
    for (unsigned r = 0; r < n; r++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
        rank[r] = (struct rank_end){.fd = fd[0], .at_rank = fd[1], .ended_with = -1};
        assert_int_equal(pthread_create(&rank[r].thread, NULL, be_rank, &rank[r]), 0);
        body.init.rank = r;
        assert_int_equal(msg_send(fd[0], MSG_INIT, &body, sizeof(body.init) + n * 2), 0);
    }
    for (unsigned r = 0; r < n; r++) {
        assert_true(hear(r, &m));
        assert_int_equal(m.type, MSG_HELLO);
        assert_int_equal(m.len, COMM_BLOB);
        memcpy(blobs + r * COMM_BLOB, m.body, COMM_BLOB);
    }
    ask(MSG_CONNECT, blobs, n * COMM_BLOB);
    all_done();
}

static void finish(int with)
{
    for (unsigned r = 0; r < n_ranks; r++) {
        pthread_join(rank[r].thread, NULL);
        assert_int_equal(rank[r].ended_with, with);
        close(rank[r].fd);
        msg_free(&rank[r].in);
    }
}

static void quit(void)
{
    ask(MSG_QUIT, NULL, 0);
    finish(0);
}

static struct msg_prepare row_of(enum coll_kind kind, enum dtype type, bool in_place)
{
    return (struct msg_prepare){.coll = kind,
                                .algo = kind == COLL_BARRIER ? ALGO_HALVING : ALGO_RING,
                                .type = type,
                                .op = OP_SUM,
                                .in_place = in_place,
                                .count = COUNT};
}

static void prepare(const struct msg_prepare *p)
{
    ask(MSG_PREPARE, p, sizeof(*p));
    all_done();
    for (unsigned r = 0; r < n_ranks; r++)
        assert_int_equal(done[r].algo, p->algo);
}

static void run(uint32_t n, int64_t start_ps)
{
    struct msg_run m = {.n = n, .start_ps = start_ps};

    ask(MSG_RUN, &m, sizeof(m));
    all_done();
    for (unsigned r = 0; r < n_ranks; r++) {
        assert_int_equal(done[r].ops, n);
        assert_int_equal(done[r].aggregated, n);
        assert_int_equal(done[r].goes_on, 1);
        assert_int_equal(done[r].lacks_trees, 0);
        assert_int_equal(done[r].staging_ns, 0);
        assert_true(done[r].late_ns >= 0 && (start_ps || !done[r].late_ns));
        assert_true(ends[r][0] > 0);
        for (unsigned i = 1; i < n; i++)
            assert_true(ends[r][i] > ends[r][i - 1]);
    }
}

static void check(uint32_t again)
{
    struct msg_check c = {.again = again, .late = ~0u};

    ask(MSG_CHECK, &c, sizeof(c));
    all_done();
}

/* ---- what is answered ---- */

static void rows_run_and_are_checked(void **state)
{
    static const enum coll_kind kinds[] = {COLL_ALLREDUCE, COLL_BROADCAST, COLL_ALLGATHER,
                                           COLL_REDUCE_SCATTER, COLL_REDUCE};

    (void)state;
    begin(RANKS, 0);
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct msg_prepare p = row_of(kinds[i], DT_INT32, false);

        p.root = coll_rooted(kinds[i]) ? 1 : 0;
        prepare(&p);
        check(0); /* before it has run, results are missing: the root of a broadcast has its own */
        assert_true(done[0].wrong > 0 || kinds[i] == COLL_REDUCE);
        assert_true(done[1].wrong > 0 || kinds[i] == COLL_BROADCAST);
        run(3, 0);
        check(0);
        assert_int_equal(done[0].wrong + done[1].wrong, 0);
    }
    quit();
}

/* In place the buffer is summed again and again, so a check runs it anew. */
static void in_place_a_check_begins_anew(void **state)
{
    struct msg_prepare p = row_of(COLL_ALLREDUCE, DT_INT32, true);

    (void)state;
    begin(RANKS, 0);
    prepare(&p);
    run(2, 0);
    check(0);
    assert_true(done[0].wrong > 0 && done[1].wrong > 0);
    check(1);
    assert_int_equal(done[0].wrong + done[1].wrong, 0);
    run(1, 0); /* of the sum, so once too often */
    check(0);
    assert_true(done[0].wrong > 0 && done[1].wrong > 0);
    quit();
}

/* All count from the start that the launcher names, also one that is over. */
static void a_run_counts_from_its_start(void **state)
{
    struct msg_prepare p = row_of(COLL_ALLREDUCE, DT_INT32, false);
    int64_t now, start;

    (void)state;
    begin(RANKS, 0);
    prepare(&p);
    now = clock_fabric_ps(net.rd.sh);
    start = now + 1000000000; /* 1 ms, 10 of wall time */
    run(1, start);
    now = clock_fabric_ps(net.rd.sh);
    for (unsigned r = 0; r < RANKS; r++)
        assert_true(ends[r][0] <= now - start);
    start = now - 5000000000;
    run(1, start);
    for (unsigned r = 0; r < RANKS; r++) {
        assert_true(ends[r][0] > 5000000000);
        assert_true(done[r].late_ns >= 50000000); /* wall time, at dilation 10 */
        assert_true(done[r].late_ns / 10 * 1000 < ends[r][0]);
    }
    quit();
}

static void a_barrier_waits_for_who_is_late(void **state)
{
    struct msg_prepare p = row_of(COLL_BARRIER, DT_INT8, false);
    struct msg_check c = {.late = 1, .late_ns = 20000000};
    int64_t begun;

    (void)state;
    p.count = 0;
    begin(RANKS, 0);
    prepare(&p);
    for (c.late = 0; c.late < RANKS; c.late++) {
        begun = clock_fabric_ps(net.rd.sh);
        ask(MSG_CHECK, &c, sizeof(c));
        all_done();
        assert_true(done[c.late].entered_ps - begun >= 2000000000);
        for (unsigned r = 0; r < RANKS; r++)
            assert_true(done[r].left_ps >= done[c.late].entered_ps &&
                        done[r].left_ps > done[r].entered_ps && done[r].entered_ps > begun);
        assert_int_equal(done[0].wrong + done[1].wrong + done[0].ops, 0);
    }
    quit();
}

/* Sums of two numbers are rounded once, so within half a unit. */
static void floats_have_an_error(void **state)
{
    struct msg_prepare p = row_of(COLL_ALLREDUCE, DT_FP32, false);

    (void)state;
    begin(RANKS, 0);
    prepare(&p);
    ask(MSG_ERROR, NULL, 0);
    all_done();
    for (unsigned r = 0; r < RANKS; r++) {
        assert_true(done[r].ulp.max > 0 && done[r].ulp.max <= 0.5);
        assert_int_equal(done[r].ops, 0);
    }
    assert_memory_equal(&done[0].ulp, &done[1].ulp, sizeof(done[0].ulp));
    quit();
}

/* A long run ends where the launcher says, once all have said how far they are. */
static void a_run_is_cut_by_stop_and_limit(void **state)
{
    struct msg_prepare p = row_of(COLL_ALLREDUCE, DT_INT32, false);
    struct msg_run all = {.n = PERF_MAX_ITERS};
    struct msg_progress pr, limit = {0, 0};
    struct msg m;

    (void)state;
    begin(RANKS, 0);
    prepare(&p);
    ask(MSG_RUN, &all, sizeof(all));
    ask(MSG_STOP, NULL, 0);
    for (unsigned r = 0; r < RANKS; r++) {
        assert_true(hear(r, &m));
        assert_int_equal(m.type, MSG_PROGRESS);
        assert_int_equal(msg_read(&m, &pr, sizeof(pr)), 0);
        assert_true(pr.begun >= 1 && pr.begun < all.n);
        assert_int_equal(pr.done, pr.begun);
        limit.done = pr.begun + 1 > limit.done ? pr.begun + 1 : limit.done;
    }
    ask(MSG_LIMIT, &limit, sizeof(limit));
    for (unsigned r = 0; r < RANKS; r++) {
        assert_true(hear(r, &m));
        assert_int_equal(m.type, MSG_DONE);
        assert_int_equal(msg_read_done(&m, net.fab, limit.done, &done[r]), 0);
        assert_int_equal(done[r].ops, limit.done);
    }
    ask(MSG_STOP, NULL, 0); /* too late, and no mistake */
    ask(MSG_LIMIT, &limit, sizeof(limit));
    run(2, 0);
    check(0);
    assert_int_equal(done[0].wrong + done[1].wrong, 0);
    ask(MSG_GRANTED, NULL, 0);
    all_done();
    assert_int_equal(done[0].granted.trees_asked, 0);
    quit();
}

static void a_recorded_operation_has_events(void **state)
{
    struct msg_prepare p = row_of(COLL_ALLREDUCE, DT_INT32, false);
    struct msg_run one = {.n = 1};
    int64_t begun;

    (void)state;
    begin(RANKS, 1);
    prepare(&p);
    begun = clock_fabric_ps(net.rd.sh);
    ask(MSG_RECORD, &one, sizeof(one));
    for (unsigned r = 0; r < RANKS; r++) {
        size_t bytes = 0;
        struct msg m;

        for (;;) {
            assert_true(hear(r, &m));
            if (m.type != MSG_EVENTS)
                break;
            assert_true(m.len > 0 && m.len <= 65536);
            bytes += m.len;
        }
        assert_int_equal(m.type, MSG_DONE);
        assert_int_equal(msg_read_done(&m, net.fab, 1, &done[r]), 0);
        assert_true(bytes > 100);
        assert_int_equal(done[r].ops, 1);
        assert_int_equal(done[r].algo, ALGO_RING);
        assert_int_equal(done[r].schedules, 1);
        assert_true(done[r].entered_ps >= begun && done[r].left_ps > done[r].entered_ps);
        memcpy(ends[r], m.body + sizeof(done[r]), sizeof(int64_t));
        assert_true(ends[r][0] >= done[r].left_ps - done[r].entered_ps);
    }
    run(1, 0);
    quit();
}

/* ---- what is refused ---- */

static void one_rank_refuses(const struct msg_prepare *p, uint32_t type, const void *body,
                             size_t len, const char *says)
{
    char text[MSG_TEXT];
    struct msg m;

    begin(1, 0);
    if (p)
        prepare(p);
    ask(type, body, len);
    assert_true(hear(0, &m));
    assert_int_equal(m.type, MSG_FAIL);
    msg_read_text(&m, text, sizeof(text));
    assert_string_equal(text, says);
    ask(MSG_ABORT, "because", 7);
    finish(1);
}

static void what_is_malformed_is_refused(void **state)
{
    struct msg_prepare p = row_of(COLL_ALLREDUCE, DT_INT32, false),
                       in_place = row_of(COLL_ALLREDUCE, DT_FP32, true), wrong;
    struct msg_run r = {.n = 0};
    struct msg_check c = {.ways = 0};
    char c1[sizeof(c) + 1] = {0};

    (void)state;
    one_rank_refuses(NULL, MSG_PREPARE, &p, sizeof(p) - 1, "malformed PREPARE");
    wrong = p, wrong.count = 65536 / 4 + 1;
    one_rank_refuses(NULL, MSG_PREPARE, &wrong, sizeof(p),
                     "PREPARE asks for more than the buffers hold");
    one_rank_refuses(&p, MSG_RUN, &r, sizeof(r), "malformed RUN");
    one_rank_refuses(&p, MSG_CHECK, c1, sizeof(c1), "malformed CHECK");
    one_rank_refuses(&p, MSG_ERROR, NULL, 0, "malformed ERROR"); /* no floats */
    one_rank_refuses(&in_place, MSG_ERROR, NULL, 0, "malformed ERROR");
    one_rank_refuses(&p, MSG_RECORD, &r, sizeof(r), "malformed RECORD"); /* without a time line */
    one_rank_refuses(&p, MSG_HELLO, NULL, 0, "unexpected command");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_run_and_are_checked),
        cmocka_unit_test(in_place_a_check_begins_anew),
        cmocka_unit_test(a_run_counts_from_its_start),
        cmocka_unit_test(a_barrier_waits_for_who_is_late),
        cmocka_unit_test(floats_have_an_error),
        cmocka_unit_test(a_run_is_cut_by_stop_and_limit),
        cmocka_unit_test(a_recorded_operation_has_events),
        cmocka_unit_test(what_is_malformed_is_refused),
    };

    return cmocka_run_group_tests_name("launch/rank_op", tests, fabric_start, live_fabric_stop);
}
