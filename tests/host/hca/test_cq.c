/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A completion queue by itself: its ring, whom completions wake, what is polled, and the bit by which an owner sees that
 * some queue has completions.
 */
#include "host/hca/hca_priv.h"
#include "tests/host/hca/pair.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static uint16_t freed; /* slots that polls have given back */

static struct hca_cqe cqe_of(uint64_t id, uint32_t qpn)
{
    return (struct hca_cqe){.wr_id = id, .qp_num = qpn, .free = &freed, .slots = 1};
}

static struct hca_cq *cq_of(struct pair *p, int cqe)
{
    struct ibv_cq *cq = ibv_create_cq(p->s[0].ctx, cqe, NULL, NULL, 0);

    assert_non_null(cq);
    freed = 0;
    return to_cq(cq);
}

static void push(struct hca_cq *cq, uint64_t id, uint32_t qpn)
{
    struct hca_cqe e = cqe_of(id, qpn);

    cq_push(cq, &e, false);
}

/* The queue has these requests, in this order. */
static void has(struct hca_cq *cq, unsigned n, const uint64_t *id)
{
    struct ibv_wc wc[16];

    assert_int_equal(hca_poll_cq(&cq->v, 16, wc), n);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(wc[i].wr_id, id[i]);
}

/* ---- the ring ---- */

static void a_polled_completion_has_all_that_was_pushed(void **state)
{
    const struct hca_cqe e = {.wr_id = 0x1122334455667788,
                              .free = &freed,
                              .qp_num = 11,
                              .src_qp = 12,
                              .byte_len = 13,
                              .imm = 14,
                              .slots = 3,
                              .status = IBV_WC_RNR_RETRY_EXC_ERR,
                              .opcode = IBV_WC_BIND_MW,
                              .wc_flags = IBV_WC_GRH | IBV_WC_WITH_INV,
                              .sl = 9};
    struct ibv_wc wc[2];
    struct hca_cqe got;
    struct hca_cq *cq;
    struct pair p;

    (void)state;
    pair_open(&p);
    cq = cq_of(&p, 4);
    for (unsigned i = 0; i < 2; i++)
        cq_push(cq, &e, false);
    assert_int_equal(p.s[0].h->completions, 2);
    memset(wc, 0xa5, sizeof(wc));
    assert_int_equal(hca_poll_cq(&cq->v, 1, wc), 1);
    assert_int_equal(freed, 3);
    assert_int_equal(wc[0].wr_id, e.wr_id);
    assert_int_equal(wc[0].status, IBV_WC_RNR_RETRY_EXC_ERR);
    assert_int_equal(wc[0].opcode, IBV_WC_BIND_MW);
    assert_int_equal(wc[0].vendor_err, 0);
    assert_int_equal(wc[0].byte_len, 13);
    assert_int_equal(wc[0].imm_data, 14);
    assert_int_equal(wc[0].qp_num, 11);
    assert_int_equal(wc[0].src_qp, 12);
    assert_int_equal(wc[0].wc_flags, IBV_WC_GRH | IBV_WC_WITH_INV);
    assert_int_equal(wc[0].slid + wc[0].pkey_index + wc[0].dlid_path_bits, 0);
    assert_int_equal(wc[0].sl, 9);
    assert_true(cq_pop(cq, &got));
    assert_int_equal(freed, 6);
    assert_int_equal(got.wr_id, e.wr_id);
    assert_true(got.solicited); /* an error is */
    assert_false(cq_pop(cq, &got));
    assert_int_equal(freed, 6);
    assert_int_equal(ibv_destroy_cq(&cq->v), 0);
    pair_close(&p);
}

