/* SPDX-License-Identifier: BSD-3-Clause */
/* Reliable connections: every way in which a request can fail, and its effect at the peer. */
#include "tests/roce/rc_fixture.h"

#include "roce/engine.h"

/* ---- receiver not ready, retries ---- */

static void a_send_without_a_receive_waits_for_one(void **state)
{
    struct fixture e = fixture_make(NULL, false);
    struct wqe w = request(&e, WR_SEND, 1, 5000);

    (void)state;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    assert_false(pair_run(e.p, pair_never, PS_PER_MS));
    assert_int_equal(e.p->s[0].n_cqes, 0);
    assert_true(rnic_counters(e.p->s[1].r)->rnr_naks_sent > 3);
    assert_int_equal(rnic_counters(e.p->s[1].r)->seq_naks_sent, 0);
    post_recv(&e, 1, 2, 0, 6000);
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(e.p->s[0].n_cqes, 1);
    assert_int_equal(e.p->s[0].cqe[0].status, WC_SUCCESS);
    assert_int_equal(e.p->s[1].cqe[0].byte_len, 5000);
    assert_memory_equal(e.buf[0], e.buf[1], 5000);
    fixture_free(&e);
}

static void rnr_waits_as_long_as_the_receiver_says(void **state)
{
    struct qp_attr attr = {.min_rnr_timer = 20}; /* 10.24 ms */
    struct fixture e = fixture_make(&attr, false);
    struct wqe w = request(&e, WR_SEND, 1, 50);

    (void)state;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    pair_run(e.p, pair_never, 10 * PS_PER_MS);
    assert_int_equal(e.p->count[0], 1);
    pair_run(e.p, pair_never, PS_PER_MS);
    assert_int_equal(e.p->count[0], 2);
    fixture_free(&e);
}

static void rnr_retries_run_out(void **state)
{
    struct qp_attr attr = {.rnr_retry = 2};
    struct fixture e = fixture_make(&attr, false);
    struct wqe w = request(&e, WR_SEND, 1, 50);

    (void)state;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(e.p->s[0].n_cqes, 1);
    assert_int_equal(e.p->s[0].cqe[0].status, WC_RNR_RETRY_EXC_ERR);
    assert_int_equal(e.p->count[0], 3);
    assert_int_equal(qp_state_of(e.qp[0]), QP_ERR);
    fixture_free(&e);
}

static enum wire_verdict drop_all(struct pair *p, unsigned from, const struct roce_pkt *k)
{
    (void)p, (void)from, (void)k;
    return WIRE_DROP;
}

static void a_silent_peer_ends_in_retry_exceeded_and_flushes(void **state)
{
    struct qp_attr attr = {.retry_cnt = 3, .timeout = 6};
    struct fixture e = fixture_make(&attr, false);
    int64_t t = 4096 * PS_PER_NS << 6;

    (void)state;
    e.p->fault = drop_all;
    for (unsigned i = 0; i < 5; i++) {
        struct wqe w = request(&e, i == 2 ? WR_READ : WR_WRITE, i, 50);

        w.flags = 0; /* errors complete unsignaled requests too */
        assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    }
    for (unsigned i = 0; i < 3; i++)
        post_recv(&e, 0, 10 + i, 0, 16);
    pair_run(e.p, pair_never, 4 * t - 1);
    assert_int_equal(e.p->s[0].n_cqes, 0);
    pair_run(e.p, pair_never, 2);
    assert_int_equal(e.p->s[0].n_cqes, 8);
    for (unsigned i = 0; i < 8; i++) {
        const struct cqe *c = &e.p->s[0].cqe[i];

        assert_int_equal(c->status, i ? WC_WR_FLUSH_ERR : WC_RETRY_EXC_ERR);
        assert_int_equal(c->wr_id, i < 5 ? i : i + 5);
        assert_int_equal(c->is_recv, i >= 5);
    }
    assert_int_equal(rnic_counters(e.p->s[0].r)->timeouts, 4);
    /* Requests posted afterwards are flushed too. */
    struct wqe w = request(&e, WR_SEND, 90, 50);

    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    post_recv(&e, 0, 91, 0, 16);
    pair_run(e.p, pair_never, PS_PER_US);
    assert_int_equal(pair_cqe(&e.p->s[0], 90, false)->status, WC_WR_FLUSH_ERR);
    assert_int_equal(pair_cqe(&e.p->s[0], 91, true)->status, WC_WR_FLUSH_ERR);
    fixture_free(&e);
}

