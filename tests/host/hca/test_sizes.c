/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sizes that ibv_query_device and ibv_query_port report are exact: a queue, list, region or
 * message of the reported size works, and one of the next size is refused with EINVAL.
 */
#include "tests/host/hca/pair.h"

#include <sys/mman.h>

/* Two connected queue pairs of these capabilities. false, and errno: refused. */
static bool sized_pair(struct pair *p, struct ibv_qp_cap cap, struct ibv_cq *cq[2],
                       struct ibv_qp *qp[2])
{
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_qp_init_attr a = {
            .send_cq = cq[i], .recv_cq = cq[i], .qp_type = IBV_QPT_RC, .cap = cap};

        qp[i] = ibv_create_qp(p->s[i].pd, &a);
        if (!qp[i])
            return false; /* the first one: nothing to destroy */
    }
    rc_connect(qp[0], IP_B, qp[1]->qp_num);
    rc_connect(qp[1], IP_A, qp[0]->qp_num);
    return true;
}

static void drop_pair(struct ibv_qp *qp[2])
{
    assert_int_equal(ibv_destroy_qp(qp[0]), 0);
    assert_int_equal(ibv_destroy_qp(qp[1]), 0);
}

/* Posts all requests before any frame moves; then all of them arrive. */
static int try_qp_wr(struct pair *p, uint64_t n)
{
    struct ibv_cq *cq[2];
    struct ibv_qp *qp[2];
    struct ibv_wc wc[64];
    uint64_t done = 0;
    int k, rc = 0;

    for (unsigned i = 0; i < 2; i++)
        cq[i] = ibv_create_cq(p->s[i].ctx, (int)n, NULL, NULL, 0);
    if (!sized_pair(p, (struct ibv_qp_cap){(uint32_t)n, (uint32_t)n, 1, 1, 0}, cq, qp)) {
        rc = errno;
        goto out;
    }
    for (uint64_t i = 0; i <= n; i++) {
        assert_int_equal(post_recv(qp[1], i, NULL, 0), i < n ? 0 : ENOMEM);
        assert_int_equal(post_send(qp[0], (struct ibv_send_wr){.opcode = IBV_WR_SEND}),
                         i < n ? 0 : ENOMEM);
    }
    pair_settle(p);
    while ((k = ibv_poll_cq(cq[1], 64, wc)) > 0)
        for (int i = 0; i < k; i++) {
            assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
            assert_int_equal(wc[i].wr_id, done++);
        }
    assert_int_equal(done, n);
    drop_pair(qp);
out:
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(ibv_destroy_cq(cq[i]), 0);
    return rc;
}

