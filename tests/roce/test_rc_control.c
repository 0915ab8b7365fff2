/* SPDX-License-Identifier: BSD-3-Clause */
/* Reliable connections: states, resets, round robin, and limits. */
#include "tests/roce/rc_fixture.h"

static void only_lawful_transitions_are_made(void **state)
{
    struct pair_cfg cfg = {.window = 8};
    struct pair *p = pair_create(&cfg);
    struct qp_cfg c = {.type = QP_RC, .sq_depth = 4};
    struct qp_attr a = {.mtu = 1000};
    struct qp *qp, *other;
    struct wqe w = {.frag = WQE_WHOLE, .op = WR_SEND};

    (void)state;
    assert_int_equal(qp_create(p->s[0].r, &c, &qp), 0);
    assert_int_equal(qp_post_send(qp, &w), -EINVAL);
    a.state = QP_RTS;
    assert_int_equal(qp_modify(qp, &a), -EINVAL);
    a.state = QP_RTR;
    assert_int_equal(qp_modify(qp, &a), -EINVAL);
    a.state = QP_INIT;
    assert_int_equal(qp_modify(qp, &a), 0);
    a.state = QP_RTR;
    assert_int_equal(qp_modify(qp, &a), -EINVAL); /* the MTU is none */
    a.mtu = 1024, a.max_dest_rd_atomic = 17;
    assert_int_equal(qp_modify(qp, &a), -EINVAL);
    a.max_dest_rd_atomic = 16;
    assert_int_equal(qp_modify(qp, &a), 0);
    a.state = QP_RTS;
    assert_int_equal(qp_modify(qp, &a), 0);
    a.state = QP_INIT;
    assert_int_equal(qp_modify(qp, &a), -EINVAL);
    a.state = QP_ERR;
    assert_int_equal(qp_modify(qp, &a), 0);
    a.state = QP_RTS;
    assert_int_equal(qp_modify(qp, &a), -EINVAL);
    a.state = QP_RESET;
    assert_int_equal(qp_modify(qp, &a), 0);
    c.qpn = qp_num(qp);
    assert_int_equal(qp_create(p->s[0].r, &c, &other), -EADDRINUSE);
    c.qpn = 0xa991;
    assert_int_equal(qp_create(p->s[0].r, &c, &other), 0);
    assert_ptr_equal(rnic_qp(p->s[0].r, 0xa991), other);
    qp_destroy(other);
    assert_null(rnic_qp(p->s[0].r, 0xa991));
    pair_destroy(p);
}

static void a_reset_pair_works_again(void **state)
{
    struct fixture e = fixture_make(NULL, false);
    struct qp_attr old[2], a;

    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        struct wqe w = request(&e, WR_WRITE, round, 30000);

        assert_int_equal(qp_post_send(e.qp[0], &w), 0);
        pair_run(e.p, pair_never, round == 1 ? 3 * PS_PER_US : PS_PER_S);
        for (unsigned i = 0; i < 2; i++) {
            old[i] = *qp_attributes(e.qp[i]);
            a = old[i];
            a.state = QP_RESET;
            assert_int_equal(qp_modify(e.qp[i], &a), 0);
        }
        pair_run(e.p, pair_never, PS_PER_S); /* what is under way is dropped */
        for (unsigned i = 0; i < 2; i++)
            for (a = old[i], a.state = QP_INIT; a.state <= QP_RTS; a.state++)
                assert_int_equal(qp_modify(e.qp[i], &a), 0);
    }
    assert_int_equal(e.p->s[0].n_cqes, 2);
    fixture_free(&e);
}

static void a_qp_can_go_with_traffic_in_flight(void **state)
{
    (void)state;
    for (unsigned us = 0; us < 30; us++) {
        struct qp_attr attr = {.mtu = 256, .retry_cnt = 1};
        struct fixture e = fixture_make(&attr, false);

        for (unsigned i = 0; i < 8; i++) {
            struct wqe w = request(&e, i & 1 ? WR_READ : WR_WRITE, i, 20000);

            assert_int_equal(qp_post_send(e.qp[0], &w), 0);
            assert_int_equal(qp_post_send(e.qp[1], &w), 0);
        }
        pair_run(e.p, pair_never, us * PS_PER_US / 2);
        qp_destroy(e.qp[us & 1]);
        pair_run(e.p, pair_never, PS_PER_S);
        assert_int_equal(qp_state_of(e.qp[!(us & 1)]), QP_ERR);
        fixture_free(&e);
    }
}

