/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slots of send, receive and shared receive queues: one is free again when the completion of its
 * request, or a later completion of the queue, is polled, as with NICs; until then a post is ENOMEM.
 */
#include "tests/host/hca/pair.h"

#define DEPTH 8u

/* Two connected queue pairs with queues of DEPTH, side 1 with an SRQ or without. */
struct slots {
    struct pair p;
    struct ibv_srq *srq;
    struct ibv_qp *a, *b;
};

static struct ibv_qp *qp_of(struct side *s, struct ibv_cq *cq, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr a = {.send_cq = cq,
                                 .recv_cq = cq,
                                 .srq = srq,
                                 .qp_type = IBV_QPT_RC,
                                 .cap = {DEPTH, srq ? 0 : DEPTH, 1, 1, 0}};
    struct ibv_qp *qp = ibv_create_qp(s->pd, &a);

    assert_non_null(qp);
    return qp;
}

static struct ibv_qp *extended_qp_of(struct side *s, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr_ex a = {.qp_type = IBV_QPT_RC,
                                    .cap = {DEPTH, 1, 1, 1, 0},
                                    .send_cq = cq,
                                    .recv_cq = cq,
                                    .pd = s->pd,
                                    .comp_mask =
                                        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                    .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE};
    struct ibv_qp *qp = ibv_create_qp_ex(s->ctx, &a);

    assert_non_null(qp);
    return qp;
}

static void slots_open(struct slots *t, bool shared, bool early)
{
    struct ibv_srq_init_attr sa = {.attr = {.max_wr = DEPTH, .max_sge = 1}};

    *t = (struct slots){0};
    pair_open_as(&t->p, NULL, 0, early);
    t->srq = shared ? ibv_create_srq(t->p.s[1].pd, &sa) : NULL;
    t->a = qp_of(&t->p.s[0], t->p.s[0].cq, NULL);
    t->b = qp_of(&t->p.s[1], t->p.s[1].cq, t->srq);
    rc_connect(t->a, IP_B, t->b->qp_num);
    rc_connect(t->b, IP_A, t->a->qp_num);
}

static void slots_close(struct slots *t)
{
    assert_int_equal(ibv_destroy_qp(t->a), 0);
    assert_int_equal(ibv_destroy_qp(t->b), 0);
    if (t->srq)
        assert_int_equal(ibv_destroy_srq(t->srq), 0);
    pair_close(&t->p);
}

static int write_one(struct slots *t, unsigned flags)
{
    struct side *s = &t->p.s[1];
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = flags,
                             .wr.rdma = {(uintptr_t)s->buf, s->mr->rkey}};
    int rc = post_send(t->a, wr);

    pair_settle(&t->p);
    return rc;
}

static int send_one(struct slots *t, unsigned flags)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = flags};
    int rc = post_send(t->a, wr);

    pair_settle(&t->p);
    return rc;
}

static int receive_one(struct slots *t)
{
    struct ibv_recv_wr wr = {0}, *bad;

    return t->srq ? ibv_post_srq_recv(t->srq, &wr, &bad) : ibv_post_recv(t->b, &wr, &bad);
}

static void poll_n(struct ibv_cq *cq, int n)
{
    struct ibv_wc wc;

    for (; n; n--)
        assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
}

/* Exactly n more can be posted, signaled; they complete and are polled. */
static void room_is(struct slots *t, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(write_one(t, IBV_SEND_SIGNALED), 0);
    assert_int_equal(write_one(t, IBV_SEND_SIGNALED), ENOMEM);
}

static void a_completion_that_is_not_polled_keeps_its_slot(void **state)
{
    struct slots t;

    (void)state;
    slots_open(&t, false, false);
    room_is(&t, DEPTH);
    poll_n(t.p.s[0].cq, 3);
    room_is(&t, 3);
    poll_n(t.p.s[0].cq, DEPTH);
    room_is(&t, DEPTH);
    slots_close(&t);
}

