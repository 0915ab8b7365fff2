/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbours outside the fabric: the HCA's driver replies in place of an outside host. */
#include "tests/host/hca/pair.h"

#define IP_OUT 0x0a000009u

static const uint8_t out_mac[6] = {0x52, 0x54, 0, 0, 0, 9};

struct outside {
    struct side s;
    struct rte_mempool *pool;
    unsigned free_at_start;
    int64_t now_ps;
    unsigned asked, answers_from; /* replies from the n-th request on; 0: never */
    uint8_t to[6];                /* of the last frame that is not ARP */
    unsigned sent;
    bool lie; /* the reply is another host's */
};

static bool foreign(void *ctx, uint32_t ip)
{
    (void)ctx;
    return ip == IP_OUT;
}

static void answer(struct outside *o, const uint8_t *ask)
{
    struct rte_mbuf *m = frame_alloc(o->pool);
    uint8_t *p;

    assert_non_null(m);
    p = (uint8_t *)rte_pktmbuf_append(m, FRAME_MIN_BYTES);
    memset(p, 0, FRAME_MIN_BYTES);
    memcpy(p, ask + 6, 6);
    memcpy(p + 6, out_mac, 6);
    memcpy(p + 12, ask + 12, 8);
    p[21] = 2;
    memcpy(p + 22, out_mac, 6);
    memcpy(p + 28, ask + 38, 4);
    memcpy(p + 32, ask + 22, 10);
    p[31] ^= o->lie;
    assert_int_equal(o->s.ep.input(o->s.ep.ctx, &m, 1, o->now_ps), 1);
}

static void look_at_question(const struct outside *o, const uint8_t *p)
{
    static const uint8_t head[] = {0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1};
    static const uint8_t ips[] = {10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 9};

    (void)o;
    for (int i = 0; i < 6; i++)
        assert_int_equal(p[i], 0xff);
    assert_memory_equal(p + 12, head, sizeof(head));
    assert_memory_equal(p + 6, p + 22, 6);
    assert_memory_equal(p + 28, ips, sizeof(ips));
}

/* One round of a driver, 10 ms after the last. */
static void idle(void *ctx)
{
    struct outside *o = ctx;
    struct rte_mbuf *m[16];

    o->now_ps += 10 * PS_PER_MS;
    for (unsigned q = 0; q < ENDPOINT_QUEUES; q++) {
        uint16_t n = o->s.ep.output(o->s.ep.ctx, (enum endpoint_queue)q, m, 16, o->now_ps);

        for (uint16_t i = 0; i < n; i++) {
            const uint8_t *p = rte_pktmbuf_mtod(m[i], const uint8_t *);

            if (p[12] == 8 && p[13] == 6) {
                look_at_question(o, p);
                o->asked++;
                if (o->answers_from && o->asked >= o->answers_from)
                    answer(o, p);
            } else {
                memcpy(o->to, p, 6);
                o->sent++;
            }
            rte_pktmbuf_free(m[i]);
        }
    }
}

static void outside_open(struct outside *o)
{
    static struct rte_mempool *pool;
    struct hca_cfg cfg = {.name = "trib0",
                          .ip = IP_A,
                          .mtu = 4096,
                          .rate_bps = 400000000000ull,
                          .drv = {.idle = idle, .foreign = foreign, .ctx = o}};

    test_eal_init();
    if (!pool)
        pool = test_pool(1024);
    memset(o, 0, sizeof(*o));
    cfg.pool = o->pool = pool;
    o->free_at_start = rte_mempool_avail_count(pool);
    assert_int_equal(hca_create(&o->s.h, &cfg), 0);
    o->s.ep = hca_endpoint(o->s.h);
    o->s.ctx = ibv_open_device(hca_device(o->s.h));
    o->s.pd = ibv_alloc_pd(o->s.ctx);
    o->s.cq = ibv_create_cq(o->s.ctx, 64, NULL, NULL, 0);
    assert_non_null(o->s.cq);
}

