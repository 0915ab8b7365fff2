/* SPDX-License-Identifier: BSD-3-Clause */
/* Deferred responder: the owner answers READs when it has data and acknowledges WRITEs when it
 * chooses. */
#include "tests/roce/rc_fixture.h"

#define US      PS_PER_US
#define ANSWERS 4096u

/* State of the deferred responder's owner. */
struct owner {
    struct fixture e;
    bool stuck, broken; /* READs: no data; none ever */
    unsigned fills, again, writes;
    uint64_t rng;
    unsigned patchy; /* in 100: how often there is no data */
    struct {
        struct qp *qp;
        struct qp_mark mark;
    } held[ANSWERS];
    unsigned n_held, released;
};
static struct owner o;

static void on_reads(void *user, struct qp *qp, bool again)
{
    (void)user, (void)qp;
    o.again += again;
}

static bool random_of(unsigned percent)
{
    o.rng = o.rng * 6364136223846793005u + 1442695040888963407u;
    return (o.rng >> 33) % 100 < percent;
}

static int on_fill(void *user, struct qp *qp, uint32_t psn, uint8_t *dst, uint32_t len,
                   uint32_t *virt)
{
    struct qp_read r;

    (void)user;
    *virt = 0;
    if (o.broken)
        return -EIO;
    if (o.stuck || random_of(o.patchy))
        return -EAGAIN;
    assert_true(qp_read_from(qp, psn, false, &r));
    assert_int_equal(r.psn, psn);
    assert_true(len <= r.len);
    memcpy(dst, o.e.buf[1] + (r.va - at(&o.e, 1, 0)), len);
    o.fills++;
    return 0;
}

static enum sink_verdict on_write(void *user, struct qp *qp, const struct roce_pkt *k,
                                  struct rte_mbuf *m, uint64_t va)
{
    (void)user, (void)m;
    if (o.n_held == ANSWERS)
        return SINK_RNR;
    if (k->len)
        memcpy(o.e.buf[1] + (va - at(&o.e, 1, 0)), k->payload, k->len);
    o.held[o.n_held].qp = qp;
    o.held[o.n_held++].mark = qp_mark_of(qp);
    o.writes++;
    return SINK_COPIED;
}

static const struct deferred_ops deferred_ops = {on_reads, on_fill, on_write};

/* The oldest n packets of WRITEs are done. One queue pair only. */
static void release(unsigned n)
{
    if (!n || o.released == o.n_held)
        return;
    o.released = RTE_MIN(o.released + n, o.n_held);
    qp_writes_release(o.e.qp[1], o.released == o.n_held ? NULL : &o.held[o.released].mark);
}

static void open_env(uint64_t seed)
{
    struct pair_cfg cfg = {.window = 32, .ack_every = 4, .seed = seed, .deferred = &deferred_ops};

    memset(&o, 0, sizeof(o));
    o.rng = seed;
    o.e.p = pair_create(&cfg);
    for (unsigned i = 0; i < 2; i++) {
        o.e.rq[i] = rq_create(64);
        o.e.buf[i] = malloc(BUF);
        for (unsigned b = 0; b < BUF; b++)
            o.e.buf[i][b] = (uint8_t)(b * 31 + (b >> 8) * 17 + 5 + i);
        o.e.key[i] = pair_region(&o.e.p->s[i], o.e.buf[i], BUF, ALL_ACCESS);
    }
    pair_connect(o.e.p, QP_RC, &(struct qp_attr){.sq_psn = 0xfffff0, .timeout = 8}, 64, NULL, NULL,
                 false, o.e.qp);
}

static void close_env(void)
{
    fixture_free(&o.e);
}

static void pass(int64_t ps)
{
    int64_t end = o.e.p->now_ps + ps;

    pair_run(o.e.p, pair_never, ps);
    o.e.p->now_ps = end;
}

static void post(enum wr_op op, uint64_t id, uint32_t off, uint32_t len)
{
    struct wqe w = {.wr_id = id,
                    .op = (uint8_t)op,
                    .flags = WR_F_SIGNALED,
                    .frag = WQE_WHOLE,
                    .n_sge = 1,
                    .rkey = o.e.key[1],
                    .raddr = at(&o.e, 1, off)};

    w.sge[0] = (struct sge){at(&o.e, 0, off), len, o.e.key[0]};
    assert_int_equal(qp_post_send(o.e.qp[0], &w), 0);
}

