/* SPDX-License-Identifier: BSD-3-Clause */
/* An rnic's creation, and its tables: queue pairs by number, and groups by address. */
#include "tests/roce/rc_fixture.h"

#include "roce/engine.h"

#define BASE 0x30000u

static int mem(void *user, struct qp *qp, bool remote, uint32_t key, uint64_t addr, uint64_t len,
               unsigned access, void **out)
{
    (void)user, (void)qp, (void)remote, (void)key, (void)addr, (void)len, (void)access, (void)out;
    return -EINVAL;
}

static void complete(void *user, const struct cqe *c)
{
    (void)user, (void)c;
}

static struct rte_mempool *pool;

static struct rnic_cfg usual(void)
{
    return (struct rnic_cfg){.ip = 0x0a000001,
                             .qpn_base = BASE,
                             .max_qps = 64,
                             .pool = pool,
                             .ops = {.mem = mem, .complete = complete}};
}

/* ---- creation ---- */

static void no_pool(struct rnic_cfg *c)
{
    c->pool = NULL;
}
static void no_queue_pairs(struct rnic_cfg *c)
{
    c->max_qps = 0;
}
static void too_many_queue_pairs(struct rnic_cfg *c)
{
    c->max_qps = 0x10000;
}
static void too_large_a_window(struct rnic_cfg *c)
{
    c->window_pkts = PSN_HALF / 2;
}
static void a_limit_without_a_line(struct rnic_cfg *c)
{
    c->dcqcn.on = true;
}
static void no_memory(struct rnic_cfg *c)
{
    c->ops.mem = NULL;
}
static void no_completions(struct rnic_cfg *c)
{
    c->ops.complete = NULL;
}
static void all_queue_pairs(struct rnic_cfg *c)
{
    c->max_qps = 0xffff;
}
static void the_largest_window(struct rnic_cfg *c)
{
    c->window_pkts = PSN_HALF / 2 - 1;
}
static void a_limit(struct rnic_cfg *c)
{
    c->dcqcn.on = true;
    c->dcqcn.line_bps = 1;
}
static void one_queue_pair(struct rnic_cfg *c)
{
    c->max_qps = 1;
}

static void what_an_rnic_cannot_be_is_refused(void **state)
{
    static const struct {
        void (*change)(struct rnic_cfg *c);
        int rc;
    } rows[] = {
        {no_pool, -EINVAL},
        {no_queue_pairs, -EINVAL},
        {too_many_queue_pairs, -EINVAL},
        {too_large_a_window, -EINVAL},
        {a_limit_without_a_line, -EINVAL},
        {no_memory, -EINVAL},
        {no_completions, -EINVAL},
        {all_queue_pairs, 0},
        {the_largest_window, 0},
        {a_limit, 0},
        {one_queue_pair, 0},
    };

    (void)state;
    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        struct rnic_cfg c = usual();
        struct rnic *r = NULL;

        rows[i].change(&c);
        if (rnic_create(&r, &c) != rows[i].rc)
            fail_msg("row %u", i);
        assert_int_equal(r != NULL, !rows[i].rc);
        rnic_destroy(r);
    }
    rnic_destroy(NULL);
}

static void what_is_not_said_has_a_default(void **state)
{
    struct rnic_cfg c = usual();
    struct rnic *r;

    (void)state;
    assert_int_equal(rnic_create(&r, &c), 0);
    assert_int_equal(r->cfg.window_pkts, 64);
    assert_int_equal(r->cfg.ack_every, 16);
    assert_int_equal(rnic_endpoint(r).next(r), PS_NEVER);
    assert_int_equal(rnic_endpoint(r).deadline(r), PS_NEVER);
    rnic_destroy(r);
    c.window_pkts = 5;
    c.ack_every = 3;
    assert_int_equal(rnic_create(&r, &c), 0);
    assert_int_equal(r->cfg.window_pkts, 5);
    assert_int_equal(r->cfg.ack_every, 3);
    rnic_destroy(r);
}

