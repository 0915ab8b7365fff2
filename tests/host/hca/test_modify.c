/* ibv_modify_qp: transitions, attribute masks (IBTA tables 91 to 94) and values. */
#include "tests/host/hca/pair.h"

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr i;

    assert_int_equal(ibv_query_qp(qp, &a, IBV_QP_STATE, &i), 0);
    return a.qp_state;
}

struct mask_row {
    enum ibv_qp_type type;
    enum ibv_qp_state from, to;
    int required, optional;
};
#define UC_RTR (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
static const struct mask_row masks[] = {
    {IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, MASK_INIT & ~IBV_QP_STATE, 0},
    {IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, MASK_RTR & ~IBV_QP_STATE,
     IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, MASK_RTS & ~IBV_QP_STATE,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_RTS, 0,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, MASK_INIT & ~IBV_QP_STATE, 0},
    {IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, UC_RTR, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    {IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    {IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_QKEY | IBV_QP_PKEY_INDEX},
    {IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
};

/* Takes a new queue pair to the row's first state, then tries the mask. */
static int try_mask(struct pair *p, const struct mask_row *row, int mask)
{
    struct ibv_qp *qp = make_qp(&p->s[0], row->type);
    struct ibv_qp_attr a = rc_attr(IP_B, 99);
    int rc;

    for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
        if (qp->state == row->from)
            break;
        if (masks[i].type != row->type || masks[i].from != qp->state)
            continue;
        a.qp_state = masks[i].to;
        assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | masks[i].required), 0);
    }
    assert_int_equal(qp->state, row->from);
    a.qp_state = row->to;
    a.cur_qp_state = row->from;
    rc = ibv_modify_qp(qp, &a, IBV_QP_STATE | mask);
    assert_int_equal(state_of(qp), rc ? row->from : row->to);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    return rc;
}

static void a_transition_takes_exactly_its_attributes(void **state)
{
    struct pair p;

    (void)state;
    pair_open(&p);
    for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
        const struct mask_row *row = &masks[i];

        assert_int_equal(try_mask(&p, row, row->required), 0);
        assert_int_equal(try_mask(&p, row, row->required | row->optional), 0);
        for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
            if (bit == IBV_QP_STATE || bit == IBV_QP_ALT_PATH || bit == IBV_QP_PATH_MIG_STATE ||
                bit == IBV_QP_CAP)
                continue;
            if (row->required & bit)
                assert_int_equal(try_mask(&p, row, row->required & ~bit), EINVAL);
            else if (!(row->optional & bit))
                assert_int_equal(try_mask(&p, row, row->required | bit), EINVAL);
        }
    }
    pair_close(&p);
}

static void transitions_that_do_not_exist_are_refused(void **state)
{
    struct pair p;
    struct ibv_qp *qp;
    struct ibv_qp_attr a = rc_attr(IP_B, 99);

    (void)state;
    pair_open(&p);
    qp = make_qp(&p.s[0], IBV_QPT_RC);
    a.qp_state = IBV_QPS_RTR;
    assert_int_equal(ibv_modify_qp(qp, &a, MASK_RTR), EINVAL);
    a.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(qp, &a, MASK_RTS), EINVAL);
    rc_connect(qp, IP_B, 99);
    a.qp_state = IBV_QPS_INIT;
    assert_int_equal(ibv_modify_qp(qp, &a, MASK_INIT), EINVAL);
    a.qp_state = IBV_QPS_ERR;
    assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
    a.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE), EINVAL);
    a.qp_state = IBV_QPS_RESET;
    assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    pair_close(&p);
}

static void impossible_values_are_refused(void **state)
{
    struct ibv_qp *qp;
    struct pair p;
    struct ibv_qp_attr a;

    (void)state;
    pair_open(&p);
    qp = make_qp(&p.s[0], IBV_QPT_RC);
#define TRY(mask, set)                                                                             \
    do {                                                                                           \
        a = rc_attr(IP_B, 99);                                                                     \
        a.qp_state = qp->state + 1;                                                                \
        set;                                                                                       \
        assert_int_equal(ibv_modify_qp(qp, &a, mask), EINVAL);                                     \
    } while (0)
    TRY(MASK_INIT, a.port_num = 2);
    TRY(MASK_INIT, a.pkey_index = 1);
    a = rc_attr(IP_B, 99);
    a.qp_state = IBV_QPS_INIT;
    assert_int_equal(ibv_modify_qp(qp, &a, MASK_INIT), 0);
    TRY(MASK_RTR, a.path_mtu = 6);
    TRY(MASK_RTR, a.path_mtu = 0);
    TRY(MASK_RTR, a.dest_qp_num = 1 << 24);
    TRY(MASK_RTR, a.ah_attr.is_global = 0);
    TRY(MASK_RTR, a.ah_attr.grh.sgid_index = 3);
    TRY(MASK_RTR, a.max_dest_rd_atomic = 17);
    TRY(MASK_RTR, a.min_rnr_timer = 32);
    a.qp_state = IBV_QPS_RTR;
    a = rc_attr(IP_B, 99), a.qp_state = IBV_QPS_RTR;
    assert_int_equal(ibv_modify_qp(qp, &a, MASK_RTR), 0);
    TRY(MASK_RTS, a.timeout = 32);
    TRY(MASK_RTS, a.retry_cnt = 8);
    TRY(MASK_RTS, a.rnr_retry = 8);
    TRY(MASK_RTS, a.max_rd_atomic = 17);
#undef TRY
    assert_int_equal(ibv_destroy_qp(qp), 0);
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transition_takes_exactly_its_attributes),
        cmocka_unit_test(transitions_that_do_not_exist_are_refused),
        cmocka_unit_test(impossible_values_are_refused),
    };

    return cmocka_run_group_tests_name("hca/modify", tests, NULL, NULL);
}