/* A list of n pieces each way: SEND into as many, then READ back into as many. */
static int try_sge(struct pair *p, uint64_t n)
{
    struct ibv_cq *cq[2] = {p->s[0].cq, p->s[1].cq};
    struct ibv_sge s[64], r[64];
    struct ibv_send_wr wr = {.sg_list = s, .num_sge = (int)n, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_qp *qp[2];

    if (!sized_pair(p, (struct ibv_qp_cap){2, 2, (uint32_t)n, (uint32_t)n, 0}, cq, qp))
        return errno;
    fill(p->s[0].buf, BYTES, 1);
    memset(p->s[1].buf, 0, BYTES);
    for (unsigned i = 0; i < n + 1; i++)
        s[i] = sge_at(&p->s[0], i * 300, 300), r[i] = sge_at(&p->s[1], i * 300, 300);
    assert_int_equal(post_recv(qp[1], 1, r, (int)n + 1), EINVAL);
    assert_int_equal(post_recv(qp[1], 1, r, (int)n), 0);
    wr.opcode = IBV_WR_SEND;
    assert_int_equal(post_send(qp[0], wr), 0);
    pair_settle(p);
    assert_int_equal(one_wc(cq[0]).status, IBV_WC_SUCCESS);
    assert_int_equal(one_wc(cq[1]).byte_len, n * 300);
    assert_memory_equal(p->s[0].buf, p->s[1].buf, n * 300);
    fill(p->s[1].buf, BYTES, 9);
    wr.opcode = IBV_WR_RDMA_READ;
    wr.wr.rdma.remote_addr = (uintptr_t)p->s[1].buf, wr.wr.rdma.rkey = p->s[1].mr->rkey;
    assert_int_equal(post_send(qp[0], wr), 0);
    pair_settle(p);
    assert_int_equal(one_wc(cq[0]).status, IBV_WC_SUCCESS);
    assert_memory_equal(p->s[0].buf, p->s[1].buf, n * 300);
    wr.num_sge = (int)n + 1;
    assert_int_equal(post_send(qp[0], wr), EINVAL);
    drop_pair(qp);
    return 0;
}

/* A queue that holds n completions; the one after them is an overrun. As many queue pairs as it takes
 * to have so many requests that are not polled. */
static int try_cqe(struct pair *p, uint64_t n)
{
    struct ibv_cq *cq[2] = {ibv_create_cq(p->s[0].ctx, (int)n, NULL, NULL, 0), p->s[1].cq};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_async_event ev;
    struct ibv_qp *(*qp)[2];
    struct ibv_qp *last[2];
    struct ibv_device_attr dev;
    struct ibv_wc wc;
    uint32_t depth;

    if (!cq[0])
        return errno;
    assert_true((uint64_t)cq[0]->cqe == n);
    assert_int_equal(ibv_query_device(p->s[0].ctx, &dev), 0);
    depth = (uint32_t)dev.max_qp_wr;
    qp = calloc(n / depth + 1, sizeof(*qp));
    assert_non_null(qp);
    wr.wr.rdma.remote_addr = (uintptr_t)p->s[1].buf, wr.wr.rdma.rkey = p->s[1].mr->rkey;
    for (wr.wr_id = 0; wr.wr_id < n; wr.wr_id++) {
        if (wr.wr_id % depth == 0)
            assert_true(
                sized_pair(p, (struct ibv_qp_cap){depth, 1, 1, 1, 0}, cq, qp[wr.wr_id / depth]));
        assert_int_equal(post_send(qp[wr.wr_id / depth][0], wr), 0);
        if (wr.wr_id % 64 == 63 || wr.wr_id == n - 1)
            pair_settle(p);
    }
    assert_int_equal(ibv_get_async_event(p->s[0].ctx, &ev), -1);
    assert_true(sized_pair(p, (struct ibv_qp_cap){1, 1, 1, 1, 0}, cq, last));
    assert_int_equal(post_send(last[0], wr), 0);
    pair_settle(p);
    assert_int_equal(ibv_get_async_event(p->s[0].ctx, &ev), 0);
    assert_int_equal(ev.event_type, IBV_EVENT_CQ_ERR);
    ibv_ack_async_event(&ev);
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(ibv_poll_cq(cq[0], 1, &wc), 1);
        assert_int_equal(wc.wr_id, i);
    }
    drop_pair(last);
    for (uint64_t i = 0; i < n; i += depth)
        drop_pair(qp[i / depth]);
    free(qp);
    assert_int_equal(ibv_destroy_cq(cq[0]), 0);
    return 0;
}

static int try_srq(struct pair *p, struct ibv_srq_attr attr)
{
    struct ibv_srq_init_attr a = {.attr = attr};
    struct ibv_srq *srq = ibv_create_srq(p->s[0].pd, &a);
    struct ibv_sge s[64];
    struct ibv_recv_wr wr = {.sg_list = s, .num_sge = (int)attr.max_sge}, *bad;

    if (!srq)
        return errno;
    for (unsigned i = 0; i < 64; i++)
        s[i] = sge_at(&p->s[0], i, 1);
    wr.num_sge = (int)attr.max_sge + 1;
    assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
    wr.num_sge = (int)attr.max_sge;
    for (unsigned i = 0; i <= attr.max_wr; i++)
        assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), i < attr.max_wr ? 0 : ENOMEM);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    return 0;
}

static int try_srq_wr(struct pair *p, uint64_t n)
{
    return try_srq(p, (struct ibv_srq_attr){.max_wr = (uint32_t)n, .max_sge = 1});
}

static int try_srq_sge(struct pair *p, uint64_t n)
{
    return try_srq(p, (struct ibv_srq_attr){.max_wr = 4, .max_sge = (uint32_t)n});
}

