/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that bind memory windows: their preconditions, their order, and the calls that post
 * them. */
#include "tests/host/hca/memory/window_fixture.h"

struct refused {
    const char *why;
    bool post; /* refused at the post, else by its completion */
    void (*spoil)(struct fixture *t, struct ibv_send_wr *wr);
};

static void no_right(struct fixture *t, struct ibv_send_wr *wr)
{
    wr->bind_mw.bind_info.mr = t->p.s[1].mr; /* registered without IBV_ACCESS_MW_BIND */
}

static void beyond(struct fixture *t, struct ibv_send_wr *wr)
{
    (void)t;
    wr->bind_mw.bind_info.addr += BYTES - OFF - LEN + 1;
}

static void wraps(struct fixture *t, struct ibv_send_wr *wr)
{
    (void)t;
    wr->bind_mw.bind_info.length = UINT64_MAX;
}

static void unknown_flag(struct fixture *t, struct ibv_send_wr *wr)
{
    (void)t;
    wr->bind_mw.bind_info.mw_access_flags |= 1u << 10;
}

static void empty(struct fixture *t, struct ibv_send_wr *wr)
{
    (void)t;
    wr->bind_mw.bind_info.length = 0;
}

static void other_key(struct fixture *t, struct ibv_send_wr *wr)
{
    (void)t;
    wr->bind_mw.rkey ^= 0x100;
}

static void no_window(struct fixture *t, struct ibv_send_wr *wr)
{
    (void)t;
    wr->bind_mw.mw = NULL;
}

static const struct refused refused[] = {
    {"a region that is not for windows", false, no_right},
    {"more than the region", false, beyond},
    {"an end beyond 2^64", false, wraps},
    {"a flag that there is not", false, unknown_flag},
    {"nothing", false, empty},
    {"another window's key", true, other_key},
    {"no window", true, no_window},
};

static void binds_that_are_wrong_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct ibv_send_wr wr;
        struct fixture t;

        fixture_open(&t, IBV_MW_TYPE_2);
        wr = bind_wr(&t, IBV_ACCESS_REMOTE_WRITE);
        refused[i].spoil(&t, &wr);
        assert_int_equal(post_send(t.b, wr), refused[i].post ? EINVAL : 0);
        pair_settle(&t.p);
        if (!refused[i].post)
            assert_int_equal(one_wc(t.p.s[1].cq).status, IBV_WC_MW_BIND_ERR);
        fixture_close(&t);
    }
}

/* Programs pass on the flags that they registered the region with. */
static void a_bind_takes_the_flags_of_regions(void **state)
{
    static const unsigned more[] = {IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_MW_BIND,
                                    IBV_ACCESS_RELAXED_ORDERING, IBV_ACCESS_HUGETLB,
                                    IBV_ACCESS_ON_DEMAND};
    struct fixture t;

    (void)state;
    fixture_open(&t, IBV_MW_TYPE_2);
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        bind_it(&t, more[i] | IBV_ACCESS_REMOTE_WRITE);
        assert_int_equal(use(&t, IBV_WR_RDMA_WRITE, t.rkey, window(&t), LEN), IBV_WC_SUCCESS);
        assert_int_equal(post_send(t.b, (struct ibv_send_wr){.opcode = IBV_WR_LOCAL_INV,
                                                             .send_flags = IBV_SEND_SIGNALED,
                                                             .invalidate_rkey = t.rkey}),
                         0);
        pair_settle(&t.p);
        assert_int_equal(one_wc(t.p.s[1].cq).status, IBV_WC_SUCCESS);
        bind_it(&t, more[i]); /* alone they give no right */
        assert_int_equal(use(&t, IBV_WR_RDMA_WRITE, t.rkey, window(&t), 1), IBV_WC_REM_ACCESS_ERR);
        reconnect(&t);
        /* the reset queue pair keeps its window, until it is invalidated */
        assert_int_equal(post_send(t.b, (struct ibv_send_wr){.opcode = IBV_WR_LOCAL_INV,
                                                             .send_flags = IBV_SEND_SIGNALED,
                                                             .invalidate_rkey = t.rkey}),
                         0);
        pair_settle(&t.p);
        assert_int_equal(one_wc(t.p.s[1].cq).status, IBV_WC_SUCCESS);
    }
    fixture_close(&t);
}