static unsigned completed(void)
{
    return o.e.p->s[0].n_cqes;
}

static void a_read_waits_until_its_owner_has_data_and_others_go_on(void **state)
{
    struct qp *two[2];

    (void)state;
    open_env(1);
    pair_connect(o.e.p, QP_RC, &(struct qp_attr){.sq_psn = 7}, 64, NULL, NULL, false, two);
    o.stuck = true;
    post(WR_READ, 1, 0, 5000);
    pass(100 * US);
    assert_int_equal(completed(), 0);
    {
        struct wqe w = request(&o.e, WR_WRITE, 2, 3000);

        assert_int_equal(qp_post_send(two[0], &w), 0);
    }
    pass(100 * US);
    assert_int_equal(o.writes, 3);
    qp_writes_release(two[1], NULL);
    pass(100 * US);
    assert_int_equal(completed(), 1);
    assert_int_equal(o.e.p->s[0].cqe[0].wr_id, 2);
    o.stuck = false;
    pass(100 * US);
    assert_int_equal(completed(), 1); /* not resumed */
    qp_reads_resume(o.e.qp[1]);
    pass(100 * US);
    assert_int_equal(completed(), 2);
    assert_memory_equal(o.e.buf[0], o.e.buf[1], 5000);
    assert_int_equal(o.e.p->s[0].cqe[1].status, WC_SUCCESS);
    close_env();
}

static void a_write_is_acknowledged_when_it_is_released_and_not_before(void **state)
{
    (void)state;
    open_env(2);
    for (unsigned i = 0; i < 4; i++)
        post(WR_WRITE, i, i * 4096, 4096); /* 4 packets each */
    pass(100 * US);
    assert_int_equal(o.writes, 16);
    assert_int_equal(completed(), 0);
    for (unsigned i = 0; i < 4; i++) {
        release(3); /* not the whole message */
        pass(100 * US);
        assert_int_equal(completed(), i);
        release(1);
        pass(100 * US);
        assert_int_equal(completed(), i + 1);
    }
    assert_memory_equal(o.e.buf[0], o.e.buf[1], 4 * 4096);
    close_env();
}

/* Its response would acknowledge the WRITE. */
static void a_read_behind_a_held_write_is_answered_after_it(void **state)
{
    (void)state;
    open_env(3);
    post(WR_READ, 1, 8192, 2000);
    post(WR_WRITE, 2, 0, 3000);
    post(WR_READ, 3, 0, 3000);
    pass(100 * US);
    assert_int_equal(completed(), 1);
    assert_int_equal(o.fills, 2);
    release(3);
    pass(100 * US);
    assert_int_equal(completed(), 3);
    assert_int_equal(o.fills, 5);
    close_env();
}

/* Sent again while it is held: neither executed again nor acknowledged. */
static void a_repeated_write_that_is_held_stays_held(void **state)
{
    (void)state;
    open_env(4);
    post(WR_WRITE, 1, 0, 3000);
    pass(5000 * US); /* a few timeouts of 1 ms */
    assert_true(rnic_counters(o.e.p->s[0].r)->retransmits > 0);
    assert_int_equal(o.writes, 3);
    assert_int_equal(completed(), 0);
    release(3);
    pass(100 * US);
    assert_int_equal(completed(), 1);
    assert_int_equal(o.e.p->s[0].cqe[0].status, WC_SUCCESS);
    close_env();
}

static enum wire_verdict drop_fifth(struct pair *p, unsigned from, const struct roce_pkt *k)
{
    (void)p;
    return from == 0 && k->psn == ((0xfffff0u + 5) & 0xffffff) && !o.again++ ? WIRE_DROP
                                                                             : WIRE_PASS;
}

