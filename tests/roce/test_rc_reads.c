/* SPDX-License-Identifier: BSD-3-Clause */
/* READs: number outstanding, fences, gaps in responses, repeated requests. */
#include "tests/roce/rc_fixture.h"

static unsigned reads_open, reads_most;
static enum wire_verdict count_reads(struct pair *p, unsigned from, const struct roce_pkt *k)
{
    (void)p, (void)from;
    if (k->opcode == ROCE_OP_RC_READ_REQUEST)
        reads_open++;
    if (k->opcode == ROCE_OP_RC_READ_RESPONSE_LAST)
        reads_open--;
    reads_most = RTE_MAX(reads_most, reads_open);
    return WIRE_PASS;
}

static void outstanding_reads_are_bounded(void **state)
{
    struct qp_attr attr = {.mtu = 256, .max_rd_atomic = 3};
    struct fixture e = fixture_make(&attr, false);

    (void)state;
    reads_open = reads_most = 0;
    e.p->fault = count_reads;
    for (unsigned i = 0; i < 20; i++) {
        struct wqe w = request(&e, WR_READ, i, 1000);

        assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    }
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(e.p->s[0].n_cqes, 20);
    assert_int_equal(reads_most, 3);
    assert_clean(&e);
    fixture_free(&e);
}

static enum wire_verdict send_after_all_reads(struct pair *p, unsigned from,
                                              const struct roce_pkt *k)
{
    (void)p, (void)from;
    count_reads(p, from, k);
    if (k->opcode == ROCE_OP_RC_WRITE_ONLY)
        assert_int_equal(reads_open, 0);
    return WIRE_PASS;
}

static void a_fence_waits_for_reads(void **state)
{
    struct qp_attr attr = {.mtu = 256};
    struct fixture e = fixture_make(&attr, false);
    struct wqe r = request(&e, WR_READ, 1, 5000), w = request(&e, WR_WRITE, 2, 100);

    (void)state;
    reads_open = reads_most = 0;
    e.p->fault = send_after_all_reads;
    w.flags |= WR_F_FENCE;
    assert_int_equal(qp_post_send(e.qp[0], &r), 0);
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(e.p->s[0].n_cqes, 2);
    fixture_free(&e);
}

/* Loses one response of a READ, and another one of its repetition. */
static unsigned seen_14, seen_60;
static enum wire_verdict drop_two_responses(struct pair *p, unsigned from, const struct roce_pkt *k)
{
    (void)p;
    if (from != 1 || k->len == 0)
        return WIRE_PASS;
    if (k->psn == 14 && ++seen_14 == 1)
        return WIRE_DROP;
    return k->psn == 60 && ++seen_60 == 2 ? WIRE_DROP : WIRE_PASS;
}

static void each_gap_in_a_read_is_asked_for_without_a_timeout(void **state)
{
    struct qp_attr attr = {.mtu = 256, .sq_psn = 10, .timeout = 20};
    struct fixture e = fixture_make(&attr, false);
    struct wqe w = request(&e, WR_READ, 1, 100 * 256);

    (void)state;
    seen_14 = seen_60 = 0;
    e.p->fault = drop_two_responses;
    for (unsigned b = 0; b < BUF; b++)
        e.buf[1][b] = (uint8_t)(b * 7 + b / 256);
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(e.p->s[0].n_cqes, 1);
    assert_memory_equal(e.buf[0], e.buf[1], 100 * 256);
    assert_int_equal(rnic_counters(e.p->s[0].r)->timeouts, 0);
    assert_int_equal(rnic_counters(e.p->s[0].r)->read_gaps, 2);
    fixture_free(&e);
}

/* Loses a WRITE until the peer says NAK, then the next but one; and all answers to the READ before
 * them until it has said twelve. */
static enum wire_verdict drop_answers_and_writes(struct pair *p, unsigned from,
                                                 const struct roce_pkt *k)
{
    uint64_t naks = rnic_counters(p->s[1].r)->seq_naks_sent;

    if (naks == 12)
        return WIRE_PASS;
    if (from == 1)
        return k->opcode == ROCE_OP_RC_READ_RESPONSE_ONLY ? WIRE_DROP : WIRE_PASS;
    return k->psn == 12 + 2 * naks ? WIRE_DROP : WIRE_PASS;
}

