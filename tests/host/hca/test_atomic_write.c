/* SPDX-License-Identifier: BSD-3-Clause */
/* ATOMIC WRITE: eight aligned bytes at once, acknowledged like a READ of length 0 (IBTA
 * annex A19). */
#include "tests/host/hca/pair.h"

#include "roce/wire.h"

#define AT 64u

struct fixture {
    struct pair p;
    struct ibv_qp *a, *b;
    struct ibv_mr *mr; /* of b's buffer */
};

static void fixture_open(struct fixture *t, unsigned access)
{
    memset(t, 0, sizeof(*t));
    pair_open(&t->p);
    rc_pair(&t->p, &t->a, &t->b);
    t->mr = ibv_reg_mr(t->p.s[1].pd, t->p.s[1].buf, 4096, (int)access);
    assert_non_null(t->mr);
    fill(t->p.s[0].buf, 4096, 5);
}

static void fixture_close(struct fixture *t)
{
    struct ibv_async_event ev;

    while (!ibv_get_async_event(t->p.s[1].ctx, &ev))
        ibv_ack_async_event(&ev);
    assert_int_equal(ibv_dereg_mr(t->mr), 0);
    assert_int_equal(ibv_destroy_qp(t->a), 0);
    assert_int_equal(ibv_destroy_qp(t->b), 0);
    pair_close(&t->p);
}

#define WRITABLE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static int post_word(struct fixture *t, uint64_t off, uint32_t len, unsigned flags)
{
    struct ibv_sge s = sge_at(&t->p.s[0], 0, len);

    return post_send(
        t->a, (struct ibv_send_wr){.wr_id = 7,
                                   .sg_list = &s,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_ATOMIC_WRITE,
                                   .send_flags = IBV_SEND_SIGNALED | flags,
                                   .wr.rdma = {(uintptr_t)t->p.s[1].buf + off, t->mr->rkey}});
}

static void eight_bytes_are_written(void **state)
{
    struct ibv_device_attr_ex da;
    struct fixture t;

    (void)state;
    fixture_open(&t, WRITABLE);
    assert_int_equal(ibv_query_device_ex(t.p.s[0].ctx, NULL, &da), 0);
    assert_true(da.device_cap_flags_ex >> 40 & 1);
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_wc wc;

        memset(t.p.s[1].buf, 0x5a, 4096);
        assert_int_equal(post_word(&t, AT, 8, i ? IBV_SEND_INLINE : 0), 0);
        pair_settle(&t.p);
        wc = one_wc(t.p.s[0].cq);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.opcode, IBV_WC_ATOMIC_WRITE);
        assert_int_equal(wc.wr_id, 7);
        assert_memory_equal(t.p.s[1].buf + AT, t.p.s[0].buf, 8);
        assert_int_equal(t.p.s[1].buf[AT - 1], 0x5a);
        assert_int_equal(t.p.s[1].buf[AT + 8], 0x5a);
    }
    fixture_close(&t);
}

static void by_a_work_request_builder(void **state)
{
    struct ibv_qp_init_attr_ex ia = {
        .qp_type = IBV_QPT_RC,
        .cap = {4, 4, 0, 0, 0}, /* no inline data allowed: the request carries the word anyway */
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE};
    const uint64_t word = 0x1122334455667788;
    struct ibv_qp_attr r = {.qp_state = IBV_QPS_RESET};
    struct ibv_qp_ex *x;
    struct ibv_qp *plain;
    struct fixture t;

    (void)state;
    fixture_open(&t, WRITABLE);
    ia.pd = t.p.s[0].pd, ia.send_cq = ia.recv_cq = t.p.s[0].cq;
    plain = t.a;
    t.a = ibv_create_qp_ex(t.p.s[0].ctx, &ia);
    assert_non_null(t.a);
    assert_int_equal(ibv_modify_qp(t.b, &r, IBV_QP_STATE), 0);
    rc_connect(t.a, IP_B, t.b->qp_num);
    rc_connect(t.b, IP_A, t.a->qp_num);
    x = ibv_qp_to_qp_ex(t.a);
    ibv_wr_start(x);
    x->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_atomic_write(x, t.mr->rkey, (uintptr_t)t.p.s[1].buf + AT, &word);
    assert_int_equal(ibv_wr_complete(x), 0);
    pair_settle(&t.p);
    assert_int_equal(one_wc(t.p.s[0].cq).status, IBV_WC_SUCCESS);
    assert_memory_equal(t.p.s[1].buf + AT, &word, 8);
    assert_int_equal(ibv_destroy_qp(plain), 0);
    fixture_close(&t);
}

