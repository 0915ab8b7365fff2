/* SPDX-License-Identifier: BSD-3-Clause */
/* A memory window on one side of a pair, and the other side that uses it. */
#ifndef TRIB_TESTS_HOST_HCA_MEMORY_WINDOW_FIXTURE_H
#define TRIB_TESTS_HOST_HCA_MEMORY_WINDOW_FIXTURE_H

#include "tests/host/hca/pair.h"

#define OFF 4096u /* of the window in the region */
#define LEN 1000u

struct fixture {
    struct pair p;
    struct ibv_qp *a, *b; /* b's side binds, a's side uses */
    struct ibv_mr *mr;    /* registered for windows */
    struct ibv_mw *mw;
    uint32_t rkey;
};

static inline void fixture_open(struct fixture *t, enum ibv_mw_type type)
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

static inline void fixture_close(struct fixture *t)
{
    if (t->mw)
        assert_int_equal(ibv_dealloc_mw(t->mw), 0);
    assert_int_equal(ibv_dereg_mr(t->mr), 0);
    assert_int_equal(ibv_destroy_qp(t->a), 0);
    assert_int_equal(ibv_destroy_qp(t->b), 0);
    pair_close(&t->p);
}

static inline struct ibv_send_wr bind_wr(struct fixture *t, unsigned access)
{
    t->rkey = ibv_inc_rkey(t->rkey);
    return (struct ibv_send_wr){
        .wr_id = 50,
        .opcode = IBV_WR_BIND_MW,
        .send_flags = IBV_SEND_SIGNALED,
        .bind_mw = {t->mw, t->rkey, {t->mr, (uintptr_t)t->p.s[1].buf + OFF, LEN, access}}};
}

static inline void bind_it(struct fixture *t, unsigned access)
{
    struct ibv_wc wc;

    assert_int_equal(post_send(t->b, bind_wr(t, access)), 0);
    pair_settle(&t->p);
    wc = one_wc(t->p.s[1].cq);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
    assert_int_equal(wc.wr_id, 50);
}

/* Side a's request through a key. Returns its status; an error leaves both queue pairs in error. */
static inline enum ibv_wc_status use(struct fixture *t, enum ibv_wr_opcode op, uint32_t key,
                                     uint64_t addr, uint32_t len)
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

static inline void reconnect(struct fixture *t)
{
    struct ibv_qp_attr r = {.qp_state = IBV_QPS_RESET};

    assert_int_equal(ibv_modify_qp(t->a, &r, IBV_QP_STATE), 0);
    assert_int_equal(ibv_modify_qp(t->b, &r, IBV_QP_STATE), 0);
    rc_connect(t->a, IP_B, t->b->qp_num);
    rc_connect(t->b, IP_A, t->a->qp_num);
}

static inline uint64_t window(const struct fixture *t)
{
    return (uintptr_t)t->p.s[1].buf + OFF;
}

#endif
