/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine as used by an aggregation node: fragments of messages, one payload held for many
 * children, packets to a sink. */
#include "roce/icrc.h"
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

#define MTU      1024u
#define CHILDREN 5

static struct {
    uint8_t bytes[1 << 20];
    uint32_t len, virt, pkts, rnr_every, calls;
    uint8_t last_opcode;
    uint32_t segs;
    bool refuse, keep;
    struct rte_mbuf *kept[256];
    unsigned n_kept;
    struct qp *qps[CHILDREN];
    uint32_t per_qp[CHILDREN];
} got;

static enum sink_verdict take(struct side *s, struct qp *qp, const struct roce_pkt *k,
                              struct rte_mbuf *m)
{
    (void)s;
    got.calls++;
    if (got.refuse)
        return SINK_INVALID;
    if (got.rnr_every && got.calls % got.rnr_every == 0)
        return SINK_RNR;
    for (unsigned i = 0; i < CHILDREN; i++)
        if (got.qps[i] == qp)
            got.per_qp[i] += k->len;
    if (k->payload && got.len + k->len <= sizeof(got.bytes))
        memcpy(got.bytes + got.len, k->payload, k->len - k->virt);
    got.len += k->len, got.virt += k->virt, got.pkts++;
    got.last_opcode = k->opcode;
    got.segs = RTE_MAX(got.segs, m->nb_segs);
    if (!got.keep || got.n_kept == RTE_DIM(got.kept))
        return SINK_COPIED;
    got.kept[got.n_kept++] = m;
    return SINK_TAKEN;
}

static struct pair *start(const struct qp_attr *attr, unsigned n, struct qp *qp[][2])
{
    struct pair_cfg cfg = {.window = 16, .ack_every = 4, .seed = 3};
    struct pair *p = pair_create(&cfg);

    memset(&got, 0, sizeof(got));
    p->s[1].sink = take;
    for (unsigned i = 0; i < n; i++) {
        pair_connect(p, QP_RC, attr, 64, NULL, NULL, true, qp[i]);
        got.qps[i] = qp[i][1];
    }
    return p;
}

/* A payload as an aggregation node makes it: a frame of its own, some bytes into the data. */
static struct rte_mbuf *payload(struct pair *p, uint32_t seed, uint32_t len)
{
    struct rte_mbuf *m = frame_alloc(p->s[0].pool);

    assert_non_null(m);
    rte_pktmbuf_append(m, 40 + len);
    for (uint32_t i = 0; i < len; i++)
        rte_pktmbuf_mtod(m, uint8_t *)[40 + i] = (uint8_t)(seed * 7 + i * 3);
    return m;
}

static struct wqe fragment(struct rte_mbuf *m, uint64_t id, uint32_t len, unsigned n, unsigned of)
{
    return (struct wqe){.wr_id = id,
                        .op = WR_SEND,
                        .flags = WR_F_SIGNALED,
                        .held = m,
                        .held_off = 40,
                        .held_len = len,
                        .frag = (n == 0 ? WQE_FIRST : 0) | (n == of - 1 ? WQE_LAST : 0)};
}

static void fragments_arrive_as_one_message(void **state)
{
    struct qp *qp[1][2];
    struct qp_attr attr = {.mtu = MTU, .sq_psn = 0xfffffd};
    struct pair *p = start(&attr, 1, qp);

    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        uint32_t len = i == 7 ? 33 : MTU;
        struct rte_mbuf *m = payload(p, i, len);
        struct wqe w = fragment(m, i, len, i, 8);

        assert_int_equal(qp_post_send(qp[0][0], &w), 0);
        rte_pktmbuf_free(m); /* the engine has its own reference */
        if (i == 4)          /* a message may pause in the middle */
            pair_run(p, pair_never, PS_PER_S);
    }
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(p->s[0].n_cqes, 8);
    assert_int_equal(got.pkts, 8);
    assert_int_equal(got.len, 7 * MTU + 33);
    assert_int_equal(got.last_opcode, ROCE_OP_RC_SEND_LAST);
    assert_int_equal(got.segs, 1);
    for (unsigned i = 0; i < got.len; i++)
        assert_int_equal(got.bytes[i], (uint8_t)(i / MTU * 7 + i % MTU * 3));
    assert_int_equal(rnic_counters(p->s[0].r)->timeouts, 0);
    pair_destroy(p);
}

