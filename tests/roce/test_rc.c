/* SPDX-License-Identifier: BSD-3-Clause */
/* Reliable connections: every operation at every MTU, in order, with any one frame lost. */
#include "tests/roce/rc_fixture.h"

/* One operation of len bytes; returns the data frames (all but acknowledgements) that both sides
 * sent. */
static unsigned one_operation(enum wr_op op, uint16_t mtu, uint32_t len, uint32_t psn,
                              bool unbacked)
{
    struct qp_attr attr = {.mtu = mtu, .sq_psn = psn};
    struct fixture e = fixture_make(&attr, unbacked);
    struct wqe w = request(&e, op, 7, len);
    const struct cqe *c;
    unsigned frames;
    bool send = op == WR_SEND || op == WR_SEND_IMM;

    if (op == WR_READ) /* the other direction */
        for (unsigned b = 0; b < BUF; b++)
            e.buf[1][b] = e.buf[0][b], e.buf[0][b] = 0;
    if (send || op == WR_WRITE_IMM)
        post_recv(&e, 1, 9, 0, send ? len + 8 : 0);
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    pair_run(e.p, pair_never, PS_PER_S);
    c = pair_cqe(&e.p->s[0], 7, false);
    assert_non_null(c);
    assert_int_equal(c->status, WC_SUCCESS);
    assert_int_equal(c->op, op);
    assert_int_equal(c->byte_len, len);
    if (!unbacked) {
        assert_memory_equal(e.buf[0], e.buf[1], len);
        assert_int_equal(e.buf[op == WR_READ ? 0 : 1][len], 0);
    }
    if (send || op == WR_WRITE_IMM) {
        c = pair_cqe(&e.p->s[1], 9, true);
        assert_non_null(c);
        assert_int_equal(c->status, WC_SUCCESS);
        assert_int_equal(c->op, op);
        assert_int_equal(c->byte_len, len);
        assert_int_equal(c->src_qpn, qp_num(e.qp[0]));
        assert_int_equal(c->has_imm, op != WR_SEND);
        if (c->has_imm)
            assert_int_equal(c->imm, rte_cpu_to_be_32(0xabcd));
    }
    assert_int_equal(e.p->s[0].n_cqes, 1);
    assert_clean(&e);
    frames = e.p->count_data[0] + e.p->count_data[1];
    fixture_free(&e);
    return frames;
}

static void each_operation_moves_each_length_at_each_mtu(void **state)
{
    static const enum wr_op ops[] = {WR_SEND, WR_SEND_IMM, WR_WRITE, WR_WRITE_IMM, WR_READ};

    (void)state;
    for (unsigned mtu = 256; mtu <= 4096; mtu *= 2)
        for (unsigned o = 0; o < RTE_DIM(ops); o++) {
            const uint32_t lens[] = {0, 1, mtu - 1, mtu, mtu + 1, 3 * mtu, 40 * mtu + 3};

            for (unsigned l = 0; l < RTE_DIM(lens); l++) {
                unsigned want = (lens[l] ? (lens[l] - 1) / mtu + 1 : 1) + (ops[o] == WR_READ);

                assert_int_equal(one_operation(ops[o], mtu, lens[l], 100, false), want);
                assert_int_equal(one_operation(ops[o], mtu, lens[l], 0xfffffe, true), want);
            }
        }
}

static void psn_wraps_in_mid_message(void **state)
{
    (void)state;
    for (uint32_t psn = 0xfffff8; psn <= 0xffffff; psn++) {
        one_operation(WR_WRITE, 256, 10 * 256, psn, false);
        one_operation(WR_READ, 256, 10 * 256, psn, false);
        one_operation(WR_SEND, 256, 10 * 256, psn, false);
    }
}

static void atomics_return_the_old_value_and_change_it_once(void **state)
{
    struct fixture e = fixture_make(NULL, false);
    uint64_t *there = (uint64_t *)e.buf[1], *here = (uint64_t *)e.buf[0];
    struct wqe w = request(&e, WR_FETCH_ADD, 1, 8);

    (void)state;
    *there = 40;
    w.n_sge = 1, w.sge[0].len = 8;
    w.compare_add = 2;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    w.op = WR_CMP_SWAP, w.wr_id = 2, w.compare_add = 42, w.swap = 77, w.sge[0].addr += 8;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    w.wr_id = 3, w.compare_add = 1, w.swap = 99, w.sge[0].addr += 8;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(e.p->s[0].n_cqes, 3);
    assert_int_equal(here[0], 40);
    assert_int_equal(here[1], 42);
    assert_int_equal(here[2], 77);
    assert_int_equal(*there, 77);
    assert_clean(&e);
    fixture_free(&e);
}