/* WRITEs around it and the atomic write happen in order. */
static void in_order_with_writes(void **state)
{
    struct ibv_sge s, e;
    struct ibv_send_wr wr[3] = {{.sg_list = &s, .opcode = IBV_WR_RDMA_WRITE},
                                {.sg_list = &e, .opcode = IBV_WR_ATOMIC_WRITE},
                                {.sg_list = &s, .opcode = IBV_WR_RDMA_READ}},
                       *bad;
    struct ibv_wc wc[4];
    struct fixture t;

    (void)state;
    fixture_open(&t, WRITABLE | IBV_ACCESS_REMOTE_READ);
    s = sge_at(&t.p.s[0], 0, 4000), e = sge_at(&t.p.s[0], 8000, 8);
    memset(t.p.s[0].buf + 8000, 0xee, 8);
    for (unsigned i = 0; i < 3; i++) {
        wr[i].next = i < 2 ? &wr[i + 1] : NULL;
        wr[i].num_sge = 1, wr[i].wr_id = i, wr[i].send_flags = IBV_SEND_SIGNALED;
        wr[i].wr.rdma.remote_addr = (uintptr_t)t.p.s[1].buf + (i == 1 ? AT : 0);
        wr[i].wr.rdma.rkey = t.mr->rkey;
    }
    assert_int_equal(ibv_post_send(t.a, wr, &bad), 0);
    pair_settle(&t.p);
    assert_int_equal(ibv_poll_cq(t.p.s[0].cq, 4, wc), 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(wc[i].wr_id, i);
        assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
    }
    assert_memory_equal(t.p.s[0].buf + AT, t.p.s[0].buf + 8000, 8);
    assert_memory_equal(t.p.s[0].buf, t.p.s[1].buf, 4000);
    fixture_close(&t);
}

static void what_is_wrong_is_refused(void **state)
{
    static const struct {
        uint64_t off;
        unsigned access;
        enum ibv_wc_status status;
    } rows[] = {
        {AT + 4, WRITABLE, IBV_WC_REM_INV_REQ_ERR},
        {4096, WRITABLE, IBV_WC_REM_ACCESS_ERR},
        {AT, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_READ,
         IBV_WC_REM_ACCESS_ERR},
    };
    struct ibv_qp *uc;
    struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_WRITE};
    struct fixture t;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fixture_open(&t, rows[i].access);
        memset(t.p.s[1].buf, 0x5a, 4096);
        assert_int_equal(post_word(&t, rows[i].off, 8, 0), 0);
        pair_settle(&t.p);
        assert_int_equal(one_wc(t.p.s[0].cq).status, rows[i].status);
        for (unsigned k = 0; k < 4096; k++)
            assert_int_equal(t.p.s[1].buf[k], 0x5a);
        fixture_close(&t);
    }
    fixture_open(&t, WRITABLE);
    assert_int_equal(post_word(&t, AT, 4, 0), EINVAL);
    assert_int_equal(post_word(&t, AT, 16, 0), EINVAL);
    assert_int_equal(post_word(&t, AT, 16, IBV_SEND_INLINE), EINVAL);
    uc = make_qp(&t.p.s[0], IBV_QPT_UC);
    rc_connect(uc, IP_B, 99);
    assert_int_equal(post_send(uc, wr), EOPNOTSUPP);
    assert_int_equal(ibv_destroy_qp(uc), 0);
    fixture_close(&t);
}

struct losing {
    uint8_t opcode;
    unsigned seen, from, to; /* the frames from..to are lost */
};

static bool lose(void *ctx, struct rte_mbuf *m)
{
    struct losing *l = ctx;
    struct roce_pkt k;
    bool lost;

    if (roce_parse(m, &k) != ROCE_OK || k.opcode != l->opcode)
        return false;
    lost = l->seen >= l->from && l->seen < l->to;
    l->seen++;
    return lost;
}

/* A request that is retransmitted because its response was lost is not executed again. */
static void once_whatever_is_lost(void **state)
{
    static const struct losing rows[] = {
        {ROCE_OP_RC_ATOMIC_WRITE, 0, 0, 1},
        {ROCE_OP_RC_ATOMIC_WRITE, 0, 0, 2},
        {ROCE_OP_RC_READ_RESPONSE_ONLY, 0, 0, 1},
        {ROCE_OP_RC_READ_RESPONSE_ONLY, 0, 0, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct losing l = rows[i];
        struct fixture t;

        fixture_open(&t, WRITABLE);
        t.p.drop = lose, t.p.drop_ctx = &l;
        assert_int_equal(post_word(&t, AT, 8, 0), 0);
        pair_settle(&t.p);
        no_wc(t.p.s[0].cq);
        if (l.opcode == ROCE_OP_RC_READ_RESPONSE_ONLY) { /* done; the owner writes again */
            assert_memory_equal(t.p.s[1].buf + AT, t.p.s[0].buf, 8);
            memset(t.p.s[1].buf + AT, 0x77, 8);
        }
        pair_run(&t.p, PS_PER_S);
        assert_int_equal(one_wc(t.p.s[0].cq).status, IBV_WC_SUCCESS);
        if (l.opcode == ROCE_OP_RC_READ_RESPONSE_ONLY)
            assert_int_equal(t.p.s[1].buf[AT], 0x77);
        else
            assert_memory_equal(t.p.s[1].buf + AT, t.p.s[0].buf, 8);
        fixture_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_bytes_are_written), cmocka_unit_test(by_a_work_request_builder),
        cmocka_unit_test(in_order_with_writes),    cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(once_whatever_is_lost),
    };

    return cmocka_run_group_tests_name("hca/atomic_write", tests, NULL, NULL);
}
