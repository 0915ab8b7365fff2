/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames through a network that loses, repeats, delays and reorders, on a clock of the test's own. */
#include "io/trunk/trunk_flow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define US     1000
#define FLIGHT 4096

struct packet {
    int64_t at_ns;
    enum { NONE, FRAME, ASK, ACK } kind;
    uint32_t number, oldest;
    void *frame;
    struct flow_ack ack;
};

struct wire {
    struct packet p[FLIGHT];
    int64_t now;
    double loss, dup, reorder;
    int64_t delay;
    unsigned sent;
};

static bool draw(double share)
{
    return rand() < share * RAND_MAX;
}

static void put(struct wire *w, struct packet p)
{
    for (int copies = draw(w->dup) ? 2 : 1; copies; copies--) {
        unsigned i = 0;

        w->sent++;
        if (draw(w->loss))
            continue;
        while (w->p[i].kind != NONE)
            assert_true(++i < FLIGHT);
        p.at_ns = w->now + w->delay + (draw(w->reorder) ? rand() % (2000 * US) : 0);
        w->p[i] = p;
    }
}

/* Sends n frames, numbered from 1 in their pointers; returns when it took, and checks each. */
static int64_t transfer(struct wire *w, unsigned n, unsigned *again_total)
{
    static struct flow_out o;
    static struct flow_in in;
    uintptr_t next = 1, got = 0;
    unsigned freed = 0;
    void *frame;

    flow_out_init(&o);
    o.way_ns = 2 * w->delay;
    o.next = o.acked = UINT32_MAX - 700; /* numbers wrap on the way */
    memset(&in, 0, sizeof(in));
    *again_total = 0;
    for (w->now = 1; freed < n; w->now += 20 * US) {
        struct flow_ack ack;

        assert_true(w->now < 3600ll * 1000000 * US);
        for (unsigned k = 0; k < 8 && next <= n && flow_room(&o); k++, next++)
            put(w, (struct packet){.kind = FRAME,
                                   .number = flow_out_put(&o, (void *)next, w->now),
                                   .oldest = o.acked,
                                   .frame = (void *)next});
        if (flow_out_asks(&o, w->now))
            put(w, (struct packet){.kind = ASK, .number = o.next - 1, .oldest = o.acked});
        for (unsigned i = 0; i < FLIGHT; i++) {
            struct packet *p = &w->p[i];
            uint32_t again[FLOW_WINDOW];
            unsigned k = 0;

            if (p->kind == NONE || p->at_ns > w->now)
                continue;
            if (p->kind == FRAME)
                flow_in_take(&in, p->number, p->oldest, p->frame, w->now);
            else if (p->kind == ASK)
                flow_in_asked(&in, p->number, p->oldest);
            else
                k = flow_out_ack(&o, &p->ack, w->now, again);
            p->kind = NONE;
            *again_total += k;
            while (k--)
                put(w, (struct packet){.kind = FRAME,
                                       .number = again[k],
                                       .oldest = o.acked,
                                       .frame = flow_out_frame(&o, again[k])});
        }
        while ((frame = flow_in_next(&in)))
            assert_int_equal((uintptr_t)frame, ++got);
        if (flow_in_ack(&in, w->now, &ack))
            put(w, (struct packet){.kind = ACK, .ack = ack});
        while (flow_out_done(&o))
            freed++;
        assert_true(got >= freed);
    }
    assert_int_equal(got, n);
    for (unsigned i = 0; i < FLIGHT; i++)
        w->p[i].kind = NONE;
    return w->now;
}

static void every_frame_once_and_in_order(void **state)
{
    static struct wire w;
    unsigned again;
    (void)state;

    srand(11);
    for (double loss = 0; loss < 0.35; loss += 0.1)
        for (double reorder = 0; reorder < 0.6; reorder += 0.25)
            for (double dup = 0; dup < 0.3; dup += 0.2) {
                w = (struct wire){.loss = loss, .reorder = reorder, .dup = dup, .delay = 100 * US};
                transfer(&w, 3000, &again);
            }
}