static void a_short_rnr_timer_is_not_held_up_by_a_long_timeout(void **state)
{
    struct qp_attr attr = {.min_rnr_timer = 1, .timeout = 20}; /* 10 us, 4 s */
    struct fixture e = fixture_make(&attr, false);
    struct wqe w = request(&e, WR_SEND, 1, 50);

    (void)state;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    pair_run(e.p, pair_never, 16 * PS_PER_US);
    assert_int_equal(e.p->count[0], 2);
    fixture_free(&e);
}

/* ---- errors ---- */

static const struct err_row {
    const char *what;
    enum wr_op op;
    uint8_t want;
    uint8_t recv_want; /* status of the receive; 0: none */
    unsigned event;    /* at the peer */
    void (*spoil)(struct fixture *e, struct wqe *w);
} errors[];

static void spoil_rkey(struct fixture *e, struct wqe *w)
{
    (void)e;
    w->rkey = 99;
}
static void spoil_bounds(struct fixture *e, struct wqe *w)
{
    w->raddr = at(e, 1, BUF - 10);
}
static void spoil_rights(struct fixture *e, struct wqe *w)
{
    (void)w;
    e->p->s[1].region[0].access = ACCESS_LOCAL_WRITE;
}
static void spoil_lkey(struct fixture *e, struct wqe *w)
{
    (void)e;
    w->sge[1].lkey = 55;
}
static void spoil_local_rights(struct fixture *e, struct wqe *w)
{
    (void)w;
    e->p->s[0].region[0].access = 0;
}
static void spoil_recv_short(struct fixture *e, struct wqe *w)
{
    (void)w;
    post_recv(e, 1, 9, 0, 4000);
}
static void spoil_recv_key(struct fixture *e, struct wqe *w)
{
    struct rwqe r = {.wr_id = 9, .n_sge = 1};

    (void)w;
    r.sge[0] = (struct sge){at(e, 1, 0), 8000, 44};
    rq_post(e->rq[1], &r);
}
static void spoil_alignment(struct fixture *e, struct wqe *w)
{
    (void)e;
    w->n_sge = 1, w->sge[0].len = 8, w->raddr += 4;
}

static const struct err_row errors[] = {
    {"WRITE, unknown rkey", WR_WRITE, WC_REM_ACCESS_ERR, 0, QP_EV_ACCESS_ERR, spoil_rkey},
    {"READ, unknown rkey", WR_READ, WC_REM_ACCESS_ERR, 0, QP_EV_ACCESS_ERR, spoil_rkey},
    {"WRITE, out of bounds", WR_WRITE, WC_REM_ACCESS_ERR, 0, QP_EV_ACCESS_ERR, spoil_bounds},
    {"READ, out of bounds", WR_READ, WC_REM_ACCESS_ERR, 0, QP_EV_ACCESS_ERR, spoil_bounds},
    {"WRITE, no right", WR_WRITE, WC_REM_ACCESS_ERR, 0, QP_EV_ACCESS_ERR, spoil_rights},
    {"READ, no right", WR_READ, WC_REM_ACCESS_ERR, 0, QP_EV_ACCESS_ERR, spoil_rights},
    {"SEND, unknown lkey", WR_SEND, WC_LOC_PROT_ERR, 0, 0, spoil_lkey},
    {"WRITE, unknown lkey", WR_WRITE, WC_LOC_PROT_ERR, 0, 0, spoil_lkey},
    {"READ into what is not writable", WR_READ, WC_LOC_PROT_ERR, 0, 0, spoil_local_rights},
    {"SEND, receive too short", WR_SEND, WC_REM_INV_REQ_ERR, WC_LOC_LEN_ERR, 0, spoil_recv_short},
    {"SEND, receive with a wrong key", WR_SEND, WC_REM_OP_ERR, WC_LOC_PROT_ERR, 0, spoil_recv_key},
    {"atomic, not aligned", WR_FETCH_ADD, WC_REM_INV_REQ_ERR, 0, QP_EV_REQ_ERR, spoil_alignment},
};

