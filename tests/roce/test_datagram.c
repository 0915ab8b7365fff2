/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams (UD) and unreliable connections (UC). */
#include "tests/support/eal.h"
#include "tests/support/roce_pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_mempool.h>

#define ALL_ACCESS (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE)

static uint8_t here[8192], there[8192];

static struct pair *start(enum qp_type type, struct rq *rq, struct qp *qp[2], uint32_t key[2])
{
    struct pair_cfg cfg = {.window = 16, .ack_every = 4, .seed = 3};
    struct pair *p = pair_create(&cfg);
    struct qp_attr attr = {.mtu = 1024};

    for (unsigned i = 0; i < sizeof(here); i++)
        here[i] = (uint8_t)(i * 5 + 1), there[i] = 0;
    key[0] = pair_region(&p->s[0], here, sizeof(here), ALL_ACCESS);
    key[1] = pair_region(&p->s[1], there, sizeof(there), ALL_ACCESS);
    pair_connect(p, type, &attr, 16, NULL, rq, false, qp);
    return p;
}

static struct wqe datagram(struct pair *p, struct qp *to, uint32_t key, uint32_t len)
{
    struct wqe w = {.wr_id = 1,
                    .op = WR_SEND,
                    .frag = WQE_WHOLE,
                    .flags = WR_F_SIGNALED | WR_F_SOLICITED,
                    .n_sge = 1,
                    .sge = {{(uintptr_t)here, len, key}}};

    w.ud.ip = p->s[1].ip;
    roce_mac_of_ip(w.ud.ip, w.ud.mac);
    w.ud.qpn = qp_num(to);
    w.ud.qkey = 0x1111;
    return w;
}

static void receive(struct rq *rq, uint64_t id, uint32_t key, uint32_t off, uint32_t len)
{
    struct rwqe r = {.wr_id = id, .n_sge = 1, .sge = {{(uintptr_t)there + off, len, key}}};

    assert_int_equal(rq_post(rq, &r), 0);
}

static void a_datagram_comes_behind_its_ip_header(void **state)
{
    static const uint32_t lens[] = {0, 1, 3, 1000, 1024};

    (void)state;
    for (unsigned i = 0; i < RTE_DIM(lens); i++) {
        struct rq *rq = rq_create(4);
        struct qp *qp[2];
        uint32_t key[2];
        struct pair *p = start(QP_UD, rq, qp, key);
        struct wqe w = datagram(p, qp[1], key[0], lens[i]);
        const struct cqe *c;

        receive(rq, 5, key[1], 0, 40 + lens[i]);
        assert_int_equal(qp_post_send(qp[0], &w), 0);
        pair_run(p, pair_never, PS_PER_S);
        assert_int_equal(p->s[0].cqe[0].status, WC_SUCCESS);
        c = pair_cqe(&p->s[1], 5, true);
        assert_non_null(c);
        assert_int_equal(c->status, WC_SUCCESS);
        assert_int_equal(c->byte_len, 40 + lens[i]);
        assert_true(c->has_grh);
        assert_true(c->solicited);
        assert_int_equal(c->src_qpn, qp_num(qp[0]));
        assert_int_equal(c->src_ip, p->s[0].ip);
        assert_int_equal(there[20], 0x45);
        assert_int_equal(there[29], 17);
        assert_int_equal(there[32] << 24 | there[33] << 16 | there[34] << 8 | there[35],
                         p->s[0].ip);
        assert_int_equal(there[39], p->s[1].ip & 255);
        assert_memory_equal(there + 40, here, lens[i]);
        assert_int_equal(there[40 + lens[i]], 0);
        pair_destroy(p);
        rq_destroy(rq);
    }
}

static void what_a_stranger_sends_costs_no_receive(void **state)
{
    struct rq *rq = rq_create(4);
    struct qp *qp[2];
    uint32_t key[2];
    struct pair *p = start(QP_UD, rq, qp, key);
    struct wqe w = datagram(p, qp[1], key[0], 100);
    const struct roce_counters *c = rnic_counters(p->s[1].r);

    (void)state;
    assert_int_equal(qp_post_send(qp[0], &w), 0);
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(c->drops[ROCE_NO_RECEIVE], 1);
    receive(rq, 5, key[1], 0, 139);
    assert_int_equal(qp_post_send(qp[0], &w), 0);
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(c->drops[ROCE_TOO_LONG], 1);
    w.ud.qkey = 0x2222;
    assert_int_equal(qp_post_send(qp[0], &w), 0);
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(c->drops[ROCE_QKEY], 1);
    w.ud.qkey = 0x80000001; /* stands for the QP's own */
    w.sge[0].len = 99;
    assert_int_equal(qp_post_send(qp[0], &w), 0);
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(p->s[1].n_cqes, 1);
    w.sge[0].len = 1025;
    assert_int_equal(qp_post_send(qp[0], &w), -EINVAL);
    w.sge[0].len = 10, w.op = WR_WRITE;
    assert_int_equal(qp_post_send(qp[0], &w), -EINVAL);
    pair_destroy(p);
    rq_destroy(rq);
}

