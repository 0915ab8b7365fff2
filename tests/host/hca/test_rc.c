/* SPDX-License-Identifier: BSD-3-Clause */
/* Connected queue pairs through the verbs calls. */
#include "tests/host/hca/pair.h"

/* Every operation, with payloads of every shape, writes the right memory and completes on the right
 * sides. */
struct row {
    enum ibv_wr_opcode op;
    uint32_t len;
    int n_sge;
    bool inl;
};
static const struct row rows[] = {
    {IBV_WR_SEND, 0, 0, false},
    {IBV_WR_SEND, 1, 1, false},
    {IBV_WR_SEND, 1024, 2, false},
    {IBV_WR_SEND, 1025, 3, false},
    {IBV_WR_SEND, 100000, 4, false},
    {IBV_WR_SEND, 128, 2, true},
    {IBV_WR_SEND_WITH_IMM, 0, 0, false},
    {IBV_WR_SEND_WITH_IMM, 5000, 2, false},
    {IBV_WR_SEND_WITH_IMM, 77, 1, true},
    {IBV_WR_RDMA_WRITE, 1, 1, false},
    {IBV_WR_RDMA_WRITE, 65536, 4, false},
    {IBV_WR_RDMA_WRITE, 100, 4, true},
    {IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, false},
    {IBV_WR_RDMA_WRITE_WITH_IMM, 3000, 1, false},
    {IBV_WR_RDMA_READ, 1, 1, false},
    {IBV_WR_RDMA_READ, 200000, 4, false},
};

static enum ibv_wc_opcode send_opcode(enum ibv_wr_opcode op)
{
    return op == IBV_WR_RDMA_READ                                        ? IBV_WC_RDMA_READ
           : op == IBV_WR_RDMA_WRITE || op == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RDMA_WRITE
                                                                         : IBV_WC_SEND;
}

static void run_row(struct pair *p, struct ibv_qp *a, struct ibv_qp *b, const struct row *r)
{
    struct side *sa = &p->s[0], *sb = &p->s[1];
    bool read = r->op == IBV_WR_RDMA_READ, write = send_opcode(r->op) == IBV_WC_RDMA_WRITE;
    bool imm = r->op == IBV_WR_SEND_WITH_IMM || r->op == IBV_WR_RDMA_WRITE_WITH_IMM;
    bool recv = !read && r->op != IBV_WR_RDMA_WRITE;
    struct ibv_sge list[4], rlist[2] = {sge_at(sb, 500000, 1000), sge_at(sb, 501000, 400000)};
    struct ibv_send_wr wr = {.wr_id = 11,
                             .sg_list = list,
                             .num_sge = r->n_sge,
                             .opcode = r->op,
                             .send_flags = IBV_SEND_SIGNALED | (r->inl ? IBV_SEND_INLINE : 0),
                             .imm_data = 0x12345678,
                             .wr.rdma = {(uintptr_t)sb->buf + 500000, sb->mr->rkey}};
    uint32_t left = r->len, off = 100;
    struct ibv_wc wc;

    memset(sa->buf, 0, BYTES);
    memset(sb->buf, 0, BYTES);
    fill((read ? sb->buf + 500000 : sa->buf + 100), r->len, r->len + r->op);
    for (int i = 0; i < r->n_sge; i++) {
        uint32_t n = i == r->n_sge - 1 ? left : left / 3;

        list[i] = sge_at(sa, off, n);
        off += n, left -= n;
    }
    if (recv)
        assert_int_equal(post_recv(b, 22, rlist, 2), 0);
    assert_int_equal(post_send(a, wr), 0);
    if (r->inl)
        memset(sa->buf, 0xee, BYTES); /* inline data was taken at the post */
    pair_settle(p);

    wc = one_wc(sa->cq);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.wr_id, 11);
    assert_int_equal(wc.opcode, send_opcode(r->op));
    assert_int_equal(wc.qp_num, a->qp_num);
    if (recv) {
        wc = one_wc(sb->cq);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.wr_id, 22);
        assert_int_equal(wc.opcode, write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
        assert_int_equal(wc.byte_len, r->len);
        assert_int_equal(wc.wc_flags & IBV_WC_WITH_IMM, imm ? IBV_WC_WITH_IMM : 0);
        if (imm)
            assert_int_equal(wc.imm_data, 0x12345678);
        assert_int_equal(wc.qp_num, b->qp_num);
    } else {
        no_wc(sb->cq);
    }
    if (r->inl)
        fill(sa->buf + 100, r->len, r->len + r->op);
    if (r->len)
        assert_memory_equal(sa->buf + 100, sb->buf + 500000, r->len);
    assert_int_equal((read ? sa->buf + 100 : sb->buf + 500000)[r->len], r->inl && read ? 0xee : 0);
}

