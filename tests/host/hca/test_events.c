/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels, asynchronous events, and the shared receive queue that sends one. */
#include "tests/host/hca/pair.h"

#include <poll.h>

static bool readable(int fd)
{
    struct pollfd f = {.fd = fd, .events = POLLIN};

    return poll(&f, 1, 0) == 1;
}

/* A completion queue with a channel on side 1, for messages from a to b. */
struct notified {
    struct pair p;
    struct ibv_comp_channel *ch;
    struct ibv_cq *cq;
    struct ibv_qp *a, *b;
};

static void notified_open(struct notified *t)
{
    struct side *s;

    pair_open(&t->p);
    s = &t->p.s[1];
    t->ch = ibv_create_comp_channel(s->ctx);
    t->cq = ibv_create_cq(s->ctx, 10, &t->p, t->ch, 0);
    t->a = make_qp(&t->p.s[0], IBV_QPT_RC);
    t->b = make_qp_on(s, IBV_QPT_RC, t->cq, t->cq, NULL);
    rc_connect(t->a, IP_B, t->b->qp_num);
    rc_connect(t->b, IP_A, t->a->qp_num);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(post_recv(t->b, i, NULL, 0), 0);
}

static void send_one(struct notified *t, unsigned flags)
{
    assert_int_equal(
        post_send(t->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND, .send_flags = flags}), 0);
    pair_settle(&t->p);
}

static void an_event_comes_once_for_each_time_it_was_asked_for(void **state)
{
    struct notified t;
    struct ibv_cq *got;
    struct ibv_wc wc[8];
    void *user;

    (void)state;
    notified_open(&t);
    send_one(&t, 0); /* no notification was requested */
    assert_false(readable(t.ch->fd));
    assert_int_equal(ibv_get_cq_event(t.ch, &got, &user), -1);
    assert_int_equal(errno, EAGAIN); /* a wait in the only thread would never end */

    assert_int_equal(ibv_req_notify_cq(t.cq, 1), 0); /* it was not solicited */
    assert_false(readable(t.ch->fd));
    assert_int_equal(ibv_req_notify_cq(t.cq, 0), 0); /* what no poll has seen counts */
    assert_true(readable(t.ch->fd));
    assert_int_equal(ibv_get_cq_event(t.ch, &got, &user), 0);
    assert_int_equal(ibv_req_notify_cq(t.cq, 0), 0); /* but once */
    assert_false(readable(t.ch->fd));
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(post_send(t.a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}), 0);
    pair_settle(&t.p);
    assert_true(readable(t.ch->fd));
    assert_int_equal(ibv_get_cq_event(t.ch, &got, &user), 0);
    assert_ptr_equal(got, t.cq);
    assert_ptr_equal(user, &t.p);
    assert_false(readable(t.ch->fd)); /* two completions, one event */

    assert_int_equal(ibv_req_notify_cq(t.cq, 1), 0); /* solicited only */
    send_one(&t, 0);
    assert_false(readable(t.ch->fd));
    send_one(&t, IBV_SEND_SOLICITED);
    assert_true(readable(t.ch->fd));
    assert_int_equal(ibv_poll_cq(t.cq, 3, wc), 3);
    while (ibv_poll_cq(t.p.s[1].cq, 8, wc) > 0)
        ; /* the sender's */
    assert_true(hca_waiting(t.p.s[1].h));
    assert_int_equal(ibv_poll_cq(t.cq, 8, wc), 2);
    assert_false(hca_waiting(t.p.s[1].h));

    assert_int_equal(ibv_destroy_qp(t.a), 0);
    assert_int_equal(ibv_destroy_qp(t.b), 0);
    assert_int_equal(ibv_destroy_cq(t.cq), EBUSY); /* two events fetched and not acknowledged */
    ibv_ack_cq_events(t.cq, 2);
    assert_int_equal(ibv_destroy_cq(t.cq), 0); /* drops the unfetched event */
    assert_false(readable(t.ch->fd));
    assert_int_equal(ibv_destroy_comp_channel(t.ch), 0);
    pair_close(&t.p);
}

static void an_error_is_a_solicited_completion(void **state)
{
    struct pair p;
    struct side *s = &p.s[0];
    struct ibv_comp_channel *ch;
    struct ibv_cq *cq;
    struct ibv_qp *a;
    struct ibv_qp_attr at = {.qp_state = IBV_QPS_ERR};

    (void)state;
    pair_open(&p);
    ch = ibv_create_comp_channel(s->ctx);
    cq = ibv_create_cq(s->ctx, 10, NULL, ch, 0);
    a = make_qp_on(s, IBV_QPT_RC, cq, cq, NULL);
    rc_connect(a, IP_B, 1);
    assert_int_equal(post_recv(a, 1, NULL, 0), 0);
    assert_int_equal(ibv_req_notify_cq(cq, 1), 0);
    assert_int_equal(ibv_modify_qp(a, &at, IBV_QP_STATE), 0);
    assert_true(readable(ch->fd));
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(ch), 0);
    pair_close(&p);
}