static void gaps_behind_a_read_take_one_retry_while_requests_come_further(void **state)
{
    struct qp_attr attr = {.mtu = 256, .sq_psn = 10, .timeout = 20, .retry_cnt = 2};
    struct fixture e = fixture_make(&attr, false);
    struct wqe w = request(&e, WR_READ, 0, 256);

    (void)state;
    e.p->fault = drop_answers_and_writes;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    for (unsigned i = 1; i <= 30; i++) {
        w = request(&e, WR_WRITE, i, 256);
        assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    }
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(e.p->s[0].n_cqes, 31);
    for (unsigned i = 0; i < 31; i++)
        assert_int_equal(e.p->s[0].cqe[i].status, WC_SUCCESS);
    assert_true(rnic_counters(e.p->s[0].r)->seq_naks_received == 12);
    assert_int_equal(rnic_counters(e.p->s[0].r)->timeouts, 0);
    fixture_free(&e);
}

/* To a peer that knows only the specification, it would mean that the answer is lost. */
static void what_follows_a_read_is_acknowledged_behind_its_answer(void **state)
{
    struct qp_attr attr = {.mtu = 256};
    struct fixture e = fixture_make(&attr, false);
    struct wqe r = request(&e, WR_READ, 1, 10 * 256), w = request(&e, WR_WRITE, 2, 256);
    struct endpoint ep[2] = {e.p->s[0].ep, e.p->s[1].ep};
    struct rte_mbuf *m[16];
    struct roce_pkt k;

    (void)state;
    assert_int_equal(qp_post_send(e.qp[0], &r), 0);
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    assert_int_equal(ep[0].output(ep[0].ctx, ENDPOINT_DATA, m, 16, 0), 2);
    ep[1].input(ep[1].ctx, m, 2, 0);
    assert_int_equal(ep[1].output(ep[1].ctx, ENDPOINT_ACK, m, 16, 0), 0);
    assert_int_equal(ep[1].output(ep[1].ctx, ENDPOINT_DATA, m, 16, 0), 11);
    assert_int_equal(roce_parse(m[9], &k), ROCE_OK);
    assert_int_equal(k.opcode, ROCE_OP_RC_READ_RESPONSE_LAST);
    assert_int_equal(roce_parse(m[10], &k), ROCE_OK);
    assert_int_equal(k.opcode, ROCE_OP_RC_ACKNOWLEDGE);
    ep[0].input(ep[0].ctx, m, 11, 0);
    assert_int_equal(e.p->s[0].n_cqes, 2);
    assert_clean(&e);
    fixture_free(&e);
}

/* Our own queues let acknowledgements overtake: an early one is remembered. */
static void an_acknowledgement_may_overtake_an_answer(void **state)
{
    struct qp_attr attr = {.mtu = 256};
    struct fixture e = fixture_make(&attr, false);
    struct wqe r = request(&e, WR_READ, 1, 3 * 256), w = request(&e, WR_WRITE, 2, 256);
    struct endpoint ep[2] = {e.p->s[0].ep, e.p->s[1].ep};
    struct rte_mbuf *m[16];

    (void)state;
    assert_int_equal(qp_post_send(e.qp[0], &r), 0);
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    assert_int_equal(ep[0].output(ep[0].ctx, ENDPOINT_DATA, m, 16, 0), 2);
    ep[1].input(ep[1].ctx, m, 2, 0);
    assert_int_equal(ep[1].output(ep[1].ctx, ENDPOINT_DATA, m, 16, 0), 3);
    assert_int_equal(ep[1].output(ep[1].ctx, ENDPOINT_ACK, m + 3, 1, 0), 1);
    ep[0].input(ep[0].ctx, m + 3, 1, 0);
    assert_int_equal(e.p->s[0].n_cqes, 0);
    ep[0].input(ep[0].ctx, m, 3, 0);
    assert_int_equal(e.p->s[0].n_cqes, 2);
    assert_int_equal(ep[0].next(ep[0].ctx), PS_NEVER);
    assert_clean(&e);
    fixture_free(&e);
}

