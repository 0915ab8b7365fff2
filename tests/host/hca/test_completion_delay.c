/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive completions that the program sees hca_cfg.notice after the message's arrival. */
#include "host/hca/hca_priv.h"
#include "tests/host/hca/pair.h"

#define GPU_PS (5 * PS_PER_US)

/* One of two receives has its message, whose completion is still delayed. */
static void one_on_its_way(struct pair *p, struct ibv_qp **a, struct ibv_qp **b)
{
    struct ibv_sge to, from;

    pair_open_with(p, NULL, GPU_PS);
    to = sge_at(&p->s[1], 0, 64), from = sge_at(&p->s[0], 0, 64);
    rc_pair(p, a, b);
    for (uint64_t id = 1; id <= 2; id++)
        assert_int_equal(post_recv(*b, id, &to, 1), 0);
    assert_int_equal(post_send(*a, (struct ibv_send_wr){.wr_id = 7,
                                                        .sg_list = &from,
                                                        .num_sge = 1,
                                                        .opcode = IBV_WR_SEND,
                                                        .send_flags = IBV_SEND_SIGNALED}),
                     0);
    pair_run(p, GPU_PS / 2);
    assert_int_equal(one_wc(p->s[0].cq).wr_id, 7);
    no_wc(p->s[1].cq);
}

static void errors_do_not_overtake_messages(void **state)
{
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    struct ibv_wc wc[3] = {0};
    struct ibv_qp *a, *b;
    struct pair p;

    (void)state;
    one_on_its_way(&p, &a, &b);
    assert_int_equal(ibv_modify_qp(b, &error, IBV_QP_STATE), 0);
    pair_settle(&p);
    no_wc(p.s[1].cq);
    pair_run(&p, 2 * GPU_PS);
    assert_int_equal(ibv_poll_cq(p.s[1].cq, 3, wc), 2);
    assert_int_equal(wc[0].wr_id, 1);
    assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
    assert_int_equal(wc[1].wr_id, 2);
    assert_int_equal(wc[1].status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

static void what_is_on_its_way_goes_with_its_queue_pair(void **state)
{
    struct ibv_qp *a, *b;
    struct pair p;

    (void)state;
    one_on_its_way(&p, &a, &b);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_run(&p, 2 * GPU_PS);
    no_wc(p.s[1].cq);
    assert_int_equal(ibv_destroy_qp(a), 0);
    pair_close(&p);
}

/* A long message, and behind it a short one on the same queue pair and one on another. With a
 * solicited event all of them are of a long operation. */
static void three_messages(unsigned flags)
{
    struct ibv_qp *a, *b, *c, *d;
    struct ibv_sge to, from;
    struct ibv_wc wc[4];
    struct pair p;

    pair_open_with(&p, NULL, GPU_PS);
    for (unsigned i = 0; i < 2; i++) {
        p.s[i].h->cfg.notice.step_ps = 5 * PS_PER_US;
        p.s[i].h->cfg.notice.rate_bps = 400000000000ull;
        p.s[i].h->cfg.notice.ll =
            (struct fab_short){PS_PER_US, 8000000000ull}; /* 1 us and 1 ns a byte */
    }
    rc_pair(&p, &a, &b);
    rc_pair(&p, &c, &d);
    to = sge_at(&p.s[1], 0, 8192);
    for (uint64_t id = 1; id <= 2; id++)
        assert_int_equal(post_recv(b, id, &to, 1), 0);
    assert_int_equal(post_recv(d, 3, &to, 1), 0);
    for (unsigned i = 0; i < 3; i++) {
        from = sge_at(&p.s[0], 0, i ? 8 : 8192);
        assert_int_equal(post_send(i == 2 ? c : a, (struct ibv_send_wr){.wr_id = 7 + i,
                                                                        .sg_list = &from,
                                                                        .num_sge = 1,
                                                                        .send_flags = flags,
                                                                        .opcode = IBV_WR_SEND}),
                         0);
    }
    pair_run(&p, 7 * PS_PER_US);
    if (!flags) {
        assert_int_equal(ibv_poll_cq(p.s[1].cq, 4, wc), 1);
        assert_int_equal(wc[0].wr_id, 3);
    }
    pair_run(&p, 2 * PS_PER_US);
    no_wc(p.s[1].cq);
    pair_run(&p, (flags ? 12 : 5) * PS_PER_US);
    assert_int_equal(ibv_poll_cq(p.s[1].cq, 4, wc), flags ? 3 : 2);
    assert_int_equal(wc[0].wr_id, flags ? 3 : 1); /* it arrives first */
    assert_int_equal(wc[1].wr_id, flags ? 1 : 2);
    assert_int_equal(ibv_destroy_qp(a) | ibv_destroy_qp(b), 0);
    assert_int_equal(ibv_destroy_qp(c) | ibv_destroy_qp(d), 0);
    pair_close(&p);
}

static void a_short_message_overtakes_others_but_not_its_own(void **state)
{
    (void)state;
    three_messages(0);
}

static void messages_of_a_long_operation_have_its_step(void **state)
{
    (void)state;
    three_messages(IBV_SEND_SOLICITED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_do_not_overtake_messages),
        cmocka_unit_test(a_short_message_overtakes_others_but_not_its_own),
        cmocka_unit_test(messages_of_a_long_operation_have_its_step),
        cmocka_unit_test(what_is_on_its_way_goes_with_its_queue_pair),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
