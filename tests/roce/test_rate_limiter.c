/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DCQCN of an rnic: who is notified of marks and how often, which notifications count, and how long a queue pair
 * waits for its rate. Reaction point and notification point are the two sides of one connection.
 */
#include "tests/roce/rc_fixture.h"

#include "roce/rate_limiter.h"

#define GAP     (4 * PS_PER_US)
#define CUT     (50 * PS_PER_US) /* cuts a queue pair once in so long */
#define CNP_TOS 0xc0
#define LINE    400000000000ull

static const struct dcqcn_cfg usual = {.on = true,
                                       .line_bps = LINE,
                                       .cnp_gap_ps = GAP,
                                       .cut_gap_ps = CUT,
                                       .alpha_ps = 1000 * PS_PER_US,
                                       .g = 1019,
                                       .time_reset_ps = 300 * PS_PER_US,
                                       .threshold = 1,
                                       .ai_bps = 5000000,
                                       .hai_bps = 50000000};

static struct fixture limited(bool on)
{
    struct pair_cfg cfg = {.window = 512, .ack_every = 16, .seed = 1, .dcqcn = usual};

    cfg.dcqcn.on = on;
    return fixture_make_cfg(&cfg, NULL, false);
}

static const struct roce_counters *counters(const struct fixture *e, unsigned side)
{
    return rnic_counters(e->p->s[side].r);
}

/* A frame that side 1's queue pair could have sent to side 0's. */
static void give(const struct fixture *e, uint8_t opcode, uint8_t tos, uint32_t dqpn,
                 int64_t now_ps)
{
    struct side *to = &e->p->s[0];
    struct rte_mbuf *m = frame_alloc(to->pool);
    struct roce_pkt k;

    assert_non_null(m);
    qp_packet(e->qp[1], &k);
    k.opcode = opcode;
    k.tos = tos;
    k.dqpn = dqpn;
    roce_build(m, &k);
    roce_seal(m, &k);
    assert_int_equal(to->ep.input(to->r, &m, 1, now_ps), 1);
}

static void notify(const struct fixture *e, int64_t now_ps)
{
    give(e, ROCE_OP_CNP_PACKET, CNP_TOS, qp_num(e->qp[0]), now_ps);
}

/* ---- notification point ---- */

/* What the queue of acknowledgements has, parsed; false: nothing. */
static bool next_ack(const struct fixture *e, struct roce_pkt *k, int64_t now_ps)
{
    struct side *s = &e->p->s[0];
    struct rte_mbuf *m;

    if (!s->ep.output(s->r, ENDPOINT_ACK, &m, 1, now_ps))
        return false;
    assert_int_equal(roce_parse(m, k), ROCE_OK);
    assert_true(roce_icrc_ok(m, k));
    rte_pktmbuf_free(m);
    return true;
}

static void marks_are_answered_once_in_a_gap(void **state)
{
    struct fixture e = limited(true);
    struct rate_limiter *p = e.qp[0]->limiter;
    const int64_t first = 100;
    struct roce_pkt k;

    (void)state;
    assert_non_null(p);
    assert_false(next_ack(&e, &k, first));
    rate_limiter_marked(p, first);
    assert_true(p->notify && p->notify_ps == first + GAP);
    rate_limiter_marked(p, first + 2 * GAP); /* the first is not sent yet */
    assert_int_equal(p->notify_ps, first + GAP);
    assert_true(next_ack(&e, &k, first));
    assert_int_equal(k.opcode, ROCE_OP_CNP_PACKET);
    assert_int_equal(k.tos, CNP_TOS);
    assert_int_equal(k.dqpn, qp_num(e.qp[1]));
    assert_int_equal(k.dst_ip, e.p->s[1].ip);
    assert_int_equal(k.len, 0);
    assert_false(p->notify);
    assert_int_equal(counters(&e, 0)->cnps_sent, 1);
    assert_int_equal(counters(&e, 0)->tx_packets, 1);
    rate_limiter_marked(p, first + GAP - 1);
    assert_false(p->notify || next_ack(&e, &k, first + GAP - 1));
    rate_limiter_marked(p, first + GAP);
    assert_true(p->notify && next_ack(&e, &k, first + GAP));
    assert_false(next_ack(&e, &k, first + GAP));
    assert_int_equal(counters(&e, 0)->cnps_sent, 2);
    fixture_free(&e);
}