/* Drops every response to an atomic once. */
static enum wire_verdict drop_first_atomic_ack(struct pair *p, unsigned from,
                                               const struct roce_pkt *k)
{
    (void)from;
    if (k->opcode != ROCE_OP_RC_ATOMIC_ACKNOWLEDGE || p->arg)
        return WIRE_PASS;
    p->arg = p;
    return WIRE_DROP;
}

static void a_repeated_atomic_is_answered_but_not_executed_again(void **state)
{
    struct fixture e = fixture_make(NULL, false);
    struct wqe w = request(&e, WR_FETCH_ADD, 1, 8);

    (void)state;
    *(uint64_t *)e.buf[1] = 40;
    e.p->fault = drop_first_atomic_ack;
    w.n_sge = 1, w.sge[0].len = 8;
    w.compare_add = 2;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(e.p->s[0].n_cqes, 1);
    assert_int_equal(*(uint64_t *)e.buf[0], 40);
    assert_int_equal(*(uint64_t *)e.buf[1], 42);
    assert_int_equal(rnic_counters(e.p->s[1].r)->duplicates, 1);
    fixture_free(&e);
}

/* Drops or delays or doubles the frame number arg of all that are sent. */
struct nth {
    unsigned n, seen;
    enum wire_verdict v;
};
static enum wire_verdict nth_frame(struct pair *p, unsigned from, const struct roce_pkt *k)
{
    struct nth *a = p->arg;

    (void)from, (void)k;
    return a->seen++ == a->n ? a->v : WIRE_PASS;
}

static void any_single_fault_is_repaired(void **state)
{
    static const enum wire_verdict faults[] = {WIRE_DROP, WIRE_DUP, WIRE_CORRUPT, WIRE_LATE};

    (void)state;
    for (unsigned f = 0; f < RTE_DIM(faults); f++)
        for (unsigned n = 0; n < 45; n++) {
            static const enum wr_op ops[] = {WR_WRITE, WR_READ,      WR_SEND,
                                             WR_READ,  WR_WRITE_IMM, WR_READ};
            struct qp_attr attr = {.mtu = 256, .sq_psn = 0xfffff0};
            struct fixture e = fixture_make(&attr, false);
            struct nth a = {n, 0, faults[f]};

            e.p->fault = nth_frame, e.p->arg = &a;
            for (unsigned b = 0; b < BUF; b++)
                e.buf[1][b] = (uint8_t)(b * 13 + 1);
            for (unsigned o = 0; o < RTE_DIM(ops); o++) {
                struct wqe w = request(&e, ops[o], o, 1300 + o);

                w.n_sge = 1;
                w.sge[0] = (struct sge){at(&e, 0, o * 4096), 1300 + o, e.key[0]};
                w.raddr = at(&e, 1, o * 4096);
                assert_int_equal(qp_post_send(e.qp[0], &w), 0);
            }
            post_recv(&e, 1, 50, 2 * 4096, 1400);
            post_recv(&e, 1, 51, 0, 0);
            pair_run(e.p, pair_never, PS_PER_S);
            assert_int_equal(e.p->s[0].n_cqes, RTE_DIM(ops));
            for (unsigned o = 0; o < RTE_DIM(ops); o++) {
                assert_int_equal(e.p->s[0].cqe[o].wr_id, o);
                assert_int_equal(e.p->s[0].cqe[o].status, WC_SUCCESS);
                assert_memory_equal(e.buf[0] + o * 4096, e.buf[1] + o * 4096, 1300 + o);
            }
            assert_int_equal(e.p->s[1].n_cqes, 2);
            fixture_free(&e);
        }
}

static void a_gap_is_answered_by_one_nak(void **state)
{
    struct qp_attr attr = {.mtu = 256, .sq_psn = 5};
    struct fixture e = fixture_make(&attr, false);
    struct nth a = {3, 0, WIRE_DROP};
    struct wqe w = request(&e, WR_WRITE, 1, 20 * 256);

    (void)state;
    e.p->fault = nth_frame, e.p->arg = &a;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(e.p->s[0].n_cqes, 1);
    assert_int_equal(rnic_counters(e.p->s[1].r)->seq_naks_sent, 1);
    assert_int_equal(rnic_counters(e.p->s[0].r)->timeouts, 0);
    assert_true(rnic_counters(e.p->s[1].r)->drops[ROCE_OUT_OF_SEQUENCE] > 1);
    fixture_free(&e);
}

