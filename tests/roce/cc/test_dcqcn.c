/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DCQCN: the reaction point against a plain model in floating point that runs event by event, and
 * its place in queue pairs: marks become notifications, notifications make the sender slower.
 */
#include "roce/cc/dcqcn.h"
#include "tests/roce/rc_fixture.h"

#include <math.h>

#define LINE   400000000000ull
#define PIECES 32

static const struct dcqcn_cfg usual = {.on = true,
                                       .line_bps = LINE,
                                       .cnp_gap_ps = 4 * PS_PER_US,
                                       .cut_gap_ps = 4 * PS_PER_US,
                                       .alpha_ps = PS_PER_US,
                                       .g = 1019,
                                       .time_reset_ps = 300 * PS_PER_US,
                                       .byte_reset = 32767 * 64,
                                       .threshold = 1,
                                       .ai_bps = 5000000,
                                       .hai_bps = 50000000};

static void assert_near(double got, double want, double part)
{
    if (fabs(got - want) > part * want)
        fail_msg("found %.0f, expected %.0f within %g", got, want, part);
}

/* ---- the reaction point alone ---- */

static void the_first_notification_halves_the_rate_and_a_burst_of_them_cuts_once_a_period(void **s)
{
    struct dcqcn d = {0};

    (void)s;
    assert_int_equal(dcqcn_ready(&d, &usual, 5), 5);
    dcqcn_notified(&d, &usual, 0);
    assert_true(d.limited);
    assert_near((double)d.rate_bps, LINE / 2, 0.001);
    assert_int_equal(d.target_bps, LINE);
    for (int i = 1; i < 8; i++)
        dcqcn_notified(&d, &usual, i * PS_PER_US / 2);
    assert_int_equal(d.cuts, 1);
    dcqcn_ready(&d, &usual, 4 * PS_PER_US - 1);
    assert_int_equal(d.cuts, 1);
    dcqcn_ready(&d, &usual, 4 * PS_PER_US); /* what was notified meanwhile takes effect */
    assert_int_equal(d.cuts, 2);
    assert_near((double)d.rate_bps, LINE / 4, 0.005);
    dcqcn_ready(&d, &usual, 40 * PS_PER_US); /* nothing since */
    assert_int_equal(d.cuts, 2);
}

static void congestion_that_is_long_past_cuts_little(void **s)
{
    struct dcqcn d = {0};
    uint64_t before;

    (void)s;
    dcqcn_notified(&d, &usual, 0);
    dcqcn_ready(&d, &usual, 2000 * PS_PER_US);
    before = d.rate_bps;
    dcqcn_notified(&d, &usual, 2000 * PS_PER_US);
    /* (1019/1024)^2000 is 0.00006. */
    assert_true(d.rate_bps < before && d.rate_bps > before - before / 1000);
}

static void the_rate_comes_back_half_of_the_way_at_a_time_then_in_steps(void **s)
{
    struct dcqcn_cfg c = usual;
    struct dcqcn d = {0};
    uint64_t rate, target;

    (void)s;
    c.ai_bps = 1000000000, c.hai_bps = 10000000000;
    c.byte_reset = 1 << 20;
    dcqcn_notified(&d, &c, 0);
    for (int i = 1; i < 4; i++) /* a target that is below the line */
        dcqcn_notified(&d, &c, i * 4 * PS_PER_US);
    dcqcn_ready(&d, &c, 312 * PS_PER_US);
    assert_int_equal(d.time_steps, 1);
    rate = d.rate_bps;
    dcqcn_notified(&d, &c, 312 * PS_PER_US);
    assert_int_equal(d.target_bps, rate); /* time had raised it: from there */
    rate = d.rate_bps, target = d.target_bps;
    dcqcn_ready(&d, &c, 612 * PS_PER_US);
    assert_int_equal(d.target_bps, target); /* fast recovery */
    assert_int_equal(d.rate_bps, (rate + target + 1) / 2);
    dcqcn_ready(&d, &c, 912 * PS_PER_US);
    assert_int_equal(d.target_bps, target + c.ai_bps); /* additive */
    for (int i = 0; i < 2; i++)
        dcqcn_sent(&d, &c, 1 << 20, 912 * PS_PER_US);
    assert_int_equal(d.byte_steps, 2);
    target += 2 * c.ai_bps + c.hai_bps; /* the first by bytes is additive, the second hyper */
    assert_int_equal(d.target_bps, target);
}

static void at_line_rate_the_limit_is_lifted(void **s)
{
    struct dcqcn d = {0};

    (void)s;
    dcqcn_notified(&d, &usual, 0);
    assert_true(d.limited);
    assert_int_equal(dcqcn_ready(&d, &usual, 60 * PS_PER_S), 60 * PS_PER_S);
    assert_false(d.limited);
    dcqcn_notified(&d, &usual, 60 * PS_PER_S); /* as the first one */
    assert_near((double)d.rate_bps, LINE / 2, 0.001);
}

