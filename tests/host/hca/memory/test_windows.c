/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: keys that are opened and closed by requests, and what they allow. */
#include "tests/host/hca/pair.h"

#define OFF 4096u /* of the window in the region */
#define LEN 1000u

struct bed {
    struct pair p;
    struct ibv_qp *a, *b; /* b's side binds, a's side uses */
    struct ibv_mr *mr;    /* that windows may be opened on */
    struct ibv_mw *mw;
    uint32_t rkey;
};

static void bed_open(struct bed *t, enum ibv_mw_type type)
{
    struct side *s;

    memset(t, 0, sizeof(*t));
    pair_open(&t->p);
    s = &t->p.s[1];
    rc_pair(&t->p, &t->a, &t->b);
    t->mr = ibv_reg_mr(s->pd, s->buf, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    t->mw = ibv_alloc_mw(s->pd, type);
    assert_non_null(t->mw);
    t->rkey = t->mw->rkey;
    fill(t->p.s[0].buf, BYTES, 1);
}

static void bed_close(struct bed *t)
{
    if (t->mw)
        assert_int_equal(ibv_dealloc_mw(t->mw), 0);
    assert_int_equal(ibv_dereg_mr(t->mr), 0);
    assert_int_equal(ibv_destroy_qp(t->a), 0);
    assert_int_equal(ibv_destroy_qp(t->b), 0);
    pair_close(&t->p);
}

static struct ibv_send_wr bind_wr(struct bed *t, unsigned access)
{
    t->rkey = ibv_inc_rkey(t->rkey);
    return (struct ibv_send_wr){
        .wr_id = 50,
        .opcode = IBV_WR_BIND_MW,
        .send_flags = IBV_SEND_SIGNALED,
        .bind_mw = {t->mw, t->rkey, {t->mr, (uintptr_t)t->p.s[1].buf + OFF, LEN, access}}};
}

static void bind_it(struct bed *t, unsigned access)
{
    struct ibv_wc wc;

    assert_int_equal(post_send(t->b, bind_wr(t, access)), 0);
    pair_settle(&t->p);
    wc = one_wc(t->p.s[1].cq);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
    assert_int_equal(wc.wr_id, 50);
}

/* a's request through a key; afterwards both are connected again, whatever came of it. */
static enum ibv_wc_status use(struct bed *t, enum ibv_wr_opcode op, uint32_t key, uint64_t addr,
                              uint32_t len)
{
    struct ibv_sge s = sge_at(&t->p.s[0], 0, len);
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = op,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {addr, key}};
    enum ibv_wc_status status;
    struct ibv_async_event ev;

    assert_int_equal(post_send(t->a, wr), 0);
    pair_run(&t->p, PS_PER_S);
    status = one_wc(t->p.s[0].cq).status;
    while (!ibv_get_async_event(t->p.s[1].ctx, &ev))
        ibv_ack_async_event(&ev);
    return status;
}

static void reconnect(struct bed *t)
{
    struct ibv_qp_attr r = {.qp_state = IBV_QPS_RESET};

    assert_int_equal(ibv_modify_qp(t->a, &r, IBV_QP_STATE), 0);
    assert_int_equal(ibv_modify_qp(t->b, &r, IBV_QP_STATE), 0);
    rc_connect(t->a, IP_B, t->b->qp_num);
    rc_connect(t->b, IP_A, t->a->qp_num);
}

static uint64_t window(const struct bed *t)
{
    return (uintptr_t)t->p.s[1].buf + OFF;
}

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
    struct bed t;

    (void)state;
    bed_open(&t, IBV_MW_TYPE_2);
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
    bed_close(&t);
}

static void an_invalidated_key_opens_nothing(void **state)
{
    struct ibv_send_wr inv = {.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED};
    struct bed t;
    uint32_t old;

    (void)state;
    bed_open(&t, IBV_MW_TYPE_2);
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
    bed_close(&t);
}