static void a_shared_receive_queue_outlives_an_error(void **state)
{
    struct fixture e = fixture_make(NULL, false);
    struct qp_attr a = {.state = QP_ERR};

    (void)state;
    rq_set_shared(e.rq[1]);
    post_recv(&e, 1, 5, 0, 100);
    assert_int_equal(qp_modify(e.qp[1], &a), 0);
    assert_int_equal(e.p->s[1].n_cqes, 0);
    assert_int_equal(rq_level(e.rq[1]), 1);
    assert_int_equal(e.p->s[1].events[QP_EV_LAST_WQE], 1);
    fixture_free(&e);
}

static void a_dead_port_ends_every_connection(void **state)
{
    struct fixture e = fixture_make(NULL, false);
    struct wqe w = request(&e, WR_WRITE, 1, 30000);

    (void)state;
    post_recv(&e, 0, 3, 0, 100);
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    w.wr_id = 2;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    pair_run(e.p, pair_never, PS_PER_US);
    rnic_port_down(e.p->s[0].r, e.p->now_ps);
    rnic_port_down(e.p->s[1].r, e.p->now_ps);
    assert_int_equal(e.p->s[0].n_cqes, 3);
    assert_int_equal(e.p->s[0].cqe[0].status, WC_RETRY_EXC_ERR);
    assert_int_equal(e.p->s[0].cqe[1].status, WC_WR_FLUSH_ERR);
    assert_int_equal(e.p->s[0].cqe[2].status, WC_WR_FLUSH_ERR);
    assert_int_equal(e.p->s[1].events[QP_EV_FATAL], 1);
    pair_run(e.p, pair_never, PS_PER_S);
    fixture_free(&e);
}

static void draining_finishes_what_has_begun(void **state)
{
    struct qp_attr attr = {.mtu = 256};
    struct fixture e = fixture_make(&attr, false);
    struct wqe w = request(&e, WR_WRITE, 1, 30000);
    struct qp_attr a;

    (void)state;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    w.wr_id = 2;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    pair_run(e.p, pair_never, PS_PER_US);
    a = *qp_attributes(e.qp[0]);
    a.state = QP_SQD;
    assert_int_equal(qp_modify(e.qp[0], &a), 0);
    assert_int_equal(e.p->s[0].events[QP_EV_SQ_DRAINED], 0);
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(e.p->s[0].n_cqes, 1);
    assert_int_equal(e.p->s[0].events[QP_EV_SQ_DRAINED], 1);
    a.state = QP_RTS;
    assert_int_equal(qp_modify(e.qp[0], &a), 0);
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(e.p->s[0].n_cqes, 2);
    fixture_free(&e);
}

static unsigned turns[64], n_turns;
static enum wire_verdict note_turn(struct pair *p, unsigned from, const struct roce_pkt *k)
{
    (void)p;
    if (from == 0 && n_turns < RTE_DIM(turns))
        turns[n_turns++] = k->dqpn;
    return WIRE_PASS;
}

static void queue_pairs_send_in_turn(void **state)
{
    struct qp_attr attr = {.mtu = 256};
    struct fixture e = fixture_make(&attr, false);
    struct qp *qp[2];

    (void)state;
    n_turns = 0;
    pair_connect(e.p, QP_RC, &attr, 8, e.rq[0], e.rq[1], false, qp);
    e.p->fault = note_turn;
    struct wqe w = request(&e, WR_WRITE, 1, 20 * 256);

    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    assert_int_equal(qp_post_send(qp[0], &w), 0);
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(n_turns, 40);
    for (unsigned i = 1; i < 40; i++)
        assert_int_not_equal(turns[i], turns[i - 1]);
    fixture_free(&e);
}