/* The last byte of so large a region is reached, and the one behind it is not. */
static int try_mr_size(struct pair *p, uint64_t n)
{
    struct ibv_cq *cq[2] = {p->s[0].cq, p->s[1].cq};
    uint8_t *m =
        mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct ibv_sge s = sge_at(&p->s[0], 0, 1);
    struct ibv_send_wr wr = {
        .sg_list = &s, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED, .opcode = IBV_WR_RDMA_WRITE};
    struct ibv_qp *qp[2];
    struct ibv_mr *mr;
    int rc = 0;

    if (m == MAP_FAILED) {
        print_message("skipped: no address space for %zu bytes\n", (size_t)n);
        skip();
    }
    mr = ibv_reg_mr(p->s[1].pd, m, n, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!mr) {
        rc = errno;
        goto out;
    }
    assert_true(sized_pair(p, (struct ibv_qp_cap){2, 2, 1, 1, 0}, cq, qp));
    p->s[0].buf[0] = 0x77;
    wr.wr.rdma.rkey = mr->rkey;
    wr.wr.rdma.remote_addr = (uintptr_t)m + n - 1;
    assert_int_equal(post_send(qp[0], wr), 0);
    pair_settle(p);
    assert_int_equal(one_wc(cq[0]).status, IBV_WC_SUCCESS);
    assert_int_equal(m[n - 1], 0x77);
    wr.wr.rdma.remote_addr++;
    assert_int_equal(post_send(qp[0], wr), 0);
    pair_settle(p);
    assert_int_equal(one_wc(cq[0]).status, IBV_WC_REM_ACCESS_ERR);
    drop_pair(qp);
    assert_int_equal(ibv_dereg_mr(mr), 0);
out:
    munmap(m, n);
    return rc;
}

/* As many READs in flight as reported, on both ends; more wait. */
static int try_rd_atom(struct pair *p, uint64_t n)
{
    struct ibv_qp *qp[2] = {make_qp(&p->s[0], IBV_QPT_RC), make_qp(&p->s[1], IBV_QPT_RC)};
    struct ibv_sge s = sge_at(&p->s[0], 0, 3000);
    struct ibv_send_wr wr = {
        .sg_list = &s, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED, .opcode = IBV_WR_RDMA_READ};
    struct ibv_wc wc[64];
    int rc = 0;

    for (unsigned i = 0; i < 2 && !rc; i++) {
        struct ibv_qp_attr a = rc_attr(i ? IP_A : IP_B, qp[!i]->qp_num);

        a.max_dest_rd_atomic = a.max_rd_atomic = (uint8_t)n;
        a.qp_state = IBV_QPS_INIT;
        assert_int_equal(ibv_modify_qp(qp[i], &a, MASK_INIT), 0);
        a.qp_state = IBV_QPS_RTR;
        rc = ibv_modify_qp(qp[i], &a, MASK_RTR);
        a.max_dest_rd_atomic = 1;
        if (rc) /* and so is the other end's limit */
            assert_int_equal(ibv_modify_qp(qp[i], &a, MASK_RTR), 0);
        a.qp_state = IBV_QPS_RTS;
        assert_int_equal(ibv_modify_qp(qp[i], &a, MASK_RTS), rc);
    }
    if (!rc) {
        wr.wr.rdma.remote_addr = (uintptr_t)p->s[1].buf, wr.wr.rdma.rkey = p->s[1].mr->rkey;
        for (unsigned i = 0; i < 2 * n; i++)
            assert_int_equal(post_send(qp[0], wr), 0);
        pair_settle(p);
        assert_int_equal(ibv_poll_cq(p->s[0].cq, 64, wc), 2 * n);
        for (unsigned i = 0; i < 2 * n; i++)
            assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
    }
    drop_pair(qp);
    return rc;
}

struct how_large {
    const char *name;
    size_t field;
    bool wide; /* 64 bits */
    int (*try)(struct pair *p, uint64_t n);
};
#define SIZE(x, fn)                                                                                \
    {                                                                                              \
#x, offsetof(struct ibv_device_attr, x),                                                   \
            sizeof(((struct ibv_device_attr *)0)->x) == sizeof(uint64_t), fn                       \
    }
static const struct how_large how_large[] = {
    SIZE(max_qp_wr, try_qp_wr),
    SIZE(max_sge, try_sge),
    SIZE(max_sge_rd, try_sge),
    SIZE(max_cqe, try_cqe),
    SIZE(max_srq_wr, try_srq_wr),
    SIZE(max_srq_sge, try_srq_sge),
    SIZE(max_mr_size, try_mr_size),
    SIZE(max_qp_rd_atom, try_rd_atom),
    SIZE(max_qp_init_rd_atom, try_rd_atom),
};

