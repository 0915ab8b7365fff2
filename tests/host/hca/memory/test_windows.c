/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: which bytes and rights a window's key gives, to whom and for how long. */
#include "tests/host/hca/memory/window_fixture.h"

static void a_window_opens_its_bytes_and_no_other(void **state)
{
    static const struct {
        enum ibv_wr_opcode op;
        int64_t off;
        uint32_t len;
        bool ok;
    } rows[] = {
        {IBV_WR_RDMA_WRITE, 0, LEN, true},     {IBV_WR_RDMA_WRITE, LEN - 1, 1, true},
        {IBV_WR_RDMA_WRITE, -1, 1, false},     {IBV_WR_RDMA_WRITE, LEN, 1, false},
        {IBV_WR_RDMA_WRITE, 1, LEN, false},    {IBV_WR_RDMA_READ, 0, LEN, false},
        {IBV_WR_RDMA_WRITE, -OFF, LEN, false},
    };
    struct fixture t;

    (void)state;
    fixture_open(&t, IBV_MW_TYPE_2);
    bind_it(&t, IBV_ACCESS_REMOTE_WRITE);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memset(t.p.s[1].buf, 0x5a, BYTES);
        assert_int_equal(
            use(&t, rows[i].op, t.rkey, window(&t) + (uint64_t)rows[i].off, rows[i].len),
            rows[i].ok ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
        if (rows[i].ok)
            assert_memory_equal(t.p.s[1].buf + OFF + rows[i].off, t.p.s[0].buf, rows[i].len);
        else
            for (uint32_t k = 0; k < BYTES; k++)
                assert_int_equal(t.p.s[1].buf[k], 0x5a);
        assert_int_equal(t.p.s[1].buf[OFF - 1], 0x5a);
        assert_int_equal(t.p.s[1].buf[OFF + LEN], 0x5a);
        if (!rows[i].ok)
            reconnect(&t);
    }
    fixture_close(&t);
}