static void a_small_pool_only_slows_down(void **state)
{
    struct pair_cfg cfg = {.window = 32, .ack_every = 4, .mbufs = 7, .seed = 1};
    struct pair *p = pair_create(&cfg);
    struct qp_attr attr = {.mtu = 256, .timeout = 14};
    uint8_t a[20000], b[20000] = {0};
    uint32_t ka = pair_region(&p->s[0], a, sizeof(a), ALL_ACCESS),
             kb = pair_region(&p->s[1], b, sizeof(b), ALL_ACCESS);
    struct qp *qp[2];
    struct wqe w = {.op = WR_WRITE,
                    .frag = WQE_WHOLE,
                    .flags = WR_F_SIGNALED,
                    .n_sge = 1,
                    .rkey = kb,
                    .raddr = (uintptr_t)b,
                    .sge = {{(uintptr_t)a, sizeof(a), ka}}};

    (void)state;
    for (unsigned i = 0; i < sizeof(a); i++)
        a[i] = (uint8_t)(i * 3);
    pair_connect(p, QP_RC, &attr, 8, NULL, NULL, false, qp);
    assert_int_equal(qp_post_send(qp[0], &w), 0);
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(p->s[0].n_cqes, 1);
    assert_memory_equal(a, b, sizeof(a));
    assert_true(rnic_counters(p->s[0].r)->no_mbufs > 0);
    assert_int_equal(rnic_counters(p->s[0].r)->retransmits, 0);
    pair_destroy(p);
}

static void count_name(void *ctx, const char *name, uint64_t v)
{
    (void)v;
    *(unsigned *)ctx += strlen(name) > 0;
}

static void counters_have_names(void **state)
{
    struct fixture e = fixture_make(NULL, false);
    unsigned n = 0;

    (void)state;
    roce_counters_print(rnic_counters(e.p->s[0].r), count_name, &n);
    assert_int_equal(n, sizeof(struct roce_counters) / sizeof(uint64_t) - 1);
    fixture_free(&e);
}

/* The peer's engine answers, without a receive and whatever was sent before. */
static void a_keep_alive_is_answered_and_changes_nothing(void **state)
{
    struct fixture e = fixture_make(NULL, false);
    struct wqe w = request(&e, WR_WRITE, 1, 3000);
    uint64_t before;

    (void)state;
    for (unsigned round = 0; round < 2; round++) {
        before = qp_activity(e.qp[0]);
        assert_true(qp_keepalive(e.qp[0]));
        pair_run(e.p, pair_never, PS_PER_MS);
        assert_int_not_equal(qp_activity(e.qp[0]), before);
        assert_int_equal(rnic_counters(e.p->s[1].r)->duplicates, round + 1);
        assert_int_equal(qp_state_of(e.qp[0]), QP_RTS);
        assert_int_equal(qp_state_of(e.qp[1]), QP_RTS);
        assert_int_equal(qp_post_send(e.qp[0], &w), 0);
        assert_false(qp_keepalive(e.qp[0])); /* it is not idle */
        pair_run(e.p, pair_never, PS_PER_MS);
        assert_non_null(pair_cqe(&e.p->s[0], 1, false));
        assert_memory_equal(e.buf[0], e.buf[1], 3000);
    }
    assert_int_equal(qp_modify(e.qp[1], &(struct qp_attr){.state = QP_RESET}), 0);
    before = qp_activity(e.qp[0]);
    assert_true(qp_keepalive(e.qp[0]));
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(qp_activity(e.qp[0]), before);
    assert_int_equal(rnic_counters(e.p->s[0].r)->retransmits, 0);
    fixture_free(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_keep_alive_is_answered_and_changes_nothing),
        cmocka_unit_test(only_lawful_transitions_are_made),
        cmocka_unit_test(a_reset_pair_works_again),
        cmocka_unit_test(a_qp_can_go_with_traffic_in_flight),
        cmocka_unit_test(a_shared_receive_queue_outlives_an_error),
        cmocka_unit_test(a_dead_port_ends_every_connection),
        cmocka_unit_test(draining_finishes_what_has_begun),
        cmocka_unit_test(queue_pairs_send_in_turn),
        cmocka_unit_test(a_small_pool_only_slows_down),
        cmocka_unit_test(counters_have_names),
    };

    test_eal_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
