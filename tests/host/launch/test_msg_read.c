/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of messages: what a rank or a launcher of another build may send is refused before it is
 * used. */
#include "collective/file/sched_file.h"
#include "host/launch/msg_read.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define RANKS  4u
#define BUFFER 4096u

static struct fabric fab = {.n_trees = 2};

static struct msg msg_of(const void *body, size_t len)
{
    return (struct msg){.len = (uint32_t)len, .body = body};
}

/* ---- INIT ---- */

struct init {
    struct msg_init in;
    uint16_t host[RANKS];
};

static int init_with(void (*change)(struct init *i))
{
    struct init i = {.in = {.rank = 3, .nranks = RANKS, .n_policy = 2, .gpu = BUFFER_HOST}};
    static uint16_t host[FAB_MAX_MEMBERS];
    struct msg m = msg_of(&i, sizeof(i.in) + sizeof(i.host));
    struct msg_init out;

    if (change)
        change(&i);
    return msg_read_init(&m, &out, host);
}

static void no_ranks(struct init *i)
{
    i->in.nranks = 0;
}

/* The report of a failure indexes the hosts by it. */
static void rank_of_another_job(struct init *i)
{
    i->in.rank = RANKS;
}

static void more_ranks_than_hosts(struct init *i)
{
    i->in.nranks = RANKS + 1;
}

static void too_many_trees(struct init *i)
{
    i->in.n_trees = COLL_TREES + 1;
}

static void unknown_policy(struct init *i)
{
    i->in.policy[1] = ALGO_SCHEDULE;
}

static void long_policy(struct init *i)
{
    i->in.n_policy = ALGO_SCHEDULE + 1;
}

static void long_schedule(struct init *i)
{
    i->in.schedule = SCHED_FILE_BYTES + 1;
}

static void unknown_memory(struct init *i)
{
    i->in.gpu = BUFFER_HOST - 1;
}

static void an_init_that_does_not_fit_is_refused(void **state)
{
    static void (*const wrong[])(struct init *) = {
        no_ranks,       rank_of_another_job, too_many_trees, more_ranks_than_hosts,
        unknown_policy, long_policy,         unknown_memory, long_schedule};

    (void)state;
    assert_int_equal(init_with(NULL), 0);
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(init_with(wrong[i]), -EPROTO);
}

/* ---- PREPARE ---- */

static int prepare(struct msg_prepare p)
{
    struct msg m = msg_of(&p, sizeof(p));
    struct msg_prepare out;

    return msg_read_prepare(&m, RANKS, BUFFER, &out);
}

static void a_row_that_does_not_fit_is_refused(void **state)
{
    static const struct msg_prepare good = {
        .coll = COLL_ALLGATHER, .type = DT_FP32, .op = OP_SUM, .count = BUFFER / 4 / RANKS};
    struct msg_prepare p = good;

    (void)state;
    assert_int_equal(prepare(p), 0);
    p.count++;
    assert_int_equal(prepare(p), -E2BIG);
    p.count = 1ull << 60; /* 2^60 * 4 ranks * 4 bytes are 2^64 */
    assert_int_equal(prepare(p), -E2BIG);
    p = good, p.coll = COLL_KINDS;
    assert_int_equal(prepare(p), -EPROTO);
    p = good, p.algo = ALGO_COUNT;
    assert_int_equal(prepare(p), -EPROTO);
    p = good, p.type = DT_COUNT;
    assert_int_equal(prepare(p), -EPROTO);
    p = good, p.op = OP_COUNT;
    assert_int_equal(prepare(p), -EPROTO);
    p = good, p.root = RANKS;
    assert_int_equal(prepare(p), -EPROTO);
    p = good, p.sparse = RANKS + 1;
    assert_int_equal(prepare(p), -EPROTO);
    p = good, p.coll = COLL_ALLREDUCE, p.op = OP_BAND;
    assert_int_equal(prepare(p), -EPROTO);
    p = good, p.coll = COLL_ALLTOALL, p.in_place = 1;
    assert_int_equal(prepare(p), -EPROTO);
}

/* ---- CHECK ---- */