static void sends_nothing_again_on_a_good_network(void **state)
{
    static struct wire w;
    unsigned again;
    (void)state;

    w = (struct wire){.delay = 100 * US};
    transfer(&w, 20000, &again);
    assert_int_equal(again, 0);
    assert_true(w.sent < 20000 + 20000 / FLOW_ACK_EACH + 50);
    w = (struct wire){.delay = 20000 * US}; /* the window, not retransmission, is the limit */
    transfer(&w, 5000, &again);
    assert_int_equal(again, 0);
}

/* One lost frame in a hundred costs a round trip or so each, no timeout of a queue pair. */
static void loss_costs_round_trips(void **state)
{
    static struct wire w;
    unsigned again;
    int64_t clean, lossy;
    (void)state;

    srand(5);
    w = (struct wire){.delay = 1000 * US};
    clean = transfer(&w, 20000, &again);
    w = (struct wire){.delay = 1000 * US, .loss = 0.01};
    lossy = transfer(&w, 20000, &again);
    assert_true(lossy < clean + 200 * 4 * 1000ll * US);
    assert_true(again >= 150 && again < 400);
}

static void an_acknowledgement_of_what_was_not_sent_is_nothing(void **state)
{
    static struct flow_out o;
    uint32_t again[FLOW_WINDOW];
    struct flow_ack a = {0};
    (void)state;

    flow_out_init(&o);
    for (uintptr_t i = 1; i <= 10; i++)
        flow_out_put(&o, (void *)i, 1);
    srand(2);
    for (unsigned i = 0; i < 100000; i++) {
        for (unsigned k = 0; k < sizeof(a); k++)
            ((uint8_t *)&a)[k] = (uint8_t)rand();
        a.next = rand() % 2 ? a.next : o.next + 1 + (uint32_t)rand() % 50;
        if (a.next - 1 < 10)
            continue;
        flow_out_ack(&o, &a, 1000000000, again);
        assert_int_equal(o.acked, 1);
    }
    assert_null(flow_out_done(&o));
    for (unsigned i = 0; i < 10; i++)
        assert_non_null(flow_out_drop(&o));
    assert_null(flow_out_drop(&o));
}

/* A sender whose switch process was restarted has dropped frames that were never received: those
 * before and after them still come, in order, and what is missing is not asked for. */
static void what_a_sender_has_dropped_is_skipped(void **state)
{
    static const uint32_t arrive[] = {1, 2, 4, 5, 8, 11};
    static struct flow_in in;
    struct flow_ack ack;
    void *frame;
    unsigned got = 0;
    (void)state;

    memset(&in, 0, sizeof(in));
    for (unsigned i = 0; i < 6; i++) {
        assert_true(
            flow_in_take(&in, arrive[i], arrive[i] < 11 ? 1 : 11, (void *)(uintptr_t)arrive[i], i));
        while ((frame = flow_in_next(&in)))
            assert_int_equal((uintptr_t)frame, arrive[got++]);
        assert_int_equal(got, i < 2 ? i + 1 : i < 5 ? 2 : 6);
    }
    assert_false(flow_in_take(&in, 9, 1, (void *)9, 10)); /* late */
    flow_in_asked(&in, 11, 11);
    assert_true(flow_in_ack(&in, 2000000, &ack));
    assert_int_equal(ack.next, 12);
    assert_true((int32_t)(ack.upto - ack.next) < 0);
    assert_null(flow_in_drop(&in));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_frame_once_and_in_order),
        cmocka_unit_test(sends_nothing_again_on_a_good_network),
        cmocka_unit_test(loss_costs_round_trips),
        cmocka_unit_test(an_acknowledgement_of_what_was_not_sent_is_nothing),
        cmocka_unit_test(what_a_sender_has_dropped_is_skipped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