static void a_group_is_reached_while_attached(void **state)
{
    struct rq *rq = rq_create(8);
    struct qp *qp[2], *second[2];
    uint32_t key[2], group = 0xe0010203;
    struct pair *p = start(QP_UD, rq, qp, key);
    struct qp_attr attr = {.mtu = 1024};
    struct wqe w = datagram(p, qp[1], key[0], 100);
    static const uint8_t mac[6] = {0x01, 0x00, 0x5e, 1, 2, 3};

    (void)state;
    pair_connect(p, QP_UD, &attr, 16, NULL, rq, false, second);
    w.ud.ip = group, w.ud.qpn = 0xffffff;
    memcpy(w.ud.mac, mac, 6);
    for (unsigned i = 0; i < 6; i++)
        receive(rq, i, key[1], i * 200, 200);
    assert_int_equal(qp_attach_mcast(qp[1], 0x0a000002), -EINVAL);
    assert_int_equal(qp_post_send(qp[0], &w), 0);
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(p->s[1].n_cqes, 0);
    assert_int_equal(qp_attach_mcast(qp[1], group), 0);
    assert_int_equal(qp_attach_mcast(second[1], group), 0);
    assert_int_equal(qp_post_send(qp[0], &w), 0);
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(p->s[1].n_cqes, 2);
    assert_int_equal(qp_detach_mcast(qp[1], group), 0);
    assert_int_equal(qp_detach_mcast(qp[1], group), -EINVAL);
    assert_int_equal(qp_post_send(qp[0], &w), 0);
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(p->s[1].n_cqes, 3);
    qp_destroy(second[1]);
    assert_int_equal(qp_post_send(qp[0], &w), 0);
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(p->s[1].n_cqes, 3);
    pair_destroy(p);
    rq_destroy(rq);
}

/* IBTA 10.3.1: only the send queue is in error; it flushes all posted requests and can be
 * resumed. */
static void a_local_error_of_a_datagram_stops_the_send_queue_only(void **state)
{
    struct rq *rq = rq_create(4);
    struct qp *qp[2];
    uint32_t key[2];
    struct pair *p = start(QP_UD, rq, qp, key);
    struct wqe w = datagram(p, qp[1], key[0] + 7, 100);
    struct qp_attr a;

    (void)state;
    receive(rq, 5, key[1], 0, 200);
    assert_int_equal(qp_post_send(qp[0], &w), 0);
    w = datagram(p, qp[1], key[0], 100);
    w.wr_id = 2;
    assert_int_equal(qp_post_send(qp[0], &w), 0);
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(pair_cqe(&p->s[0], 1, false)->status, WC_LOC_PROT_ERR);
    assert_int_equal(pair_cqe(&p->s[0], 2, false)->status, WC_WR_FLUSH_ERR);
    assert_int_equal(qp_state_of(qp[0]), QP_SQE);
    assert_int_equal(p->s[1].n_cqes, 0);
    w.wr_id = 3;
    assert_int_equal(qp_post_send(qp[0], &w), 0);
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(pair_cqe(&p->s[0], 3, false)->status, WC_WR_FLUSH_ERR);
    a = *qp_attributes(qp[0]);
    a.state = QP_RTS;
    assert_int_equal(qp_modify(qp[0], &a), 0);
    w.wr_id = 4;
    assert_int_equal(qp_post_send(qp[0], &w), 0);
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(pair_cqe(&p->s[0], 4, false)->status, WC_SUCCESS);
    assert_int_equal(p->s[1].n_cqes, 1);
    pair_destroy(p);
    rq_destroy(rq);
}

static struct wqe message(uint32_t key, uint32_t rkey, enum wr_op op, uint64_t id, uint32_t len)
{
    return (struct wqe){.wr_id = id,
                        .op = op,
                        .frag = WQE_WHOLE,
                        .flags = WR_F_SIGNALED,
                        .n_sge = 1,
                        .rkey = rkey,
                        .raddr = (uintptr_t)there,
                        .sge = {{(uintptr_t)here, len, key}}};
}