/* A later completion frees the unsignaled requests before it, and none behind it. */
static void unsignaled_requests_go_with_the_next_completion(void **state)
{
    struct slots t;

    (void)state;
    slots_open(&t, false, false);
    for (unsigned round = 0; round < 50; round++) {
        for (unsigned i = 0; i < DEPTH; i++)
            assert_int_equal(write_one(&t, i == 4 ? IBV_SEND_SIGNALED : 0), 0);
        assert_int_equal(write_one(&t, 0), ENOMEM);
        poll_n(t.p.s[0].cq, 1);
        for (unsigned i = 0; i < 5; i++)
            assert_int_equal(write_one(&t, i == 4 ? IBV_SEND_SIGNALED : 0), 0);
        assert_int_equal(write_one(&t, 0), ENOMEM);
        poll_n(t.p.s[0].cq, 1);
    }
    slots_close(&t);
}

static unsigned said;
static void say(void *ctx, const char *what, const char *text)
{
    (void)ctx, (void)what;
    assert_non_null(strstr(text, "IBV_SEND_SIGNALED"));
    said++;
}

static void a_queue_of_unsignaled_requests_alone_is_full_for_ever(void **state)
{
    const struct hca_driver drv = {.say = say};
    struct slots t = {0};
    struct ibv_qp_ex *x;
    struct ibv_wc wc;

    (void)state;
    pair_open_driven(&t.p, &drv);
    t.a = extended_qp_of(&t.p.s[0], t.p.s[0].cq);
    t.b = qp_of(&t.p.s[1], t.p.s[1].cq, NULL);
    rc_connect(t.a, IP_B, t.b->qp_num);
    rc_connect(t.b, IP_A, t.a->qp_num);
    for (unsigned i = 0; i < DEPTH; i++)
        assert_int_equal(write_one(&t, 0), 0);
    assert_int_equal(said, 0);
    assert_int_equal(write_one(&t, IBV_SEND_SIGNALED), ENOMEM);
    assert_int_equal(said, 1); /* nothing else would tell */
    x = ibv_qp_to_qp_ex(t.a);
    ibv_wr_start(x);
    ibv_wr_rdma_write(x, t.p.s[1].mr->rkey, (uintptr_t)t.p.s[1].buf);
    assert_int_equal(ibv_wr_complete(x), ENOMEM);
    assert_int_equal(said, 2);
    assert_int_equal(ibv_poll_cq(t.p.s[0].cq, 1, &wc), 0);
    slots_close(&t);
}

static void a_receive_that_is_not_polled_keeps_its_slot(void **state)
{
    struct slots t;

    for (unsigned shared = 0; shared < 2; shared++) {
        (void)state;
        slots_open(&t, shared, false);
        for (unsigned i = 0; i < DEPTH; i++)
            assert_int_equal(receive_one(&t), 0);
        assert_int_equal(receive_one(&t), ENOMEM);
        for (unsigned i = 0; i < DEPTH; i++)
            assert_int_equal(send_one(&t, i % 4 == 3 ? IBV_SEND_SIGNALED : 0), 0);
        assert_int_equal(receive_one(&t), ENOMEM);
        poll_n(t.p.s[1].cq, 5);
        for (unsigned i = 0; i < 6; i++)
            assert_int_equal(receive_one(&t), i < 5 ? 0 : ENOMEM);
        slots_close(&t);
    }
}

/* Flushed requests have completions, whose slots are free once they are polled; a reset queue pair
 * starts anew, polled or not. */
static void flushes_and_resets(void **state)
{
    struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR}, reset = {.qp_state = IBV_QPS_RESET};
    struct slots t;

    (void)state;
    slots_open(&t, false, false);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(write_one(&t, 0), 0);
    assert_int_equal(ibv_modify_qp(t.a, &err, IBV_QP_STATE), 0);
    assert_int_equal(write_one(&t, 0), 0); /* flushed, with a completion, in error */
    poll_n(t.p.s[0].cq, 1);
    room_is(&t, DEPTH);
    poll_n(t.p.s[0].cq, 2);
    assert_int_equal(ibv_modify_qp(t.a, &reset, IBV_QP_STATE), 0);
    assert_int_equal(ibv_modify_qp(t.b, &reset, IBV_QP_STATE), 0);
    rc_connect(t.a, IP_B, t.b->qp_num);
    rc_connect(t.b, IP_A, t.a->qp_num);
    for (unsigned i = 0; i < DEPTH; i++)
        assert_int_equal(receive_one(&t), 0);
    assert_int_equal(receive_one(&t), ENOMEM);
    room_is(&t, DEPTH);
    slots_close(&t);
}

static bool drop_last(void *ctx, struct rte_mbuf *m)
{
    (void)ctx;
    return m->pkt_len < 1000 && m->pkt_len > 100; /* not the first packet of 1 KiB, nor ACKs */
}