/* Type 1 moves without being closed; type 2 is closed first. */
static void a_window_that_is_open(void **state)
{
    struct ibv_mw_bind b = {.wr_id = 50, .send_flags = IBV_SEND_SIGNALED};
    struct fixture t;
    uint32_t old;

    (void)state;
    fixture_open(&t, IBV_MW_TYPE_1);
    b.bind_info = (struct ibv_mw_bind_info){t.mr, window(&t), LEN,
                                            IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE};
    assert_int_equal(ibv_bind_mw(t.b, t.mw, &b), 0);
    pair_settle(&t.p);
    assert_int_equal(one_wc(t.p.s[1].cq).status, IBV_WC_SUCCESS);
    old = t.mw->rkey;
    b.bind_info.addr += LEN;
    assert_int_equal(ibv_bind_mw(t.b, t.mw, &b), 0);
    pair_settle(&t.p);
    assert_int_equal(one_wc(t.p.s[1].cq).status, IBV_WC_SUCCESS);
    assert_int_equal(use(&t, IBV_WR_RDMA_WRITE, t.mw->rkey, window(&t) + LEN, LEN), IBV_WC_SUCCESS);
    assert_int_equal(use(&t, IBV_WR_RDMA_WRITE, old, window(&t), 1), IBV_WC_REM_ACCESS_ERR);
    fixture_close(&t);
    fixture_open(&t, IBV_MW_TYPE_2);
    bind_it(&t, IBV_ACCESS_REMOTE_WRITE);
    assert_int_equal(post_send(t.b, bind_wr(&t, IBV_ACCESS_REMOTE_WRITE)), 0);
    pair_settle(&t.p);
    assert_int_equal(one_wc(t.p.s[1].cq).status, IBV_WC_MW_BIND_ERR);
    fixture_close(&t);
}

