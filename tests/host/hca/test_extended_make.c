/* SPDX-License-Identifier: BSD-3-Clause */
/* Which operations an extended queue pair of each transport has, and which extended objects are not made. */
#include "host/hca/hca_priv.h"
#include "tests/host/hca/pair.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static const uint64_t ops_ud = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
                      ops_uc = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                               IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                               IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW,
                      ops_rc = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                               IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                               IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
                               IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                               IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV |
                               IBV_QP_EX_WITH_ATOMIC_WRITE;

static struct ibv_qp_init_attr_ex init_of(struct pair *p, enum ibv_qp_type type, uint64_t ops)
{
    return (struct ibv_qp_init_attr_ex){.qp_type = type,
                                        .cap = {4, 4, 2, 2, 64},
                                        .send_cq = p->s[0].cq,
                                        .recv_cq = p->s[0].cq,
                                        .pd = p->s[0].pd,
                                        .comp_mask =
                                            IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                        .send_ops_flags = ops};
}

static void a_transport_has_its_operations(void **state)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
    const uint64_t has[] = {ops_rc, ops_uc, ops_ud};
    struct pair p;

    (void)state;
    pair_open(&p);
    for (unsigned t = 0; t < LEN(types); t++)
        for (unsigned bit = 0; bit < 64; bit++) {
            struct ibv_qp_init_attr_ex ia = init_of(&p, types[t], 1ull << bit);
            struct ibv_qp *qp;

            errno = 0;
            qp = ibv_create_qp_ex(p.s[0].ctx, &ia);
            assert_int_equal(qp != NULL, has[t] >> bit & 1);
            assert_int_equal(errno, qp ? 0 : EOPNOTSUPP);
            if (!qp)
                continue;
            assert_non_null(ibv_qp_to_qp_ex(qp));
            assert_int_equal(ibv_destroy_qp(qp), 0);
        }
    pair_close(&p);
}

static void queue_pairs_are_made_as_asked_or_not_at_all(void **state)
{
    static const struct {
        uint32_t comp_mask, create_flags;
        int err;
        bool ex;
    } qps[] = {
        {IBV_QP_INIT_ATTR_PD, 0, 0, false},
        {IBV_QP_INIT_ATTR_PD, 1, 0, false}, /* flags that the mask does not name are not read */
        {IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, 0, 0, true},
        {IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS, 0, 0, false},
        {IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS, 1, EOPNOTSUPP, false},
        {IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD, 0, EOPNOTSUPP, false},
        {IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, 0, EINVAL, false},
        {0, 0, EINVAL, false},
    };
    struct pair p;

    (void)state;
    pair_open(&p);
    for (unsigned i = 0; i < LEN(qps); i++) {
        struct ibv_qp_init_attr_ex ia = init_of(&p, IBV_QPT_RC, ops_rc);
        struct ibv_qp *qp;

        ia.comp_mask = qps[i].comp_mask, ia.create_flags = qps[i].create_flags;
        if (!(qps[i].comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
            ia.send_ops_flags = IBV_QP_EX_WITH_TSO; /* not read, either */
        errno = 0;
        qp = hca_create_qp_ex(p.s[0].ctx, &ia);
        assert_int_equal(errno, qps[i].err);
        assert_int_equal(qp != NULL, !qps[i].err);
        if (!qp)
            continue;
        assert_int_equal(ibv_qp_to_qp_ex(qp) != NULL, qps[i].ex);
        assert_int_equal(ibv_destroy_qp(qp), 0);
    }
    pair_close(&p);
}

static void completion_queues_are_made_as_asked_or_not_at_all(void **state)
{
    const struct {
        struct ibv_cq_init_attr_ex a;
        int err;
    } cqs[] = {
        {{.cqe = 4}, 0},
        {{.cqe = 4, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK}, EOPNOTSUPP},
        {{.cqe = 4, .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN}, 0},
        {{.cqe = 4,
          .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
          .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED},
         0},
        {{.cqe = 4,
          .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
          .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN},
         EOPNOTSUPP},
        {{.cqe = 4, .comp_mask = 1u << 30}, EOPNOTSUPP},
        {{.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD}, EINVAL},
        {{.cqe = 0}, EINVAL},
        {{.cqe = 4, .comp_vector = 1000}, EINVAL},
    };
    struct ibv_poll_cq_attr odd = {.comp_mask = 1};
    struct pair p;

    (void)state;
    pair_open(&p);
    for (unsigned i = 0; i < LEN(cqs); i++) {
        struct ibv_cq_init_attr_ex a = cqs[i].a;
        struct ibv_cq_ex *cq;

        errno = 0;
        cq = ibv_create_cq_ex(p.s[0].ctx, &a);
        assert_int_equal(errno, cqs[i].err);
        assert_int_equal(cq != NULL, !cqs[i].err);
        if (!cq)
            continue;
        assert_int_equal(ibv_start_poll(cq, &odd), EINVAL);
        assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
    }
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transport_has_its_operations),
        cmocka_unit_test(queue_pairs_are_made_as_asked_or_not_at_all),
        cmocka_unit_test(completion_queues_are_made_as_asked_or_not_at_all),
    };

    return cmocka_run_group_tests_name("hca/extended_make", tests, NULL, NULL);
}