static void a_ring_goes_round_and_starts_again_when_it_is_empty(void **state)
{
    struct ibv_wc wc[4];
    struct hca_cq *cq;
    struct pair p;

    (void)state;
    pair_open(&p);
    cq = cq_of(&p, 4);
    for (uint64_t i = 0; i < 3; i++)
        push(cq, i, 1);
    for (uint64_t i = 3; i < 30; i++) {
        push(cq, i, 1);
        assert_int_equal(hca_poll_cq(&cq->v, 1, wc), 1);
        assert_int_equal(wc[0].wr_id, i - 3);
        assert_int_equal(cq->head, i - 2);
    }
    has(cq, 3, (const uint64_t[]){27, 28, 29});
    assert_int_equal(cq->head + cq->tail, 0);
    for (int n = 0; n >= -1; n--) {
        push(cq, 1, 1);
        assert_int_equal(hca_poll_cq(&cq->v, n, wc), 0);
    }
    has(cq, 2, (const uint64_t[]){1, 1});
    has(cq, 0, NULL);
    assert_int_equal(ibv_destroy_cq(&cq->v), 0);
    pair_close(&p);
}

static void rings_have_a_power_of_two_of_entries(void **state)
{
    static const struct {
        int asked, has;
    } rows[] = {{1, 1}, {2, 2}, {3, 4}, {4, 4}, {5, 8}, {1000, 1024}, {1025, 2048}};
    struct ibv_comp_channel *other;
    struct pair p;

    (void)state;
    pair_open(&p);
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct hca_cq *cq = cq_of(&p, rows[i].asked);

        assert_int_equal(cq->v.cqe, rows[i].has);
        assert_int_equal(cq->cap, rows[i].has);
        assert_int_equal(ibv_destroy_cq(&cq->v), 0);
    }
    other = ibv_create_comp_channel(p.s[1].ctx);
    for (unsigned i = 0; i < 6; i++) {
        errno = 0;
        assert_null(ibv_create_cq(p.s[0].ctx,
                                  i == 0   ? 0
                                  : i == 1 ? -1
                                  : i == 2 ? (int)HCA_MAX_CQE + 1
                                           : 1,
                                  NULL, i == 3 ? other : NULL,
                                  i == 4   ? -1
                                  : i == 5 ? p.s[0].ctx->num_comp_vectors
                                           : 0));
        assert_int_equal(errno, EINVAL);
    }
    assert_int_equal(other->refcnt, 0);
    assert_int_equal(ibv_destroy_comp_channel(other), 0);
    pair_close(&p);
}

static void a_queue_holds_what_it_has_when_it_is_resized(void **state)
{
    static const uint64_t left[] = {6, 7, 8, 9};
    struct hca_cq *cq;
    struct pair p;

    (void)state;
    for (int cqe = 2; cqe <= 16; cqe++) {
        pair_open(&p);
        cq = cq_of(&p, 8);
        for (uint64_t i = 0; i < 10; i++) {
            struct hca_cqe e;

            push(cq, i, 1);
            assert_true(i < 4 || cq_pop(cq, &e));
        }
        assert_int_equal(ibv_resize_cq(&cq->v, cqe), cqe > 2 ? 0 : EINVAL);
        assert_int_equal(cq->v.cqe, cqe > 8 ? 16 : cqe == 3 || cqe == 4 ? 4 : 8);
        assert_int_equal(cq->tail - cq->head, 4);
        has(cq, 4, left);
        assert_int_equal(ibv_resize_cq(&cq->v, 0), EINVAL);
        assert_int_equal(ibv_resize_cq(&cq->v, -1), EINVAL);
        assert_int_equal(ibv_resize_cq(&cq->v, (int)HCA_MAX_CQE + 1), EINVAL);
        assert_int_equal(ibv_destroy_cq(&cq->v), 0);
        pair_close(&p);
    }
}

/* What a queue pair leaves goes with it, slots included; the others stay in order. */
static void completions_of_one_queue_pair_are_dropped(void **state)
{
    struct hca_cq *cq;
    struct pair p;

    (void)state;
    pair_open(&p);
    cq = cq_of(&p, 8);
    for (uint64_t i = 0; i < 6; i++)
        push(cq, i, i % 3 == 1 ? 5 : 6);
    cq_clean(cq, 7);
    assert_int_equal(cq->tail - cq->head, 6);
    assert_int_equal(freed, 0);
    cq_clean(cq, 5);
    assert_int_equal(freed, 2);
    has(cq, 4, (const uint64_t[]){0, 2, 3, 5});
    push(cq, 9, 5);
    assert_true(hca_waiting(p.s[0].h));
    cq_clean(cq, 5);
    assert_false(hca_waiting(p.s[0].h));
    assert_int_equal(ibv_destroy_cq(&cq->v), 0);
    pair_close(&p);
}