/* Over IPv4, and between link-local addresses. */
static void rc_moves_every_shape_of_payload(void **state)
{
    struct ibv_qp *a, *b, *a6, *b6;
    struct pair p;

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    a6 = make_qp(&p.s[0], IBV_QPT_RC), b6 = make_qp(&p.s[1], IBV_QPT_RC);
    rc_connect_by(a6, ah6_to(IP_B), b6->qp_num);
    rc_connect_by(b6, ah6_to(IP_A), a6->qp_num);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        run_row(&p, a6, b6, &rows[i]);
    assert_int_equal(ibv_destroy_qp(a6), 0);
    assert_int_equal(ibv_destroy_qp(b6), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        run_row(&p, a, b, &rows[i]);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

/* A queue pair accepts frames from its peer's address only, which is either IPv4 or IPv6. */
static void peers_by_different_addresses_do_not_hear_each_other(void **state)
{
    struct ibv_qp *a, *b;
    struct ibv_sge s, r;
    struct pair p;

    (void)state;
    pair_open(&p);
    a = make_qp(&p.s[0], IBV_QPT_RC), b = make_qp(&p.s[1], IBV_QPT_RC);
    rc_connect_by(a, ah6_to(IP_B), b->qp_num);
    rc_connect(b, IP_A, a->qp_num);
    s = sge_at(&p.s[0], 0, 10), r = sge_at(&p.s[1], 0, 10);
    assert_int_equal(post_recv(b, 1, &r, 1), 0);
    assert_int_equal(post_send(a, (struct ibv_send_wr){.sg_list = &s,
                                                       .num_sge = 1,
                                                       .opcode = IBV_WR_SEND,
                                                       .send_flags = IBV_SEND_SIGNALED}),
                     0);
    pair_run(&p, 100 * PS_PER_S);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_RETRY_EXC_ERR);
    no_wc(p.s[1].cq);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

static void atomics_return_the_old_value(void **state)
{
    struct ibv_qp *a, *b;
    struct pair p;
    struct side *sa = &p.s[0], *sb = &p.s[1];
    struct ibv_sge s;
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};
    uint64_t *there, *here;

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    there = (uint64_t *)sb->buf, here = (uint64_t *)sa->buf;
    *there = 40;
    s = sge_at(sa, 0, 8);
    wr.wr.atomic.remote_addr = (uintptr_t)there;
    wr.wr.atomic.rkey = sb->mr->rkey;
    wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr.wr.atomic.compare_add = 2;
    assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(sa->cq).opcode, IBV_WC_FETCH_ADD);
    assert_int_equal(*here, 40);
    assert_int_equal(*there, 42);
    wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    wr.wr.atomic.compare_add = 42;
    wr.wr.atomic.swap = 99;
    assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(sa->cq).opcode, IBV_WC_COMP_SWAP);
    assert_int_equal(*here, 42);
    assert_int_equal(*there, 99);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

/* Completions of sends come in order, and only of signaled ones. */
static void only_signaled_sends_complete_in_order(void **state)
{
    struct ibv_qp *a, *b;
    struct pair p;
    struct ibv_wc wc[40];

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    for (unsigned i = 0; i < 30; i++) {
        struct ibv_sge s = sge_at(&p.s[0], i * 4096, 3000);
        struct ibv_send_wr wr = {.wr_id = i,
                                 .sg_list = &s,
                                 .num_sge = 1,
                                 .opcode = i & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                                 .send_flags = i % 3 ? 0 : IBV_SEND_SIGNALED,
                                 .wr.rdma = {(uintptr_t)p.s[1].buf + i * 4096, p.s[1].mr->rkey}};

        assert_int_equal(post_send(a, wr), 0);
    }
    pair_settle(&p);
    assert_int_equal(ibv_poll_cq(p.s[0].cq, 40, wc), 10);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(wc[i].wr_id, 3 * i);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

static void sig_all_completes_every_send(void **state)
{
    struct ibv_qp *a, *b;
    struct pair p;
    struct ibv_wc wc[4];
    struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_RC, .cap = {8, 8, 1, 1, 0}, .sq_sig_all = 1};

    (void)state;
    pair_open(&p);
    ia.send_cq = ia.recv_cq = p.s[0].cq;
    a = ibv_create_qp(p.s[0].pd, &ia);
    b = make_qp(&p.s[1], IBV_QPT_RC);
    rc_connect(a, IP_B, b->qp_num);
    rc_connect(b, IP_A, a->qp_num);
    for (unsigned i = 0; i < 3; i++) {
        struct ibv_send_wr wr = {.wr_id = i,
                                 .opcode = IBV_WR_RDMA_WRITE,
                                 .wr.rdma = {(uintptr_t)p.s[1].buf, p.s[1].mr->rkey}};

        assert_int_equal(post_send(a, wr), 0);
    }
    pair_settle(&p);
    assert_int_equal(ibv_poll_cq(p.s[0].cq, 4, wc), 3);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

/* A list stops at its first bad request, and the requests before it are posted. */
static void a_list_stops_at_its_first_bad_request(void **state)
{
    struct ibv_qp *a, *b;
    struct pair p;
    struct ibv_send_wr wr[3], *bad = NULL;
    struct ibv_recv_wr rw[2], *rbad = NULL;
    struct ibv_sge s[5];

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    for (unsigned i = 0; i < 5; i++)
        s[i] = sge_at(&p.s[0], 0, 8);
    for (unsigned i = 0; i < 3; i++)
        wr[i] = (struct ibv_send_wr){.wr_id = i,
                                     .next = i < 2 ? &wr[i + 1] : NULL,
                                     .sg_list = s,
                                     .num_sge = i == 1 ? 5 : 1,
                                     .opcode = IBV_WR_RDMA_WRITE,
                                     .send_flags = IBV_SEND_SIGNALED,
                                     .wr.rdma = {(uintptr_t)p.s[1].buf, p.s[1].mr->rkey}};
    assert_int_equal(ibv_post_send(a, wr, &bad), EINVAL);
    assert_ptr_equal(bad, &wr[1]);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[0].cq).wr_id, 0);
    for (unsigned i = 0; i < 2; i++)
        rw[i] = (struct ibv_recv_wr){
            .wr_id = i, .next = i ? NULL : &rw[1], .sg_list = s, .num_sge = i ? 5 : 1};
    assert_int_equal(ibv_post_recv(b, rw, &rbad), EINVAL);
    assert_ptr_equal(rbad, &rw[1]);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

