/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors, and the status or event that reports each. */
#include "tests/host/hca/pair.h"

static void two_down(struct pair *p, struct ibv_qp *a, struct ibv_qp *b)
{
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(p);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr i;

    assert_int_equal(ibv_query_qp(qp, &a, IBV_QP_STATE, &i), 0);
    return a.qp_state;
}

/* ---- keys and bounds: every request that memory does not allow ends with its own status ---- */

enum fault {
    BAD_LKEY,
    LKEY_BOUNDS,
    OTHER_PD_LKEY,
    NO_LOCAL_WRITE, /* of a READ's destination */
    BAD_RKEY,
    RKEY_BOUNDS,
    RKEY_BELOW,
    NO_REMOTE_WRITE,
    NO_REMOTE_READ,
    OLD_RKEY,
    OTHER_PD_RKEY,
};
struct fault_row {
    enum fault fault;
    enum ibv_wr_opcode op;
    enum ibv_wc_status status;
};
static const struct fault_row faults[] = {
    {BAD_LKEY, IBV_WR_SEND, IBV_WC_LOC_PROT_ERR},
    {LKEY_BOUNDS, IBV_WR_RDMA_WRITE, IBV_WC_LOC_PROT_ERR},
    {OTHER_PD_LKEY, IBV_WR_RDMA_WRITE, IBV_WC_LOC_PROT_ERR},
    {NO_LOCAL_WRITE, IBV_WR_RDMA_READ, IBV_WC_LOC_PROT_ERR},
    {BAD_RKEY, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR},
    {BAD_RKEY, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR},
    {RKEY_BOUNDS, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR},
    {RKEY_BOUNDS, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR},
    {RKEY_BELOW, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR},
    {NO_REMOTE_WRITE, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR},
    {NO_REMOTE_READ, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR},
    {OLD_RKEY, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR},
    {OTHER_PD_RKEY, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR},
};

/* One side's other regions: without rights, and of another protection domain. */
struct regions {
    struct ibv_mr *ro, *other;
    struct ibv_pd *pd;
};

static void plant_fault(enum fault fault, struct pair *p, const struct regions *r,
                        struct ibv_send_wr *wr)
{
    struct side *sa = &p->s[0], *sb = &p->s[1];
    struct ibv_sge *s = wr->sg_list;
    struct ibv_mr *old;

    switch (fault) {
    case BAD_LKEY:
        s->lkey ^= 0x10000;
        break;
    case LKEY_BOUNDS:
        s->addr = (uintptr_t)sa->buf + BYTES - 2999;
        break;
    case OTHER_PD_LKEY:
        s->lkey = r[0].other->lkey;
        break;
    case NO_LOCAL_WRITE:
        s->lkey = r[0].ro->lkey;
        break;
    case BAD_RKEY:
        wr->wr.rdma.rkey ^= 0x10000;
        break;
    case RKEY_BOUNDS:
        wr->wr.rdma.remote_addr += BYTES - 2999;
        break;
    case RKEY_BELOW:
        wr->wr.rdma.remote_addr--;
        break;
    case NO_REMOTE_WRITE:
    case NO_REMOTE_READ:
        wr->wr.rdma.rkey = r[1].ro->rkey;
        break;
    case OLD_RKEY: /* the next user of its index must not accept it */
        old = ibv_reg_mr(sb->pd, sb->buf, BYTES, 15);
        wr->wr.rdma.rkey = old->rkey;
        assert_int_equal(ibv_dereg_mr(old), 0);
        break;
    case OTHER_PD_RKEY:
        wr->wr.rdma.rkey = r[1].other->rkey;
        break;
    }
}