/* The peer gives the key back with its last message. */
static void a_send_with_invalidate_closes_the_receivers_window(void **state)
{
    struct ibv_sge s, r;
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND_WITH_INV,
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_wc wc;
    struct bed t;

    (void)state;
    bed_open(&t, IBV_MW_TYPE_2);
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
    /* a key that is none of a window: the sender is told, the receive comes back flushed */
    wr.invalidate_rkey = t.p.s[1].mr->rkey;
    assert_int_equal(post_recv(t.b, 2, &r, 1), 0);
    assert_int_equal(post_send(t.a, wr), 0);
    pair_settle(&t.p);
    assert_int_equal(one_wc(t.p.s[0].cq).status, IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(one_wc(t.p.s[1].cq).status, IBV_WC_WR_FLUSH_ERR);
    bed_close(&t);
}

/* A window of type 2 is its queue pair's: another one of the same PD does not reach through it. */
static void a_window_belongs_to_the_queue_pair_that_bound_it(void **state)
{
    struct ibv_qp *a2, *b2;
    struct bed t;

    (void)state;
    bed_open(&t, IBV_MW_TYPE_2);
    rc_pair(&t.p, &a2, &b2);
    bind_it(&t, IBV_ACCESS_REMOTE_WRITE);
    struct ibv_qp *own = t.a;
    t.a = a2;
    assert_int_equal(use(&t, IBV_WR_RDMA_WRITE, t.rkey, window(&t), 1), IBV_WC_REM_ACCESS_ERR);
    t.a = own;
    assert_int_equal(use(&t, IBV_WR_RDMA_WRITE, t.rkey, window(&t), 1), IBV_WC_SUCCESS);
    assert_int_equal(ibv_destroy_qp(t.b), 0); /* and goes with it */
    assert_int_equal(ibv_dereg_mr(t.mr), 0);
    t.mr = ibv_reg_mr(t.p.s[1].pd, t.p.s[1].buf, BYTES, 0);
    t.b = b2;
    assert_int_equal(ibv_destroy_qp(a2), 0);
    bed_close(&t);
}

struct refused {
    const char *why;
    bool post; /* at once, else by its completion */
    void (*spoil)(struct bed *t, struct ibv_send_wr *wr);
};

static void no_right(struct bed *t, struct ibv_send_wr *wr)
{
    wr->bind_mw.bind_info.mr = t->p.s[1].mr; /* registered without IBV_ACCESS_MW_BIND */
}

static void beyond(struct bed *t, struct ibv_send_wr *wr)
{
    (void)t;
    wr->bind_mw.bind_info.addr += BYTES - OFF - LEN + 1;
}

static void wraps(struct bed *t, struct ibv_send_wr *wr)
{
    (void)t;
    wr->bind_mw.bind_info.length = UINT64_MAX;
}

static void unknown_flag(struct bed *t, struct ibv_send_wr *wr)
{
    (void)t;
    wr->bind_mw.bind_info.mw_access_flags |= 1u << 10;
}

static void empty(struct bed *t, struct ibv_send_wr *wr)
{
    (void)t;
    wr->bind_mw.bind_info.length = 0;
}

static void other_key(struct bed *t, struct ibv_send_wr *wr)
{
    (void)t;
    wr->bind_mw.rkey ^= 0x100;
}

static void no_window(struct bed *t, struct ibv_send_wr *wr)
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
        struct bed t;

        bed_open(&t, IBV_MW_TYPE_2);
        wr = bind_wr(&t, IBV_ACCESS_REMOTE_WRITE);
        refused[i].spoil(&t, &wr);
        assert_int_equal(post_send(t.b, wr), refused[i].post ? EINVAL : 0);
        pair_settle(&t.p);
        if (!refused[i].post)
            assert_int_equal(one_wc(t.p.s[1].cq).status, IBV_WC_MW_BIND_ERR);
        bed_close(&t);
    }
}

/* Programs pass on the flags that they registered the region with. */
static void a_bind_takes_the_flags_of_regions(void **state)
{
    static const unsigned more[] = {IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_MW_BIND,
                                    IBV_ACCESS_RELAXED_ORDERING, IBV_ACCESS_HUGETLB,
                                    IBV_ACCESS_ON_DEMAND};
    struct bed t;

    (void)state;
    bed_open(&t, IBV_MW_TYPE_2);
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        bind_it(&t, more[i] | IBV_ACCESS_REMOTE_WRITE);
        assert_int_equal(use(&t, IBV_WR_RDMA_WRITE, t.rkey, window(&t), LEN), IBV_WC_SUCCESS);
        assert_int_equal(post_send(t.b, (struct ibv_send_wr){.opcode = IBV_WR_LOCAL_INV,
                                                             .send_flags = IBV_SEND_SIGNALED,
                                                             .invalidate_rkey = t.rkey}),
                         0);
        pair_settle(&t.p);
        assert_int_equal(one_wc(t.p.s[1].cq).status, IBV_WC_SUCCESS);
        bind_it(&t, more[i]); /* and they open nothing by themselves */
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
    bed_close(&t);
}