static void frames_go_out_at_the_rate_however_late_the_sender_is_asked(void **s)
{
    struct dcqcn_cfg c = usual;
    uint64_t bytes;
    int64_t now;

    (void)s;
    c.time_reset_ps = PS_PER_S; /* the rate stays */
    for (int64_t late = 0; late <= 300000; late += 100000) {
        struct dcqcn d = {0};

        c.byte_reset = 0;
        dcqcn_notified(&d, &c, 0);
        for (bytes = 0, now = 0; now < 100 * PS_PER_US;) {
            int64_t at = dcqcn_ready(&d, &c, now);

            if (at > now) {
                now = at + late; /* 0.3 us: three frames */
                continue;
            }
            dcqcn_sent(&d, &c, 4178, now);
            bytes += 4178;
        }
        assert_near((double)bytes * 8e12 / (double)now, (double)d.rate_bps, 0.02);
    }
}

static void a_rise_shortens_the_wait_that_has_begun(void **s)
{
    struct dcqcn_cfg c = usual;
    struct dcqcn d = {0};
    int64_t now = 0, at, left;
    uint64_t before;

    (void)s;
    c.byte_reset = 0;
    for (int i = 0; i < 60; i++, now += 4 * PS_PER_US)
        dcqcn_notified(&d, &c, now);
    assert_true(d.rate_bps < LINE >> 7);
    dcqcn_sent(&d, &c, 4178, now); /* more than a millisecond at that rate */
    at = dcqcn_ready(&d, &c, now);
    assert_int_equal(at, d.step_ps);
    assert_true(d.ready_ps > at + PS_PER_MS);
    left = d.ready_ps - at, before = d.rate_bps;
    assert_true(dcqcn_ready(&d, &c, at) < at + PS_PER_US);
    assert_true(d.rate_bps > before);
    assert_int_equal(d.ready_ps, at + left * (int64_t)before / (int64_t)d.rate_bps);
}

/* ---- against a plain model ---- */

struct model {
    bool limited, wanted, notified;
    double rate, target, alpha;
    int64_t cut, step, update;
    unsigned time_steps;
};

static void model_cut(struct model *m, int64_t t)
{
    if (m->time_steps)
        m->target = m->rate;
    m->rate = fmax(m->rate * (1 - m->alpha / 2), 1e6);
    m->cut = t, m->step = t + 300 * PS_PER_US;
    m->time_steps = 0, m->wanted = false;
}

/* Every microsecond by itself, in order. */
static void model_until(struct model *m, int64_t now)
{
    while (m->limited) {
        int64_t cut = m->wanted ? m->cut + 4 * PS_PER_US : INT64_MAX;
        int64_t t = m->update < m->step ? m->update : m->step;

        t = cut < t ? cut : t;
        if (t > now)
            return;
        if (m->update == t) {
            m->alpha = m->alpha * 1019 / 1024 + (m->notified ? 5.0 / 1024 : 0);
            m->alpha = fmin(m->alpha, 1023.0 / 1024);
            m->notified = false;
            m->update += PS_PER_US;
        } else if (cut == t) {
            model_cut(m, t);
        } else {
            if (++m->time_steps > 1)
                m->target = fmin(m->target + 5e6, (double)LINE);
            m->rate = (m->rate + m->target) / 2;
            m->step += 300 * PS_PER_US;
        }
    }
}

static void rates_are_those_of_a_plain_model(void **s)
{
    struct pair_cfg pc = {.seed = 5, .mbufs = 15};
    struct pair *p = pair_create(&pc);
    struct dcqcn_cfg c = usual;

    (void)s;
    c.byte_reset = 0;
    for (unsigned run = 0; run < 50; run++) {
        struct model m = {.limited = true, .rate = LINE, .target = LINE, .alpha = 1023.0 / 1024};
        int64_t now = pair_random(p, 1000000);
        struct dcqcn d = {0};

        m.update = now + PS_PER_US;
        model_cut(&m, now);
        dcqcn_notified(&d, &c, now);
        for (unsigned i = 0; i < 300; i++) {
            now += 1 + pair_random(p, pair_random(p, 10) ? 12000000 : 900000000);
            model_until(&m, now);
            if (pair_random(p, 2)) {
                dcqcn_ready(&d, &c, now);
            } else {
                dcqcn_notified(&d, &c, now);
                m.notified = true;
                if (now - m.cut >= 4 * PS_PER_US)
                    model_cut(&m, now);
                else
                    m.wanted = true;
            }
            dcqcn_ready(&d, &c, now);
            assert_near((double)d.rate_bps, m.rate, 0.001);
            assert_near((double)d.target_bps, m.target, 0.001);
        }
    }
    pair_destroy(p);
}