/* ---- queue pairs ---- */

static struct qp *make(struct rnic *r, enum qp_type type)
{
    struct qp_cfg c = {.type = type, .sq_depth = 4};
    struct qp *qp = NULL;

    assert_int_equal(qp_create(r, &c, &qp), 0);
    return qp;
}

/* More than the rnic has room for at first, and all that it may have. */
static void queue_pairs_are_found_by_their_numbers(void **state)
{
    struct rnic_cfg c = usual();
    struct qp_cfg one = {.type = QP_RC, .sq_depth = 4};
    struct qp *qp[64], *more;
    struct rnic *r;

    (void)state;
    assert_int_equal(rnic_create(&r, &c), 0);
    for (unsigned i = 0; i < RTE_DIM(qp); i++) {
        qp[i] = make(r, QP_RC);
        assert_int_equal(qp_num(qp[i]), BASE + 1 + i);
    }
    assert_int_equal(qp_create(r, &one, &more), -ENOMEM);
    for (unsigned i = 0; i < RTE_DIM(qp); i++)
        assert_ptr_equal(rnic_qp(r, BASE + 1 + i), qp[i]);
    assert_null(rnic_qp(r, BASE));
    assert_null(rnic_qp(r, BASE - 1));
    assert_null(rnic_qp(r, BASE + 65));
    assert_null(rnic_qp(r, 1));
    qp_destroy(qp[7]);
    assert_null(rnic_qp(r, BASE + 8));
    qp[7] = make(r, QP_RC); /* the only one that is free */
    assert_int_equal(qp_num(qp[7]), BASE + 8);
    rnic_destroy(r); /* with all of them */
}

static void numbers_are_not_reused_at_once(void **state)
{
    struct rnic_cfg c = usual();
    struct rnic *r;

    (void)state;
    c.max_qps = 3;
    assert_int_equal(rnic_create(&r, &c), 0);
    for (unsigned i = 0; i < 7; i++) {
        struct qp *qp = make(r, QP_UD);

        assert_int_equal(qp_num(qp), BASE + 1 + i % 3);
        qp_destroy(qp);
    }
    rnic_destroy(r);
}

/* In the rnic's range, and eight beside it. */
static void numbers_that_are_asked_for_are_had(void **state)
{
    struct rnic_cfg c = usual();
    struct qp_cfg one = {.type = QP_UD, .sq_depth = 4, .qpn = BASE + 64};
    struct qp *qp, *last, *special = NULL;
    struct rnic *r;

    (void)state;
    assert_int_equal(rnic_create(&r, &c), 0);
    assert_int_equal(qp_create(r, &one, &last), 0);
    assert_int_equal(qp_num(last), BASE + 64);
    assert_ptr_equal(rnic_qp(r, BASE + 64), last);
    assert_int_equal(qp_create(r, &one, &qp), -EADDRINUSE);
    for (unsigned i = 0; i < 8; i++) {
        one.qpn = BASE + 65 + i;
        assert_int_equal(qp_create(r, &one, &qp), 0);
        assert_ptr_equal(rnic_qp(r, one.qpn), qp);
        special = i == 3 ? qp : special;
        assert_int_equal(qp_create(r, &one, &qp), -EADDRINUSE);
    }
    one.qpn = 1;
    assert_int_equal(qp_create(r, &one, &qp), -ENOMEM);
    qp_destroy(special);
    assert_null(rnic_qp(r, BASE + 68));
    assert_int_equal(qp_create(r, &one, &qp), 0);
    assert_ptr_equal(rnic_qp(r, 1), qp);
    one.qpn = BASE;
    assert_int_equal(qp_create(r, &one, &qp), 0);
    assert_ptr_equal(rnic_qp(r, BASE), qp);
    rnic_destroy(r);
}

static enum sink_verdict sink(void *user, struct qp *qp, const struct roce_pkt *k,
                              struct rte_mbuf *m, int64_t now_ps)
{
    (void)user, (void)qp, (void)k, (void)m, (void)now_ps;
    return SINK_COPIED;
}

