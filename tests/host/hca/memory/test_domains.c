/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory, parent domains, resized receive queues. */
#include "tests/host/hca/pair.h"

#include "host/hca/hca_priv.h"

#include <fcntl.h>
#include <unistd.h>

#define LW  IBV_ACCESS_LOCAL_WRITE
#define ZB  IBV_ACCESS_ZERO_BASED
#define DMB 1024u

static struct ibv_device_attr_ex device(struct ibv_context *c)
{
    struct ibv_device_attr_ex a;

    assert_int_equal(ibv_query_device_ex(c, NULL, &a), 0);
    return a;
}

static void device_memory_is_as_large_as_reported(void **state)
{
    struct ibv_alloc_dm_attr a = {0};
    struct ibv_dm *dm, *rest;
    struct pair p;

    (void)state;
    pair_open(&p);
    a.length = device(p.s[0].ctx).max_dm_size;
    assert_true(a.length >= 4096);
    a.length++;
    assert_null(ibv_alloc_dm(p.s[0].ctx, &a));
    a.length = 0;
    assert_null(ibv_alloc_dm(p.s[0].ctx, &a));
    a = (struct ibv_alloc_dm_attr){.length = 64, .comp_mask = 1};
    assert_null(ibv_alloc_dm(p.s[0].ctx, &a));
    a = (struct ibv_alloc_dm_attr){.length = device(p.s[0].ctx).max_dm_size - 4096,
                                   .log_align_req = 12};
    dm = ibv_alloc_dm(p.s[0].ctx, &a);
    assert_non_null(dm);
    assert_null(ibv_alloc_dm(p.s[0].ctx, &a)); /* all of them together */
    assert_int_equal(errno, ENOMEM);
    a.length = 4096;
    rest = ibv_alloc_dm(p.s[0].ctx, &a);
    assert_non_null(rest);
    assert_int_equal(ibv_free_dm(dm), 0);
    assert_int_equal(ibv_free_dm(rest), 0);
    a.length = device(p.s[0].ctx).max_dm_size;
    assert_non_null(ibv_alloc_dm(p.s[0].ctx, &a)); /* goes with its context */
    pair_close(&p);
}

static void device_memory_is_copied_in_words(void **state)
{
    static const struct {
        uint64_t off;
        size_t len;
        int rc;
    } rows[] = {
        {0, DMB, 0},          {4, DMB - 4, 0},
        {DMB, 0, 0},          {DMB - 4, 4, 0},
        {1, 4, EINVAL},       {0, 3, EINVAL},
        {4, DMB, EINVAL},     {DMB + 4, 4, EINVAL},
        {0, DMB + 4, EINVAL}, {UINT64_MAX - 3, 8, EINVAL},
    };
    struct ibv_alloc_dm_attr a = {.length = DMB};
    uint8_t out[DMB + 8], in[DMB + 8];
    struct ibv_dm *dm;
    struct pair p;

    (void)state;
    pair_open(&p);
    dm = ibv_alloc_dm(p.s[0].ctx, &a);
    fill(out, sizeof(out), 3);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(ibv_memcpy_to_dm(dm, rows[i].off, out, rows[i].len), rows[i].rc);
        memset(in, 0, sizeof(in));
        assert_int_equal(ibv_memcpy_from_dm(in, dm, rows[i].off, rows[i].len), rows[i].rc);
        if (!rows[i].rc)
            assert_memory_equal(in, out, rows[i].len);
    }
    assert_int_equal(ibv_free_dm(dm), 0);
    pair_close(&p);
}