/* ---- who is woken ---- */

static void a_completion_wakes_who_asked_for_its_kind(void **state)
{
    static const struct {
        enum cq_armed armed, after;
        bool solicited;
        uint8_t status;
    } rows[] = {
        {CQ_IDLE, CQ_IDLE, true, 0},      {CQ_SOLICITED, CQ_SOLICITED, false, 0},
        {CQ_SOLICITED, CQ_IDLE, true, 0}, {CQ_SOLICITED, CQ_IDLE, false, IBV_WC_WR_FLUSH_ERR},
        {CQ_ANY, CQ_IDLE, false, 0},      {CQ_ANY, CQ_IDLE, true, 0},
    };
    struct hca_cq *cq;
    struct ibv_wc wc;
    struct pair p;

    (void)state;
    pair_open(&p);
    cq = cq_of(&p, 4);
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct hca_cqe e = cqe_of(i, 1);

        e.status = rows[i].status;
        cq->armed = rows[i].armed;
        cq_push(cq, &e, rows[i].solicited);
        assert_int_equal(cq->armed, rows[i].after);
        assert_int_equal(cq->notified, rows[i].armed != rows[i].after);
        assert_int_equal(hca_poll_cq(&cq->v, 1, &wc), 1);
        assert_false(cq->notified);
    }
    assert_int_equal(ibv_destroy_cq(&cq->v), 0);
    pair_close(&p);
}

static unsigned blocks;
static void block(void *ctx)
{
    (void)ctx;
    blocks++;
}

static void a_request_sees_what_no_poll_has_seen(void **state)
{
    static const struct {
        enum cq_armed armed;
        int only;
        unsigned n, solicited; /* completions, and which of them is: n: none */
        bool notified;
        enum cq_armed after;
    } rows[] = {
        {CQ_IDLE, 1, 0, 0, false, CQ_SOLICITED}, {CQ_IDLE, 0, 0, 0, false, CQ_ANY},
        {CQ_ANY, 1, 0, 0, false, CQ_ANY},        {CQ_SOLICITED, 0, 0, 0, false, CQ_ANY},
        {CQ_IDLE, 0, 1, 1, false, CQ_IDLE},      {CQ_IDLE, 0, 1, 1, true, CQ_ANY},
        {CQ_IDLE, 1, 3, 3, false, CQ_SOLICITED}, {CQ_IDLE, 1, 3, 0, false, CQ_IDLE},
        {CQ_IDLE, 1, 3, 2, false, CQ_IDLE},      {CQ_IDLE, 1, 3, 1, true, CQ_SOLICITED},
    };
    struct hca_driver drv = {.block = block};
    struct hca_cq *cq;
    struct ibv_wc wc[4];
    struct pair p;

    (void)state;
    pair_open_driven(&p, &drv);
    cq = cq_of(&p, 4);
    blocks = 0;
    for (unsigned i = 0; i < LEN(rows); i++) {
        cq->armed = CQ_IDLE;
        for (unsigned k = 0; k < rows[i].n; k++) {
            struct hca_cqe e = cqe_of(k, 1);

            cq_push(cq, &e, k == rows[i].solicited);
        }
        cq->armed = rows[i].armed;
        cq->notified = rows[i].notified;
        assert_int_equal(hca_req_notify_cq(&cq->v, rows[i].only), 0);
        assert_int_equal(cq->armed, rows[i].after);
        assert_int_equal(blocks, i + 1);
        assert_int_equal(hca_poll_cq(&cq->v, 4, wc), rows[i].n);
    }
    assert_int_equal(ibv_destroy_cq(&cq->v), 0);
    pair_close(&p);
}

/* ---- polling ---- */