static void a_notification_waits_for_a_frame(void **state)
{
    struct fixture e = limited(true);
    struct rate_limiter *p = e.qp[0]->limiter;
    struct rte_mbuf *all[4096], *m;
    struct roce_pkt k;
    unsigned n = 0;

    (void)state;
    while ((all[n] = frame_alloc(e.p->s[0].pool)))
        n++;
    rate_limiter_marked(p, 0);
    assert_int_equal(rate_limiter_build(p, &m), BUILT_NO_MBUF);
    assert_true(p->notify);
    assert_false(next_ack(&e, &k, 0));
    assert_int_equal(counters(&e, 0)->cnps_sent, 0);
    assert_int_equal(counters(&e, 0)->no_mbufs, 1);
    rte_pktmbuf_free_bulk(all, n);
    assert_false(next_ack(&e, &k, PS_PER_US - 1)); /* it tries again a microsecond later */
    assert_true(next_ack(&e, &k, PS_PER_US));
    fixture_free(&e);
}

/* Frames with data and the mark 3 of them. */
static void only_marked_data_is_answered(void **state)
{
    static const struct {
        unsigned marks; /* in 10,000 frames of side 0 */
        bool on, any;
    } rows[] = {{0, true, false}, {10000, true, true}, {10000, false, false}};

    (void)state;
    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        struct fixture e = limited(rows[i].on);
        struct wqe w = request(&e, WR_WRITE, 1, 20000);

        e.p->ce[0] = rows[i].marks;
        assert_int_equal(qp_post_send(e.qp[0], &w), 0);
        pair_run(e.p, pair_never, PS_PER_S);
        assert_memory_equal(e.buf[0], e.buf[1], 20000);
        assert_int_equal(counters(&e, 1)->ce_marks, rows[i].marks ? 20 : 0);
        assert_int_equal(counters(&e, 1)->cnps_sent > 0, rows[i].any);
        assert_int_equal(counters(&e, 0)->cnps_received, counters(&e, 1)->cnps_sent);
        assert_int_equal(counters(&e, 0)->rate_cuts > 0, rows[i].any);
        fixture_free(&e);
    }
}

/* ---- reaction point ---- */

static void notifications_of_the_peer_count(void **state)
{
    struct fixture e = limited(true);
    struct qp_attr a = {.state = QP_ERR};
    const struct roce_counters *c = counters(&e, 0);
    const struct dcqcn *rate = &e.qp[0]->limiter->rate;

    (void)state;
    assert_false(rate->limited);
    notify(&e, 0);
    assert_true(rate->limited);
    assert_true(rate->rate_bps > LINE / 2 && rate->rate_bps < LINE * 51 / 100);
    assert_int_equal(c->cnps_received, 1);
    assert_int_equal(c->rate_cuts, 1);
    notify(&e, CUT - 1); /* is counted, and cuts later */
    assert_int_equal(c->cnps_received, 2);
    assert_int_equal(c->rate_cuts, 1);
    assert_true(rate_limiter_may_send(e.qp[0]->limiter, CUT));
    assert_int_equal(c->rate_cuts, 2);
    notify(&e, 3 * CUT);
    assert_int_equal(c->rate_cuts, 3);
    for (unsigned r = 1; r < ROCE_REASON_COUNT; r++)
        assert_int_equal(c->drops[r], 0);
    assert_int_equal(qp_modify(e.qp[0], &a), 0);
    notify(&e, 9 * CUT);
    assert_int_equal(c->drops[ROCE_QP_STATE], 1);
    assert_int_equal(c->cnps_received, 3);
    fixture_free(&e);
}

/* A queue pair without DCQCN takes them, and goes on as before. */
static void without_dcqcn_notifications_change_nothing(void **state)
{
    struct fixture e = limited(false);

    (void)state;
    assert_null(e.qp[0]->limiter);
    notify(&e, 0);
    assert_int_equal(counters(&e, 0)->cnps_received, 1);
    assert_int_equal(counters(&e, 0)->rate_cuts, 0);
    fixture_free(&e);
}