static struct rte_mbuf *read_request(const struct fixture *e, uint32_t psn, uint32_t len)
{
    struct roce_pkt k = {.opcode = ROCE_OP_RC_READ_REQUEST,
                         .ttl = 64,
                         .pkey = 0xffff,
                         .src_ip = e->p->s[0].ip,
                         .dst_ip = e->p->s[1].ip,
                         .dqpn = qp_num(e->qp[1]),
                         .psn = psn,
                         .va = at(e, 1, 0),
                         .rkey = e->key[1],
                         .dma_len = len};
    struct rte_mbuf *m = frame_alloc(e->p->s[1].pool);

    roce_mac_of_ip(k.dst_ip, k.dst_mac);
    roce_mac_of_ip(k.src_ip, k.src_mac);
    roce_build(m, &k);
    roce_seal(m, &k);
    return m;
}

static unsigned pull_psns(const struct fixture *e, uint32_t *psn, unsigned n)
{
    struct rte_mbuf *m[16];
    struct roce_pkt k;
    unsigned got = e->p->s[1].ep.output(e->p->s[1].r, ENDPOINT_DATA, m, n, 0);

    for (unsigned i = 0; i < got; i++) {
        assert_int_equal(roce_parse(m[i], &k), ROCE_OK);
        psn[i] = k.psn;
        rte_pktmbuf_free(m[i]);
    }
    return got;
}

static void a_repeated_read_is_answered_in_order_of_psn(void **state)
{
    struct qp_attr attr = {.mtu = 256, .sq_psn = 10};
    struct fixture e = fixture_make(&attr, false);
    struct endpoint ep = e.p->s[1].ep;
    struct rte_mbuf *m[2] = {read_request(&e, 10, 512), read_request(&e, 12, 1024)};
    uint32_t psn[16];

    (void)state;
    ep.input(ep.ctx, m, 2, 0);
    assert_int_equal(pull_psns(&e, psn, 3), 3); /* 10, 11, 12 */
    assert_int_equal(psn[2], 12);
    m[0] = read_request(&e, 10, 512); /* all sent: again, before the rest of the other */
    m[1] = read_request(&e, 13, 768); /* waits: nothing of it was sent yet */
    ep.input(ep.ctx, m, 2, 0);
    assert_int_equal(pull_psns(&e, psn, 16), 5);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(psn[i], i < 2 ? 10 + i : 11 + i);
    m[0] = read_request(&e, 14, 512);
    m[1] = read_request(&e, 14, 99999); /* beyond all requests */
    ep.input(ep.ctx, m, 2, 0);
    assert_int_equal(pull_psns(&e, psn, 16), 2);
    fixture_free(&e);
}

/* The wire may double an old request; the peer still may have as many new ones open as was agreed.
 */
static void a_doubled_old_read_does_not_count_as_an_open_one(void **state)
{
    struct qp_attr attr = {.mtu = 256, .sq_psn = 10, .max_dest_rd_atomic = 2};
    struct fixture e = fixture_make(&attr, false);
    struct endpoint ep = e.p->s[1].ep;
    struct rte_mbuf *m[4] = {read_request(&e, 10, 512)};
    uint32_t psn[16];

    (void)state;
    ep.input(ep.ctx, m, 1, 0);
    assert_int_equal(pull_psns(&e, psn, 16), 2);
    m[0] = read_request(&e, 10, 512);
    m[1] = read_request(&e, 12, 512);
    m[2] = read_request(&e, 14, 512);
    ep.input(ep.ctx, m, 3, 0);
    assert_int_equal(pull_psns(&e, psn, 16), 6);
    m[0] = read_request(&e, 16, 512);
    m[1] = read_request(&e, 18, 512);
    m[2] = read_request(&e, 20, 512);
    ep.input(ep.ctx, m, 3, 0); /* but no more than that */
    assert_int_equal(qp_state_of(e.qp[1]), QP_ERR);
    fixture_free(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outstanding_reads_are_bounded),
        cmocka_unit_test(a_fence_waits_for_reads),
        cmocka_unit_test(gaps_behind_a_read_take_one_retry_while_requests_come_further),
        cmocka_unit_test(each_gap_in_a_read_is_asked_for_without_a_timeout),
        cmocka_unit_test(what_follows_a_read_is_acknowledged_behind_its_answer),
        cmocka_unit_test(an_acknowledgement_may_overtake_an_answer),
        cmocka_unit_test(a_repeated_read_is_answered_in_order_of_psn),
        cmocka_unit_test(a_doubled_old_read_does_not_count_as_an_open_one),
    };

    test_eal_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