static void run_fault(const struct fault_row *row)
{
    struct ibv_qp *a, *b;
    struct pair p;
    struct side *sa = &p.s[0], *sb = &p.s[1];
    struct ibv_sge s;
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = row->op};
    struct regions r[2];

    pair_open(&p);
    rc_pair(&p, &a, &b);
    for (unsigned i = 0; i < 2; i++) {
        r[i].pd = ibv_alloc_pd(p.s[i].ctx);
        r[i].ro = ibv_reg_mr(p.s[i].pd, p.s[i].buf, BYTES, 0);
        r[i].other = ibv_reg_mr(r[i].pd, p.s[i].buf, BYTES, 15);
    }
    s = sge_at(sa, 0, 3000);
    wr.wr.rdma.remote_addr = (uintptr_t)sb->buf;
    wr.wr.rdma.rkey = sb->mr->rkey;
    plant_fault(row->fault, &p, r, &wr);
    fill(sb->buf, BYTES, 1);
    assert_int_equal(post_recv(b, 1, NULL, 0), 0);
    assert_int_equal(post_send(a, wr), 0);
    pair_run(&p, PS_PER_S);
    assert_int_equal(one_wc(sa->cq).status, row->status); /* unsignaled, but errors complete */
    assert_int_equal(state_of(a), IBV_QPS_ERR);
    fill(sa->buf, BYTES, 1);
    if (row->fault != LKEY_BOUNDS)                    /* there the first packets were valid */
        assert_memory_equal(sa->buf, sb->buf, BYTES); /* nothing was written */
    for (unsigned i = 0; i < 2; i++) {
        ibv_dereg_mr(r[i].ro);
        ibv_dereg_mr(r[i].other);
        assert_int_equal(ibv_dealloc_pd(r[i].pd), 0);
    }
    two_down(&p, a, b);
}

static void memory_is_reached_only_as_it_was_registered(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        run_fault(&faults[i]);
}

static void a_queue_pair_that_did_not_allow_it_is_not_written_to(void **state)
{
    struct ibv_qp *a, *b;
    struct pair p;
    struct ibv_qp_attr at = {.qp_access_flags = IBV_ACCESS_REMOTE_READ};
    struct ibv_sge s;
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    assert_int_equal(ibv_modify_qp(b, &at, IBV_QP_ACCESS_FLAGS), 0);
    s = sge_at(&p.s[0], 0, 10);
    wr.wr.rdma.remote_addr = (uintptr_t)p.s[1].buf;
    wr.wr.rdma.rkey = p.s[1].mr->rkey;
    assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_REM_ACCESS_ERR);
    two_down(&p, a, b);
}

static void a_message_longer_than_its_receive_is_refused(void **state)
{
    struct ibv_qp *a, *b;
    struct pair p;
    struct ibv_sge s, r;
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND};

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    s = sge_at(&p.s[0], 0, 3001), r = sge_at(&p.s[1], 0, 3000);
    assert_int_equal(post_recv(b, 1, &r, 1), 0);
    assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_REM_INV_REQ_ERR);
    assert_int_equal(one_wc(p.s[1].cq).status, IBV_WC_LOC_LEN_ERR);
    two_down(&p, a, b);
}

/* ---- silence ---- */

static bool drop_all(void *ctx, struct rte_mbuf *m)
{
    (void)ctx, (void)m;
    return true;
}

static void a_silent_peer_ends_in_retry_exceeded_and_the_rest_flushed(void **state)
{
    struct ibv_qp *a, *b;
    struct pair p;
    struct ibv_sge s;
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND};
    struct ibv_wc wc[8];

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    p.drop = drop_all;
    s = sge_at(&p.s[0], 0, 10);
    for (unsigned i = 0; i < 3; i++) {
        wr.wr_id = i;
        assert_int_equal(post_send(a, wr), 0);
        assert_int_equal(post_recv(a, 10 + i, NULL, 0), 0);
    }
    pair_run(&p, 100 * PS_PER_S);
    assert_int_equal(ibv_poll_cq(p.s[0].cq, 8, wc), 6);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(wc[i].wr_id, i < 3 ? i : 7 + i);
        assert_int_equal(wc[i].status, i ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR);
    }
    /* Requests posted later are flushed too. */
    assert_int_equal(post_send(a, wr), 0);
    assert_int_equal(post_recv(a, 20, NULL, 0), 0);
    pair_settle(&p);
    assert_int_equal(ibv_poll_cq(p.s[0].cq, 8, wc), 2);
    assert_int_equal(wc[0].status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(wc[1].status, IBV_WC_WR_FLUSH_ERR);
    two_down(&p, a, b);
}