static void queue_pairs_that_are_not_ready_take_none(void **state)
{
    static const struct {
        enum qp_type type;
        enum qp_state state;
        enum roce_reason drop;
    } rows[] = {{QP_UD, QP_RTS, ROCE_TRANSPORT},
                {QP_RC, QP_INIT, ROCE_QP_STATE},
                {QP_RC, QP_RTR, ROCE_QP_STATE},
                {QP_RC, QP_RTS, ROCE_OK}};

    (void)state;
    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        struct fixture e = limited(true);
        struct qp_cfg c = {.type = rows[i].type, .sq_depth = 4};
        struct qp_attr a = *qp_attributes(e.qp[0]);
        const struct roce_counters *n = counters(&e, 0);
        struct qp *qp;

        assert_int_equal(qp_create(e.p->s[0].r, &c, &qp), 0);
        if (rows[i].type == QP_UD)
            assert_null(qp->limiter);
        for (a.state = QP_INIT; a.state <= rows[i].state; a.state++)
            assert_int_equal(qp_modify(qp, &a), 0);
        give(&e, ROCE_OP_CNP_PACKET, CNP_TOS, qp_num(qp), 0);
        for (unsigned r = 1; r < ROCE_REASON_COUNT; r++)
            assert_int_equal(n->drops[r], rows[i].drop == r);
        assert_int_equal(n->cnps_received, rows[i].drop == ROCE_OK);
        fixture_free(&e);
    }
}

/* ---- waiting ---- */

/* Eight frames may follow each other, so that a late process catches up; one more is on time. */
static void a_burst_passes_and_then_frames_wait_for_the_rate(void **state)
{
    struct fixture e = limited(true);
    struct rnic *r = e.p->s[0].r;
    struct rate_limiter *p = e.qp[0]->limiter;
    const int64_t now = 100 * PS_PER_US;
    struct rte_mbuf *m = frame_alloc(e.p->s[0].pool);
    struct roce_pkt k;
    int64_t lasts, at;
    unsigned n = 0;

    (void)state;
    qp_packet(e.qp[0], &k);
    k.opcode = ROCE_OP_RC_SEND_ONLY;
    k.len = 1000;
    roce_build(m, &k);
    assert_true(rate_limiter_may_send(p, now)); /* no limit, no wait */
    assert_int_equal(rate_limiter_next(r), PS_NEVER);
    rate_limiter_sent(p, m, now);
    assert_int_equal(p->rate.ready_ps, 0);
    notify(&e, now);
    lasts = link_time_ps(frame_wire_bytes(m), p->rate.rate_bps);
    while (n < 100 && rate_limiter_may_send(p, now)) {
        rate_limiter_sent(p, m, now);
        n++;
    }
    assert_int_equal(n, 9);
    at = now + lasts;
    assert_true(p->waits);
    assert_int_equal(rate_limiter_next(r), at);
    rate_limiter_tick(r, at - 1);
    assert_true(p->waits);
    rate_limiter_tick(r, at);
    assert_false(p->waits);
    assert_int_equal(rate_limiter_next(r), PS_NEVER);
    assert_true(rate_limiter_may_send(p, at));
    rate_limiter_sent(p, m, at);
    assert_false(rate_limiter_may_send(p, at));
    rate_limiter_cancel(p);
    assert_false(p->waits);
    assert_int_equal(rate_limiter_next(r), PS_NEVER);
    rte_pktmbuf_free(m);
    fixture_free(&e);
}

static void a_limit_ends_and_a_reset_ends_it(void **state)
{
    struct fixture e = limited(true);
    struct rate_limiter *p = e.qp[0]->limiter;

    (void)state;
    notify(&e, 0);
    assert_true(p->rate.limited);
    assert_true(rate_limiter_may_send(p, PS_PER_S * 60)); /* it has risen for a minute */
    assert_false(p->rate.limited);
    notify(&e, PS_PER_S * 60);
    rate_limiter_marked(p, PS_PER_S * 60);
    assert_true(p->rate.limited && p->notify && p->notify_ps);
    p->rate.ready_ps = PS_PER_S * 61;
    assert_false(rate_limiter_may_send(p, PS_PER_S * 60));
    rate_limiter_reset(p);
    assert_false(p->rate.limited || p->notify || p->waits);
    assert_int_equal(p->notify_ps, 0);
    assert_int_equal(p->rate.cuts, 0);
    assert_int_equal(rate_limiter_next(e.p->s[0].r), PS_NEVER);
    fixture_free(&e);
}