static void outside_close(struct outside *o)
{
    assert_int_equal(ibv_destroy_cq(o->s.cq), 0);
    assert_int_equal(ibv_dealloc_pd(o->s.pd), 0);
    assert_int_equal(ibv_close_device(o->s.ctx), 0);
    hca_destroy(o->s.h);
    assert_int_equal(rte_mempool_avail_count(o->pool), o->free_at_start);
}

static void a_queue_pair_to_the_outside_sends_to_the_mac_that_answered(void **state)
{
    struct outside o;
    struct ibv_qp *qp;
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;

    (void)state;
    outside_open(&o);
    o.answers_from = 3; /* requests get lost */
    qp = make_qp(&o.s, IBV_QPT_RC);
    rc_connect(qp, IP_OUT, 17);
    assert_int_equal(o.asked, 3);
    assert_in_range(o.now_ps, 200 * PS_PER_MS, 400 * PS_PER_MS);
    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
    idle(&o);
    assert_int_equal(o.sent, 1);
    assert_memory_equal(o.to, out_mac, 6);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    outside_close(&o);
}

static void a_handle_asks_once_and_the_address_is_remembered_for_a_minute(void **state)
{
    struct outside o;
    struct ibv_ah_attr at = ah_to(IP_OUT);
    struct ibv_ah *ah;
    uint8_t mac[6];

    (void)state;
    outside_open(&o);
    o.answers_from = 1;
    for (int i = 0; i < 2; i++) {
        ah = ibv_create_ah(o.s.pd, &at);
        assert_non_null(ah);
        assert_int_equal(ibv_destroy_ah(ah), 0);
    }
    assert_int_equal(o.asked, 1);
    assert_int_equal(ibv_resolve_eth_l2_from_gid(o.s.ctx, &at, mac, NULL), 0);
    assert_memory_equal(mac, out_mac, 6);
    o.now_ps += 61 * PS_PER_S;
    idle(&o);
    assert_int_equal(ibv_resolve_eth_l2_from_gid(o.s.ctx, &at, mac, NULL), 0);
    assert_int_equal(o.asked, 2);
    outside_close(&o);
}

static void who_does_not_answer_is_unreachable_after_two_seconds(void **state)
{
    struct outside o;
    struct ibv_ah_attr at = ah_to(IP_OUT);
    struct ibv_qp *qp;
    struct ibv_qp_attr a = rc_attr(IP_OUT, 17);

    (void)state;
    outside_open(&o);
    for (int i = 0; i < 2; i++) {
        o.lie = i;
        o.answers_from = i;
        errno = 0;
        assert_null(ibv_create_ah(o.s.pd, &at));
        assert_int_equal(errno, EHOSTUNREACH);
        assert_in_range(o.now_ps, (i + 1) * 2 * PS_PER_S, (i + 1) * 2 * PS_PER_S + PS_PER_S / 5);
    }
    qp = make_qp(&o.s, IBV_QPT_RC);
    a.qp_state = IBV_QPS_INIT;
    assert_int_equal(ibv_modify_qp(qp, &a, MASK_INIT), 0);
    a.qp_state = IBV_QPS_RTR;
    assert_int_equal(ibv_modify_qp(qp, &a, MASK_RTR), EHOSTUNREACH);
    assert_int_equal(qp->state, IBV_QPS_INIT);
    at = ah_to(IP_B); /* inside the fabric: no request is sent */
    o.asked = 0;
    assert_int_equal(ibv_destroy_ah(ibv_create_ah(o.s.pd, &at)), 0);
    assert_int_equal(o.asked, 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    outside_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queue_pair_to_the_outside_sends_to_the_mac_that_answered),
        cmocka_unit_test(a_handle_asks_once_and_the_address_is_remembered_for_a_minute),
        cmocka_unit_test(who_does_not_answer_is_unreachable_after_two_seconds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