static void no_receive_ends_in_rnr_retry_exceeded(void **state)
{
    struct ibv_qp *a, *b;
    struct pair p;
    struct ibv_sge s;
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND};

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    s = sge_at(&p.s[0], 0, 10);
    assert_int_equal(post_send(a, wr), 0);
    pair_run(&p, 100 * PS_PER_S);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_RNR_RETRY_EXC_ERR);
    assert_int_equal(state_of(b), IBV_QPS_RTS);
    two_down(&p, a, b);
}

static void error_flushes_and_reset_forgets(void **state)
{
    struct ibv_qp *a, *b;
    struct pair p;
    struct ibv_qp_attr at = {.qp_state = IBV_QPS_ERR};
    struct ibv_wc wc[4];

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    assert_int_equal(post_recv(a, 1, NULL, 0), 0);
    assert_int_equal(post_recv(a, 2, NULL, 0), 0);
    assert_int_equal(ibv_modify_qp(a, &at, IBV_QP_STATE), 0);
    assert_int_equal(ibv_poll_cq(p.s[0].cq, 4, wc), 2);
    assert_int_equal(wc[1].wr_id, 2);
    assert_int_equal(wc[1].status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(post_recv(b, 1, NULL, 0), 0);
    at.qp_state = IBV_QPS_RESET;
    assert_int_equal(ibv_modify_qp(b, &at, IBV_QP_STATE), 0);
    no_wc(p.s[1].cq);
    /* and both can be used again */
    at.qp_state = IBV_QPS_RESET;
    assert_int_equal(ibv_modify_qp(a, &at, IBV_QP_STATE), 0);
    rc_connect(a, IP_B, b->qp_num);
    rc_connect(b, IP_A, a->qp_num);
    assert_int_equal(post_recv(b, 5, NULL, 0), 0);
    assert_int_equal(post_send(a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[1].cq).wr_id, 5);
    two_down(&p, a, b);
}

/* ---- queues that overrun ---- */

static void an_overrun_is_reported_and_ends_the_queue_pairs(void **state)
{
    struct ibv_qp *a, *b;
    struct pair p;
    struct ibv_cq *small;
    struct ibv_async_event ev;
    struct ibv_wc wc[16];
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};

    (void)state;
    pair_open(&p);
    small = ibv_create_cq(p.s[0].ctx, 4, NULL, NULL, 0);
    assert_int_equal(small->cqe, 4);
    a = make_qp_on(&p.s[0], IBV_QPT_RC, small, p.s[0].cq, NULL);
    b = make_qp(&p.s[1], IBV_QPT_RC);
    rc_connect(a, IP_B, b->qp_num);
    rc_connect(b, IP_A, a->qp_num);
    wr.wr.rdma.remote_addr = (uintptr_t)p.s[1].buf;
    wr.wr.rdma.rkey = p.s[1].mr->rkey;
    for (wr.wr_id = 0; wr.wr_id < 5; wr.wr_id++)
        assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(ibv_get_async_event(p.s[0].ctx, &ev), 0);
    assert_int_equal(ev.event_type, IBV_EVENT_CQ_ERR);
    assert_ptr_equal(ev.element.cq, small);
    ibv_ack_async_event(&ev);
    assert_int_equal(state_of(a), IBV_QPS_ERR);
    assert_int_equal(ibv_poll_cq(small, 16, wc), 4);
    assert_int_equal(wc[3].wr_id, 3);
    assert_true(ibv_poll_cq(small, 16, wc) < 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_cq(small), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

static void a_port_that_goes_down_ends_connections_by_name(void **state)
{
    struct ibv_qp *a, *b;
    struct pair p;
    struct ibv_async_event ev;
    struct ibv_port_attr pa;
    struct ibv_sge s;
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND};

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    s = sge_at(&p.s[0], 0, 10);
    assert_int_equal(post_send(a, wr), 0);
    hca_port_state(p.s[0].h, false, p.now_ps);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_RETRY_EXC_ERR);
    assert_int_equal(ibv_get_async_event(p.s[0].ctx, &ev), 0);
    assert_int_equal(ev.event_type, IBV_EVENT_PORT_ERR);
    assert_int_equal(ev.element.port_num, 1);
    ibv_ack_async_event(&ev);
    assert_int_equal(ibv_query_port(p.s[0].ctx, 1, &pa), 0);
    assert_int_equal(pa.state, IBV_PORT_DOWN);
    assert_int_equal(state_of(a), IBV_QPS_ERR);
    hca_port_state(p.s[0].h, true, p.now_ps);
    assert_int_equal(ibv_get_async_event(p.s[0].ctx, &ev), 0);
    assert_int_equal(ev.event_type, IBV_EVENT_PORT_ACTIVE);
    ibv_ack_async_event(&ev);
    pair_settle(&p);
    two_down(&p, a, b);
}

