/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank's life at its host: open, operations, packets, timers and close, each with its time. */
#include "protocols/host/spin.h"
#include "tests/protocols/host/acting_rank.h"

static void sees_all(struct trib_rank *r)
{
    assert_ptr_equal(r->key, keys);
    assert_ptr_equal(r->switch_of, switch_of);
    assert_null(r->self);
    assert_true(r->rank == 1 && r->nranks == 4 && r->job == 9);
    assert_true(r->payload == 100 && r->window == 11);
    assert_true(r->rate_bps == 12 && r->tree_bps == 13 && r->share_bps == 14);
    assert_true(r->round_trip_ps == 15 && r->notice_ps == 16);
    r->self = &half;
}

static void keeps_self(struct trib_rank *r)
{
    assert_ptr_equal(r->self, &half);
}

static void calls_are_handed_on_with_their_time(void **state)
{
    struct proto_rank_cfg cfg = config(&with_switch);
    const struct trib_packet p = {.head_bytes = 3, .data_bytes = 5, .from = 2, .marked = true};
    const struct trib_op op = {
        .number = 77, .count = 6, .type = TRIB_FLOAT32, .op = TRIB_MAX, .send = &p, .recv = &half};
    struct proto_rank *r;
    char err[PROTO_TEXT] = "";

    (void)state;
    half.act = sees_all;
    assert_int_equal(proto_rank_create(&r, &cfg, 100, err), 0);
    assert_true(proto_rank_done(r));
    assert_false(proto_rank_waits(r));
    assert_null(proto_rank_error(r));
    assert_true(proto_rank_next(r) == TRIB_NEVER);
    for (unsigned i = 0; i < TRIB_COUNTERS; i++)
        assert_true(proto_rank_counters(r)[i] == 0);
    half.act = keeps_self;
    assert_int_equal(proto_rank_start(r, &op, 101), 0);
    assert_false(proto_rank_done(r));
    assert_true(half.op.number == 0 && half.op.count == 6 && half.op.type == TRIB_FLOAT32);
    assert_true(half.op.op == TRIB_MAX && half.op.send == &p && half.op.recv == &half);
    assert_int_equal(proto_rank_start(r, &op, 102), -EBUSY);
    proto_rank_packet(r, &p, 103);
    assert_memory_equal(&half.packet, &p, sizeof(p));
    proto_rank_room(r, 104);
    proto_rank_tick(r, 105); /* none is set */
    proto_rank_destroy(r);
    proto_rank_destroy(NULL);
    assert_string_equal(half.calls, "open@100 start@101 packet@103 room@104 close@104 ");
}

static void ends(struct trib_rank *r)
{
    r->api->done(r);
}

static void operations_are_numbered_and_end(void **state)
{
    struct proto_rank *r = rank_of(&with_switch, 0);
    const struct trib_op op = {.number = 77, .count = 1};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        half.act = ends; /* within start() */
        assert_int_equal(proto_rank_start(r, &op, 0), 0);
        assert_true(proto_rank_done(r));
        assert_int_equal(half.op.number, i);
    }
    half.rc = -ENOTSUP;
    assert_int_equal(proto_rank_start(r, &op, 0), -ENOTSUP);
    assert_true(proto_rank_done(r));
    half.rc = 0;
    assert_int_equal(proto_rank_start(r, &op, 0), 0); /* one that has not begun does not count */
    assert_int_equal(half.op.number, 3);
    assert_null(error_of(r, ends)); /* within packet() */
    assert_true(proto_rank_done(r));
    assert_string_equal(error_of(r, ends), "protocol acts: ends an operation that has not begun");
    assert_true(proto_rank_done(r));
    proto_rank_destroy(r);
}

static void why_it_does_not_start_is_said(void **state)
{
    static const struct {
        void (*act)(struct trib_rank *r);
        const char *says;
    } rows[] = {{NULL, "protocol acts does not start: No space left on device"},
                {says_why, "protocol acts does not start: 100% full"}};
    struct proto_rank_cfg cfg = config(&with_switch);

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct proto_rank *r = (struct proto_rank *)&cfg;
        char err[PROTO_TEXT] = "";

        half.act = rows[i].act;
        half.rc = -ENOSPC;
        assert_int_equal(proto_rank_create(&r, &cfg, 0, err), -ENOSPC);
        assert_null(r);
        assert_string_equal(err, rows[i].says);
    }
    assert_string_equal(half.calls, "open@0 open@0 "); /* what has not opened is not closed */
}

static void functions_may_be_missing(void **state)
{
    const struct trib_rank_half less = {
        .start = half_start, .packet = half_packet, .room = half_room};
    const struct trib_protocol p = {.name = "less", .rank = &less};
    struct proto_rank *r = rank_of(&p, 0);

    (void)state;
    half.rc = 0;
    assert_string_equal(error_of(r, NULL) ? "failed" : "right", "right");
    proto_rank_tick(r, INT64_MAX);
    proto_rank_destroy(r);
    assert_string_equal(half.calls, "packet@1 ");
}

static int64_t timer_at;

static void sets_timer(struct trib_rank *r)
{
    r->api->timer(r, timer_at + 1);
    r->api->timer(r, timer_at); /* the last counts */
}

static void a_timer_runs_once(void **state)
{
    struct proto_rank *r = rank_of(&with_switch, 0);

    (void)state;
    timer_at = 500;
    assert_null(error_of(r, sets_timer));
    assert_true(proto_rank_next(r) == 500);
    proto_rank_tick(r, 499);
    proto_rank_tick(r, 500);
    assert_true(proto_rank_next(r) == TRIB_NEVER);
    proto_rank_tick(r, 501);
    assert_string_equal(half.calls, "packet@1 timer@500 ");
    assert_null(proto_rank_error(r));
    timer_at = 600;
    assert_null(error_of(r, sets_timer));
    proto_rank_tick(r, 700);
    assert_string_equal(half.calls, "packet@1 timer@500 packet@1 timer@700 ");
    proto_rank_destroy(r);
}

/* Calls of a timer that sets itself again for the time that it is, until the rank has failed. */
static unsigned spins_at(struct proto_rank *r, int64_t now, unsigned most)
{
    unsigned n = 0;

    for (timer_at = now; n < most && !proto_rank_error(r); n++) {
        half.calls[0] = '\0';
        half.act = sets_timer;
        if (n == 0)
            error_of(r, sets_timer);
        half.act = sets_timer;
        proto_rank_tick(r, now);
    }
    return n;
}

static void a_timer_that_stands_still_is_named(void **state)
{
    struct proto_rank *r = rank_of(&with_switch, 0);

    (void)state;
    assert_int_equal(spins_at(r, PS_PER_US - 1, PROTO_SPINS), PROTO_SPINS);
    assert_null(proto_rank_error(r));
    assert_int_equal(spins_at(r, PS_PER_US, PROTO_SPINS), PROTO_SPINS); /* the next microsecond */
    assert_null(proto_rank_error(r));
    assert_int_equal(spins_at(r, 2 * PS_PER_US - 1, 5), 1);
    assert_string_equal(proto_rank_error(r),
                        "protocol acts: timer() of its rank half has run 100000 times in a "
                        "microsecond: it sets its timer again for now");
    proto_rank_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(calls_are_handed_on_with_their_time, reset),
        cmocka_unit_test_setup(operations_are_numbered_and_end, reset),
        cmocka_unit_test_setup(why_it_does_not_start_is_said, reset),
        cmocka_unit_test_setup(functions_may_be_missing, reset),
        cmocka_unit_test_setup(a_timer_runs_once, reset),
        cmocka_unit_test_setup(a_timer_that_stands_still_is_named, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