static void an_invalidated_key_opens_nothing(void **state)
{
    struct ibv_send_wr inv = {.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED};
    struct fixture t;
    uint32_t old;

    (void)state;
    fixture_open(&t, IBV_MW_TYPE_2);
    assert_int_equal(use(&t, IBV_WR_RDMA_READ, t.rkey, window(&t), 1), IBV_WC_REM_ACCESS_ERR);
    reconnect(&t);
    bind_it(&t, IBV_ACCESS_REMOTE_READ);
    assert_int_equal(use(&t, IBV_WR_RDMA_READ, t.rkey, window(&t), LEN), IBV_WC_SUCCESS);
    assert_int_equal(ibv_dereg_mr(t.mr), EBUSY); /* a window is open on it */
    assert_int_equal(ibv_rereg_mr(t.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
                     IBV_REREG_MR_ERR_INPUT);
    assert_int_equal(errno, EBUSY);
    inv.invalidate_rkey = old = t.rkey;
    assert_int_equal(post_send(t.b, inv), 0);
    pair_settle(&t.p);
    assert_int_equal(one_wc(t.p.s[1].cq).opcode, IBV_WC_LOCAL_INV);
    assert_int_equal(use(&t, IBV_WR_RDMA_READ, old, window(&t), 1), IBV_WC_REM_ACCESS_ERR);
    reconnect(&t);
    bind_it(&t, IBV_ACCESS_REMOTE_READ); /* again: under its new key only */
    assert_int_equal(use(&t, IBV_WR_RDMA_READ, old, window(&t), 1), IBV_WC_REM_ACCESS_ERR);
    reconnect(&t);
    assert_int_equal(use(&t, IBV_WR_RDMA_READ, t.rkey, window(&t), 1), IBV_WC_SUCCESS);
    fixture_close(&t);
}

/* The peer's last message invalidates the key. */
static void a_send_with_invalidate_closes_the_receivers_window(void **state)
{
    struct ibv_sge s, r;
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND_WITH_INV,
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_wc wc;
    struct fixture t;

    (void)state;
    fixture_open(&t, IBV_MW_TYPE_2);
    bind_it(&t, IBV_ACCESS_REMOTE_WRITE);
    s = sge_at(&t.p.s[0], 0, 3000), r = sge_at(&t.p.s[1], 8192, 3000);
    wr.invalidate_rkey = t.rkey;
    assert_int_equal(post_recv(t.b, 1, &r, 1), 0);
    assert_int_equal(post_send(t.a, wr), 0);
    pair_settle(&t.p);
    assert_int_equal(one_wc(t.p.s[0].cq).opcode, IBV_WC_SEND);
    wc = one_wc(t.p.s[1].cq);
    assert_int_equal(wc.byte_len, 3000);
    assert_true(wc.wc_flags & IBV_WC_WITH_INV);
    assert_int_equal(wc.invalidated_rkey, t.rkey);
    assert_memory_equal(t.p.s[1].buf + 8192, t.p.s[0].buf, 3000);
    assert_int_equal(use(&t, IBV_WR_RDMA_WRITE, t.rkey, window(&t), 1), IBV_WC_REM_ACCESS_ERR);
    reconnect(&t);
    /* a key that is not a window's: the sender gets an error, the receive is flushed */
    wr.invalidate_rkey = t.p.s[1].mr->rkey;
    assert_int_equal(post_recv(t.b, 2, &r, 1), 0);
    assert_int_equal(post_send(t.a, wr), 0);
    pair_settle(&t.p);
    assert_int_equal(one_wc(t.p.s[0].cq).status, IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(one_wc(t.p.s[1].cq).status, IBV_WC_WR_FLUSH_ERR);
    fixture_close(&t);
}

/* Only the queue pair that bound a window of type 2 gives access through it, no other of its PD. */
static void a_window_belongs_to_the_queue_pair_that_bound_it(void **state)
{
    struct ibv_qp *a2, *b2;
    struct fixture t;

    (void)state;
    fixture_open(&t, IBV_MW_TYPE_2);
    rc_pair(&t.p, &a2, &b2);
    bind_it(&t, IBV_ACCESS_REMOTE_WRITE);
    struct ibv_qp *own = t.a;
    t.a = a2;
    assert_int_equal(use(&t, IBV_WR_RDMA_WRITE, t.rkey, window(&t), 1), IBV_WC_REM_ACCESS_ERR);
    t.a = own;
    assert_int_equal(use(&t, IBV_WR_RDMA_WRITE, t.rkey, window(&t), 1), IBV_WC_SUCCESS);
    assert_int_equal(ibv_destroy_qp(t.b), 0); /* and is closed with it */
    assert_int_equal(ibv_dereg_mr(t.mr), 0);
    t.mr = ibv_reg_mr(t.p.s[1].pd, t.p.s[1].buf, BYTES, 0);
    t.b = b2;
    assert_int_equal(ibv_destroy_qp(a2), 0);
    fixture_close(&t);
}

/* A window of type 2 may have addresses from zero on. */
static void a_window_may_be_zero_based(void **state)
{
    struct ibv_mw_bind b = {.wr_id = 50, .send_flags = IBV_SEND_SIGNALED};
    struct fixture t;

    (void)state;
    fixture_open(&t, IBV_MW_TYPE_2);
    bind_it(&t, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
    assert_int_equal(use(&t, IBV_WR_RDMA_WRITE, t.rkey, 0, LEN), IBV_WC_SUCCESS);
    assert_memory_equal(t.p.s[1].buf + OFF, t.p.s[0].buf, LEN);
    assert_int_equal(use(&t, IBV_WR_RDMA_WRITE, t.rkey, LEN, 1), IBV_WC_REM_ACCESS_ERR);
    reconnect(&t);
    assert_int_equal(use(&t, IBV_WR_RDMA_WRITE, t.rkey, window(&t), 1), IBV_WC_REM_ACCESS_ERR);
    fixture_close(&t);
    fixture_open(&t, IBV_MW_TYPE_1); /* a window of type 1 may not */
    b.bind_info = (struct ibv_mw_bind_info){t.mr, window(&t), LEN,
                                            IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED};
    assert_int_equal(ibv_bind_mw(t.b, t.mw, &b), EINVAL);
    no_wc(t.p.s[1].cq);
    fixture_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_opens_its_bytes_and_no_other),
        cmocka_unit_test(an_invalidated_key_opens_nothing),
        cmocka_unit_test(a_send_with_invalidate_closes_the_receivers_window),
        cmocka_unit_test(a_window_belongs_to_the_queue_pair_that_bound_it),
        cmocka_unit_test(a_window_may_be_zero_based),
    };

    return cmocka_run_group_tests_name("hca/windows", tests, NULL, NULL);
}
