/* SPDX-License-Identifier: BSD-3-Clause */
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
    {IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_SQD, 0,
     IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
         IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ACCESS_FLAGS |
         IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_ERR, 0, 0},
    {IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RESET, 0, 0},
    {IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_ERR, 0, 0},
    {IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, MASK_INIT & ~IBV_QP_STATE, 0},
    {IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, UC_RTR, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    {IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    {IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    {IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    {IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_QKEY | IBV_QP_PKEY_INDEX},
    {IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_ERR, 0, 0},
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
    TRY(MASK_RTR, a.ah_attr.grh.dgid = gid_of(0xe8000001)); /* a group has no connection */
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

static void the_largest_values_are_taken(void **state)
{
    struct ibv_qp *qp;
    struct pair p;
    struct ibv_qp_attr a = rc_attr(IP_B, 0xffffff);

    (void)state;
    pair_open(&p);
    qp = make_qp(&p.s[0], IBV_QPT_RC);
    a.path_mtu = IBV_MTU_4096;
    a.min_rnr_timer = a.timeout = 31;
    a.retry_cnt = a.rnr_retry = 7;
    a.max_rd_atomic = a.max_dest_rd_atomic = 16;
    a.qp_state = IBV_QPS_INIT;
    assert_int_equal(ibv_modify_qp(qp, &a, MASK_INIT), 0);
    a.qp_state = IBV_QPS_RTR;
    assert_int_equal(ibv_modify_qp(qp, &a, MASK_RTR), 0);
    a.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(qp, &a, MASK_RTS), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    pair_close(&p);
}

/* Every pair of states of every transport: a transition without a row in the specification's table
 * is EINVAL and changes nothing, whatever its attributes. */
static void every_transition_that_is_not_in_the_table_is_refused(void **state)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
    static const uint32_t to_from[] = {
        /* bit s: may be reached from state s */
        [IBV_QPS_RESET] = 0x7f,
        [IBV_QPS_INIT] = 1 << IBV_QPS_RESET | 1 << IBV_QPS_INIT,
        [IBV_QPS_RTR] = 1 << IBV_QPS_INIT,
        [IBV_QPS_RTS] = 1 << IBV_QPS_RTR | 1 << IBV_QPS_RTS | 1 << IBV_QPS_SQD,
        [IBV_QPS_SQD] = 1 << IBV_QPS_RTS | 1 << IBV_QPS_SQD,
        [IBV_QPS_SQE] = 0,
        [IBV_QPS_ERR] = 0x7e, /* as in Linux: a queue pair in RESET cannot fail */
    };
    static const enum ibv_qp_state way[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD};
    struct pair p;

    (void)state;
    pair_open(&p);
    for (unsigned t = 0; t < 3; t++)
        for (unsigned from = IBV_QPS_RESET; from <= IBV_QPS_ERR; from++)
            for (unsigned to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++) {
                struct ibv_qp *qp = make_qp(&p.s[0], types[t]);
                struct ibv_qp_attr a = rc_attr(IP_B, 99);
                bool reached = from != IBV_QPS_SQE;

                a.qkey = 5;
                for (unsigned i = 0; i < 4 && reached && qp->state != from; i++)
                    for (size_t m = 0; m < sizeof(masks) / sizeof(masks[0]); m++)
                        if (masks[m].type == types[t] && masks[m].from == qp->state &&
                            masks[m].to == way[i]) {
                            a.qp_state = way[i];
                            assert_int_equal(
                                ibv_modify_qp(qp, &a, IBV_QP_STATE | masks[m].required), 0);
                            break;
                        }
                if (from == IBV_QPS_SQD || from == IBV_QPS_ERR) {
                    a.qp_state = from;
                    assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
                }
                if (reached) {
                    bool ok = to_from[to] >> from & 1;
                    int mask = IBV_QP_STATE;

                    for (size_t m = 0; m < sizeof(masks) / sizeof(masks[0]); m++)
                        if (masks[m].type == types[t] && masks[m].from == from && masks[m].to == to)
                            mask |= masks[m].required;
                    a.qp_state = to;
                    assert_int_equal(ibv_modify_qp(qp, &a, mask), ok ? 0 : EINVAL);
                    assert_int_equal(state_of(qp), ok ? to : from);
                    if (!ok) {
                        assert_int_equal(ibv_modify_qp(qp, &a, MASK_RTR), EINVAL);
                        assert_int_equal(ibv_modify_qp(qp, &a, MASK_RTS), EINVAL);
                        assert_int_equal(state_of(qp), from);
                    }
                }
                assert_int_equal(ibv_destroy_qp(qp), 0);
            }
    pair_close(&p);
}

/* Rights can be taken away as well as given. */
static void rights_that_are_taken_away_are_gone(void **state)
{
    struct ibv_qp_attr none = {.qp_access_flags = 0};
    struct ibv_sge s;
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    struct ibv_qp *a, *b;
    struct pair p;

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    assert_int_equal(ibv_modify_qp(b, &none, IBV_QP_ACCESS_FLAGS), 0);
    s = sge_at(&p.s[0], 0, 10);
    wr.wr.rdma.remote_addr = (uintptr_t)p.s[1].buf, wr.wr.rdma.rkey = p.s[1].mr->rkey;
    assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

/* A drained queue pair accepts another peer's address and other timers, and reports that it is
 * drained only on request. */
static void a_drained_queue_is_changed_and_goes_on(void **state)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_async_event ev;
    struct ibv_qp_init_attr ia;
    struct ibv_qp_attr at = {.qp_state = IBV_QPS_SQD};
    struct ibv_qp *a, *b;
    struct pair p;

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    assert_int_equal(ibv_modify_qp(a, &at, IBV_QP_STATE), 0);
    assert_int_equal(ibv_get_async_event(p.s[0].ctx, &ev), -1); /* no event was requested */
    wr.wr.rdma.remote_addr = (uintptr_t)p.s[1].buf, wr.wr.rdma.rkey = p.s[1].mr->rkey;
    assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    no_wc(p.s[0].cq);
    at.timeout = 17, at.retry_cnt = 5, at.max_rd_atomic = 2;
    at.ah_attr = ah_to(IP_B);
    assert_int_equal(ibv_modify_qp(a, &at,
                                   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_AV |
                                       IBV_QP_MAX_QP_RD_ATOMIC),
                     0);
    at.path_mtu = IBV_MTU_256;
    assert_int_equal(ibv_modify_qp(a, &at, IBV_QP_STATE | IBV_QP_PATH_MTU), EINVAL);
    at.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(a, &at, IBV_QP_STATE), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_query_qp(a, &at, IBV_QP_TIMEOUT, &ia), 0);
    assert_int_equal(at.timeout, 17);
    at = (struct ibv_qp_attr){.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    assert_int_equal(ibv_modify_qp(a, &at, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
    assert_int_equal(ibv_get_async_event(p.s[0].ctx, &ev), 0);
    assert_int_equal(ev.event_type, IBV_EVENT_SQ_DRAINED);
    ibv_ack_async_event(&ev);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

/* The transition out of SQE, which a datagram queue pair enters after a local error. */
static void a_send_queue_in_error_is_repaired(void **state)
{
    struct ibv_ah_attr to_b = ah_to(IP_B);
    struct ibv_qp_attr at = {.qp_state = IBV_QPS_RTS};
    struct ibv_sge s;
    struct ibv_send_wr wr = {
        .sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_qp *a;
    struct pair p;

    (void)state;
    pair_open(&p);
    a = make_qp(&p.s[0], IBV_QPT_UD);
    ud_ready(a, 5);
    wr.wr.ud.ah = ibv_create_ah(p.s[0].pd, &to_b);
    s = sge_at(&p.s[0], 0, 100);
    s.lkey ^= 0x10000;
    assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_LOC_PROT_ERR);
    assert_int_equal(state_of(a), IBV_QPS_SQE);
    s.lkey ^= 0x10000;
    assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(ibv_modify_qp(a, &at, IBV_QP_STATE), 0);
    assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_destroy_ah(wr.wr.ud.ah), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    pair_close(&p);
}

static bool nobody(void *ctx, uint32_t ip)
{
    (void)ctx;
    return ip != IP_A && ip != IP_B;
}

/* A destination that no port of the fabric has, by either GID, leads nowhere: neither RTR nor an
 * address handle; groups and ports of the fabric are as ever. */
static void a_foreign_gid_is_unreachable(void **state)
{
    static const struct {
        uint32_t ip;
        bool v6, ah_only;
        int rc;
    } rows[] = {
        {IP_B, false, false, 0},
        {IP_B, true, false, 0},
        {IP_A, false, false, 0},
        {0x0a090909, false, false, EHOSTUNREACH},
        {0x0a090909, true, false, EHOSTUNREACH},
        {0x08080808, false, false, EHOSTUNREACH},
        {0xe0000009, false, true, 0},
    };
    const struct hca_driver drv = {.nowhere = nobody};
    struct pair p;

    (void)state;
    pair_open_driven(&p, &drv);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_qp *qp = make_qp(&p.s[0], IBV_QPT_RC);
        struct ibv_qp_attr a = rc_attr(0, 99);
        struct ibv_ah *ah;

        a.ah_attr = rows[i].v6 ? ah6_to(rows[i].ip) : ah_to(rows[i].ip);
        a.qp_state = IBV_QPS_INIT;
        assert_int_equal(ibv_modify_qp(qp, &a, MASK_INIT), 0);
        a.qp_state = IBV_QPS_RTR;
        assert_int_equal(ibv_modify_qp(qp, &a, MASK_RTR), rows[i].ah_only ? EINVAL : rows[i].rc);
        errno = 0;
        ah = ibv_create_ah(p.s[0].pd, &a.ah_attr);
        assert_int_equal(ah ? 0 : errno, rows[i].rc);
        if (ah)
            assert_int_equal(ibv_destroy_ah(ah), 0);
        assert_int_equal(ibv_destroy_qp(qp), 0);
    }
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_foreign_gid_is_unreachable),
        cmocka_unit_test(a_transition_takes_exactly_its_attributes),
        cmocka_unit_test(transitions_that_do_not_exist_are_refused),
        cmocka_unit_test(impossible_values_are_refused),
        cmocka_unit_test(the_largest_values_are_taken),
        cmocka_unit_test(every_transition_that_is_not_in_the_table_is_refused),
        cmocka_unit_test(rights_that_are_taken_away_are_gone),
        cmocka_unit_test(a_drained_queue_is_changed_and_goes_on),
        cmocka_unit_test(a_send_queue_in_error_is_repaired),
    };

    return cmocka_run_group_tests_name("hca/modify", tests, NULL, NULL);
}
