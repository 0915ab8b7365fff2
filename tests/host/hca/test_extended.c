/* SPDX-License-Identifier: BSD-3-Clause */
/* Extended queue pairs and completion queues: ibv_wr_* batches, and entries read by accessors. */
#include "tests/host/hca/pair.h"

/* An extended queue pair with an extended completion queue on side 0, and a plain peer. */
struct extended {
    struct pair p;
    struct ibv_cq_ex *cq;
    struct ibv_qp_init_attr_ex ia;
    struct ibv_qp *a, *b;
    struct ibv_qp_ex *x;
};

static void extended_open(struct extended *t)
{
    struct side *s = &t->p.s[0];
    struct ibv_cq_init_attr_ex ca = {
        .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
    struct ibv_sge r;

    pair_open(&t->p);
    t->cq = ibv_create_cq_ex(s->ctx, &ca);
    assert_non_null(t->cq);
    t->ia = (struct ibv_qp_init_attr_ex){
        .qp_type = IBV_QPT_RC,
        .cap = {4, 4, 2, 2, 64},
        .send_cq = ibv_cq_ex_to_cq(t->cq),
        .recv_cq = ibv_cq_ex_to_cq(t->cq),
        .pd = s->pd,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags =
            IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE};
    t->a = ibv_create_qp_ex(s->ctx, &t->ia);
    assert_non_null(t->a);
    t->x = ibv_qp_to_qp_ex(t->a);
    t->b = make_qp(&t->p.s[1], IBV_QPT_RC);
    assert_null(ibv_qp_to_qp_ex(t->b));
    rc_connect(t->a, IP_B, t->b->qp_num);
    rc_connect(t->b, IP_A, t->a->qp_num);
    fill(s->buf, 1000, 1);
    r = sge_at(&t->p.s[1], 5000, 1000);
    assert_int_equal(post_recv(t->b, 7, &r, 1), 0);
    t->p.now_ps = 1000 * PS_PER_NS;
}

static void write_and_send(struct extended *t)
{
    struct side *s = &t->p.s[0], *peer = &t->p.s[1];
    struct ibv_qp_ex *x = t->x;
    struct ibv_wc wc;

    ibv_wr_start(x);
    x->wr_id = 1, x->wr_flags = 0;
    ibv_wr_rdma_write(x, peer->mr->rkey, (uintptr_t)peer->buf);
    ibv_wr_set_sge(x, s->mr->lkey, (uintptr_t)s->buf, 1000);
    x->wr_id = 2, x->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send_imm(x, 0x77);
    ibv_wr_set_inline_data(x, s->buf + 10, 20);
    assert_int_equal(ibv_wr_complete(x), 0);
    pair_settle(&t->p);
    wc = one_wc(peer->cq);
    assert_int_equal(wc.byte_len, 20);
    assert_int_equal(wc.imm_data, 0x77);
    assert_memory_equal(peer->buf, s->buf, 1000);
    assert_memory_equal(peer->buf + 5000, s->buf + 10, 20);
}

static void extended_requests_go_together_or_not_at_all(void **state)
{
    struct ibv_poll_cq_attr none = {0};
    struct extended t = {0};
    struct side *s = &t.p.s[0];

    (void)state;
    extended_open(&t);
    write_and_send(&t);
    assert_int_equal(ibv_start_poll(t.cq, &none), 0);
    assert_int_equal(t.cq->wr_id, 2);
    assert_int_equal(t.cq->status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_wc_read_opcode(t.cq), IBV_WC_SEND);
    assert_int_equal(ibv_wc_read_qp_num(t.cq), t.a->qp_num);
    assert_true(ibv_wc_read_completion_ts(t.cq) >= 1000); /* fabric time in ns */
    assert_int_equal(ibv_next_poll(t.cq), ENOENT);
    ibv_end_poll(t.cq);
    assert_int_equal(ibv_start_poll(t.cq, &none), ENOENT);

    ibv_wr_start(t.x); /* one more than the queue holds: none is posted */
    for (unsigned i = 0; i < 5; i++) {
        ibv_wr_rdma_write(t.x, t.p.s[1].mr->rkey, (uintptr_t)t.p.s[1].buf);
        ibv_wr_set_sge(t.x, s->mr->lkey, (uintptr_t)s->buf, 10);
    }
    assert_int_equal(ibv_wr_complete(t.x), ENOMEM);
    pair_settle(&t.p);
    assert_int_equal(ibv_start_poll(t.cq, &none), ENOENT);
    ibv_wr_start(t.x);
    ibv_wr_send(t.x);
    ibv_wr_abort(t.x);

    t.ia.send_ops_flags = IBV_QP_EX_WITH_TSO;
    assert_null(ibv_create_qp_ex(s->ctx, &t.ia));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(ibv_destroy_qp(t.a), 0);
    assert_int_equal(ibv_destroy_qp(t.b), 0);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(t.cq)), 0);
    pair_close(&t.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extended_requests_go_together_or_not_at_all),
    };

    return cmocka_run_group_tests_name("hca/extended", tests, NULL, NULL);
}