/* A peer writes and reads device memory by zero-based addresses. */
static void device_memory_is_registered_from_zero_on(void **state)
{
    struct ibv_alloc_dm_attr da = {.length = DMB};
    const unsigned all = LW | ZB | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    struct ibv_qp *a, *b;
    struct ibv_sge s;
    struct ibv_send_wr wr = {
        .sg_list = &s, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    uint8_t in[DMB];
    struct ibv_dm *dm;
    struct ibv_mr *mr;
    struct pair p;

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    dm = ibv_alloc_dm(p.s[1].ctx, &da);
    assert_null(ibv_reg_dm_mr(p.s[1].pd, dm, 0, DMB, LW)); /* not zero based */
    assert_int_equal(errno, EINVAL);
    assert_null(ibv_reg_dm_mr(p.s[1].pd, dm, 4, DMB, all));
    assert_null(ibv_reg_dm_mr(p.s[1].pd, dm, 2, 4, all));
    assert_null(ibv_reg_dm_mr(p.s[0].pd, dm, 0, DMB, all)); /* another context's */
    mr = ibv_reg_dm_mr(p.s[1].pd, dm, 256, 512, all);
    assert_non_null(mr);
    assert_null(mr->addr);
    assert_int_equal(mr->length, 512);
    assert_int_equal(ibv_free_dm(dm), EBUSY);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LW),
                     IBV_REREG_MR_ERR_INPUT);
    fill(p.s[0].buf, DMB, 9);
    s = sge_at(&p.s[0], 0, 500);
    wr.wr.rdma.rkey = mr->rkey, wr.wr.rdma.remote_addr = 12;
    assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_memcpy_from_dm(in, dm, 268, 500), 0);
    assert_memory_equal(in, p.s[0].buf, 500);
    s = sge_at(&p.s[0], 8192, 500);
    wr.opcode = IBV_WR_RDMA_READ;
    assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_SUCCESS);
    assert_memory_equal(p.s[0].buf + 8192, p.s[0].buf, 500);
    wr.wr.rdma.remote_addr = 13; /* a byte too far */
    assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_free_dm(dm), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

/* ---- parent domains ---- */

/* Refuses what a parent domain cannot be made of, then makes one of plain and a thread domain. */
static struct ibv_pd *make_parent(struct ibv_context *ctx, struct ibv_pd *plain, struct ibv_td **td)
{
    struct ibv_td_init_attr ta = {.comp_mask = 1};
    struct ibv_parent_domain_init_attr pa = {0};
    struct ibv_pd *parent;

    assert_null(ibv_alloc_td(ctx, &ta));
    ta.comp_mask = 0;
    *td = ibv_alloc_td(ctx, &ta);
    assert_non_null(*td);
    pa.td = *td;
    assert_null(ibv_alloc_parent_domain(ctx, &pa)); /* no protection domain */
    assert_int_equal(errno, EINVAL);
    pa.pd = plain, pa.comp_mask = 1u << 7;
    assert_null(ibv_alloc_parent_domain(ctx, &pa));
    pa.comp_mask = 0;
    pa.comp_mask |= 1u << 2; /* of rdma-core 65 */
    errno = 0;
    assert_null(ibv_alloc_parent_domain(ctx, &pa));
    assert_int_equal(errno, EOPNOTSUPP);
    pa.comp_mask &= ~(1u << 2);
    parent = ibv_alloc_parent_domain(ctx, &pa);
    assert_non_null(parent);
    assert_int_equal(ibv_dealloc_pd(plain), EBUSY);
    assert_int_equal(ibv_dealloc_td(*td), EBUSY);
    return parent;
}

static void a_parent_domain_is_its_protection_domain(void **state)
{
    struct ibv_cq_init_attr_ex ca = {.cqe = 16, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD};
    struct side *t;
    struct ibv_pd *parent, *plain;
    struct ibv_td *td;
    struct ibv_cq_ex *cq;
    struct ibv_qp *a, *b;
    struct ibv_mr *mr;
    struct ibv_sge s;
    struct ibv_send_wr wr = {
        .sg_list = &s, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    struct pair p;

    (void)state;
    pair_open(&p);
    t = &p.s[0];
    plain = ibv_alloc_pd(t->ctx);
    parent = make_parent(t->ctx, plain, &td);
    /* a queue pair of one uses a region of the other */
    mr = ibv_reg_mr(parent, t->buf, BYTES, LW);
    assert_non_null(mr);
    assert_ptr_equal(mr->pd, parent);
    ca.parent_domain = plain;
    assert_null(ibv_create_cq_ex(t->ctx, &ca));
    assert_int_equal(errno, EINVAL);
    ca.parent_domain = parent;
    cq = ibv_create_cq_ex(t->ctx, &ca);
    assert_non_null(cq);
    t->pd = plain;
    a = make_qp_on(t, IBV_QPT_RC, ibv_cq_ex_to_cq(cq), t->cq, NULL);
    b = make_qp(&p.s[1], IBV_QPT_RC);
    t->pd = t->mr->pd;
    rc_connect(a, IP_B, b->qp_num);
    rc_connect(b, IP_A, a->qp_num);
    s = (struct ibv_sge){(uintptr_t)t->buf, 4000, mr->lkey};
    wr.wr.rdma.remote_addr = (uintptr_t)p.s[1].buf, wr.wr.rdma.rkey = p.s[1].mr->rkey;
    assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(ibv_cq_ex_to_cq(cq)).status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(parent), 0);
    assert_int_equal(ibv_dealloc_td(td), 0);
    assert_int_equal(ibv_dealloc_pd(plain), 0);
    pair_close(&p);
}