/* ---- on the wire ---- */

static int64_t told_ps[64];
static unsigned n_told;

static enum wire_verdict note_times(struct pair *p, unsigned from, const struct roce_pkt *k)
{
    if (from == 1 && k->opcode == ROCE_OP_CNP_PACKET && n_told < RTE_DIM(told_ps))
        told_ps[n_told++] = p->now_ps;
    return WIRE_PASS;
}

static bool has_ended(struct pair *p)
{
    return p->s[0].n_cqes;
}

/* How long a message takes of which so many in 10,000 frames are marked. */
static int64_t takes_ps(unsigned marks)
{
    struct pair_cfg cfg = {.window = 256, .ack_every = 16, .seed = 1, .dcqcn = usual};
    struct fixture e = fixture_make_cfg(&cfg, NULL, false);
    struct wqe w = request(&e, WR_WRITE, 1, 1000000);
    int64_t end;

    n_told = 0;
    e.p->ce[0] = marks;
    e.p->fault = note_times;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    assert_true(pair_run(e.p, has_ended, PS_PER_S));
    end = e.p->now_ps;
    assert_int_equal(e.p->s[0].cqe[0].status, WC_SUCCESS);
    assert_memory_equal(e.buf[0], e.buf[1], 1000000);
    assert_int_equal(counters(&e, 0)->cnps_received, n_told);
    assert_int_equal(counters(&e, 0)->retransmits, 0);
    for (unsigned i = 1; i < n_told; i++)
        assert_true(told_ps[i] - told_ps[i - 1] >= GAP);
    fixture_free(&e);
    return end;
}

/* Half of the rate from the first notification on, and all of it arrives. */
static void a_sender_slows_down_and_delivers_all(void **state)
{
    int64_t free_ps = takes_ps(0), slow_ps;

    (void)state;
    assert_int_equal(n_told, 0);
    slow_ps = takes_ps(10000);
    assert_true(n_told > 1);
    if (slow_ps < free_ps * 3 / 2 || slow_ps > free_ps * 5 / 2)
        fail_msg("found %.1f us, expected about twice %.1f us", slow_ps / 1e6, free_ps / 1e6);
}

/* One that goes while it waits leaves no deadline behind (rnic_destroy() sees to it). */
static void a_queue_pair_may_go_while_it_waits(void **state)
{
    struct fixture e = limited(true);
    struct rate_limiter *p = e.qp[0]->limiter;
    struct qp_attr a = {.state = QP_RESET};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        notify(&e, 0);
        p->rate.ready_ps = PS_PER_S;
        assert_false(rate_limiter_may_send(p, 0));
        if (i)
            break;
        assert_int_equal(qp_modify(e.qp[0], &a), 0);
        assert_false(p->waits || p->rate.limited);
        a = *qp_attributes(e.qp[1]);
        a.dest_qpn = qp_num(e.qp[1]);
        a.dest_ip = e.p->s[1].ip;
        roce_mac_of_ip(a.dest_ip, a.dest_mac);
        for (a.state = QP_INIT; a.state <= QP_RTS; a.state++)
            assert_int_equal(qp_modify(e.qp[0], &a), 0);
    }
    qp_destroy(e.qp[0]);
    assert_int_equal(rate_limiter_next(e.p->s[0].r), PS_NEVER);
    fixture_free(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_are_answered_once_in_a_gap),
        cmocka_unit_test(a_notification_waits_for_a_frame),
        cmocka_unit_test(only_marked_data_is_answered),
        cmocka_unit_test(notifications_of_the_peer_count),
        cmocka_unit_test(without_dcqcn_notifications_change_nothing),
        cmocka_unit_test(queue_pairs_that_are_not_ready_take_none),
        cmocka_unit_test(a_burst_passes_and_then_frames_wait_for_the_rate),
        cmocka_unit_test(a_limit_ends_and_a_reset_ends_it),
        cmocka_unit_test(a_sender_slows_down_and_delivers_all),
        cmocka_unit_test(a_queue_pair_may_go_while_it_waits),
    };

    test_eal_init();
    return cmocka_run_group_tests_name("roce/rate_limiter", tests, NULL, NULL);
}