static void what_a_queue_pair_cannot_be_is_refused(void **state)
{
    static const struct deferred_ops deferred;
    static const struct {
        struct qp_cfg cfg;
        bool sink, defers;
        int rc;
    } rows[] = {
        {{.type = (enum qp_type)7}, false, false, -EINVAL},
        {{.type = QP_RC, .sq_depth = (1u << 20) + 1}, false, false, -EINVAL},
        {{.type = QP_UD, .qpn = PSN_MASK + 1}, false, false, -EINVAL},
        {{.type = QP_UD, .qpn = PSN_MASK}, false, false, 0},
        {{.type = QP_RC, .streaming = true}, false, false, -EINVAL},
        {{.type = QP_RC, .streaming = true}, true, false, 0},
        {{.type = QP_RC, .deferred = true}, true, false, -EINVAL},
        {{.type = QP_RC, .deferred = true}, true, true, 0},
        {{.type = QP_RC, .deferred = true, .streaming = true}, true, true, -EINVAL},
        {{.type = QP_UC, .deferred = true}, true, true, -EINVAL},
        {{.type = QP_UC}, false, false, 0},
        {{.type = QP_RC, .sq_depth = 0}, false, false, 0},
    };

    (void)state;
    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        struct rnic_cfg c = usual();
        struct qp *qp = NULL;
        struct rnic *r;

        c.ops.sink = rows[i].sink ? sink : NULL;
        c.ops.deferred = rows[i].defers ? &deferred : NULL;
        assert_int_equal(rnic_create(&r, &c), 0);
        if (qp_create(r, &rows[i].cfg, &qp) != rows[i].rc)
            fail_msg("row %u", i);
        assert_int_equal(r->n_qps, !rows[i].rc);
        if (qp)
            assert_int_equal(qp_state_of(qp), QP_RESET);
        rnic_destroy(r);
    }
}

/* ---- groups ---- */

static void groups_are_joined_once_and_left(void **state)
{
    static const uint32_t none[] = {0, 0x0a000001, 0xdfffffff, 0xf0000000, 0xffffffff};
    struct rnic_cfg c = usual();
    struct qp *a, *b, *rc;
    struct rnic *r;

    (void)state;
    assert_int_equal(rnic_create(&r, &c), 0);
    a = make(r, QP_UD), b = make(r, QP_UD), rc = make(r, QP_RC);
    for (unsigned i = 0; i < RTE_DIM(none); i++)
        assert_int_equal(qp_attach_mcast(a, none[i]), -EINVAL);
    assert_int_equal(qp_attach_mcast(rc, 0xe0000001), -EINVAL);
    assert_int_equal(r->n_mcast, 0);
    for (uint32_t i = 0; i < ROCE_MAX_MCAST - 1; i++)
        assert_int_equal(qp_attach_mcast(a, 0xe0000000 + i), 0);
    assert_int_equal(qp_attach_mcast(b, 0xefffffff), 0);
    assert_int_equal(r->n_mcast, ROCE_MAX_MCAST);
    assert_int_equal(qp_attach_mcast(b, 0xe0000000), -ENOMEM); /* of another queue pair */
    assert_int_equal(qp_attach_mcast(a, 0xefffffff), -ENOMEM);
    assert_int_equal(qp_attach_mcast(a, 0xe0000000), 0); /* is attached */
    assert_int_equal(qp_attach_mcast(b, 0xefffffff), 0);
    assert_int_equal(r->n_mcast, ROCE_MAX_MCAST);
    assert_int_equal(qp_detach_mcast(b, 0xe0000000), -EINVAL);
    assert_int_equal(qp_detach_mcast(a, 0xefffffff), -EINVAL);
    assert_int_equal(qp_detach_mcast(a, 0xe0000000), 0);
    assert_int_equal(qp_detach_mcast(a, 0xe0000000), -EINVAL);
    assert_int_equal(r->n_mcast, ROCE_MAX_MCAST - 1);
    assert_int_equal(qp_detach_mcast(b, 0xefffffff), 0);
    assert_int_equal(qp_attach_mcast(b, 0xe0000000), 0);
    qp_destroy(a); /* and with it what it has joined */
    assert_int_equal(r->n_mcast, 1);
    assert_ptr_equal(r->mcast[0].qp, b);
    assert_int_equal(r->mcast[0].ip, 0xe0000000);
    qp_destroy(b);
    assert_int_equal(r->n_mcast, 0);
    rnic_destroy(r);
}