/* A shared queue gets back what a queue pair that goes had taken: completions that nobody polls,
 * and the receive of a message whose end has not come. */
static void a_queue_pair_that_goes_returns_slots_of_its_srq(void **state)
{
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    struct ibv_sge r, s;
    struct ibv_recv_wr wr = {.sg_list = &r, .num_sge = 1}, *bad;
    struct slots t;

    (void)state;
    for (unsigned destroy = 0; destroy < 2; destroy++) {
        slots_open(&t, true, false);
        r = sge_at(&t.p.s[1], 0, 4000);
        s = sge_at(&t.p.s[0], 0, 1500);
        for (unsigned i = 0; i < DEPTH; i++)
            assert_int_equal(ibv_post_srq_recv(t.srq, &wr, &bad), 0);
        assert_int_equal(send_one(&t, 0), 0);
        t.p.drop = drop_last;
        assert_int_equal(
            post_send(t.a,
                      (struct ibv_send_wr){.opcode = IBV_WR_SEND, .sg_list = &s, .num_sge = 1}),
            0);
        pair_settle(&t.p);
        assert_int_equal(ibv_post_srq_recv(t.srq, &wr, &bad), ENOMEM);
        if (destroy) {
            assert_int_equal(ibv_destroy_qp(t.b), 0);
            t.b = qp_of(&t.p.s[1], t.p.s[1].cq, t.srq);
        } else {
            assert_int_equal(ibv_modify_qp(t.b, &reset, IBV_QP_STATE), 0);
        }
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(ibv_post_srq_recv(t.srq, &wr, &bad), i < 2 ? 0 : ENOMEM);
        slots_close(&t);
    }
}

/* Completions that a full completion queue drops give their slots back to a shared queue. */
static void an_overrun_loses_no_slots_of_an_srq(void **state)
{
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    struct ibv_cq *small;
    struct slots t;

    (void)state;
    slots_open(&t, true, false);
    small = ibv_create_cq(t.p.s[1].ctx, 4, NULL, NULL, 0);
    assert_int_equal(ibv_destroy_qp(t.b), 0);
    t.b = qp_of(&t.p.s[1], small, t.srq);
    assert_int_equal(ibv_modify_qp(t.a, &reset, IBV_QP_STATE), 0);
    rc_connect(t.a, IP_B, t.b->qp_num);
    rc_connect(t.b, IP_A, t.a->qp_num);
    for (unsigned i = 0; i < DEPTH; i++)
        assert_int_equal(receive_one(&t), 0);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(send_one(&t, 0), 0);
    assert_int_equal(t.b->state, IBV_QPS_ERR);
    assert_int_equal(ibv_destroy_qp(t.b), 0);
    assert_int_equal(ibv_destroy_cq(small), 0);
    for (unsigned i = 0; i <= 5; i++)
        assert_int_equal(receive_one(&t), i < 5 ? 0 : ENOMEM);
    t.b = qp_of(&t.p.s[1], t.p.s[1].cq, t.srq);
    slots_close(&t);
}

/* A shared queue cannot become smaller than what is not polled. */
static void a_resized_srq_counts_on(void **state)
{
    struct ibv_srq_attr a = {.max_wr = 3};
    struct slots t;

    (void)state;
    slots_open(&t, true, false);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(receive_one(&t), 0);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(send_one(&t, 0), 0);
    assert_int_equal(ibv_modify_srq(t.srq, &a, IBV_SRQ_MAX_WR), EINVAL);
    poll_n(t.p.s[1].cq, 2);
    assert_int_equal(ibv_modify_srq(t.srq, &a, IBV_SRQ_MAX_WR), 0);
    assert_int_equal(receive_one(&t), 0);
    assert_int_equal(receive_one(&t), ENOMEM);
    slots_close(&t);
}