/* ---- asynchronous events ---- */

static void events_of_an_object_go_with_it(void **state)
{
    struct pair p;
    struct ibv_qp *a, *b;
    struct ibv_async_event ev;
    struct ibv_qp_attr at = rc_attr(IP_A, 0);

    (void)state;
    pair_open(&p);
    a = make_qp(&p.s[0], IBV_QPT_RC), b = make_qp(&p.s[1], IBV_QPT_RC);
    rc_connect(a, IP_B, b->qp_num);
    at.dest_qp_num = a->qp_num;
    at.qp_state = IBV_QPS_INIT;
    assert_int_equal(ibv_modify_qp(b, &at, MASK_INIT), 0);
    at.qp_state = IBV_QPS_RTR;
    assert_int_equal(ibv_modify_qp(b, &at, MASK_RTR), 0);
    assert_int_equal(post_recv(b, 1, NULL, 0), 0);
    assert_int_equal(post_send(a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}), 0);
    pair_settle(&p);
    assert_true(readable(p.s[1].ctx->async_fd)); /* communication established, in RTR */
    assert_int_equal(ibv_get_async_event(p.s[1].ctx, &ev), 0);
    assert_int_equal(ev.event_type, IBV_EVENT_COMM_EST);
    assert_ptr_equal(ev.element.qp, b);
    assert_int_equal(ibv_destroy_qp(b), EBUSY);
    ibv_ack_async_event(&ev);
    assert_int_equal(ibv_destroy_qp(b), 0);
    assert_int_equal(ibv_get_async_event(p.s[1].ctx, &ev), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(ibv_destroy_qp(a), 0);
    pair_close(&p);
}

static void a_shared_receive_queue_serves_all_and_says_when_it_is_low(void **state)
{
    struct pair p;
    struct ibv_srq_init_attr sa = {.attr = {.max_wr = 8, .max_sge = 1}};
    struct ibv_srq_attr lim = {.srq_limit = 3};
    struct ibv_srq *srq;
    struct ibv_qp *a[2], *b[2];
    struct ibv_recv_wr *bad;
    struct ibv_async_event ev;
    struct ibv_wc wc[8];

    (void)state;
    pair_open(&p);
    srq = ibv_create_srq(p.s[1].pd, &sa);
    for (unsigned i = 0; i < 2; i++) {
        a[i] = make_qp(&p.s[0], IBV_QPT_RC);
        b[i] = make_qp_on(&p.s[1], IBV_QPT_RC, p.s[1].cq, p.s[1].cq, srq);
        rc_connect(a[i], IP_B, b[i]->qp_num);
        rc_connect(b[i], IP_A, a[i]->qp_num);
    }
    assert_int_equal(post_recv(b[0], 1, NULL, 0), EINVAL);
    for (unsigned i = 0; i < 9; i++) {
        struct ibv_recv_wr wr = {.wr_id = i};

        assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), i < 8 ? 0 : ENOMEM);
    }
    assert_int_equal(ibv_modify_srq(srq, &lim, IBV_SRQ_LIMIT), 0);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(post_send(a[i & 1], (struct ibv_send_wr){.opcode = IBV_WR_SEND}), 0);
    pair_settle(&p);
    assert_int_equal(ibv_poll_cq(p.s[1].cq, 8, wc), 5);
    assert_false(readable(p.s[1].ctx->async_fd)); /* three are left */
    assert_int_equal(post_send(a[0], (struct ibv_send_wr){.opcode = IBV_WR_SEND}), 0);
    assert_int_equal(post_send(a[0], (struct ibv_send_wr){.opcode = IBV_WR_SEND}), 0);
    pair_settle(&p);
    assert_int_equal(ibv_get_async_event(p.s[1].ctx, &ev), 0);
    assert_int_equal(ev.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
    assert_ptr_equal(ev.element.srq, srq);
    ibv_ack_async_event(&ev);
    assert_false(readable(p.s[1].ctx->async_fd)); /* once */
    assert_int_equal(ibv_query_srq(srq, &lim), 0);
    assert_int_equal(lim.srq_limit, 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(ibv_destroy_qp(a[i]), 0);
        assert_int_equal(ibv_destroy_qp(b[i]), 0);
    }
    assert_int_equal(ibv_destroy_srq(srq), 0);
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_comes_once_for_each_time_it_was_asked_for),
        cmocka_unit_test(an_error_is_a_solicited_completion),
        cmocka_unit_test(events_of_an_object_go_with_it),
        cmocka_unit_test(a_shared_receive_queue_serves_all_and_says_when_it_is_low),
    };

    return cmocka_run_group_tests_name("hca/events", tests, NULL, NULL);
}
