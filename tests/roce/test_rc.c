/* Reliable connections: every operation at every MTU, in order, and each way in which a request can
 * end. */
#include "tests/support/eal.h"
#include "tests/support/roce_pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_byteorder.h>
#include <rte_mempool.h>

#define BUF (1u << 20)
#define ALL_ACCESS                                                                                 \
    (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)

/* What most cases need: two connected QPs, a buffer on each side. */
struct env {
    struct pair *p;
    struct qp *qp[2];
    struct rq *rq[2];
    uint8_t *buf[2];
    uint32_t key[2];
};

static struct env env_make(const struct qp_attr *attr, bool unbacked)
{
    struct pair_cfg cfg = {.window = 32, .ack_every = 4, .seed = 1};
    struct qp_attr def = {.sq_psn = 100};
    struct env e = {.p = pair_create(&cfg)};

    for (unsigned i = 0; i < 2; i++) {
        e.rq[i] = rq_create(64);
        e.buf[i] = malloc(BUF);
        for (unsigned b = 0; b < BUF; b++)
            e.buf[i][b] = i ? 0 : (uint8_t)(b * 31 + (b >> 8) * 17 + 5);
        e.key[i] = pair_region(&e.p->s[i], unbacked ? NULL : e.buf[i], BUF, ALL_ACCESS);
    }
    pair_connect(e.p, QP_RC, attr ? attr : &def, 64, e.rq[0], e.rq[1], false, e.qp);
    return e;
}

static void env_free(struct env *e)
{
    pair_destroy(e->p);
    for (unsigned i = 0; i < 2; i++) {
        rq_destroy(e->rq[i]);
        free(e->buf[i]);
    }
}

static uint64_t at(const struct env *e, unsigned side, uint32_t off)
{
    return e->p->s[side].region[e->key[side] - 1].addr + off;
}

static struct wqe request(const struct env *e, enum wr_op op, uint64_t id, uint32_t len)
{
    struct wqe w = {.wr_id = id,
                    .op = op,
                    .flags = WR_F_SIGNALED,
                    .frag = WQE_WHOLE,
                    .n_sge = 2,
                    .imm = rte_cpu_to_be_32(0xabcd),
                    .rkey = e->key[1],
                    .raddr = at(e, 1, 0)};

    w.sge[0] = (struct sge){at(e, 0, 0), len / 3, e->key[0]};
    w.sge[1] = (struct sge){at(e, 0, len / 3), len - len / 3, e->key[0]};
    return w;
}

static void post_recv(const struct env *e, unsigned side, uint64_t id, uint32_t off, uint32_t len)
{
    struct rwqe r = {.wr_id = id, .n_sge = 2};

    r.sge[0] = (struct sge){at(e, side, off), len / 2, e->key[side]};
    r.sge[1] = (struct sge){at(e, side, off + len / 2), len - len / 2, e->key[side]};
    assert_int_equal(rq_post(e->rq[side], &r), 0);
}

static void assert_clean(const struct env *e)
{
    for (unsigned i = 0; i < 2; i++) {
        const struct roce_counters *c = rnic_counters(e->p->s[i].r);

        assert_int_equal(c->retransmits, 0);
        assert_int_equal(c->timeouts, 0);
        assert_int_equal(c->rnr_naks_sent + c->seq_naks_sent + c->error_naks_sent, 0);
        for (unsigned r = 1; r < ROCE_REASON_COUNT; r++)
            assert_int_equal(c->drops[r], 0);
    }
}

/* One operation of len bytes; returns the data frames (all but acknowledgements) that both sides
 * sent. */
static unsigned one_operation(enum wr_op op, uint16_t mtu, uint32_t len, uint32_t psn,
                              bool unbacked)
{
    struct qp_attr attr = {.mtu = mtu, .sq_psn = psn};
    struct env e = env_make(&attr, unbacked);
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
    env_free(&e);
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
    struct env e = env_make(NULL, false);
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
    env_free(&e);
}

/* Sends every response to an atomic into the void, once. */
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
    struct env e = env_make(NULL, false);
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
    env_free(&e);
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
            struct env e = env_make(&attr, false);
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
            env_free(&e);
        }
}

static void a_gap_is_answered_by_one_nak(void **state)
{
    struct qp_attr attr = {.mtu = 256, .sq_psn = 5};
    struct env e = env_make(&attr, false);
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
    env_free(&e);
}