/* Each entry that an extended poll looks at frees its slots; a batch goes in whole or not at all. */
static void extended_polls_and_batches(void **state)
{
    struct ibv_cq_init_attr_ex ca = {.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct ibv_poll_cq_attr pa = {0};
    struct ibv_cq_ex *cq;
    struct ibv_qp_ex *x;
    struct slots t;

    (void)state;
    slots_open(&t, false, false);
    assert_int_equal(ibv_destroy_qp(t.a), 0);
    cq = ibv_create_cq_ex(t.p.s[0].ctx, &ca);
    t.a = extended_qp_of(&t.p.s[0], ibv_cq_ex_to_cq(cq));
    x = ibv_qp_to_qp_ex(t.a);
    assert_int_equal(ibv_destroy_qp(t.b), 0);
    t.b = qp_of(&t.p.s[1], t.p.s[1].cq, NULL);
    rc_connect(t.a, IP_B, t.b->qp_num);
    rc_connect(t.b, IP_A, t.a->qp_num);
    room_is(&t, DEPTH);
    assert_int_equal(ibv_start_poll(cq, &pa), 0);
    assert_int_equal(ibv_next_poll(cq), 0);
    assert_int_equal(ibv_next_poll(cq), 0);
    ibv_end_poll(cq);
    for (unsigned n = 4; n >= 3; n--) {
        ibv_wr_start(x);
        for (unsigned i = 0; i < n; i++) {
            x->wr_flags = IBV_SEND_SIGNALED;
            ibv_wr_rdma_write(x, t.p.s[1].mr->rkey, (uintptr_t)t.p.s[1].buf);
        }
        assert_int_equal(ibv_wr_complete(x), n > 3 ? ENOMEM : 0);
    }
    assert_int_equal(write_one(&t, 0), ENOMEM);
    assert_int_equal(ibv_destroy_qp(t.a), 0);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
    t.a = qp_of(&t.p.s[0], t.p.s[0].cq, NULL);
    slots_close(&t);
}

/* With the key of the conf a slot is free when its request ends. */
static void early_slots_need_no_poll(void **state)
{
    struct slots t;

    (void)state;
    for (unsigned shared = 0; shared < 2; shared++) {
        slots_open(&t, shared, true);
        for (unsigned i = 0; i < 100; i++) {
            assert_int_equal(receive_one(&t), 0);
            assert_int_equal(send_one(&t, i & 1 ? IBV_SEND_SIGNALED : 0), 0);
        }
        for (unsigned i = 0; i <= DEPTH; i++)
            assert_int_equal(receive_one(&t), i < DEPTH ? 0 : ENOMEM);
        slots_close(&t);
    }
}

/* Limits of a receive queue that a queue pair with a shared one does not have are not read. */
static void a_shared_queue_has_its_own_limits(void **state)
{
    static const uint32_t cap[][2] = {{16, 1}, {20000, 1}, {16, 99}, {UINT32_MAX, UINT32_MAX}};
    struct slots t;

    (void)state;
    slots_open(&t, true, false);
    for (unsigned i = 0; i < 4; i++) {
        struct ibv_qp_init_attr a = {.send_cq = t.p.s[1].cq,
                                     .recv_cq = t.p.s[1].cq,
                                     .srq = t.srq,
                                     .qp_type = IBV_QPT_UD,
                                     .cap = {4, cap[i][0], 1, cap[i][1], 0}};
        struct ibv_qp *qp = ibv_create_qp(t.p.s[1].pd, &a);

        assert_non_null(qp);
        assert_int_equal(a.cap.max_recv_wr, 0);
        assert_int_equal(ibv_destroy_qp(qp), 0);
        a.srq = NULL;
        a.cap.max_recv_wr = cap[i][0], a.cap.max_recv_sge = cap[i][1];
        qp = ibv_create_qp(t.p.s[1].pd, &a);
        assert_int_equal(qp != NULL, i == 0);
        if (qp)
            assert_int_equal(ibv_destroy_qp(qp), 0);
    }
    slots_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_completion_that_is_not_polled_keeps_its_slot),
        cmocka_unit_test(unsignaled_requests_go_with_the_next_completion),
        cmocka_unit_test(a_queue_of_unsignaled_requests_alone_is_full_for_ever),
        cmocka_unit_test(a_receive_that_is_not_polled_keeps_its_slot),
        cmocka_unit_test(flushes_and_resets),
        cmocka_unit_test(a_queue_pair_that_goes_returns_slots_of_its_srq),
        cmocka_unit_test(an_overrun_loses_no_slots_of_an_srq),
        cmocka_unit_test(a_resized_srq_counts_on),
        cmocka_unit_test(extended_polls_and_batches),
        cmocka_unit_test(early_slots_need_no_poll),
        cmocka_unit_test(a_shared_queue_has_its_own_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