/* A NAK of the sequence acknowledges nothing that is held. */
static void a_gap_behind_held_writes_does_not_acknowledge_them(void **state)
{
    (void)state;
    open_env(5);
    o.e.p->fault = drop_fifth;
    for (unsigned i = 0; i < 8; i++)
        post(WR_WRITE, i, i * 1024, 1024);
    pass(300 * US);
    assert_int_equal(rnic_counters(o.e.p->s[1].r)->seq_naks_sent, 1);
    assert_int_equal(o.writes, 8);
    assert_int_equal(completed(), 0);
    release(8);
    pass(100 * US);
    assert_int_equal(completed(), 8);
    close_env();
}

static void a_refused_read_ends_with_its_name_and_completes_nothing_before_it(void **state)
{
    (void)state;
    for (unsigned held = 0; held < 2; held++) {
        open_env(6);
        if (held)
            post(WR_WRITE, 1, 0, 1000);
        post(WR_READ, 2, 0, 1000);
        post(WR_WRITE, 3, 0, 1000);
        o.stuck = true;
        pass(100 * US);
        qp_refuse(o.e.qp[1]);
        pass(100 * US);
        assert_int_equal(completed(), held ? 3 : 2);
        assert_int_equal(o.e.p->s[0].cqe[0].wr_id, held ? 1 : 2);
        assert_int_equal(o.e.p->s[0].cqe[0].status, WC_REM_OP_ERR);
        assert_int_equal(o.e.p->s[0].cqe[1].status, WC_WR_FLUSH_ERR);
        close_env();
    }
    open_env(7); /* by its data */
    o.broken = true;
    post(WR_READ, 1, 0, 1000);
    pass(100 * US);
    assert_int_equal(o.e.p->s[0].cqe[0].status, WC_REM_OP_ERR);
    close_env();
}

static void what_is_no_read_and_no_write_is_refused(void **state)
{
    static const enum wr_op ops[] = {WR_SEND, WR_SEND_IMM, WR_WRITE_IMM};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        open_env(8);
        post(ops[i], 1, 0, 100);
        pass(100 * US);
        assert_int_equal(o.e.p->s[0].cqe[0].status, WC_REM_INV_REQ_ERR);
        close_env();
    }
}

/* Random READs and WRITEs over a bad wire, a slow owner: everything executes once, in order, with
 * the right data. */
static void late_owners_and_lost_frames_change_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        unsigned posted = 0, total = 60;

        open_env(seed);
        o.e.p->loss = o.e.p->dup = 200;
        o.patchy = 50;
        for (unsigned round = 0; completed() < total && round < 200000; round++) {
            if (posted < total && qp_sq_free(o.e.qp[0]) > 40) {
                uint32_t len = pair_random(o.e.p, 9000), off = posted * 10000;

                /* READs read there, WRITEs write there: halves of the buffers */
                post(random_of(50) ? WR_READ : WR_WRITE, posted, off, len);
                posted++;
            }
            pass(3 * US);
            qp_reads_resume(o.e.qp[1]);
            if (random_of(30))
                release(1 + pair_random(o.e.p, 6));
        }
        if (completed() != total)
            fail_msg("seed %u: %u of %u complete", (unsigned)seed, completed(), total);
        for (unsigned i = 0; i < total; i++) {
            const struct cqe *c = &o.e.p->s[0].cqe[i];

            assert_int_equal(c->status, WC_SUCCESS);
            assert_int_equal(c->wr_id, i);
            assert_memory_equal(o.e.buf[0] + i * 10000, o.e.buf[1] + i * 10000, c->byte_len);
        }
        close_env();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_waits_until_its_owner_has_data_and_others_go_on),
        cmocka_unit_test(a_write_is_acknowledged_when_it_is_released_and_not_before),
        cmocka_unit_test(a_read_behind_a_held_write_is_answered_after_it),
        cmocka_unit_test(a_repeated_write_that_is_held_stays_held),
        cmocka_unit_test(a_gap_behind_held_writes_does_not_acknowledge_them),
        cmocka_unit_test(a_refused_read_ends_with_its_name_and_completes_nothing_before_it),
        cmocka_unit_test(what_is_no_read_and_no_write_is_refused),
        cmocka_unit_test(late_owners_and_lost_frames_change_nothing),
    };

    test_eal_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