static void acknowledgements_are_coalesced(void **state)
{
    struct qp_attr attr = {.mtu = 256, .sq_psn = 5};
    struct env e = env_make(&attr, false);
    struct wqe w = request(&e, WR_WRITE, 1, 400 * 256);

    (void)state;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(e.p->s[0].n_cqes, 1);
    assert_int_equal(e.p->count_data[0], 400);
    assert_true(e.p->count[1] <= 101);
    assert_clean(&e);
    env_free(&e);
}

static void the_window_bounds_what_is_in_flight(void **state)
{
    struct qp_attr attr = {.mtu = 256};
    struct env e = env_make(&attr, false);
    struct wqe w = request(&e, WR_WRITE, 1, 400 * 256);

    (void)state;
    e.p->fault = drop_first_atomic_ack;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    e.p->burst = 64;
    pair_run(e.p, pair_never, PS_PER_US);
    assert_int_equal(e.p->count[0], 32);
    env_free(&e);
}

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
    struct env e = env_make(&attr, false);

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
    env_free(&e);
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
    struct env e = env_make(&attr, false);
    struct wqe r = request(&e, WR_READ, 1, 5000), w = request(&e, WR_WRITE, 2, 100);

    (void)state;
    reads_open = reads_most = 0;
    e.p->fault = send_after_all_reads;
    w.flags |= WR_F_FENCE;
    assert_int_equal(qp_post_send(e.qp[0], &r), 0);
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(e.p->s[0].n_cqes, 2);
    env_free(&e);
}

/* ---- receiver not ready, retries
 * ------------------------------------------------------------------------ */

static void a_send_without_a_receive_waits_for_one(void **state)
{
    struct env e = env_make(NULL, false);
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
    env_free(&e);
}

static void rnr_waits_as_long_as_the_receiver_says(void **state)
{
    struct qp_attr attr = {.min_rnr_timer = 20}; /* 10.24 ms */
    struct env e = env_make(&attr, false);
    struct wqe w = request(&e, WR_SEND, 1, 50);

    (void)state;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    pair_run(e.p, pair_never, 10 * PS_PER_MS);
    assert_int_equal(e.p->count[0], 1);
    pair_run(e.p, pair_never, PS_PER_MS);
    assert_int_equal(e.p->count[0], 2);
    env_free(&e);
}

static void rnr_retries_run_out(void **state)
{
    struct qp_attr attr = {.rnr_retry = 2};
    struct env e = env_make(&attr, false);
    struct wqe w = request(&e, WR_SEND, 1, 50);

    (void)state;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(e.p->s[0].n_cqes, 1);
    assert_int_equal(e.p->s[0].cqe[0].status, WC_RNR_RETRY_EXC_ERR);
    assert_int_equal(e.p->count[0], 3);
    assert_int_equal(qp_state_of(e.qp[0]), QP_ERR);
    env_free(&e);
}

static enum wire_verdict drop_all(struct pair *p, unsigned from, const struct roce_pkt *k)
{
    (void)p, (void)from, (void)k;
    return WIRE_DROP;
}

static void a_silent_peer_ends_in_retry_exceeded_and_flushes(void **state)
{
    struct qp_attr attr = {.retry_cnt = 3, .timeout = 6};
    struct env e = env_make(&attr, false);
    int64_t t = 4096 * PS_PER_NS << 6;

    (void)state;
    e.p->fault = drop_all;
    for (unsigned i = 0; i < 5; i++) {
        struct wqe w = request(&e, i == 2 ? WR_READ : WR_WRITE, i, 50);

        w.flags = 0; /* errors are told of unsignaled requests too */
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
    /* What is posted afterwards is flushed too. */
    struct wqe w = request(&e, WR_SEND, 90, 50);

    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    post_recv(&e, 0, 91, 0, 16);
    pair_run(e.p, pair_never, PS_PER_US);
    assert_int_equal(pair_cqe(&e.p->s[0], 90, false)->status, WC_WR_FLUSH_ERR);
    assert_int_equal(pair_cqe(&e.p->s[0], 91, true)->status, WC_WR_FLUSH_ERR);
    env_free(&e);
}

/* ---- errors
 * ------------------------------------------------------------------------------------------- */

static const struct err_row {
    const char *what;
    enum wr_op op;
    uint8_t want;
    uint8_t recv_want; /* status of the receive; 0: none */
    unsigned event;    /* at the peer */
    void (*spoil)(struct env *e, struct wqe *w);
} errors[];

static void spoil_rkey(struct env *e, struct wqe *w)
{
    (void)e;
    w->rkey = 99;
}
static void spoil_bounds(struct env *e, struct wqe *w)
{
    w->raddr = at(e, 1, BUF - 10);
}
static void spoil_rights(struct env *e, struct wqe *w)
{
    (void)w;
    e->p->s[1].region[0].access = ACCESS_LOCAL_WRITE;
}
static void spoil_lkey(struct env *e, struct wqe *w)
{
    (void)e;
    w->sge[1].lkey = 55;
}
static void spoil_local_rights(struct env *e, struct wqe *w)
{
    (void)w;
    e->p->s[0].region[0].access = 0;
}
static void spoil_recv_short(struct env *e, struct wqe *w)
{
    (void)w;
    post_recv(e, 1, 9, 0, 4000);
}
static void spoil_recv_key(struct env *e, struct wqe *w)
{
    struct rwqe r = {.wr_id = 9, .n_sge = 1};

    (void)w;
    r.sge[0] = (struct sge){at(e, 1, 0), 8000, 44};
    rq_post(e->rq[1], &r);
}
static void spoil_alignment(struct env *e, struct wqe *w)
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
        struct env e = env_make(NULL, false);
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
        env_free(&e);
    }
}