/* A bind executes in order with the requests around it, so a later SEND may announce its key. */
static void a_bind_waits_for_what_stands_before_it(void **state)
{
    struct ibv_sge s;
    struct ibv_send_wr wr[3] = {{.wr_id = 1,
                                 .next = &wr[1],
                                 .sg_list = &s,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_WRITE,
                                 .send_flags = IBV_SEND_SIGNALED}},
                       *bad;
    struct ibv_wc wc[4];
    struct fixture t;

    (void)state;
    fixture_open(&t, IBV_MW_TYPE_2);
    s = sge_at(&t.p.s[1], 0, 100000);
    wr[0].wr.rdma.remote_addr = (uintptr_t)t.p.s[0].buf, wr[0].wr.rdma.rkey = t.p.s[0].mr->rkey;
    wr[1] = bind_wr(&t, IBV_ACCESS_REMOTE_WRITE);
    wr[1].next = &wr[2];
    wr[2] = wr[0];
    wr[2].next = NULL, wr[2].wr_id = 3;
    assert_int_equal(ibv_post_send(t.b, wr, &bad), 0);
    pair_settle(&t.p);
    assert_int_equal(ibv_poll_cq(t.p.s[1].cq, 4, wc), 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
    assert_int_equal(wc[0].wr_id, 1);
    assert_int_equal(wc[1].wr_id, 50);
    assert_int_equal(wc[2].wr_id, 3);
    fixture_close(&t);
}

static void a_window_of_type_1_is_bound_by_its_own_call(void **state)
{
    struct ibv_mw_bind b = {.wr_id = 50, .send_flags = IBV_SEND_SIGNALED};
    struct fixture t;
    uint32_t old;

    (void)state;
    fixture_open(&t, IBV_MW_TYPE_1);
    b.bind_info = (struct ibv_mw_bind_info){t.mr, window(&t), LEN, IBV_ACCESS_REMOTE_READ};
    assert_int_equal(post_send(t.b, bind_wr(&t, IBV_ACCESS_REMOTE_READ)), EINVAL);
    assert_int_equal(ibv_bind_mw(t.b, t.mw, &b), 0);
    pair_settle(&t.p);
    assert_int_equal(one_wc(t.p.s[1].cq).opcode, IBV_WC_BIND_MW);
    old = t.mw->rkey;
    assert_int_equal(use(&t, IBV_WR_RDMA_READ, old, window(&t), LEN), IBV_WC_SUCCESS);
    b.bind_info = (struct ibv_mw_bind_info){.length = 0};
    assert_int_equal(ibv_bind_mw(t.b, t.mw, &b), 0);
    pair_settle(&t.p);
    assert_int_equal(one_wc(t.p.s[1].cq).status, IBV_WC_SUCCESS);
    assert_int_not_equal(t.mw->rkey, old);
    assert_int_equal(use(&t, IBV_WR_RDMA_READ, old, window(&t), 1), IBV_WC_REM_ACCESS_ERR);
    reconnect(&t);
    assert_int_equal(use(&t, IBV_WR_RDMA_READ, t.mw->rkey, window(&t), 1), IBV_WC_REM_ACCESS_ERR);
    fixture_close(&t);
}

/* Binds and invalidations through ibv_wr_* of an extended queue pair. */
static void windows_by_work_request_builders(void **state)
{
    struct ibv_qp_init_attr_ex ia = {
        .qp_type = IBV_QPT_RC,
        .cap = {4, 4, 2, 2, 64},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags =
            IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV};
    struct ibv_mw_bind_info info;
    struct ibv_qp_ex *x;
    struct ibv_qp *plain;
    struct ibv_wc wc[3];
    struct fixture t;

    (void)state;
    fixture_open(&t, IBV_MW_TYPE_2);
    ia.pd = t.p.s[1].pd, ia.send_cq = ia.recv_cq = t.p.s[1].cq;
    plain = t.b;
    t.b = ibv_create_qp_ex(t.p.s[1].ctx, &ia);
    assert_non_null(t.b);
    reconnect(&t);
    x = ibv_qp_to_qp_ex(t.b);
    info = (struct ibv_mw_bind_info){t.mr, window(&t), LEN, IBV_ACCESS_REMOTE_WRITE};
    assert_int_equal(post_recv(t.a, 9, NULL, 0), 0);
    ibv_wr_start(x);
    x->wr_flags = IBV_SEND_SIGNALED;
    t.rkey = ibv_inc_rkey(t.rkey);
    ibv_wr_bind_mw(x, t.mw, t.rkey, &info);
    ibv_wr_local_inv(x, t.rkey);
    assert_int_equal(ibv_wr_complete(x), 0);
    pair_settle(&t.p);
    assert_int_equal(ibv_poll_cq(t.p.s[1].cq, 3, wc), 2);
    assert_int_equal(wc[1].opcode, IBV_WC_LOCAL_INV);
    assert_int_equal(wc[1].status, IBV_WC_SUCCESS);
    ibv_wr_start(x);
    ibv_wr_local_inv(x, t.rkey); /* it is closed */
    assert_int_equal(ibv_wr_complete(x), 0);
    pair_settle(&t.p);
    assert_int_equal(one_wc(t.p.s[1].cq).status, IBV_WC_LOC_QP_OP_ERR);
    assert_int_equal(ibv_destroy_qp(plain), 0);
    fixture_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(binds_that_are_wrong_are_refused),
        cmocka_unit_test(a_bind_takes_the_flags_of_regions),
        cmocka_unit_test(a_window_that_is_open),
        cmocka_unit_test(a_bind_waits_for_what_stands_before_it),
        cmocka_unit_test(a_window_of_type_1_is_bound_by_its_own_call),
        cmocka_unit_test(windows_by_work_request_builders),
    };

    return cmocka_run_group_tests_name("hca/window_bind", tests, NULL, NULL);
}