/* ---- in queue pairs ---- */

struct seen {
    unsigned cnps[2];        /* by who sent them */
    int64_t last_ps, gap_ps; /* shortest time between two of side 1 */
    struct roce_pkt k;
};

static enum wire_verdict watch(struct pair *p, unsigned from, const struct roce_pkt *k)
{
    struct seen *s = p->arg;

    if (k->opcode != ROCE_OP_CNP_PACKET)
        return WIRE_PASS;
    if (from == 1) {
        if (s->cnps[1] && p->now_ps - s->last_ps < s->gap_ps)
            s->gap_ps = p->now_ps - s->last_ps;
        s->last_ps = p->now_ps;
        s->k = *k;
    }
    s->cnps[from]++;
    return WIRE_PASS;
}

static struct fixture env_dcqcn(struct seen *s, bool on)
{
    struct pair_cfg cfg = {.window = 64, .ack_every = 4, .seed = 1, .dcqcn = usual};
    struct qp_attr attr = {.sq_psn = 100, .timeout = 14};
    struct fixture e;

    cfg.dcqcn.on = on;
    e.p = pair_create(&cfg);
    for (unsigned i = 0; i < 2; i++) {
        e.rq[i] = rq_create(64);
        e.buf[i] = calloc(1, BUF);
        e.key[i] = pair_region(&e.p->s[i], e.buf[i], BUF, ALL_ACCESS);
    }
    pair_connect(e.p, QP_RC, &attr, 64, e.rq[0], e.rq[1], false, e.qp);
    *s = (struct seen){.gap_ps = PS_NEVER};
    e.p->fault = watch;
    e.p->arg = s;
    return e;
}

/* Time of BUF bytes; in pieces, because a READ is answered as fast as the wire of this test takes
 * it, which is at once. */
static int64_t run_one(struct fixture *e, enum wr_op op)
{
    int64_t begun = e->p->now_ps;

    e->p->s[0].n_cqes = 0;
    for (unsigned i = 0; i < PIECES; i++) {
        struct wqe w = request(e, op, i, BUF / PIECES);

        assert_int_equal(qp_post_send(e->qp[0], &w), 0);
    }
    assert_false(pair_run(e->p, pair_never, PS_PER_S));
    assert_int_equal(e->p->s[0].n_cqes, PIECES);
    for (unsigned i = 0; i < PIECES; i++)
        assert_int_equal(e->p->s[0].cqe[i].status, WC_SUCCESS);
    return e->p->now_ps - begun;
}

static void marks_become_notifications_that_slow_the_sender_down(void **s)
{
    static const enum wr_op ops[] = {WR_WRITE, WR_READ};

    (void)s;
    for (unsigned i = 0; i < 2; i++) {
        unsigned sender = i ? 1 : 0; /* of data: READ responses are held back as well */
        const struct roce_counters *c, *peer;
        struct seen seen;
        struct fixture e = env_dcqcn(&seen, true);
        int64_t fast = run_one(&e, ops[i]), slow;

        assert_int_equal(seen.cnps[0] + seen.cnps[1], 0);
        e.p->ce[sender] = 10000;
        slow = run_one(&e, ops[i]);
        assert_true(slow > 4 * fast);
        c = rnic_counters(e.p->s[sender].r);
        peer = rnic_counters(e.p->s[!sender].r);
        assert_true(seen.cnps[!sender] > 3);
        assert_int_equal(seen.cnps[sender], 0);
        assert_int_equal(peer->cnps_sent, seen.cnps[!sender]);
        assert_int_equal(c->cnps_received, seen.cnps[!sender]);
        assert_int_equal(c->rate_cuts, c->cnps_received);
        assert_int_equal(c->retransmits + peer->retransmits + peer->duplicates, 0);
        if (!i) {
            assert_true(seen.gap_ps >= usual.cnp_gap_ps && seen.gap_ps < 2 * usual.cnp_gap_ps);
            assert_int_equal(seen.k.dqpn, qp_num(e.qp[0]));
            assert_int_equal(seen.k.tos, 48 << 2);
            assert_int_equal(seen.k.psn, 0);
        }
        fixture_free(&e);
    }
}