static void wrong_requests_are_refused_at_the_post(void **state)
{
    struct env e = env_make(NULL, false);
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
    env_free(&e);
}

static void inline_data_is_copied_at_the_post(void **state)
{
    struct env e = env_make(NULL, false);
    struct wqe w = request(&e, WR_WRITE, 1, 0);

    (void)state;
    w.flags |= WR_F_INLINE, w.len = 200, w.n_sge = 0;
    memcpy(w.inl, e.buf[0], 200);
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    memset(w.inl, 0, sizeof(w.inl));
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(e.p->s[0].cqe[0].status, WC_SUCCESS);
    assert_memory_equal(e.buf[1], e.buf[0], 200);
    env_free(&e);
}

/* ---- control
 * ------------------------------------------------------------------------------------------ */

static void only_lawful_transitions_are_made(void **state)
{
    struct pair_cfg cfg = {.window = 8};
    struct pair *p = pair_create(&cfg);
    struct qp_cfg c = {.type = QP_RC, .sq_depth = 4};
    struct qp_attr a = {.mtu = 1000};
    struct qp *qp, *other;
    struct wqe w = {.frag = WQE_WHOLE, .op = WR_SEND};

    (void)state;
    assert_int_equal(qp_create(p->s[0].r, &c, &qp), 0);
    assert_int_equal(qp_post_send(qp, &w), -EINVAL);
    a.state = QP_RTS;
    assert_int_equal(qp_modify(qp, &a), -EINVAL);
    a.state = QP_RTR;
    assert_int_equal(qp_modify(qp, &a), -EINVAL);
    a.state = QP_INIT;
    assert_int_equal(qp_modify(qp, &a), 0);
    a.state = QP_RTR;
    assert_int_equal(qp_modify(qp, &a), -EINVAL); /* the MTU is none */
    a.mtu = 1024, a.max_dest_rd_atomic = 17;
    assert_int_equal(qp_modify(qp, &a), -EINVAL);
    a.max_dest_rd_atomic = 16;
    assert_int_equal(qp_modify(qp, &a), 0);
    a.state = QP_RTS;
    assert_int_equal(qp_modify(qp, &a), 0);
    a.state = QP_INIT;
    assert_int_equal(qp_modify(qp, &a), -EINVAL);
    a.state = QP_ERR;
    assert_int_equal(qp_modify(qp, &a), 0);
    a.state = QP_RTS;
    assert_int_equal(qp_modify(qp, &a), -EINVAL);
    a.state = QP_RESET;
    assert_int_equal(qp_modify(qp, &a), 0);
    c.qpn = qp_num(qp);
    assert_int_equal(qp_create(p->s[0].r, &c, &other), -EADDRINUSE);
    c.qpn = 0xa991;
    assert_int_equal(qp_create(p->s[0].r, &c, &other), 0);
    assert_ptr_equal(rnic_qp(p->s[0].r, 0xa991), other);
    qp_destroy(other);
    assert_null(rnic_qp(p->s[0].r, 0xa991));
    pair_destroy(p);
}