static void acknowledgements_are_coalesced(void **state)
{
    struct qp_attr attr = {.mtu = 256, .sq_psn = 5};
    struct fixture e = fixture_make(&attr, false);
    struct wqe w = request(&e, WR_WRITE, 1, 400 * 256);

    (void)state;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(e.p->s[0].n_cqes, 1);
    assert_int_equal(e.p->count_data[0], 400);
    assert_true(e.p->count[1] <= 101);
    assert_clean(&e);
    fixture_free(&e);
}

static void the_window_bounds_what_is_in_flight(void **state)
{
    struct qp_attr attr = {.mtu = 256};
    struct fixture e = fixture_make(&attr, false);
    struct wqe w = request(&e, WR_WRITE, 1, 400 * 256);

    (void)state;
    e.p->fault = drop_first_atomic_ack;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    e.p->burst = 64;
    pair_run(e.p, pair_never, PS_PER_US);
    assert_int_equal(e.p->count[0], 32);
    fixture_free(&e);
}

static void a_queue_pair_may_have_a_window_of_its_own(void **state)
{
    struct qp_attr attr = {.mtu = 256};
    struct fixture e = fixture_make(&attr, false);
    struct wqe w = request(&e, WR_WRITE, 1, 400 * 256);

    (void)state;
    e.p->fault = drop_first_atomic_ack;
    qp_set_window(e.qp[0], 10);
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    assert_int_equal(qp_sq_used(e.qp[0]), 1);
    e.p->burst = 64;
    pair_run(e.p, pair_never, PS_PER_US);
    assert_int_equal(e.p->count[0], 10);
    qp_set_window(e.qp[0], 20); /* what waits goes on at once */
    pair_run(e.p, pair_never, PS_PER_US);
    assert_int_equal(e.p->count[0], 20);
    fixture_free(&e);
}

/* ---- ways through a fabric ---- */

/* IBTA A17.4.3: the UDP source port is a flow's, of the dynamic range; by it switches spread queue
 * pairs over equal paths. */
static void packets_of_a_queue_pair_have_one_source_port_and_others_another(void **state)
{
    struct fixture e = fixture_make(NULL, false);
    unsigned port[3] = {0};

    (void)state;
    for (unsigned k = 0; k < 3; k++) {
        struct rte_mbuf *m[4];
        uint16_t n;
        struct qp *qp[2] = {e.qp[0], e.qp[1]};
        struct wqe w = request(&e, WR_WRITE, k + 1, 300);

        if (k)
            pair_connect(e.p, QP_RC, &(struct qp_attr){.sq_psn = 7}, 8, NULL, NULL, false, qp);
        assert_int_equal(qp_post_send(qp[0], &w), 0);
        n = e.p->s[0].ep.output(e.p->s[0].ep.ctx, ENDPOINT_DATA, m, 4, e.p->now_ps);
        assert_true(n > 0);
        for (uint16_t i = 0; i < n; i++) {
            const uint8_t *udp = rte_pktmbuf_mtod(m[i], const uint8_t *) + 34;
            unsigned src = (unsigned)udp[0] << 8 | udp[1];

            assert_in_range(src, 0xc000, 0xffff);
            if (!i)
                port[k] = src;
            assert_int_equal(src, port[k]);
            rte_pktmbuf_free(m[i]);
        }
        for (unsigned j = 0; j < k; j++)
            assert_int_not_equal(port[j], port[k]);
    }
    fixture_free(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_operation_moves_each_length_at_each_mtu),
        cmocka_unit_test(psn_wraps_in_mid_message),
        cmocka_unit_test(atomics_return_the_old_value_and_change_it_once),
        cmocka_unit_test(a_repeated_atomic_is_answered_but_not_executed_again),
        cmocka_unit_test(any_single_fault_is_repaired),
        cmocka_unit_test(a_gap_is_answered_by_one_nak),
        cmocka_unit_test(acknowledgements_are_coalesced),
        cmocka_unit_test(the_window_bounds_what_is_in_flight),
        cmocka_unit_test(a_queue_pair_may_have_a_window_of_its_own),
        cmocka_unit_test(packets_of_a_queue_pair_have_one_source_port_and_others_another),
    };

    test_eal_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