static void each_error_has_its_status_on_both_sides(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RTE_DIM(errors); i++) {
        const struct err_row *r = &errors[i];
        struct fixture e = fixture_make(NULL, false);
        struct wqe good = request(&e, WR_WRITE, 1, 3000),
                   bad = request(&e, r->op, 2, r->op > WR_READ ? 8 : 5000);
        const struct cqe *c;

        r->spoil(&e, &bad);
        if (r->spoil != spoil_rights && r->spoil != spoil_local_rights)
            assert_int_equal(qp_post_send(e.qp[0], &good), 0);
        assert_int_equal(qp_post_send(e.qp[0], &bad), 0);
        good.wr_id = 3;
        assert_int_equal(qp_post_send(e.qp[0], &good), 0);
        post_recv(&e, 1, 10, 0, 8000);
        if (r->spoil ==
            spoil_lkey) /* the first packet gets through, its receive is flushed at the end only */
            post_recv(&e, 1, 11, 0, 8000);
        pair_run(e.p, pair_never, PS_PER_S);
        c = pair_cqe(&e.p->s[0], 2, false);
        if (!c || c->status != r->want)
            print_error("%s: status %d, want %d\n", r->what, c ? c->status : -1, r->want);
        assert_non_null(c);
        assert_int_equal(c->status, r->want);
        assert_int_equal(pair_cqe(&e.p->s[0], 3, false)->status, WC_WR_FLUSH_ERR);
        if ((c = pair_cqe(&e.p->s[0], 1, false)))
            assert_int_equal(c->status, WC_SUCCESS);
        assert_int_equal(qp_state_of(e.qp[0]), QP_ERR);
        if (r->recv_want) {
            assert_int_equal(pair_cqe(&e.p->s[1], 9, true)->status, r->recv_want);
            assert_int_equal(pair_cqe(&e.p->s[1], 10, true)->status, WC_WR_FLUSH_ERR);
        }
        if (r->event)
            assert_int_equal(e.p->s[1].events[r->event], 1);
        fixture_free(&e);
    }
}

static void wrong_requests_are_refused_at_the_post(void **state)
{
    struct fixture e = fixture_make(NULL, false);
    struct wqe w = request(&e, WR_SEND, 1, 100);
    struct rwqe r = {.n_sge = ROCE_MAX_SGE + 1};

    (void)state;
    w.n_sge = ROCE_MAX_SGE + 1;
    assert_int_equal(qp_post_send(e.qp[0], &w), -EINVAL);
    w = request(&e, 99, 1, 100);
    assert_int_equal(qp_post_send(e.qp[0], &w), -EINVAL);
    w = request(&e, WR_SEND, 1, 100);
    w.frag = WQE_FIRST; /* shorter than the MTU but not the last */
    assert_int_equal(qp_post_send(e.qp[0], &w), -EINVAL);
    w = request(&e, WR_CMP_SWAP, 1, 100);
    assert_int_equal(qp_post_send(e.qp[0], &w), -EINVAL);
    w = request(&e, WR_SEND, 1, 100);
    w.flags |= WR_F_INLINE, w.len = ROCE_MAX_INLINE + 1;
    assert_int_equal(qp_post_send(e.qp[0], &w), -EINVAL);
    w = request(&e, WR_WRITE, 1, 100);
    w.sge[0].len = ROCE_MAX_MSG;
    assert_int_equal(qp_post_send(e.qp[0], &w), -EINVAL);
    assert_int_equal(rq_post(e.rq[0], &r), -EINVAL);
    w = request(&e, WR_WRITE, 1, 100);
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    assert_int_equal(qp_sq_free(e.qp[0]), 0);
    assert_int_equal(qp_post_send(e.qp[0], &w), -ENOMEM);
    fixture_free(&e);
}

static void inline_data_is_copied_at_the_post(void **state)
{
    struct fixture e = fixture_make(NULL, false);
    struct wqe w = request(&e, WR_WRITE, 1, 0);

    (void)state;
    w.flags |= WR_F_INLINE, w.len = 200, w.n_sge = 0;
    memcpy(w.inl, e.buf[0], 200);
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    memset(w.inl, 0, sizeof(w.inl));
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(e.p->s[0].cqe[0].status, WC_SUCCESS);
    assert_memory_equal(e.buf[1], e.buf[0], 200);
    fixture_free(&e);
}