static void samples_are_as_many_as_said(void **state)
{
    struct {
        struct msg_check c;
        uint8_t want[24];
    } b = {.c = {.ways = 3}};
    struct msg m = msg_of(&b, sizeof(b.c) + 24);
    struct msg_check out;

    (void)state;
    assert_int_equal(msg_read_check(&m, 8, &out), 0);
    assert_int_equal(msg_read_check(&m, 7, &out), -EPROTO);
    b.c.ways = 1u << 29; /* of 8 bytes each: 2^32 */
    m.len = sizeof(b.c);
    assert_int_equal(msg_read_check(&m, 8, &out), -EPROTO);
    m.len = sizeof(b.c) - 1;
    assert_int_equal(msg_read_check(&m, 0, &out), -EPROTO);
}

/* ---- DONE ---- */

static int done(struct msg_done d)
{
    struct {
        struct msg_done d;
        int64_t ends[11];
    } b = {.d = d};
    struct msg m = msg_of(&b, sizeof(d) + d.ops * sizeof(b.ends[0]));
    struct msg_done out;
    int rc = msg_read_done(&m, &fab, 10, &out);

    if (!rc) {
        assert_true(memchr(out.fell_back, 0, sizeof(out.fell_back)));
        assert_true(memchr(out.memory, 0, sizeof(out.memory)));
        assert_true(memchr(out.granted.why, 0, sizeof(out.granted.why)));
        assert_null(strchr(out.fell_back, 27));
    }
    return rc;
}

static void an_answer_that_does_not_fit_is_refused(void **state)
{
    struct msg_done d = {.ops = 10, .granted = {.trees = 1, .tree = {1}}};

    (void)state;
    memset(d.fell_back, 27, sizeof(d.fell_back));
    memset(d.memory, 'x', sizeof(d.memory));
    memset(d.granted.why, 'x', sizeof(d.granted.why));
    assert_int_equal(done(d), 0);
    d.ops = 11;
    assert_int_equal(done(d), -EPROTO);
    d.ops = 0, d.algo = ALGO_COUNT;
    assert_int_equal(done(d), -EPROTO);
    d.algo = 0, d.granted.tree[0] = 2;
    assert_int_equal(done(d), -EPROTO);
    d.granted.tree[0] = 0, d.granted.trees = COLL_TREES + 1;
    assert_int_equal(done(d), -EPROTO);
}

/* ---- RUN and its times ---- */

static void a_run_has_as_many_operations_as_can_be_asked_for(void **state)
{
    struct msg_run r = {.n = PERF_MAX_ITERS}, out;
    struct msg m = msg_of(&r, sizeof(r));

    (void)state;
    assert_int_equal(msg_read_run(&m, &out), 0);
    r.n++;
    assert_int_equal(msg_read_run(&m, &out), -EPROTO);
    r.n = 0;
    assert_int_equal(msg_read_run(&m, &out), -EPROTO);
}

static void an_answer_has_an_end_for_each_operation(void **state)
{
    struct {
        struct msg_done d;
        int64_t ends[4];
    } b = {.d = {.ops = 3}};
    struct msg_done out;

    (void)state;
    for (unsigned n = 0; n <= 4; n++) {
        struct msg m = msg_of(&b, sizeof(b.d) + n * sizeof(b.ends[0]));

        assert_int_equal(msg_read_done(&m, &fab, 10, &out), n == 3 ? 0 : -EPROTO);
    }
    struct msg shorter = msg_of(&b, sizeof(b.d) - 1);
    assert_int_equal(msg_read_done(&shorter, &fab, 10, &out), -EPROTO);
}

/* ---- texts ---- */

static void texts_control_no_terminal(void **state)
{
    char buf[8];
    struct msg m = msg_of("a\033[2J\177\n", 7);

    (void)state;
    msg_read_text(&m, buf, sizeof(buf));
    assert_string_equal(buf, "a?[2J??");
    m = msg_of("123456789", 9);
    msg_read_text(&m, buf, sizeof(buf));
    assert_string_equal(buf, "1234567");
    m = msg_of(NULL, 0);
    msg_read_text(&m, buf, sizeof(buf));
    assert_string_equal(buf, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_init_that_does_not_fit_is_refused),
        cmocka_unit_test(a_row_that_does_not_fit_is_refused),
        cmocka_unit_test(samples_are_as_many_as_said),
        cmocka_unit_test(an_answer_that_does_not_fit_is_refused),
        cmocka_unit_test(a_run_has_as_many_operations_as_can_be_asked_for),
        cmocka_unit_test(an_answer_has_an_end_for_each_operation),
        cmocka_unit_test(texts_control_no_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