static void a_local_error_of_an_unreliable_message_stops_the_send_queue_only(void **state)
{
    struct rq *rq = rq_create(8);
    struct qp *qp[2];
    uint32_t key[2];
    struct pair *p = start(QP_UC, rq, qp, key);
    struct wqe w = message(key[0] + 5, key[1], WR_SEND, 1, 5000);
    struct qp_attr a;

    (void)state;
    receive(rq, 10, key[1], 0, 5000);
    assert_int_equal(qp_post_send(qp[0], &w), 0);
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(pair_cqe(&p->s[0], 1, false)->status, WC_LOC_PROT_ERR);
    assert_int_equal(qp_state_of(qp[0]), QP_SQE);
    a = *qp_attributes(qp[0]);
    a.state = QP_RTS;
    assert_int_equal(qp_modify(qp[0], &a), 0);
    w = message(key[0], key[1], WR_SEND, 2, 5000);
    assert_int_equal(qp_post_send(qp[0], &w), 0);
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(pair_cqe(&p->s[0], 2, false)->status, WC_SUCCESS);
    assert_int_equal(p->s[1].n_cqes, 1);
    assert_memory_equal(here, there, 5000);
    pair_destroy(p);
    rq_destroy(rq);
}

static unsigned drop_at;
static enum wire_verdict drop_nth(struct pair *p, unsigned from, const struct roce_pkt *k)
{
    (void)from, (void)k;
    return p->count[0] == drop_at ? WIRE_DROP : WIRE_PASS;
}

static void unreliable_messages_are_whole_or_not_there(void **state)
{
    (void)state;
    for (drop_at = 0; drop_at <= 9; drop_at++) {
        struct rq *rq = rq_create(8);
        struct qp *qp[2];
        uint32_t key[2];
        struct pair *p = start(QP_UC, rq, qp, key);
        unsigned lost = drop_at ? (drop_at - 1) / 3 : 99, n = 0;

        p->fault = drop_nth;
        for (unsigned i = 0; i < 3; i++) {
            struct wqe w = message(key[0], key[1], WR_SEND, i, 3000 + i);

            receive(rq, 10 + i, key[1], 0, 4000);
            assert_int_equal(qp_post_send(qp[0], &w), 0);
        }
        pair_run(p, pair_never, PS_PER_S);
        assert_int_equal(p->s[0].n_cqes, 3);
        assert_int_equal(p->s[1].n_cqes, drop_at ? 2 : 3);
        for (unsigned i = 0; i < 3; i++)
            if (i != lost)
                assert_int_equal(p->s[1].cqe[n++].byte_len, 3000 + i);
        assert_memory_equal(here, there, 3000);
        assert_int_equal(p->count[1], 0);
        pair_destroy(p);
        rq_destroy(rq);
    }
}

static void unreliable_writes_arrive_and_bad_ones_do_no_harm(void **state)
{
    struct rq *rq = rq_create(8);
    struct qp *qp[2];
    uint32_t key[2];
    struct pair *p = start(QP_UC, rq, qp, key);
    struct wqe w = message(key[0], key[1] + 5, WR_WRITE, 1, 5000);

    (void)state;
    assert_int_equal(qp_post_send(qp[0], &w), 0);
    w = message(key[0], key[1], WR_WRITE_IMM, 2, 5000);
    receive(rq, 10, key[1], 0, 0);
    assert_int_equal(qp_post_send(qp[0], &w), 0);
    w.op = WR_READ;
    assert_int_equal(qp_post_send(qp[0], &w), -EINVAL);
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(p->s[0].n_cqes, 2);
    assert_int_equal(p->s[1].n_cqes, 1);
    assert_int_equal(p->s[1].cqe[0].byte_len, 5000);
    assert_memory_equal(here, there, 5000);
    assert_int_equal(qp_state_of(qp[1]), QP_RTS);
    pair_destroy(p);
    rq_destroy(rq);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_datagram_comes_behind_its_ip_header),
        cmocka_unit_test(what_a_stranger_sends_costs_no_receive),
        cmocka_unit_test(a_group_is_reached_while_attached),
        cmocka_unit_test(a_local_error_of_a_datagram_stops_the_send_queue_only),
        cmocka_unit_test(a_local_error_of_an_unreliable_message_stops_the_send_queue_only),
        cmocka_unit_test(unreliable_messages_are_whole_or_not_there),
        cmocka_unit_test(unreliable_writes_arrive_and_bad_ones_do_no_harm),
    };

    test_eal_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