static void as_large_as_reported_and_not_one_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(how_large) / sizeof(how_large[0]); i++) {
        const struct how_large *row = &how_large[i];
        struct ibv_device_attr d;
        const char *field;
        struct pair p;
        uint64_t max;

        pair_open(&p);
        assert_int_equal(ibv_query_device(p.s[0].ctx, &d), 0);
        field = (const char *)&d + row->field;
        max = row->wide ? *(const uint64_t *)field : *(const uint32_t *)field;
        print_message("%s = %zu\n", row->name, (size_t)max);
        assert_int_equal(row->try(&p, max), 0);
        assert_int_equal(row->try(&p, max + 1), EINVAL);
        pair_close(&p);
    }
}

/* ---- messages ---- */

/* Regions without memory behind them carry lengths only, so that 1 GiB costs packets and no
 * time. */
static void a_message_as_long_as_reported(void **state)
{
    static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
    struct ibv_port_attr port;
    struct ibv_mr *mr[2];
    struct ibv_qp *a, *b;
    struct pair p;

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    assert_int_equal(ibv_query_port(p.s[0].ctx, 1, &port), 0);
    print_message("max_msg_sz = %u\n", port.max_msg_sz);
    for (unsigned i = 0; i < 2; i++) {
        mr[i] = ibv_reg_mr(p.s[i].pd, (void *)0x100000, (size_t)port.max_msg_sz + 1, 7);
        assert_non_null(mr[i]);
        assert_int_equal(hca_mr_unback(mr[i]), 0);
    }
    for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        struct ibv_sge s = {0x100000, port.max_msg_sz, mr[0]->lkey},
                       r = {0x100000, port.max_msg_sz, mr[1]->lkey};
        struct ibv_send_wr wr = {.sg_list = &s,
                                 .num_sge = 1,
                                 .opcode = ops[i],
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {0x100000, mr[1]->rkey}};

        if (ops[i] == IBV_WR_SEND)
            assert_int_equal(post_recv(b, 1, &r, 1), 0);
        assert_int_equal(post_send(a, wr), 0);
        pair_settle(&p);
        assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_SUCCESS);
        if (ops[i] == IBV_WR_SEND)
            assert_int_equal(one_wc(p.s[1].cq).byte_len, port.max_msg_sz);
        s.length++;
        assert_int_equal(post_send(a, wr), EINVAL);
    }
    assert_int_equal(ibv_dereg_mr(mr[0]), 0);
    assert_int_equal(ibv_dereg_mr(mr[1]), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

/* No field reports the limit of inline data: create_qp enforces it. */
static void inline_data_up_to_what_create_accepts(void **state)
{
    struct pair p;
    struct ibv_cq *cq[2];
    struct ibv_qp *qp[2];
    struct ibv_sge s = {0}, r;
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE};

    (void)state;
    pair_open(&p);
    cq[0] = p.s[0].cq, cq[1] = p.s[1].cq;
    assert_false(sized_pair(&p, (struct ibv_qp_cap){1, 1, 1, 1, 257}, cq, qp));
    assert_int_equal(errno, EINVAL);
    assert_true(sized_pair(&p, (struct ibv_qp_cap){1, 1, 1, 1, 256}, cq, qp));
    fill(p.s[0].buf, 300, 5);
    s = (struct ibv_sge){(uintptr_t)p.s[0].buf, 257, 0}, r = sge_at(&p.s[1], 0, 300);
    assert_int_equal(post_recv(qp[1], 1, &r, 1), 0);
    assert_int_equal(post_send(qp[0], wr), EINVAL);
    s.length = 256;
    assert_int_equal(post_send(qp[0], wr), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(cq[0]).status, IBV_WC_SUCCESS);
    assert_int_equal(one_wc(cq[1]).byte_len, 256);
    assert_memory_equal(p.s[0].buf, p.s[1].buf, 256);
    drop_pair(qp);
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_large_as_reported_and_not_one_more),
        cmocka_unit_test(a_message_as_long_as_reported),
        cmocka_unit_test(inline_data_up_to_what_create_accepts),
    };

    return cmocka_run_group_tests_name("hca/sizes", tests, NULL, NULL);
}