static void unconnected_opcodes_and_strangers_are_dropped_by_name(void **state)
{
    static const struct {
        uint8_t opcode;
        uint32_t dqpn_add, src;
        uint16_t pkey;
        uint32_t dst;
        enum roce_reason want;
    } rows[] = {
        {ROCE_OP_RC_SEND_ONLY, 0, 0x0a000001, 0xffff, 0x0a000002, ROCE_RNR},
        {ROCE_OP_RC_SEND_ONLY, 0, 0x0a000009, 0xffff, 0x0a000002, ROCE_SOURCE},
        {ROCE_OP_RC_SEND_ONLY, 5, 0x0a000001, 0xffff, 0x0a000002, ROCE_NO_QP},
        {ROCE_OP_RC_SEND_ONLY, 0, 0x0a000001, 0x1234, 0x0a000002, ROCE_PKEY},
        {ROCE_OP_RC_SEND_ONLY, 0, 0x0a000001, 0xffff, 0x0a000003, ROCE_NOT_OURS},
        {ROCE_OP_UC_SEND_ONLY, 0, 0x0a000001, 0xffff, 0x0a000002, ROCE_TRANSPORT},
        {ROCE_OP_RC_ACKNOWLEDGE, 0, 0x0a000001, 0xffff, 0x0a000002, ROCE_STALE},
        {ROCE_OP_RC_READ_RESPONSE_ONLY, 0, 0x0a000001, 0xffff, 0x0a000002, ROCE_STALE},
        {ROCE_OP_RC_SEND_LAST_INV, 0, 0x0a000001, 0xffff, 0x0a000002, ROCE_REFUSED},
    };

    (void)state;
    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        struct fixture e = fixture_make(NULL, false);
        struct roce_pkt k = {.opcode = rows[i].opcode,
                             .ttl = 64,
                             .pkey = rows[i].pkey,
                             .src_ip = rows[i].src,
                             .dst_ip = rows[i].dst,
                             .dqpn = qp_num(e.qp[1]) + rows[i].dqpn_add,
                             .psn = 100,
                             .len = rows[i].opcode == ROCE_OP_RC_ACKNOWLEDGE ? 0 : 8};
        struct rte_mbuf *m = frame_alloc(e.p->s[1].pool);

        roce_mac_of_ip(k.dst_ip, k.dst_mac);
        roce_mac_of_ip(k.src_ip, k.src_mac);
        roce_build(m, &k);
        memset(rte_pktmbuf_mtod_offset(m, void *, k.hdr_len), 1, k.len);
        roce_seal(m, &k);
        assert_int_equal(e.p->s[1].ep.input(e.p->s[1].r, &m, 1, 0), 1);
        assert_int_equal(rnic_counters(e.p->s[1].r)->drops[rows[i].want], 1);
        fixture_free(&e);
    }
}

/* Another process of the peer's host has its address, but not its mark. A peer outside the fabric
 * has any. */
static void packets_of_the_peers_siblings_are_dropped(void **state)
{
    static const uint8_t opcode[] = {ROCE_OP_RC_SEND_ONLY, ROCE_OP_RC_ACKNOWLEDGE,
                                     ROCE_OP_CNP_PACKET};

    (void)state;
    for (unsigned i = 0; i < 3 * RTE_DIM(opcode); i++) {
        struct fixture e = fixture_make(NULL, false);
        struct roce_pkt k = {.opcode = opcode[i / 3],
                             .ttl = 64,
                             .pkey = 0xffff,
                             .mark = (uint16_t)(qp_num(e.qp[0]) >> 16),
                             .src_ip = 0x0a000001,
                             .dst_ip = 0x0a000002,
                             .dqpn = qp_num(e.qp[1]),
                             .psn = 100,
                             .len = opcode[i / 3] == ROCE_OP_RC_SEND_ONLY ? 8 : 0};
        struct rte_mbuf *m = frame_alloc(e.p->s[1].pool);

        e.qp[1]->attr.dest_marks = i % 3 < 2;
        k.mark ^= i % 3 > 0; /* its own; a sibling's; a sibling's that nobody asks for */
        roce_mac_of_ip(k.dst_ip, k.dst_mac);
        roce_mac_of_ip(k.src_ip, k.src_mac);
        roce_build(m, &k);
        memset(rte_pktmbuf_mtod_offset(m, void *, k.hdr_len), 1, k.len);
        roce_seal(m, &k);
        assert_int_equal(e.p->s[1].ep.input(e.p->s[1].r, &m, 1, 0), 1);
        assert_int_equal(rnic_counters(e.p->s[1].r)->drops[ROCE_SOURCE], i % 3 == 1);
        fixture_free(&e);
    }
}

/* ---- timers, and who was late ---- */

static int64_t lateness_part; /* 1/16 of the window; */
static int64_t late_until_ps; /* up to then */
static struct pair *late_pair;

static int64_t late(void *user, const struct qp *qp, int64_t window_ps)
{
    (void)user, (void)qp;
    if (lateness_part == INT64_MAX ||
        lateness_part < 0) /* a page with nonsense from another process */
        return lateness_part;
    return late_pair->now_ps <= late_until_ps ? window_ps * lateness_part / 16 : 0;
}