static struct hca_cq *filled;
static unsigned idles;
static void idle(void *ctx)
{
    (void)ctx;
    if (++idles == 2)
        push(filled, 77, 1);
}

/* Who finds nothing lets the driver work, once, and looks again. */
static void a_poll_that_finds_nothing_works(void **state)
{
    struct hca_driver drv = {.idle = idle};
    struct ibv_wc wc[2];
    struct pair p;

    (void)state;
    pair_open_driven(&p, &drv);
    filled = cq_of(&p, 2);
    idles = 0;
    assert_int_equal(hca_poll_cq(&filled->v, 0, wc), 0);
    assert_int_equal(idles, 0);
    assert_int_equal(hca_poll_cq(&filled->v, 1, wc), 0);
    assert_int_equal(idles, 1);
    assert_int_equal(hca_poll_cq(&filled->v, 1, wc), 1);
    assert_int_equal(wc[0].wr_id, 77);
    assert_int_equal(idles, 2);
    push(filled, 1, 1);
    assert_int_equal(hca_poll_cq(&filled->v, 2, wc), 1);
    assert_int_equal(idles, 2);
    assert_int_equal(ibv_destroy_cq(&filled->v), 0);
    pair_close(&p);
}

/* ---- what the owner sees ---- */

static void the_owners_bit_says_whether_a_queue_has_completions(void **state)
{
    const uint64_t others = 1ull << 7 | 1ull << 63, ours = 1ull << 40;
    uint64_t waiting = others;
    struct ibv_async_event ev;
    struct hca_cq *a, *b;
    struct ibv_wc wc[4];
    struct pair p;
    struct hca *h;

    (void)state;
    pair_open(&p);
    h = p.s[0].h;
    h->cfg.waiting = &waiting, h->cfg.port = 40;
    a = cq_of(&p, 2), b = cq_of(&p, 2);
    push(a, 1, 1);
    assert_true(waiting == (others | ours));
    push(a, 2, 1);
    push(b, 3, 1);
    assert_int_equal(h->n_waiting, 2);
    has(a, 2, (const uint64_t[]){1, 2});
    assert_true(waiting == (others | ours));
    assert_int_equal(h->n_waiting, 1);
    assert_int_equal(ibv_destroy_cq(&b->v), 0); /* with what it has */
    assert_true(waiting == others);
    for (uint64_t i = 0; i < 4; i++) /* two do not fit, which is reported once */
        push(a, i, 1);
    assert_int_equal(freed, 2 + 2);
    assert_true(a->overrun && h->overrun);
    assert_int_equal(hca_poll_cq(&a->v, 4, wc), 2);
    assert_int_equal(hca_poll_cq(&a->v, 4, wc), -EIO);
    assert_true(waiting == (others | ours)); /* there is an error to poll */
    assert_int_equal(ibv_get_async_event(p.s[0].ctx, &ev), 0);
    assert_int_equal(ev.event_type, IBV_EVENT_CQ_ERR);
    assert_ptr_equal(ev.element.cq, &a->v);
    assert_int_equal(ibv_destroy_cq(&a->v), EBUSY);
    ibv_ack_async_event(&ev);
    assert_int_equal(ibv_get_async_event(p.s[0].ctx, &ev), -1);
    assert_int_equal(ibv_destroy_cq(&a->v), 0);
    h->cfg.waiting = NULL;
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_polled_completion_has_all_that_was_pushed),
        cmocka_unit_test(a_ring_goes_round_and_starts_again_when_it_is_empty),
        cmocka_unit_test(rings_have_a_power_of_two_of_entries),
        cmocka_unit_test(a_queue_holds_what_it_has_when_it_is_resized),
        cmocka_unit_test(completions_of_one_queue_pair_are_dropped),
        cmocka_unit_test(a_completion_wakes_who_asked_for_its_kind),
        cmocka_unit_test(a_request_sees_what_no_poll_has_seen),
        cmocka_unit_test(a_poll_that_finds_nothing_works),
        cmocka_unit_test(the_owners_bit_says_whether_a_queue_has_completions),
    };

    return cmocka_run_group_tests_name("hca/cq", tests, NULL, NULL);
}
