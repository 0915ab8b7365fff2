/* SPDX-License-Identifier: BSD-3-Clause */
/* On-demand regions: memory that comes after it is registered, and the prefetch of it. */
#include "tests/host/hca/memory/pages.h"

/* ---- on-demand regions ---- */

static void write_to(struct pair *p, struct ibv_qp *a, const void *at, uint32_t rkey,
                     enum ibv_wc_status want)
{
    struct ibv_sge s = sge_at(&p->s[0], 0, 3000);
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)at, rkey}};

    assert_int_equal(post_send(a, wr), 0);
    pair_run(p, PS_PER_S);
    assert_int_equal(one_wc(p->s[0].cq).status, want);
}

#define ON_DEMAND (LW | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND)

/* Access to memory that was mapped after registration works; access to memory that was not ends
 * with an error. */
static void on_demand_regions_are_of_memory_that_may_come(void **state)
{
    static const bool implicit[] = {false, true};

    (void)state;
    process_fault_init();
    for (unsigned i = 0; i < 2; i++) {
        char *m = map_pages(PROT_NONE);
        struct ibv_qp *a, *b;
        struct ibv_mr *mr;
        struct pair p;

        open_real(&p);
        rc_pair(&p, &a, &b);
        munmap(m + PAGE, PAGE);
        mr = implicit[i] ? ibv_reg_mr(p.s[1].pd, NULL, SIZE_MAX, ON_DEMAND)
                         : ibv_reg_mr(p.s[1].pd, m, PAGES * PAGE, ON_DEMAND);
        assert_non_null(mr);
        assert_int_equal(mprotect(m, PAGE, PROT_READ | PROT_WRITE), 0);
        fill((uint8_t *)p.s[0].buf, PAGE, 77);
        write_to(&p, a, m + 100, mr->rkey, IBV_WC_SUCCESS);
        assert_memory_equal(m + 100, p.s[0].buf, 3000);
        if (!implicit[i]) { /* its bounds hold */
            struct ibv_sge g = {(uintptr_t)m + PAGES * PAGE - 1, 2, mr->lkey};

            assert_int_equal(ibv_advise_mr(p.s[1].pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &g, 1),
                             EFAULT);
        }
        write_to(&p, a, implicit[i] ? NULL : m + PAGE - 1000, mr->rkey, IBV_WC_REM_ACCESS_ERR);
        drop_async_events(&p.s[1]);
        assert_int_equal(ibv_dereg_mr(mr), 0);
        assert_int_equal(ibv_destroy_qp(a), 0);
        assert_int_equal(ibv_destroy_qp(b), 0);
        munmap(m, PAGES * PAGE);
        pair_close(&p);
    }
}

/* Addresses without memory, some of which (x86-64: not canonical) fault without an address. */
static void addresses_that_cannot_be_end_with_an_error(void **state)
{
    /* The last one's top byte is no part of the address on Arm. */
    static const uint64_t nowhere[] = {1ul << 47, 0x1234567800000000, 0xffff800000000000,
                                       -(uint64_t)PAGE, 0x1200000000000000 + PAGE};
    static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                             IBV_WR_ATOMIC_FETCH_AND_ADD,
                                             IBV_WR_ATOMIC_CMP_AND_SWP};

    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* its memcpy() reads the shadow of such an address, which has none */
#endif
    process_fault_init();
    for (unsigned i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]) * 2 * 4; i++) {
        enum ibv_wr_opcode op = ops[i % 4];
        bool word = op >= IBV_WR_ATOMIC_CMP_AND_SWP, all = i / 4 % 2;
        uint64_t at = nowhere[i / 8];
        struct ibv_send_wr wr = {.num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED};
        struct ibv_qp *a, *b;
        struct ibv_mr *mr;
        struct ibv_sge s;
        struct pair p;

        open_real(&p);
        rc_pair(&p, &a, &b);
        mr = ibv_reg_mr(p.s[1].pd, all ? NULL : (void *)(uintptr_t)at, all ? SIZE_MAX : PAGE - 1,
                        (int)(ON_DEMAND | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC));
        assert_non_null(mr);
        s = sge_at(&p.s[0], 0, word ? 8 : 3000);
        wr.sg_list = &s;
        if (word)
            wr.wr.atomic.remote_addr = at, wr.wr.atomic.rkey = mr->rkey;
        else
            wr.wr.rdma.remote_addr = at, wr.wr.rdma.rkey = mr->rkey;
        assert_int_equal(post_send(a, wr), 0);
        pair_run(&p, PS_PER_S);
        assert_int_equal(one_wc(p.s[0].cq).status,
                         op == IBV_WR_RDMA_READ ? IBV_WC_REM_OP_ERR : IBV_WC_REM_ACCESS_ERR);
        drop_async_events(&p.s[1]);
        assert_int_equal(ibv_dereg_mr(mr), 0);
        assert_int_equal(ibv_destroy_qp(a), 0);
        assert_int_equal(ibv_destroy_qp(b), 0);
        pair_close(&p);
    }
}