static void one_payload_is_held_for_all_children(void **state)
{
    struct qp *qp[CHILDREN][2];
    struct qp_attr attr = {.mtu = 4096};
    struct pair *p = start(&attr, CHILDREN, qp);
    struct rte_mbuf *m = payload(p, 1, 4096);
    unsigned before = rte_mempool_in_use_count(p->s[0].pool);

    (void)state;
    for (unsigned i = 0; i < CHILDREN; i++) {
        struct wqe w = fragment(m, i, 4096, 0, 1);

        assert_int_equal(qp_post_send(qp[i][0], &w), 0);
    }
    assert_int_equal(rte_mempool_in_use_count(p->s[0].pool), before); /* built on demand */
    assert_int_equal(rte_mbuf_refcnt_read(m), 1 + CHILDREN);
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(p->s[0].n_cqes, CHILDREN);
    assert_int_equal(rte_mbuf_refcnt_read(m), 1);
    assert_true(frame_meta(m)->flags & FRAME_F_CRC);
    assert_int_equal(frame_meta(m)->crc, roce_crc(0, rte_pktmbuf_mtod_offset(m, void *, 40), 4096));
    for (unsigned i = 0; i < CHILDREN; i++)
        assert_int_equal(got.per_qp[i], 4096);
    assert_int_equal(rnic_counters(p->s[1].r)->icrc_errors, 0);
    rte_pktmbuf_free(m);
    pair_destroy(p);
}

static void the_crc_of_a_payload_is_computed_once(void **state)
{
    struct qp *qp[2][2];
    struct qp_attr attr = {.mtu = 4096, .retry_cnt = 1};
    struct pair *p = start(&attr, 2, qp);
    struct rte_mbuf *m = payload(p, 1, 4096);
    struct wqe w = fragment(m, 1, 4096, 0, 1);

    (void)state;
    /* A wrong value in the cache shows that it is used, by the ICRC errors that it makes. */
    frame_meta(m)->flags = FRAME_F_CRC;
    frame_meta(m)->crc_off = 40, frame_meta(m)->crc_len = 4096, frame_meta(m)->crc = 0x1234567;
    assert_int_equal(qp_post_send(qp[0][0], &w), 0);
    pair_run(p, pair_never, PS_PER_S);
    assert_true(rnic_counters(p->s[1].r)->icrc_errors > 0);
    assert_int_equal(got.pkts, 0);
    rte_pktmbuf_free(m);
    pair_destroy(p);
}

/* A received frame of any shape can be sent on: its payload may be its second segment. */
static void what_was_received_is_sent_on(void **state)
{
    struct qp *qp[1][2];
    struct qp_attr attr = {.mtu = MTU};
    struct pair *p = start(&attr, 1, qp);

    (void)state;
    got.keep = true;
    for (unsigned i = 0; i < 4; i++) {
        struct rte_mbuf *m = payload(p, i, MTU);
        struct wqe w = fragment(m, i, MTU, i, 4);

        assert_int_equal(qp_post_send(qp[0][0], &w), 0);
        rte_pktmbuf_free(m);
    }
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(got.n_kept, 4);
    p->s[0].sink = take;
    got.keep = false, got.len = got.pkts = 0;
    memset(got.bytes, 0, sizeof(got.bytes));
    for (unsigned i = 0; i < 4; i++) {
        struct rte_mbuf *whole = got.kept[i], *m = frame_clone(whole, p->s[1].pool);
        struct wqe w;
        struct roce_pkt k;

        if (i & 1)
            m = frame_writable(m, p->s[1].pool);
        assert_int_equal(m->nb_segs, 1 + (i & 1));
        w = fragment(m, i, MTU, i, 4);
        assert_int_equal(roce_parse(m, &k), ROCE_OK);
        w.held_off = k.hdr_len;
        assert_int_equal(qp_post_send(qp[0][1], &w), 0);
        rte_pktmbuf_free(m);
        rte_pktmbuf_free(whole);
    }
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(got.len, 4 * MTU);
    for (unsigned i = 0; i < got.len; i++)
        assert_int_equal(got.bytes[i], (uint8_t)(i / MTU * 7 + i % MTU * 3));
    pair_destroy(p);
}

