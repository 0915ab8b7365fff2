/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every builder of a work request (ibv_wr_*): what it does to memory at both sides, what completes by every accessor,
 * and which data, batches and addresses are refused.
 */
#include "host/hca/hca_priv.h"
#include "tests/host/hca/pair.h"

#define LEN(a)  (sizeof(a) / sizeof((a)[0]))
#define DEPTH   4u
#define INLINE  64u
#define RECV_AT 5000u
#define QKEY    0x1234u

static const uint64_t ops_ud = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
                      ops_rc = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                               IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                               IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                               IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV |
                               IBV_QP_EX_WITH_ATOMIC_WRITE;

/* Side 0 builds; both sides have an extended completion queue. */
struct duo {
    struct pair p;
    struct ibv_cq_ex *cq[2];
    struct ibv_qp *a, *b;
    struct ibv_qp_ex *x;
};

static struct ibv_qp_init_attr_ex init_of(struct duo *d, unsigned i, enum ibv_qp_type type,
                                          uint64_t ops)
{
    return (struct ibv_qp_init_attr_ex){.qp_type = type,
                                        .cap = {DEPTH, DEPTH, 2, 2, INLINE},
                                        .send_cq = ibv_cq_ex_to_cq(d->cq[i]),
                                        .recv_cq = ibv_cq_ex_to_cq(d->cq[i]),
                                        .pd = d->p.s[i].pd,
                                        .comp_mask =
                                            IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                        .send_ops_flags = ops};
}

static void duo_open(struct duo *d, enum ibv_qp_type type, uint64_t ops)
{
    struct ibv_cq_init_attr_ex ca = {
        .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
    struct ibv_qp_init_attr_ex ia;
    struct ibv_qp *qp[2];

    memset(d, 0, sizeof(*d));
    pair_open(&d->p);
    for (unsigned i = 0; i < 2; i++) {
        d->cq[i] = ibv_create_cq_ex(d->p.s[i].ctx, &ca);
        assert_non_null(d->cq[i]);
        ia = init_of(d, i, type, ops);
        qp[i] = ibv_create_qp_ex(d->p.s[i].ctx, &ia);
        assert_non_null(qp[i]);
    }
    d->a = qp[0], d->b = qp[1];
    d->x = ibv_qp_to_qp_ex(d->a);
    if (type == IBV_QPT_UD) {
        ud_ready(d->a, QKEY);
        ud_ready(d->b, QKEY);
    } else {
        rc_connect(d->a, IP_B, d->b->qp_num);
        rc_connect(d->b, IP_A, d->a->qp_num);
    }
    fill(d->p.s[0].buf, BYTES, 1);
    fill(d->p.s[1].buf, BYTES, 2);
}

static void duo_close(struct duo *d)
{
    assert_int_equal(ibv_destroy_qp(d->a), 0);
    assert_int_equal(ibv_destroy_qp(d->b), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(d->cq[i])), 0);
    pair_close(&d->p);
}

/* Of the only completion, by the accessors that have a meaning for it. */
static void completes(struct ibv_cq_ex *cq, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
    struct ibv_poll_cq_attr none = {0};

    assert_int_equal(ibv_start_poll(cq, &none), 0);
    assert_int_equal(cq->status, IBV_WC_SUCCESS);
    assert_int_equal(cq->wr_id, wr_id);
    assert_int_equal(ibv_wc_read_opcode(cq), opcode);
    assert_int_equal(ibv_wc_read_vendor_err(cq), 0);
    assert_int_equal(ibv_wc_read_slid(cq), 0);
    assert_int_equal(ibv_wc_read_dlid_path_bits(cq), 0);
    assert_int_equal(ibv_next_poll(cq), ENOENT);
    ibv_end_poll(cq);
}

static void none_completes(struct ibv_cq_ex *cq)
{
    struct ibv_poll_cq_attr none = {0};

    assert_int_equal(ibv_start_poll(cq, &none), ENOENT);
}

/* ---- what each does ---- */

enum { SEND, SEND_IMM, WRITE, WRITE_IMM, READ, SWAP, ADD, WORD, SEND_INV, OPS };

static const struct {
    enum ibv_wc_opcode opcode;
    bool gets;    /* side 1 has a receive that completes */
    bool carries; /* 24 bytes of side 0 */
    uint32_t at;  /* where they go, at side 1 */
} does[OPS] = {
    [SEND] = {IBV_WC_SEND, true, true, RECV_AT},
    [SEND_IMM] = {IBV_WC_SEND, true, true, RECV_AT},
    [WRITE] = {IBV_WC_RDMA_WRITE, false, true, 64},
    [WRITE_IMM] = {IBV_WC_RDMA_WRITE, true, true, 64},
    [READ] = {IBV_WC_RDMA_READ, false, false, 0},
    [SWAP] = {IBV_WC_COMP_SWAP, false, false, 0},
    [ADD] = {IBV_WC_FETCH_ADD, false, false, 0},
    [WORD] = {IBV_WC_ATOMIC_WRITE, false, false, 0},
    [SEND_INV] = {IBV_WC_SEND, true, true, RECV_AT},
};