/* A queue pair in error takes nothing more, neither requests nor responses. */
static void a_queue_pair_in_error_takes_no_request(void **state)
{
    struct pair_cfg cfg = {.window = 32, .ack_every = 4, .seed = 1};
    struct fixture e = fixture_make_cfg(&cfg, NULL, false);
    struct qp_attr a = *qp_attributes(e.qp[1]);
    struct wqe w = request(&e, WR_WRITE, 1, 500);

    (void)state;
    a.state = QP_ERR;
    assert_int_equal(qp_modify(e.qp[1], &a), 0);
    assert_int_equal(qp_post_send(e.qp[0], &w), 0);
    pair_run(e.p, pair_never, PS_PER_MS);
    assert_true(rnic_counters(e.p->s[1].r)->drops[ROCE_QP_STATE] > 0);
    assert_int_equal(e.buf[1][0], 0);
    assert_int_equal(e.buf[1][499], 0);
    fixture_free(&e);
}

/* ---- the port ---- */

/* What waits for receives is told by its completions, what has none by an event. */
static void a_port_that_goes_down_ends_connections_alone(void **state)
{
    struct pair_cfg cfg = {.window = 32, .ack_every = 4, .seed = 1};
    struct fixture e = fixture_make_cfg(&cfg, NULL, false);
    struct side *s = &e.p->s[1];
    struct qp *ud = make(s->r, QP_UD), *init = make(s->r, QP_RC);
    struct qp_attr a = *qp_attributes(e.qp[1]);

    (void)state;
    a.state = QP_INIT;
    assert_int_equal(qp_modify(init, &a), 0);
    for (a.state = QP_INIT; a.state <= QP_RTS; a.state++)
        assert_int_equal(qp_modify(ud, &a), 0);
    rnic_port_down(s->r, 5);
    assert_int_equal(qp_state_of(e.qp[1]), QP_ERR);
    assert_int_equal(qp_state_of(init), QP_INIT);
    assert_int_equal(qp_state_of(ud), QP_RTS);
    assert_int_equal(s->events[QP_EV_FATAL], 1);
    assert_int_equal(rnic_counters(s->r)->qp_errors, 1);
    rnic_port_down(s->r, 6); /* once */
    assert_int_equal(s->events[QP_EV_FATAL], 1);
    fixture_free(&e);
}

static int make_pool(void **state)
{
    (void)state;
    pool = test_pool(255);
    return !pool;
}

static int drop_pool(void **state)
{
    (void)state;
    rte_mempool_free(pool);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_rnic_cannot_be_is_refused),
        cmocka_unit_test(what_is_not_said_has_a_default),
        cmocka_unit_test(queue_pairs_are_found_by_their_numbers),
        cmocka_unit_test(numbers_are_not_reused_at_once),
        cmocka_unit_test(numbers_that_are_asked_for_are_had),
        cmocka_unit_test(what_a_queue_pair_cannot_be_is_refused),
        cmocka_unit_test(groups_are_joined_once_and_left),
        cmocka_unit_test(a_queue_pair_in_error_takes_no_request),
        cmocka_unit_test(a_port_that_goes_down_ends_connections_alone),
    };

    test_eal_init();
    return cmocka_run_group_tests_name("roce/rnic", tests, make_pool, drop_pool);
}