static void lengths_only_give_the_same_frames(void **state)
{
    unsigned frames[2];

    (void)state;
    for (unsigned virt = 0; virt < 2; virt++) {
        struct qp *qp[1][2];
        struct qp_attr attr = {.mtu = MTU};
        struct pair *p = start(&attr, 1, qp);

        for (unsigned i = 0; i < 16; i++) {
            struct rte_mbuf *m = payload(p, i, i ? MTU : 32);
            /* the first fragment: a header that is carried, elements that are not */
            struct wqe w = fragment(m, i, i ? MTU : 32, i % 8, 8);

            if (i == 0)
                w.virt_len = MTU - 32;
            else if (virt)
                w.held = NULL, w.held_len = 0, w.virt_len = MTU;
            assert_int_equal(qp_post_send(qp[0][0], &w), 0);
            rte_pktmbuf_free(m);
        }
        pair_run(p, pair_never, PS_PER_S);
        assert_int_equal(p->s[0].n_cqes, 16);
        assert_int_equal(got.len, 16 * MTU);
        assert_int_equal(got.virt, virt ? 16 * MTU - 32 : MTU - 32);
        assert_int_equal(got.bytes[5], 15);
        frames[virt] = p->count[0] + p->count[1];
        pair_destroy(p);
    }
    assert_int_equal(frames[0], frames[1]);
}

static void a_sink_that_is_not_ready_gets_each_packet_once(void **state)
{
    struct qp *qp[1][2];
    struct qp_attr attr = {.mtu = MTU};
    struct pair *p = start(&attr, 1, qp);

    (void)state;
    got.rnr_every = 3;
    for (unsigned i = 0; i < 32; i++) {
        struct rte_mbuf *m = payload(p, i, MTU);
        struct wqe w = fragment(m, i, MTU, i % 8, 8);

        assert_int_equal(qp_post_send(qp[0][0], &w), 0);
        rte_pktmbuf_free(m);
    }
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(p->s[0].n_cqes, 32);
    assert_int_equal(got.pkts, 32);
    for (unsigned i = 0; i < got.len; i++)
        assert_int_equal(got.bytes[i], (uint8_t)(i / MTU * 7 + i % MTU * 3));
    assert_true(rnic_counters(p->s[1].r)->rnr_naks_sent > 5);
    pair_destroy(p);
}

static void a_sink_that_refuses_ends_the_connection(void **state)
{
    struct qp *qp[1][2];
    struct qp_attr attr = {.mtu = MTU};
    struct pair *p = start(&attr, 1, qp);
    struct rte_mbuf *m = payload(p, 1, 64);
    struct wqe w = fragment(m, 1, 64, 0, 1);

    (void)state;
    got.refuse = true;
    assert_int_equal(qp_post_send(qp[0][0], &w), 0);
    w.wr_id = 2;
    assert_int_equal(qp_post_send(qp[0][0], &w), 0);
    rte_pktmbuf_free(m);
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(pair_cqe(&p->s[0], 1, false)->status, WC_REM_INV_REQ_ERR);
    assert_int_equal(pair_cqe(&p->s[0], 2, false)->status, WC_WR_FLUSH_ERR);
    assert_int_equal(p->s[1].events[QP_EV_REQ_ERR], 1);
    pair_destroy(p);
}

static void references_are_given_back_when_a_qp_goes(void **state)
{
    struct qp *qp[1][2];
    struct qp_attr attr = {.mtu = MTU}, err = {.state = QP_ERR};
    struct pair *p = start(&attr, 1, qp);
    struct rte_mbuf *m = payload(p, 1, MTU);

    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        struct wqe w = fragment(m, i, MTU, 0, 1);

        assert_int_equal(qp_post_send(qp[0][0], &w), 0);
    }
    pair_run(p, pair_never, PS_PER_US);
    assert_int_equal(qp_modify(qp[0][0], &err), 0);
    assert_int_equal(p->s[0].n_cqes, 20);
    struct wqe w = fragment(m, 99, MTU, 0, 1);

    assert_int_equal(qp_post_send(qp[0][0], &w), 0);
    qp_destroy(qp[0][0]);
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(rte_mbuf_refcnt_read(m), 1);
    rte_pktmbuf_free(m);
    pair_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fragments_arrive_as_one_message),
        cmocka_unit_test(one_payload_is_held_for_all_children),
        cmocka_unit_test(the_crc_of_a_payload_is_computed_once),
        cmocka_unit_test(what_was_received_is_sent_on),
        cmocka_unit_test(lengths_only_give_the_same_frames),
        cmocka_unit_test(a_sink_that_is_not_ready_gets_each_packet_once),
        cmocka_unit_test(a_sink_that_refuses_ends_the_connection),
        cmocka_unit_test(references_are_given_back_when_a_qp_goes),
    };

    test_eal_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