/* In timeouts, of a peer that never answers: three retries make 4, and no more than 10 more. */
static void time_in_which_somebody_was_late_does_not_count(void **state)
{
    static const struct {
        int64_t part, until; /* until: in timeouts */
        int64_t from, to;    /* it ends in so many sixteenths of a timeout */
    } rows[] = {
        {0, 1000, 64, 64},           /* no process was late */
        {16, 1000, 224, 224},        /* some process was late all the time */
        {16, 5, 64 + 80, 64 + 96},   /* for five timeouts */
        {8, 1000, 64 + 48, 64 + 64}, /* half of the time: a pause, half of it, half of that ... */
        {INT64_MAX, 1000, 224, 224}, /* nonsense */
        {-1, 1000, 64, 64},          {INT64_MIN, 1000, 64, 64},
    };
    int64_t t = 4096 * PS_PER_NS << 6;

    (void)state;
    for (unsigned r = 0; r < RTE_DIM(rows); r++) {
        struct pair_cfg cfg = {.window = 32, .ack_every = 4, .seed = 1, .lateness = late};
        struct qp_attr attr = {.retry_cnt = 3, .timeout = 6};
        struct fixture e = fixture_make_cfg(&cfg, &attr, false);
        struct wqe w = request(&e, WR_WRITE, 1, 50);

        late_pair = e.p;
        lateness_part = rows[r].part;
        late_until_ps = e.p->now_ps + rows[r].until * t;
        e.p->fault = drop_all;
        assert_int_equal(qp_post_send(e.qp[0], &w), 0);
        pair_run(e.p, pair_never, rows[r].from * t / 16 - 1);
        assert_int_equal(e.p->s[0].n_cqes, 0);
        pair_run(e.p, pair_never, (rows[r].to - rows[r].from) * t / 16 + PS_PER_US);
        assert_int_equal(e.p->s[0].n_cqes, 1);
        assert_int_equal(e.p->s[0].cqe[0].status, WC_RETRY_EXC_ERR);
        assert_int_equal(rnic_counters(e.p->s[0].r)->timeouts, 4);
        fixture_free(&e);
    }
}

static enum wire_verdict drop_first(struct pair *p, unsigned from, const struct roce_pkt *k)
{
    (void)k;
    return from == 0 && p->count[0] <= 1 ? WIRE_DROP : WIRE_PASS;
}

/* Extensions used up by one packet do not count for the next. */
static void each_packet_has_pauses_of_its_own(void **state)
{
    struct pair_cfg cfg = {.window = 32, .ack_every = 4, .seed = 1, .lateness = late};
    struct qp_attr attr = {.retry_cnt = 1, .timeout = 6};
    struct fixture e = fixture_make_cfg(&cfg, &attr, false);
    int64_t t = 4096 * PS_PER_NS << 6;

    (void)state;
    late_pair = e.p;
    lateness_part = 16;
    e.p->fault = drop_first;
    for (unsigned i = 0; i < 3; i++) {
        struct wqe w = request(&e, WR_WRITE, i, 50);

        e.p->count[0] = 0;
        late_until_ps = e.p->now_ps + 9 * t;
        assert_int_equal(qp_post_send(e.qp[0], &w), 0);
        pair_run(e.p, pair_never, 9 * t);
        assert_int_equal(e.p->count[0], 1);
        pair_run(e.p, pair_never, 2 * t);
        assert_int_equal(e.p->count[0], 2);
        assert_int_equal(pair_cqe(&e.p->s[0], i, false)->status, WC_SUCCESS);
    }
    assert_int_equal(rnic_counters(e.p->s[0].r)->timeouts, 3);
    fixture_free(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_send_without_a_receive_waits_for_one),
        cmocka_unit_test(rnr_waits_as_long_as_the_receiver_says),
        cmocka_unit_test(rnr_retries_run_out),
        cmocka_unit_test(a_silent_peer_ends_in_retry_exceeded_and_flushes),
        cmocka_unit_test(a_short_rnr_timer_is_not_held_up_by_a_long_timeout),
        cmocka_unit_test(each_error_has_its_status_on_both_sides),
        cmocka_unit_test(wrong_requests_are_refused_at_the_post),
        cmocka_unit_test(inline_data_is_copied_at_the_post),
        cmocka_unit_test(unconnected_opcodes_and_strangers_are_dropped_by_name),
        cmocka_unit_test(packets_of_the_peers_siblings_are_dropped),
        cmocka_unit_test(time_in_which_somebody_was_late_does_not_count),
        cmocka_unit_test(each_packet_has_pauses_of_its_own),
    };

    test_eal_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