/* The link behind the NIC may go down and up: an event reports it, and connections retransmit. */
static void a_link_that_goes_down_is_reported_and_ends_nothing(void **state)
{
    static const struct {
        bool nic, link, up;
    } rows[] = {{true, false, false},  {true, true, true},   {true, false, false},
                {false, false, false}, {false, true, false}, {true, true, true}};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_async_event ev;
    struct ibv_port_attr pa;
    struct ibv_qp *a, *b;
    struct pair p;
    bool was = true;

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    wr.wr.rdma.remote_addr = (uintptr_t)p.s[1].buf, wr.wr.rdma.rkey = p.s[1].mr->rkey;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        hca_link_state(p.s[0].h, rows[i].link, p.now_ps);
        hca_port_state(p.s[0].h, rows[i].nic, p.now_ps);
        assert_int_equal(ibv_query_port(p.s[0].ctx, 1, &pa), 0);
        assert_int_equal(pa.state, rows[i].up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN);
        if (was != rows[i].up) {
            assert_int_equal(ibv_get_async_event(p.s[0].ctx, &ev), 0);
            assert_int_equal(ev.event_type,
                             rows[i].up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
            ibv_ack_async_event(&ev);
        }
        was = rows[i].up;
        if (i < 3) { /* while the NIC is connected */
            assert_int_equal(ibv_get_async_event(p.s[0].ctx, &ev), -1);
            assert_int_equal(post_send(a, wr), 0);
            pair_settle(&p);
            assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_SUCCESS);
        }
        if (i ==
            3) { /* without a NIC the queue pair goes to error, though the port was down before */
            assert_int_equal(state_of(a), IBV_QPS_ERR);
            assert_int_equal(ibv_get_async_event(p.s[0].ctx, &ev), 0);
            assert_int_equal(ev.event_type, IBV_EVENT_QP_FATAL);
            ibv_ack_async_event(&ev);
        }
    }
    pair_settle(&p);
    two_down(&p, a, b);
}

static void a_forked_childs_hca_is_dead(void **state)
{
    struct ibv_qp *a, *b;
    struct pair p;
    struct ibv_wc wc;

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    hca_kill(p.s[0].h);
    assert_int_equal(post_send(a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}), EIO);
    assert_int_equal(post_recv(a, 1, NULL, 0), EIO);
    assert_true(ibv_poll_cq(p.s[0].cq, 1, &wc) < 0);
    two_down(&p, a, b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_reached_only_as_it_was_registered),
        cmocka_unit_test(a_queue_pair_that_did_not_allow_it_is_not_written_to),
        cmocka_unit_test(a_message_longer_than_its_receive_is_refused),
        cmocka_unit_test(a_silent_peer_ends_in_retry_exceeded_and_the_rest_flushed),
        cmocka_unit_test(no_receive_ends_in_rnr_retry_exceeded),
        cmocka_unit_test(error_flushes_and_reset_forgets),
        cmocka_unit_test(an_overrun_is_reported_and_ends_the_queue_pairs),
        cmocka_unit_test(a_port_that_goes_down_ends_connections_by_name),
        cmocka_unit_test(a_link_that_goes_down_is_reported_and_ends_nothing),
        cmocka_unit_test(a_forked_childs_hca_is_dead),
    };

    return cmocka_run_group_tests_name("hca/errors", tests, NULL, NULL);
}