static void without_dcqcn_nobody_says_anything_and_what_is_said_is_only_counted(void **s)
{
    struct seen seen;
    struct fixture e = env_dcqcn(&seen, false);
    int64_t fast = run_one(&e, WR_WRITE);
    struct roce_pkt k = {.opcode = ROCE_OP_CNP_PACKET,
                         .ttl = 64,
                         .pkey = ROCE_DEFAULT_PKEY,
                         .udp_src = 0xc001,
                         .src_ip = e.p->s[1].ip,
                         .dst_ip = e.p->s[0].ip,
                         .dqpn = qp_num(e.qp[0])};
    struct rte_mbuf *m = frame_alloc(e.p->s[1].pool);

    (void)s;
    e.p->ce[0] = 10000;
    assert_int_equal(run_one(&e, WR_WRITE), fast);
    assert_int_equal(seen.cnps[1], 0);
    assert_true(rnic_counters(e.p->s[1].r)->ce_marks > 100);
    roce_mac_of_ip(k.src_ip, k.src_mac);
    roce_mac_of_ip(k.dst_ip, k.dst_mac);
    roce_build(m, &k);
    roce_seal(m, &k);
    e.p->s[0].ep.input(e.p->s[0].r, &m, 1, e.p->now_ps);
    assert_int_equal(rnic_counters(e.p->s[0].r)->cnps_received, 1);
    assert_int_equal(run_one(&e, WR_WRITE), fast);
    fixture_free(&e);
}

/* A QP that waits for its turn may be reset or destroyed at any time; the others go on. */
static void a_waiting_queue_pair_can_end(void **s)
{
    struct seen seen;
    struct fixture e = env_dcqcn(&seen, true);
    struct qp_attr a = {.state = QP_ERR};
    struct wqe w;

    (void)s;
    e.p->ce[0] = 10000;
    w = request(&e, WR_WRITE, 9, BUF);
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    pair_run(e.p, pair_never, 20 * PS_PER_US);
    assert_int_equal(qp_modify(e.qp[0], &a), 0);
    assert_int_equal(e.p->s[0].cqe[0].status, WC_WR_FLUSH_ERR);
    pair_run(e.p, pair_never, PS_PER_MS);
    qp_destroy(e.qp[0]);
    pair_run(e.p, pair_never, PS_PER_MS);
    fixture_free(&e);
}

static void a_notification_reads_byte_for_byte_as_annex_a17_has_it(void **s)
{
    static const uint8_t want[] = {
        0x02, 0x54, 10,   0,    0,    2,    0x02, 0x54, 10,   0,    0,    1,    0x08, 0x00,
        0x45, 0xc0, 0,    60,   0,    0,    0x40, 0,    64,   17,   0x25, 0xef, 10,   0,
        0,    1,    10,   0,    0,    2,    0xc0, 0x01, 0x12, 0xb7, 0,    40,   0,    0,
        0x81, 0x40, 0xff, 0xff, 0x40, 0x12, 0x34, 0x56, 0,    0,    0,    0,    0,    0,
        0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0};
    struct rte_mempool *pool = test_pool(7);
    struct rte_mbuf *m = frame_alloc(pool);
    struct roce_pkt k = {.opcode = ROCE_OP_CNP_PACKET,
                         .tos = 48 << 2,
                         .ttl = 64,
                         .pkey = ROCE_DEFAULT_PKEY,
                         .udp_src = 0xc001,
                         .src_ip = 0x0a000001,
                         .dst_ip = 0x0a000002,
                         .dqpn = 0x123456},
                    got;

    (void)s;
    roce_mac_of_ip(k.src_ip, k.src_mac);
    roce_mac_of_ip(k.dst_ip, k.dst_mac);
    roce_build(m, &k);
    roce_seal(m, &k);
    assert_int_equal(m->pkt_len, sizeof(want) + ROCE_ICRC_BYTES);
    assert_memory_equal(rte_pktmbuf_mtod(m, void *), want, sizeof(want));
    assert_int_equal(roce_parse(m, &got), ROCE_OK);
    assert_true(roce_icrc_ok(m, &got));
    rte_pktmbuf_free(m);
    rte_mempool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            the_first_notification_halves_the_rate_and_a_burst_of_them_cuts_once_a_period),
        cmocka_unit_test(congestion_that_is_long_past_cuts_little),
        cmocka_unit_test(the_rate_comes_back_half_of_the_way_at_a_time_then_in_steps),
        cmocka_unit_test(at_line_rate_the_limit_is_lifted),
        cmocka_unit_test(frames_go_out_at_the_rate_however_late_the_sender_is_asked),
        cmocka_unit_test(a_rise_shortens_the_wait_that_has_begun),
        cmocka_unit_test(rates_are_those_of_a_plain_model),
        cmocka_unit_test(marks_become_notifications_that_slow_the_sender_down),
        cmocka_unit_test(without_dcqcn_nobody_says_anything_and_what_is_said_is_only_counted),
        cmocka_unit_test(a_waiting_queue_pair_can_end),
        cmocka_unit_test(a_notification_reads_byte_for_byte_as_annex_a17_has_it),
    };

    test_eal_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