static const uint64_t word = 0x1122334455667788;

static void build(struct duo *d, int op, uint32_t key, uint64_t at, uint64_t old)
{
    struct ibv_qp_ex *x = d->x;

    switch (op) {
    case SEND:
        ibv_wr_send(x);
        break;
    case SEND_IMM:
        ibv_wr_send_imm(x, 0x77);
        break;
    case WRITE:
        ibv_wr_rdma_write(x, key, at);
        break;
    case WRITE_IMM:
        ibv_wr_rdma_write_imm(x, key, at, 0x78);
        break;
    case READ:
        ibv_wr_rdma_read(x, key, at);
        break;
    case SWAP:
        ibv_wr_atomic_cmp_swp(x, key, at, old, word);
        break;
    case ADD:
        ibv_wr_atomic_fetch_add(x, key, at, 5);
        break;
    case WORD:
        ibv_wr_atomic_write(x, key, at, &word);
        break;
    default:
        ibv_wr_send_inv(x, key);
    }
}

/* What side 1 has of it: its memory, and its receive's completion. */
static void arrived(struct duo *d, int op, const uint8_t *before, uint32_t key)
{
    struct ibv_poll_cq_attr none = {0};
    struct side *to = &d->p.s[1];
    struct ibv_cq_ex *cq = d->cq[1];
    uint8_t want[8192];
    uint64_t old, now;

    memcpy(want, before, sizeof(want));
    memcpy(&old, before + 64, 8);
    now = op == SWAP || op == WORD ? word : op == ADD ? old + 5 : old;
    memcpy(want + 64, &now, 8);
    if (does[op].carries)
        memcpy(want + does[op].at, d->p.s[0].buf + 100, 24);
    assert_memory_equal(to->buf, want, sizeof(want));
    if (!does[op].gets) {
        none_completes(cq);
        return;
    }
    assert_int_equal(ibv_start_poll(cq, &none), 0);
    assert_int_equal(cq->status, IBV_WC_SUCCESS);
    assert_int_equal(cq->wr_id, 900 + op);
    assert_int_equal(ibv_wc_read_opcode(cq),
                     op == WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
    assert_int_equal(ibv_wc_read_byte_len(cq), 24);
    assert_int_equal(ibv_wc_read_qp_num(cq), d->b->qp_num);
    assert_int_equal(ibv_wc_read_sl(cq), 0);
    assert_int_equal(ibv_wc_read_wc_flags(cq), op == SEND_IMM || op == WRITE_IMM ? IBV_WC_WITH_IMM
                                               : op == SEND_INV                  ? IBV_WC_WITH_INV
                                                                                 : 0);
    if (op == SEND_IMM || op == WRITE_IMM)
        assert_int_equal(ibv_wc_read_imm_data(cq), op == SEND_IMM ? 0x77 : 0x78);
    if (op == SEND_INV)
        assert_int_equal(ibv_wc_read_invalidated_rkey(cq), key);
    assert_int_equal(ibv_wc_read_completion_ts(cq), d->p.now_ps / PS_PER_NS);
    ibv_end_poll(cq);
}

/* A window over the first 100 bytes of side 1, which a SEND may close. */
static uint32_t window_open(struct duo *d, struct ibv_mr **mr, struct ibv_mw **mw)
{
    struct side *s = &d->p.s[1];
    struct ibv_send_wr bind = {.opcode = IBV_WR_BIND_MW};

    *mr = ibv_reg_mr(s->pd, s->buf, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    *mw = ibv_alloc_mw(s->pd, IBV_MW_TYPE_2);
    bind.bind_mw.mw = *mw;
    bind.bind_mw.rkey = ibv_inc_rkey((*mw)->rkey);
    bind.bind_mw.bind_info =
        (struct ibv_mw_bind_info){*mr, (uintptr_t)s->buf, 100, IBV_ACCESS_REMOTE_WRITE};
    assert_int_equal(post_send(d->b, bind), 0);
    pair_settle(&d->p);
    return bind.bind_mw.rkey;
}

static void one_builder(int op)
{
    static uint8_t before[8192];
    struct side *from, *to;
    struct duo d;
    struct ibv_mr *mr = NULL;
    struct ibv_mw *mw = NULL;
    struct ibv_sge r;
    uint64_t old;
    uint32_t key;

    duo_open(&d, IBV_QPT_RC, ops_rc);
    from = &d.p.s[0], to = &d.p.s[1];
    d.p.now_ps = 777 * PS_PER_NS;
    memcpy(before, to->buf, sizeof(before));
    memcpy(&old, to->buf + 64, 8);
    r = sge_at(to, RECV_AT, 100);
    if (does[op].gets)
        assert_int_equal(post_recv(d.b, 900 + (uint64_t)op, &r, 1), 0);
    key = op == SEND_INV ? window_open(&d, &mr, &mw) : to->mr->rkey;
    ibv_wr_start(d.x);
    d.x->wr_id = 40 + (uint64_t)op;
    d.x->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE; /* which data decides, not the flag */
    build(&d, op, key, (uintptr_t)to->buf + 64, old);
    if (op != WORD)
        ibv_wr_set_sge(d.x, from->mr->lkey, (uintptr_t)from->buf + 100,
                       op == SWAP || op == ADD ? 8 : 24);
    assert_int_equal(ibv_wr_complete(d.x), 0);
    pair_settle(&d.p);
    completes(d.cq[0], 40 + (uint64_t)op, does[op].opcode);
    arrived(&d, op, before, key);
    if (op == READ)
        assert_memory_equal(from->buf + 100, before + 64, 24);
    if (op == SWAP || op == ADD)
        assert_memory_equal(from->buf + 100, &old, 8);
    if (mw) {
        assert_int_equal(ibv_dealloc_mw(mw), 0);
        assert_int_equal(ibv_dereg_mr(mr), 0);
    }
    duo_close(&d);
}

static void each_builder_has_its_effect(void **state)
{
    (void)state;
    for (int op = 0; op < OPS; op++)
        one_builder(op);
}

/* ---- data ---- */

/* Side 1's receive after a SEND of n bytes. */
static void receives(struct duo *d, const uint8_t *what, unsigned n)
{
    struct ibv_poll_cq_attr none = {0};

    pair_settle(&d->p);
    assert_int_equal(ibv_start_poll(d->cq[1], &none), 0);
    assert_int_equal(d->cq[1]->status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_wc_read_byte_len(d->cq[1]), n);
    if (n)
        assert_memory_equal(d->p.s[1].buf + RECV_AT, what, n);
}

static void data_comes_in_pieces(void **state)
{
    static const struct {
        unsigned n, len[3];
        bool in_line;
        int rc;
    } rows[] = {
        {0, {0}, false, 0},
        {1, {10}, false, 0},
        {2, {10, 2000}, false, 0},
        {3, {1, 1, 1}, false, EINVAL}, /* the queue pair has two pieces */
        {0, {0}, true, 0},
        {1, {INLINE}, true, 0},
        {1, {INLINE + 1}, true, EINVAL},
        {3, {20, 0, INLINE - 20}, true, 0},
        {3, {20, 0, INLINE - 19}, true, EINVAL},
    };
    struct duo d;

    (void)state;
    duo_open(&d, IBV_QPT_RC, ops_rc);
    for (unsigned i = 0; i < LEN(rows); i++) {
        uint8_t want[4096];
        struct ibv_sge r = sge_at(&d.p.s[1], RECV_AT, 4096), sge[3];
        struct ibv_data_buf buf[3];
        unsigned total = 0;

        for (unsigned k = 0; k < rows[i].n; k++) {
            sge[k] = sge_at(&d.p.s[0], 3000 * k, rows[i].len[k]);
            buf[k] = (struct ibv_data_buf){d.p.s[0].buf + 3000 * k, rows[i].len[k]};
            memcpy(want + total, buf[k].addr, buf[k].length);
            total += rows[i].len[k];
        }
        if (!rows[i].rc)
            assert_int_equal(post_recv(d.b, 1, &r, 1), 0);
        ibv_wr_start(d.x);
        d.x->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_send(d.x);
        if (rows[i].in_line)
            ibv_wr_set_inline_data_list(d.x, rows[i].n, buf);
        else
            ibv_wr_set_sge_list(d.x, rows[i].n, sge);
        assert_int_equal(ibv_wr_complete(d.x), rows[i].rc);
        pair_settle(&d.p);
        if (rows[i].rc) {
            none_completes(d.cq[0]);
            continue;
        }
        completes(d.cq[0], 0, IBV_WC_SEND);
        receives(&d, want, total);
    }
    duo_close(&d);
}

/* ---- batches ---- */

static void a_batch_keeps_its_first_error(void **state)
{
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    struct duo d;

    (void)state;
    duo_open(&d, IBV_QPT_RC, ops_rc);
    ibv_wr_start(d.x);
    assert_int_equal(ibv_wr_complete(d.x), 0); /* nothing is no mistake */
    ibv_wr_start(d.x);
    ibv_wr_set_sge(d.x, 0, 0, 0); /* of no request */
    for (unsigned i = 0; i <= DEPTH; i++)
        ibv_wr_send(d.x);
    assert_int_equal(ibv_wr_complete(d.x), EINVAL);
    for (unsigned n = DEPTH; n <= DEPTH + 1; n++) {
        ibv_wr_start(d.x);
        for (unsigned i = 0; i < n; i++) {
            d.x->wr_id = i, d.x->wr_flags = i + 1 < n ? 0 : IBV_SEND_SIGNALED;
            ibv_wr_rdma_write(d.x, d.p.s[1].mr->rkey, (uintptr_t)d.p.s[1].buf);
        }
        assert_int_equal(ibv_wr_complete(d.x), n > DEPTH ? ENOMEM : 0);
        pair_settle(&d.p);
        if (n == DEPTH)
            completes(d.cq[0], DEPTH - 1, IBV_WC_RDMA_WRITE);
        none_completes(d.cq[0]);
    }
    ibv_wr_start(d.x);
    d.x->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(d.x, d.p.s[1].mr->rkey, (uintptr_t)d.p.s[1].buf);
    ibv_wr_abort(d.x);
    assert_int_equal(ibv_wr_complete(d.x), 0); /* of what is left: nothing */
    pair_settle(&d.p);
    none_completes(d.cq[0]);
    assert_int_equal(ibv_modify_qp(d.a, &reset, IBV_QP_STATE), 0);
    ibv_wr_start(d.x);
    ibv_wr_send(d.x);
    assert_int_equal(ibv_wr_complete(d.x), EINVAL);
    duo_close(&d);
}

/* ---- datagrams ---- */

/* With the high bit set, the queue pair's own key is meant. */
static void datagrams_have_an_address_and_a_key(void **state)
{
    static const struct {
        uint32_t qkey;
        bool arrives;
    } rows[] = {{QKEY, true}, {QKEY + 1, false}, {0x80000001u, true}, {0x7fffffffu, false}};
    struct ibv_poll_cq_attr none = {0};
    struct ibv_ah_attr to = ah_to(IP_B);
    struct ibv_ah *ah;
    struct duo d;

    (void)state;
    duo_open(&d, IBV_QPT_UD, ops_ud);
    ah = ibv_create_ah(d.p.s[0].pd, &to);
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct ibv_sge r = sge_at(&d.p.s[1], RECV_AT, 200);

        assert_int_equal(post_recv(d.b, i, &r, 1), 0);
        ibv_wr_start(d.x);
        d.x->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_send_imm(d.x, 0x99);
        ibv_wr_set_ud_addr(d.x, ah, d.b->qp_num, rows[i].qkey);
        ibv_wr_set_inline_data(d.x, d.p.s[0].buf, 30);
        assert_int_equal(ibv_wr_complete(d.x), 0);
        pair_settle(&d.p);
        completes(d.cq[0], 0, IBV_WC_SEND);
        assert_int_equal(ibv_start_poll(d.cq[1], &none), rows[i].arrives ? 0 : ENOENT);
        if (!rows[i].arrives)
            continue;
        assert_memory_equal(d.p.s[1].buf + RECV_AT + 40, d.p.s[0].buf, 30);
        assert_int_equal(ibv_wc_read_byte_len(d.cq[1]), 70); /* with the header */
        assert_int_equal(ibv_wc_read_src_qp(d.cq[1]), d.a->qp_num);
        assert_int_equal(ibv_wc_read_sl(d.cq[1]), 0xa); /* RoCE v2 over IPv4 */
        assert_int_equal(ibv_wc_read_wc_flags(d.cq[1]), IBV_WC_GRH | IBV_WC_WITH_IMM);
        assert_int_equal(ibv_wc_read_imm_data(d.cq[1]), 0x99);
    }
    ibv_wr_start(d.x);
    ibv_wr_send(d.x);
    ibv_wr_set_ud_addr(d.x, NULL, d.b->qp_num, QKEY);
    assert_int_equal(ibv_wr_complete(d.x), EINVAL);
    ibv_wr_start(d.x);
    ibv_wr_rdma_write(d.x, 0, 0);
    assert_int_equal(ibv_wr_complete(d.x), EOPNOTSUPP);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    duo_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_builder_has_its_effect),
        cmocka_unit_test(data_comes_in_pieces),
        cmocka_unit_test(a_batch_keeps_its_first_error),
        cmocka_unit_test(datagrams_have_an_address_and_a_key),
    };

    return cmocka_run_group_tests_name("hca/extended_ops", tests, NULL, NULL);
}