/* Full queues and requests that the transport cannot carry are refused at the post. */
static void posts_that_cannot_be_are_refused(void **state)
{
    struct ibv_qp *a, *b, *u;
    struct pair p;
    struct ibv_sge s;
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    s = sge_at(&p.s[0], 0, 129);
    wr.send_flags = IBV_SEND_INLINE;
    assert_int_equal(post_send(a, wr), EINVAL); /* the queue pair was made for 128 bytes */
    wr.send_flags = 0;
    wr.opcode = IBV_WR_TSO;
    assert_int_equal(post_send(a, wr), EOPNOTSUPP);
    wr.opcode = IBV_WR_SEND;
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(post_send(a, wr), 0);
    assert_int_equal(post_send(a, wr), ENOMEM);
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(post_recv(b, i, &s, 1), 0);
    assert_int_equal(post_recv(b, 64, &s, 1), ENOMEM);
    u = make_qp(&p.s[0], IBV_QPT_UC);
    assert_int_equal(post_send(u, wr), EINVAL); /* in RESET */
    assert_int_equal(post_recv(u, 0, &s, 1), EINVAL);
    rc_connect(u, IP_B, 5);
    wr.opcode = IBV_WR_RDMA_READ;
    assert_int_equal(post_send(u, wr), EOPNOTSUPP);
    wr.opcode = IBV_WR_SEND_WITH_INV;
    assert_int_equal(post_send(u, wr), EOPNOTSUPP);
    assert_int_equal(ibv_destroy_qp(u), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

static bool drop_every_seventh(void *ctx, struct rte_mbuf *m)
{
    (void)m;
    return ++*(unsigned *)ctx % 7 == 0;
}

static void lost_frames_are_sent_again(void **state)
{
    unsigned n = 0;
    struct ibv_qp *a, *b;
    struct pair p;
    struct ibv_sge s, r;
    struct ibv_send_wr wr = {
        .sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    p.drop = drop_every_seventh, p.drop_ctx = &n;
    fill(p.s[0].buf, 300000, 5);
    s = sge_at(&p.s[0], 0, 300000), r = sge_at(&p.s[1], 0, 300000);
    assert_int_equal(post_recv(b, 1, &r, 1), 0);
    assert_int_equal(post_send(a, wr), 0);
    pair_run(&p, 100 * PS_PER_S);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_SUCCESS);
    assert_int_equal(one_wc(p.s[1].cq).byte_len, 300000);
    assert_memory_equal(p.s[0].buf, p.s[1].buf, 300000);
    p.drop = NULL;
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

/* Two queue pairs of one HCA exchange messages: frames to the HCA's own address loop back. */
static void an_hca_talks_to_itself(void **state)
{
    struct ibv_qp *a, *b;
    struct pair p;
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_sge s;

    (void)state;
    pair_open(&p);
    a = make_qp(&p.s[0], IBV_QPT_RC), b = make_qp(&p.s[0], IBV_QPT_RC);
    rc_connect(a, IP_A, b->qp_num);
    rc_connect(b, IP_A, a->qp_num);
    fill(p.s[0].buf, 1000, 1);
    s = sge_at(&p.s[0], 0, 1000);
    wr.sg_list = &s, wr.num_sge = 1;
    wr.wr.rdma.remote_addr = (uintptr_t)p.s[0].buf + 5000;
    wr.wr.rdma.rkey = p.s[0].mr->rkey;
    assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_SUCCESS);
    assert_memory_equal(p.s[0].buf, p.s[0].buf + 5000, 1000);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

static void unbacked_memory_carries_lengths_only(void **state)
{
    struct ibv_qp *a, *b;
    struct pair p;
    struct ibv_sge s;
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                             .send_flags = IBV_SEND_SIGNALED};

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    assert_int_equal(hca_mr_unback(p.s[0].mr), 0);
    assert_int_equal(hca_mr_unback(p.s[1].mr), 0);
    memset(p.s[0].buf, 0x55, 100000);
    s = sge_at(&p.s[0], 0, 100000);
    wr.wr.rdma.remote_addr = (uintptr_t)p.s[1].buf;
    wr.wr.rdma.rkey = p.s[1].mr->rkey;
    assert_int_equal(post_recv(b, 1, NULL, 0), 0);
    assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_SUCCESS);
    assert_int_equal(one_wc(p.s[1].cq).byte_len, 100000);
    assert_int_equal(p.s[1].buf[0], 0);
    assert_int_equal(p.s[1].buf[99999], 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

/* Regions keep their keys while the table grows. */
static void keys_that_come_back_have_memory_again(void **state)
{
    struct ibv_qp *a, *b;
    struct ibv_mr *mr, *more[40];
    struct pair p;
    struct ibv_sge s;
    struct ibv_send_wr wr = {
        .sg_list = &s, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    for (unsigned i = 0; i < 100; i++) { /* every free entry of the table */
        mr = ibv_reg_mr(p.s[1].pd, p.s[1].buf, 1000, 0);
        assert_int_equal(hca_mr_unback(mr), 0);
        assert_int_equal(ibv_dereg_mr(mr), 0);
    }
    mr = ibv_reg_mr(p.s[1].pd, p.s[1].buf, 1000, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    for (unsigned i = 0; i < 40; i++) {
        more[i] = ibv_reg_mr(p.s[1].pd, p.s[1].buf, 1, 0);
        assert_non_null(more[i]);
    }
    fill(p.s[0].buf, 1000, 4);
    s = sge_at(&p.s[0], 0, 1000);
    wr.wr.rdma.remote_addr = (uintptr_t)p.s[1].buf;
    wr.wr.rdma.rkey = mr->rkey;
    assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_SUCCESS);
    assert_memory_equal(p.s[0].buf, p.s[1].buf, 1000);
    for (unsigned i = 0; i < 40; i++)
        assert_int_equal(ibv_dereg_mr(more[i]), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

static void uc_writes_and_sends(void **state)
{
    struct ibv_qp *a, *b;
    struct pair p;
    struct ibv_sge s, r;
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND_WITH_IMM,
                             .imm_data = 5,
                             .send_flags = IBV_SEND_SIGNALED};

    (void)state;
    pair_open(&p);
    a = make_qp(&p.s[0], IBV_QPT_UC), b = make_qp(&p.s[1], IBV_QPT_UC);
    rc_connect(a, IP_B, b->qp_num);
    rc_connect(b, IP_A, a->qp_num);
    fill(p.s[0].buf, 10000, 5);
    s = sge_at(&p.s[0], 0, 10000), r = sge_at(&p.s[1], 0, 10000);
    assert_int_equal(post_recv(b, 1, &r, 1), 0);
    assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_SUCCESS);
    assert_int_equal(one_wc(p.s[1].cq).imm_data, 5);
    assert_memory_equal(p.s[0].buf, p.s[1].buf, 10000);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rc_moves_every_shape_of_payload),
        cmocka_unit_test(peers_by_different_addresses_do_not_hear_each_other),
        cmocka_unit_test(atomics_return_the_old_value),
        cmocka_unit_test(only_signaled_sends_complete_in_order),
        cmocka_unit_test(sig_all_completes_every_send),
        cmocka_unit_test(a_list_stops_at_its_first_bad_request),
        cmocka_unit_test(posts_that_cannot_be_are_refused),
        cmocka_unit_test(lost_frames_are_sent_again),
        cmocka_unit_test(an_hca_talks_to_itself),
        cmocka_unit_test(unbacked_memory_carries_lengths_only),
        cmocka_unit_test(keys_that_come_back_have_memory_again),
        cmocka_unit_test(uc_writes_and_sends),
    };

    return cmocka_run_group_tests_name("hca/rc", tests, NULL, NULL);
}