static void a_reset_pair_works_again(void **state)
{
    struct env e = env_make(NULL, false);
    struct qp_attr old[2], a;

    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        struct wqe w = request(&e, WR_WRITE, round, 30000);

        assert_int_equal(qp_post_send(e.qp[0], &w), 0);
        pair_run(e.p, pair_never, round == 1 ? 3 * PS_PER_US : PS_PER_S);
        for (unsigned i = 0; i < 2; i++) {
            old[i] = *qp_attributes(e.qp[i]);
            a = old[i];
            a.state = QP_RESET;
            assert_int_equal(qp_modify(e.qp[i], &a), 0);
        }
        pair_run(e.p, pair_never, PS_PER_S); /* what is under way is dropped */
        for (unsigned i = 0; i < 2; i++)
            for (a = old[i], a.state = QP_INIT; a.state <= QP_RTS; a.state++)
                assert_int_equal(qp_modify(e.qp[i], &a), 0);
    }
    assert_int_equal(e.p->s[0].n_cqes, 2);
    env_free(&e);
}

static void a_qp_can_go_with_traffic_in_flight(void **state)
{
    (void)state;
    for (unsigned us = 0; us < 30; us++) {
        struct qp_attr attr = {.mtu = 256, .retry_cnt = 1};
        struct env e = env_make(&attr, false);

        for (unsigned i = 0; i < 8; i++) {
            struct wqe w = request(&e, i & 1 ? WR_READ : WR_WRITE, i, 20000);

            assert_int_equal(qp_post_send(e.qp[0], &w), 0);
            assert_int_equal(qp_post_send(e.qp[1], &w), 0);
        }
        pair_run(e.p, pair_never, us * PS_PER_US / 2);
        qp_destroy(e.qp[us & 1]);
        pair_run(e.p, pair_never, PS_PER_S);
        assert_int_equal(qp_state_of(e.qp[!(us & 1)]), QP_ERR);
        env_free(&e);
    }
}

static void a_shared_receive_queue_outlives_an_error(void **state)
{
    struct env e = env_make(NULL, false);
    struct qp_attr a = {.state = QP_ERR};

    (void)state;
    rq_set_shared(e.rq[1]);
    post_recv(&e, 1, 5, 0, 100);
    assert_int_equal(qp_modify(e.qp[1], &a), 0);
    assert_int_equal(e.p->s[1].n_cqes, 0);
    assert_int_equal(rq_level(e.rq[1]), 1);
    assert_int_equal(e.p->s[1].events[QP_EV_LAST_WQE], 1);
    env_free(&e);
}

static void a_dead_port_ends_every_connection(void **state)
{
    struct env e = env_make(NULL, false);
    struct wqe w = request(&e, WR_WRITE, 1, 30000);

    (void)state;
    post_recv(&e, 0, 3, 0, 100);
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    w.wr_id = 2;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    pair_run(e.p, pair_never, PS_PER_US);
    rnic_port_down(e.p->s[0].r, e.p->now_ps);
    rnic_port_down(e.p->s[1].r, e.p->now_ps);
    assert_int_equal(e.p->s[0].n_cqes, 3);
    assert_int_equal(e.p->s[0].cqe[0].status, WC_RETRY_EXC_ERR);
    assert_int_equal(e.p->s[0].cqe[1].status, WC_WR_FLUSH_ERR);
    assert_int_equal(e.p->s[0].cqe[2].status, WC_WR_FLUSH_ERR);
    assert_int_equal(e.p->s[1].events[QP_EV_FATAL], 1);
    pair_run(e.p, pair_never, PS_PER_S);
    env_free(&e);
}

static void draining_finishes_what_has_begun(void **state)
{
    struct qp_attr attr = {.mtu = 256};
    struct env e = env_make(&attr, false);
    struct wqe w = request(&e, WR_WRITE, 1, 30000);
    struct qp_attr a;

    (void)state;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    w.wr_id = 2;
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    pair_run(e.p, pair_never, PS_PER_US);
    a = *qp_attributes(e.qp[0]);
    a.state = QP_SQD;
    assert_int_equal(qp_modify(e.qp[0], &a), 0);
    assert_int_equal(e.p->s[0].events[QP_EV_SQ_DRAINED], 0);
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(e.p->s[0].n_cqes, 1);
    assert_int_equal(e.p->s[0].events[QP_EV_SQ_DRAINED], 1);
    a.state = QP_RTS;
    assert_int_equal(qp_modify(e.qp[0], &a), 0);
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(e.p->s[0].n_cqes, 2);
    env_free(&e);
}