/* ---- imports ---- */

/* One WRITE from a queue pair of pd, with the region of lkey, to the other side. */
static void write_once(struct pair *p, struct ibv_context *c, struct ibv_pd *pd, uint32_t lkey)
{
    struct ibv_sge s = {(uintptr_t)p->s[0].buf, 100, lkey};
    struct ibv_cq *cq = ibv_create_cq(c, 8, NULL, NULL, 0);
    struct side other = p->s[0];
    struct ibv_qp *a, *b;

    other.pd = pd;
    a = make_qp_on(&other, IBV_QPT_RC, cq, cq, NULL);
    b = make_qp(&p->s[1], IBV_QPT_RC);
    rc_connect(a, IP_B, b->qp_num);
    rc_connect(b, IP_A, a->qp_num);
    assert_int_equal(post_send(a,
                               (struct ibv_send_wr){
                                   .sg_list = &s,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {(uintptr_t)p->s[1].buf, p->s[1].mr->rkey},
                               }),
                     0);
    pair_settle(p);
    assert_int_equal(one_wc(cq).status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* Another context's names for the same objects, which stay when the first context is closed. */
static void imported_objects_are_the_same(void **state)
{
    struct ibv_alloc_dm_attr da = {.length = 64};
    uint32_t word = 0x01020304, back = 0;
    struct ibv_context *own, *c;
    struct ibv_dm *dm, *dm2;
    struct ibv_pd *pd, *pd2;
    struct ibv_mr *mr, *mr2;
    struct pair p;

    (void)state;
    pair_open(&p);
    own = ibv_open_device(hca_device(p.s[0].h));
    pd = ibv_alloc_pd(own);
    mr = ibv_reg_mr(pd, p.s[0].buf, BYTES, LW);
    dm = ibv_alloc_dm(own, &da);
    assert_true(pd && mr && dm);
    c = hca_import_ctx(hca_ctx_of(own), fcntl(own->cmd_fd, F_DUPFD_CLOEXEC, 0));
    assert_non_null(c);
    assert_null(ibv_import_pd(c, pd->handle + 100));
    assert_int_equal(errno, EINVAL);
    assert_null(ibv_import_pd(c, p.s[0].pd->handle)); /* of a third context */
    assert_null(ibv_import_dm(c, dm->handle + 1));
    pd2 = ibv_import_pd(c, pd->handle);
    assert_non_null(pd2);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_null(ibv_import_mr(pd2, mr->handle + 1));
    assert_null(ibv_import_mr(p.s[0].pd, mr->handle));
    mr2 = ibv_import_mr(pd2, mr->handle);
    assert_non_null(mr2);
    assert_int_equal(mr2->rkey, mr->rkey);
    assert_int_equal(ibv_dereg_mr(mr2), EINVAL);
    dm2 = ibv_import_dm(c, dm->handle);
    assert_non_null(dm2);
    assert_int_equal(ibv_memcpy_to_dm(dm, 4, &word, 4), 0);
    assert_int_equal(ibv_memcpy_from_dm(&back, dm2, 4, 4), 0);
    assert_int_equal(back, word);
    assert_int_equal(ibv_close_device(own), 0); /* its objects are still there */
    write_once(&p, c, pd2, mr2->lkey);
    ibv_unimport_mr(mr2);
    ibv_unimport_dm(dm2);
    ibv_unimport_pd(pd2);
    assert_int_equal(ibv_close_device(c), 0);
    assert_int_equal(hca_objects(p.s[0].h), 3); /* the pair's own */
    pair_close(&p);
}

/* Closing an import releases its references. */
static void a_closed_import_leaves_what_it_shared(void **state)
{
    struct ibv_alloc_dm_attr da = {.length = 64};
    struct ibv_context *c;
    struct ibv_dm *dm;
    struct pair p;

    (void)state;
    pair_open(&p);
    dm = ibv_alloc_dm(p.s[0].ctx, &da);
    c = hca_import_ctx(hca_ctx_of(p.s[0].ctx), fcntl(p.s[0].ctx->cmd_fd, F_DUPFD_CLOEXEC, 0));
    assert_non_null(ibv_import_pd(c, p.s[0].pd->handle));
    assert_non_null(ibv_import_dm(c, dm->handle));
    assert_int_equal(ibv_free_dm(dm), EBUSY);
    assert_int_equal(ibv_close_device(c), 0);
    assert_int_equal(ibv_free_dm(dm), 0);
    pair_close(&p);
}

/* ---- shared receive queues ---- */

static int resize(struct ibv_srq *srq, uint32_t max, uint32_t limit, int mask)
{
    struct ibv_srq_attr a = {.max_wr = max, .srq_limit = limit};

    return ibv_modify_srq(srq, &a, mask);
}

static int srq_post(struct side *s, struct ibv_srq *srq, uint64_t id)
{
    struct ibv_sge g = sge_at(s, (uint32_t)id * 16, 16);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &g, .num_sge = 1}, *bad;

    return ibv_post_srq_recv(srq, &wr, &bad);
}

/* A resize keeps posted receives in order, also across the ring's end, and keeps the limit. */
static void a_shared_receive_queue_is_resized(void **state)
{
    struct ibv_srq_init_attr sa = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq_attr q;
    struct ibv_sge s;
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND};
    struct ibv_qp *a, *b;
    struct ibv_srq *srq;
    struct ibv_wc wc[16];
    struct pair p;

    (void)state;
    pair_open(&p);
    assert_true(device(p.s[1].ctx).orig_attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
    srq = ibv_create_srq(p.s[1].pd, &sa);
    a = make_qp(&p.s[0], IBV_QPT_RC);
    b = make_qp_on(&p.s[1], IBV_QPT_RC, p.s[1].cq, p.s[1].cq, srq);
    rc_connect(a, IP_B, b->qp_num);
    rc_connect(b, IP_A, a->qp_num);
    s = sge_at(&p.s[0], 0, 16);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(srq_post(&p.s[1], srq, i), 0);
    assert_int_equal(srq_post(&p.s[1], srq, 4), ENOMEM);
    for (unsigned i = 0; i < 3; i++) /* moves the oldest entry to the middle of the ring */
        assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(ibv_poll_cq(p.s[1].cq, 16, wc), 3);
    for (uint64_t i = 4; i < 7; i++)
        assert_int_equal(srq_post(&p.s[1], srq, i), 0);
    assert_int_equal(resize(srq, 0, 0, IBV_SRQ_MAX_WR), EINVAL);
    assert_int_equal(resize(srq, 3, 0, IBV_SRQ_MAX_WR), EINVAL); /* four are posted */
    assert_int_equal(resize(srq, 1u << 30, 0, IBV_SRQ_MAX_WR), EINVAL);
    assert_int_equal(resize(srq, 8, 9, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
    assert_int_equal(ibv_query_srq(srq, &q), 0);
    assert_int_equal(q.max_wr, 4);
    assert_int_equal(resize(srq, 9, 2, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
    assert_int_equal(ibv_query_srq(srq, &q), 0);
    assert_int_equal(q.max_wr, 9);
    assert_int_equal(q.srq_limit, 2);
    for (uint64_t i = 7; i < 12; i++)
        assert_int_equal(srq_post(&p.s[1], srq, i), 0);
    assert_int_equal(srq_post(&p.s[1], srq, 12), ENOMEM);
    assert_int_equal(resize(srq, 20, 0, IBV_SRQ_MAX_WR), 0); /* again */
    assert_int_equal(srq_post(&p.s[1], srq, 12), 0);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(ibv_poll_cq(p.s[1].cq, 16, wc), 8);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(wc[i].wr_id, 3 + i);
    assert_int_equal(resize(srq, 1, 0, IBV_SRQ_MAX_WR), EINVAL); /* below its limit */
    assert_int_equal(resize(srq, 2, 0, IBV_SRQ_MAX_WR), 0);
    assert_int_equal(srq_post(&p.s[1], srq, 13), ENOMEM);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_memory_is_as_large_as_reported),
        cmocka_unit_test(device_memory_is_copied_in_words),
        cmocka_unit_test(device_memory_is_registered_from_zero_on),
        cmocka_unit_test(a_parent_domain_is_its_protection_domain),
        cmocka_unit_test(imported_objects_are_the_same),
        cmocka_unit_test(a_closed_import_leaves_what_it_shared),
        cmocka_unit_test(a_shared_receive_queue_is_resized),
    };

    return cmocka_run_group_tests_name("hca/domains", tests, NULL, NULL);
}
