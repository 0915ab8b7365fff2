/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes that wait for each other: they are woken by the step that they wait for, once. */
#include "host/coll/comm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define LANES 5u
#define STEPS 10u

struct fixture {
    struct comm *c;
    struct coll_req r;
    struct lane lane[LANES];
    unsigned ready[LANES], credit[LANES];
    struct lane_run *run;
};

/* An operation of LANES lanes that runs. */
static void set_up(struct fixture *b)
{
    memset(b, 0, sizeof(*b));
    b->c = calloc(1, sizeof(*b->c));
    b->run = cacheline_alloc(LANES * sizeof(*b->run));
    assert_true(b->c && b->run);
    memset(b->run, 0, LANES * sizeof(*b->run));
    for (unsigned l = 0; l < LANES; l++) {
        b->lane[l].n = STEPS;
        b->run[l].waiters = LANE_NONE;
    }
    b->r = (struct coll_req){
        .s = {.n_lanes = LANES, .lane = b->lane}, .lane = b->run, .lanes_left = LANES};
    b->c->exec = (struct exec){.head = &b->r,
                               .running = true,
                               .ready = {.lane = b->ready, .room = LANES},
                               .credit = {.lane = b->credit, .room = LANES}};
}

static void drop(struct fixture *b)
{
    free(b->run);
    free(b->c);
}

/* Lane `lane` asks for a step that waits for so many of `on`. */
static bool ask(struct fixture *b, unsigned lane, enum wait_for which, unsigned on, uint32_t count)
{
    const struct step st = {.n_deps = 1, .dep = {{on, count}}};

    return exec_may_start(&b->r, lane, which, &st);
}

/* The lanes that are ready, as bits, which are then taken. */
static unsigned woken(struct fixture *b)
{
    struct lane_queue *q = &b->c->exec.ready;
    unsigned lanes = 0;

    for (; q->n; q->n--, q->head = (q->head + 1) % q->room) {
        assert_false(lanes >> q->lane[q->head] & 1);
        lanes |= 1u << q->lane[q->head];
        b->run[q->lane[q->head]].active = false;
    }
    return lanes;
}

static void a_lane_is_woken_by_its_step(void **state)
{
    struct fixture b;

    (void)state;
    set_up(&b);
    assert_true(ask(&b, 1, WAIT_START, 0, 0));
    assert_false(ask(&b, 1, WAIT_START, 0, 1));
    assert_false(ask(&b, 1, WAIT_START, 0, 1)); /* in the list once */
    assert_false(ask(&b, 2, WAIT_START, 0, 3));
    assert_false(ask(&b, 2, WAIT_TAKE, 0, 2));
    assert_false(ask(&b, 3, WAIT_START, 0, 2));
    assert_false(ask(&b, 0, WAIT_START, 0, 10));
    exec_done(b.c, &b.r, 0, 0);
    assert_int_equal(woken(&b), 0);
    assert_int_equal(b.c->exec.moved, 0);
    exec_done(b.c, &b.r, 0, 1);
    assert_int_equal(woken(&b), 1u << 1);
    assert_int_equal(b.c->exec.moved, 1);
    assert_true(ask(&b, 1, WAIT_START, 0, 1));
    exec_done(b.c, &b.r, 0, 2);
    assert_int_equal(woken(&b), 1u << 2 | 1u << 3);
    exec_done(b.c, &b.r, 0, 5);
    assert_int_equal(woken(&b), 1u << 2);
    exec_done(b.c, &b.r, 0, STEPS);
    assert_int_equal(woken(&b), 1u << 0);
    assert_int_equal(b.run[0].waiters, LANE_NONE);
    assert_int_equal(b.r.lanes_left, LANES - 1);
    assert_int_equal(b.c->exec.moved, 4);
    drop(&b);
}

/* It waits for the first that is missing, and asks again then. */
static void a_step_waits_for_all_of_its_lanes(void **state)
{
    const struct step st = {.n_deps = 3, .dep = {{0, 1}, {1, 2}, {2, 3}}};
    struct fixture b;

    (void)state;
    set_up(&b);
    exec_done(b.c, &b.r, 0, 1);
    assert_false(exec_may_start(&b.r, 3, WAIT_START, &st));
    exec_done(b.c, &b.r, 2, 2);
    assert_int_equal(woken(&b), 0);
    exec_done(b.c, &b.r, 1, 2);
    assert_int_equal(woken(&b), 1u << 3);
    assert_false(exec_may_start(&b.r, 3, WAIT_START, &st));
    exec_done(b.c, &b.r, 2, 3);
    assert_int_equal(woken(&b), 1u << 3);
    assert_true(exec_may_start(&b.r, 3, WAIT_START, &st));
    drop(&b);
}

static void a_lane_is_queued_once(void **state)
{
    struct fixture b;

    (void)state;
    set_up(&b);
    exec_wake(b.c, LANE_NONE);
    assert_int_equal(woken(&b), 0);
    for (unsigned turn = 0; turn < 3 * LANES; turn++) { /* around the ring */
        exec_wake(b.c, 1);
        exec_wake(b.c, 1);
        exec_wake(b.c, 4);
        assert_int_equal(b.c->exec.ready.n, 2);
        assert_int_equal(woken(&b), 1u << 1 | 1u << 4);
    }
    for (unsigned l = 0; l < LANES; l++) {
        exec_poll(b.c, l);
        exec_poll(b.c, l);
        assert_int_equal(b.c->exec.credit.n, l + 1);
        assert_int_equal(b.credit[l], l);
        assert_true(b.run[l].polled);
    }
    b.c->exec.running = false; /* nothing runs */
    exec_wake(b.c, 2);
    assert_int_equal(woken(&b), 0);
    drop(&b);
}

/* That of the running one, else of the last one that did. */
static void the_operation_has_its_number(void **state)
{
    struct fixture b;

    (void)state;
    set_up(&b);
    b.r.id.seq = 7;
    b.c->exec.next_seq = 3;
    assert_int_equal(exec_seq(b.c), 7);
    b.c->exec.running = false;
    assert_int_equal(exec_seq(b.c), 2);
    b.c->exec.next_seq = 0;
    assert_int_equal(exec_seq(b.c), UINT32_MAX);
    drop(&b);
}

static void steps_are_at_their_buffers(void **state)
{
    uint8_t in[8], out[8], tmp[8], stage[8];
    struct workspace w = {.mem = {.addr = tmp}}, v = {.mem = {.addr = stage}};
    struct coll_req r = {.args = {.send = in, .recv = out}, .tmp = &w, .stage = &v};

    (void)state;
    assert_ptr_equal(exec_addr(&r, &(struct ref){.buf = BUF_IN, .off = 1}), in + 1);
    assert_ptr_equal(exec_addr(&r, &(struct ref){.buf = BUF_OUT, .off = 2}), out + 2);
    assert_ptr_equal(exec_addr(&r, &(struct ref){.buf = BUF_TMP, .off = 3}), tmp + 3);
    assert_ptr_equal(exec_addr(&r, &(struct ref){.buf = BUF_STAGE, .off = 4}), stage + 4);
    assert_null(exec_addr(&r, &(struct ref){.buf = BUF_NONE, .off = 4}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lane_is_woken_by_its_step),
        cmocka_unit_test(a_step_waits_for_all_of_its_lanes),
        cmocka_unit_test(a_lane_is_queued_once),
        cmocka_unit_test(the_operation_has_its_number),
        cmocka_unit_test(steps_are_at_their_buffers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