static unsigned turns[64], n_turns;
static enum wire_verdict note_turn(struct pair *p, unsigned from, const struct roce_pkt *k)
{
    (void)p;
    if (from == 0 && n_turns < RTE_DIM(turns))
        turns[n_turns++] = k->dqpn;
    return WIRE_PASS;
}

static void queue_pairs_send_in_turn(void **state)
{
    struct qp_attr attr = {.mtu = 256};
    struct env e = env_make(&attr, false);
    struct qp *qp[2];

    (void)state;
    n_turns = 0;
    pair_connect(e.p, QP_RC, &attr, 8, e.rq[0], e.rq[1], false, qp);
    e.p->fault = note_turn;
    struct wqe w = request(&e, WR_WRITE, 1, 20 * 256);

    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    assert_int_equal(qp_post_send(qp[0], &w), 0);
    pair_run(e.p, pair_never, PS_PER_S);
    assert_int_equal(n_turns, 40);
    for (unsigned i = 1; i < 40; i++)
        assert_int_not_equal(turns[i], turns[i - 1]);
    env_free(&e);
}

static void a_small_pool_only_slows_down(void **state)
{
    struct pair_cfg cfg = {.window = 32, .ack_every = 4, .mbufs = 7, .seed = 1};
    struct pair *p = pair_create(&cfg);
    struct qp_attr attr = {.mtu = 256, .timeout = 14};
    uint8_t a[20000], b[20000] = {0};
    uint32_t ka = pair_region(&p->s[0], a, sizeof(a), ALL_ACCESS),
             kb = pair_region(&p->s[1], b, sizeof(b), ALL_ACCESS);
    struct qp *qp[2];
    struct wqe w = {.op = WR_WRITE,
                    .frag = WQE_WHOLE,
                    .flags = WR_F_SIGNALED,
                    .n_sge = 1,
                    .rkey = kb,
                    .raddr = (uintptr_t)b,
                    .sge = {{(uintptr_t)a, sizeof(a), ka}}};

    (void)state;
    for (unsigned i = 0; i < sizeof(a); i++)
        a[i] = (uint8_t)(i * 3);
    pair_connect(p, QP_RC, &attr, 8, NULL, NULL, false, qp);
    assert_int_equal(qp_post_send(qp[0], &w), 0);
    pair_run(p, pair_never, PS_PER_S);
    assert_int_equal(p->s[0].n_cqes, 1);
    assert_memory_equal(a, b, sizeof(a));
    assert_true(rnic_counters(p->s[0].r)->no_mbufs > 0);
    assert_int_equal(rnic_counters(p->s[0].r)->retransmits, 0);
    pair_destroy(p);
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
        struct env e = env_make(NULL, false);
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
        env_free(&e);
    }
}

static void count_name(void *ctx, const char *name, uint64_t v)
{
    (void)v;
    *(unsigned *)ctx += strlen(name) > 0;
}

static void counters_have_names(void **state)
{
    struct env e = env_make(NULL, false);
    unsigned n = 0;

    (void)state;
    roce_counters_print(rnic_counters(e.p->s[0].r), count_name, &n);
    assert_int_equal(n, sizeof(struct roce_counters) / sizeof(uint64_t) - 1);
    env_free(&e);
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
        cmocka_unit_test(outstanding_reads_are_bounded),
        cmocka_unit_test(a_fence_waits_for_reads),
        cmocka_unit_test(a_send_without_a_receive_waits_for_one),
        cmocka_unit_test(rnr_waits_as_long_as_the_receiver_says),
        cmocka_unit_test(rnr_retries_run_out),
        cmocka_unit_test(a_silent_peer_ends_in_retry_exceeded_and_flushes),
        cmocka_unit_test(each_error_has_its_status_on_both_sides),
        cmocka_unit_test(wrong_requests_are_refused_at_the_post),
        cmocka_unit_test(inline_data_is_copied_at_the_post),
        cmocka_unit_test(only_lawful_transitions_are_made),
        cmocka_unit_test(a_reset_pair_works_again),
        cmocka_unit_test(a_qp_can_go_with_traffic_in_flight),
        cmocka_unit_test(a_shared_receive_queue_outlives_an_error),
        cmocka_unit_test(a_dead_port_ends_every_connection),
        cmocka_unit_test(draining_finishes_what_has_begun),
        cmocka_unit_test(queue_pairs_send_in_turn),
        cmocka_unit_test(a_small_pool_only_slows_down),
        cmocka_unit_test(unconnected_opcodes_and_strangers_are_dropped_by_name),
        cmocka_unit_test(counters_have_names),
    };

    test_eal_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