static void on_demand_paging_is_reported_and_prefetched(void **state)
{
    char *m = map_pages(PROT_READ | PROT_WRITE);
    struct ibv_device_attr_ex d;
    struct ibv_mr *mr, *pinned, *ro;
    unsigned char vec[PAGES];
    struct ibv_sge g[2];
    struct pair p;

    (void)state;
    open_real(&p);
    assert_int_equal(ibv_query_device_ex(p.s[0].ctx, NULL, &d), 0);
    assert_int_equal(d.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
    assert_int_equal(d.odp_caps.per_transport_caps.rc_odp_caps, 0x3f);
    mr = ibv_reg_mr(p.s[0].pd, m, PAGES * PAGE, ON_DEMAND);
    pinned = ibv_reg_mr(p.s[0].pd, m, PAGES * PAGE, LW);
    ro = ibv_reg_mr(p.s[0].pd, m, PAGES * PAGE, IBV_ACCESS_ON_DEMAND);
    assert_true(mr && pinned && ro);
    g[0] = (struct ibv_sge){(uintptr_t)m + PAGE, 2 * PAGE, mr->lkey};
    g[1] = (struct ibv_sge){(uintptr_t)m + 4 * PAGE + 7, 1, mr->lkey};
    munmap(m + 5 * PAGE, PAGE);
#define ADVISE(advice, flags, n)                                                                   \
    ibv_advise_mr(p.s[0].pd, IBV_ADVISE_MR_ADVICE_##advice, flags, g, n)
    assert_int_equal(ADVISE(PREFETCH_NO_FAULT, IBV_ADVISE_MR_FLAG_FLUSH, 2), 0);
    assert_int_equal(mincore(m, 5 * PAGE, vec), 0);
    assert_int_equal(vec[1] & 1, 0);
    assert_int_equal(ADVISE(PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, 2), 0);
    assert_int_equal(mincore(m, 5 * PAGE, vec), 0);
    assert_int_equal((vec[1] & vec[2] & vec[4] & 1) << 1 | (vec[3] & 1), 2);
    assert_int_equal(ADVISE(PREFETCH, 1u << 5, 2), EINVAL);
    assert_int_equal(ADVISE(PREFETCH, 0, 0), EINVAL);
    g[1].addr = (uintptr_t)m + 5 * PAGE; /* in the region, and not mapped */
    assert_int_equal(ADVISE(PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, 2), EFAULT);
    assert_int_equal(ADVISE(PREFETCH, 0, 2), 0); /* the caller does not wait for the result */
    g[1].lkey = pinned->lkey;
    assert_int_equal(ADVISE(PREFETCH, 0, 2), EINVAL);
    g[1].lkey = ro->lkey;
    assert_int_equal(ADVISE(PREFETCH_WRITE, 0, 2), EPERM);
    g[1].lkey = ro->lkey + 1;
    assert_int_equal(ADVISE(PREFETCH, 0, 2), EINVAL);
    assert_int_equal(ibv_advise_mr(p.s[0].pd, (enum ibv_advise_mr_advice)9, 0, g, 1), EOPNOTSUPP);
#undef ADVISE
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dereg_mr(pinned), 0);
    assert_int_equal(ibv_dereg_mr(ro), 0);
    /* an implicit region must be on-demand */
    assert_null(ibv_reg_mr(p.s[0].pd, NULL, SIZE_MAX, LW));
    assert_int_equal(errno, EINVAL);
    munmap(m, PAGES * PAGE);
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_demand_regions_are_of_memory_that_may_come),
        cmocka_unit_test(addresses_that_cannot_be_end_with_an_error),
        cmocka_unit_test(on_demand_paging_is_reported_and_prefetched),
    };

    return cmocka_run_group_tests_name("hca/odp", tests, NULL, NULL);
}