/* Addresses of the window begin at zero. */
static void a_window_may_be_zero_based(void **state)
{
    struct ibv_mw_bind b = {.wr_id = 50, .send_flags = IBV_SEND_SIGNALED};
    struct bed t;

    (void)state;
    bed_open(&t, IBV_MW_TYPE_2);
    bind_it(&t, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
    assert_int_equal(use(&t, IBV_WR_RDMA_WRITE, t.rkey, 0, LEN), IBV_WC_SUCCESS);
    assert_memory_equal(t.p.s[1].buf + OFF, t.p.s[0].buf, LEN);
    assert_int_equal(use(&t, IBV_WR_RDMA_WRITE, t.rkey, LEN, 1), IBV_WC_REM_ACCESS_ERR);
    reconnect(&t);
    assert_int_equal(use(&t, IBV_WR_RDMA_WRITE, t.rkey, window(&t), 1), IBV_WC_REM_ACCESS_ERR);
    bed_close(&t);
    bed_open(&t, IBV_MW_TYPE_1); /* of type 1 it may not */
    b.bind_info = (struct ibv_mw_bind_info){t.mr, window(&t), LEN,
                                            IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED};
    assert_int_equal(ibv_bind_mw(t.b, t.mw, &b), EINVAL);
    no_wc(t.p.s[1].cq);
    bed_close(&t);
}

/* Type 1 moves without being closed; type 2 is closed first. */
static void a_window_that_is_open(void **state)
{
    struct ibv_mw_bind b = {.wr_id = 50, .send_flags = IBV_SEND_SIGNALED};
    struct bed t;
    uint32_t old;

    (void)state;
    bed_open(&t, IBV_MW_TYPE_1);
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
    bed_close(&t);
    bed_open(&t, IBV_MW_TYPE_2);
    bind_it(&t, IBV_ACCESS_REMOTE_WRITE);
    assert_int_equal(post_send(t.b, bind_wr(&t, IBV_ACCESS_REMOTE_WRITE)), 0);
    pair_settle(&t.p);
    assert_int_equal(one_wc(t.p.s[1].cq).status, IBV_WC_MW_BIND_ERR);
    bed_close(&t);
}

/* Requests around a bind happen around it: the SEND before tells of nothing that is not open
 * yet. */
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
    struct bed t;

    (void)state;
    bed_open(&t, IBV_MW_TYPE_2);
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
    bed_close(&t);
}

static void a_window_of_type_1_is_bound_by_its_own_call(void **state)
{
    struct ibv_mw_bind b = {.wr_id = 50, .send_flags = IBV_SEND_SIGNALED};
    struct bed t;
    uint32_t old;

    (void)state;
    bed_open(&t, IBV_MW_TYPE_1);
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
    bed_close(&t);
}

/* The same through the builders of an extended queue pair. */
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
    struct bed t;

    (void)state;
    bed_open(&t, IBV_MW_TYPE_2);
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
    bed_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_opens_its_bytes_and_no_other),
        cmocka_unit_test(an_invalidated_key_opens_nothing),
        cmocka_unit_test(a_send_with_invalidate_closes_the_receivers_window),
        cmocka_unit_test(a_window_belongs_to_the_queue_pair_that_bound_it),
        cmocka_unit_test(binds_that_are_wrong_are_refused),
        cmocka_unit_test(a_bind_takes_the_flags_of_regions),
        cmocka_unit_test(a_window_may_be_zero_based),
        cmocka_unit_test(a_window_that_is_open),
        cmocka_unit_test(a_bind_waits_for_what_stands_before_it),
        cmocka_unit_test(a_window_of_type_1_is_bound_by_its_own_call),
        cmocka_unit_test(windows_by_work_request_builders),
    };

    return cmocka_run_group_tests_name("hca/windows", tests, NULL, NULL);
}
