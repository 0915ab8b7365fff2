/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <malloc.h>
#include <rte_mempool.h>
#include <stdlib.h>
#include <string.h>

#include "roce/wire.h"
#include "switch/queue/ecn.h"
#include "switch/queue/egress.h"
#include "switch/queue/pfc.h"
#include "tests/support/eal.h"
#include "tests/support/egress_fixture.h"
#include "tests/support/switch_fixture.h"

static struct rte_mempool *pool;

static void frames_back_to_back_take_their_wire_time_and_the_latency_to_the_picosecond(void **state)
{
    struct egress_cfg c = egress_fixture_usual(pool);
    struct egress *e = egress_fixture_make(&c);
    int64_t at[10];

    (void)state;
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(egress_push(e, egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, i), 1000),
                         0);
    assert_int_equal(egress_fixture_drain(e, NULL, at, 10), 10);
    for (int i = 0; i < 10; i++)
        assert_int_equal(at[i], 1000 + (i + 1) * DUR + LATENCY);
    assert_int_equal(egress_stats(e).link_bytes, 10 * (BYTES + 24));
    assert_int_equal(egress_stats(e).busy_ps, 10 * DUR);
    egress_destroy(e);
}

static void a_rate_that_divides_no_picosecond_rounds_each_frame_up(void **state)
{
    struct egress_cfg c = egress_fixture_usual(pool);
    struct egress *e;
    int64_t at[2];

    (void)state;
    c.rate_bps = 300ull * 1000000000;
    e = egress_fixture_make(&c);
    egress_push(e, egress_fixture_frame(pool, FRAME_LOSSY, 100, 0), 0);
    egress_push(e, egress_fixture_frame(pool, FRAME_LOSSY, 101, 1), 0);
    egress_fixture_drain(e, NULL, at, 2);
    assert_int_equal(at[0] - LATENCY, (182 * 8 * 10 + 2) / 3);
    assert_int_equal(at[1] - at[0], (183 * 8 * 10 + 2) / 3);
    egress_destroy(e);
}

static void a_late_poll_never_lowers_the_rate(void **state)
{
    struct egress_cfg c = egress_fixture_usual(pool);
    struct egress *e = egress_fixture_make(&c);
    struct rte_mbuf *m[64];

    (void)state;
    for (uint32_t i = 0; i < 50; i++)
        egress_push(e, egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, i), 0);
    /* No poll until all frames have arrived. */
    assert_int_equal(egress_pop(e, m, 64, 50 * DUR + LATENCY - 1), 49);
    for (int i = 0; i < 49; i++)
        assert_int_equal(frame_meta(m[i])->due_ps, (i + 1) * DUR + LATENCY);
    rte_pktmbuf_free_bulk(m, 49);
    assert_int_equal(egress_pop(e, m, 64, 50 * DUR + LATENCY), 1);
    rte_pktmbuf_free(m[0]);
    /* A frame after an idle time starts when it is pushed. */
    egress_push(e, egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, 0), 100 * DUR);
    assert_int_equal(egress_next(e), 101 * DUR + LATENCY);
    egress_destroy(e);
}

static void control_overtakes_and_the_other_classes_take_turns(void **state)
{
    static const uint32_t want[] = {100, 300, 200, 101, 201, 102, 202};
    struct egress_cfg c = egress_fixture_usual(pool);
    struct egress *e = egress_fixture_make(&c);
    uint32_t tag[7];

    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        egress_push(e, egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, 100 + i),
                    0); /* the first starts at once */
    for (uint32_t i = 0; i < 3; i++)
        egress_push(e, egress_fixture_frame(pool, FRAME_LOSSY, LEN, 200 + i), 0);
    egress_push(e, egress_fixture_frame(pool, FRAME_CONTROL, 10, 300), 0);
    assert_int_equal(egress_fixture_drain(e, tag, NULL, 7), 7);
    assert_memory_equal(tag, want, sizeof(want));
    egress_destroy(e);
}

static void a_class_is_finite_in_bytes_and_in_frames(void **state)
{
    struct egress_cfg c = egress_fixture_usual(pool);
    struct egress *e;
    struct rte_mbuf *m;

    (void)state;
    c.limit_pkts[FRAME_LOSSY] = 3;
    c.limit_bytes[FRAME_LOSSLESS] = 2 * BYTES;
    e = egress_fixture_make(&c);
    egress_push(e, egress_fixture_frame(pool, FRAME_CONTROL, LEN, 0), 0); /* takes the link */
    for (int i = 0; i < 3; i++)
        assert_int_equal(egress_push(e, egress_fixture_frame(pool, FRAME_LOSSY, 0, 0), 0), 0);
    m = egress_fixture_frame(pool, FRAME_LOSSY, 0, 0);
    assert_int_equal(egress_push(e, m, 0), -ENOBUFS);
    rte_pktmbuf_free(m);
    assert_int_equal(egress_room(e, FRAME_LOSSLESS, BYTES, 1), 1);
    assert_int_equal(egress_room(e, FRAME_LOSSLESS, BYTES, 256), 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(egress_push(e, egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, 0), 0), 0);
    m = egress_fixture_frame(pool, FRAME_LOSSLESS, 0, 0);
    assert_int_equal(egress_push(e, m, 0), -ENOBUFS);
    rte_pktmbuf_free(m);
    assert_int_equal(egress_room(e, FRAME_LOSSLESS, BYTES, 256), 0);
    assert_int_equal(egress_occupancy(e, FRAME_LOSSLESS), 2 * BYTES);
    egress_fixture_drain(e, NULL, NULL, 100);
    assert_int_equal(egress_occupancy(e, FRAME_LOSSLESS), 0);
    egress_destroy(e);
}

static void a_pause_holds_the_lossless_class_until_it_ends_or_is_taken_back(void **state)
{
    static const uint32_t want[] = {3, 2, 1};
    struct egress_cfg c = egress_fixture_usual(pool);
    struct egress *e = egress_fixture_make(&c);
    uint32_t tag[4];
    int64_t at[4];

    (void)state;
    egress_pause(e, FRAME_LOSSLESS, 10 * DUR, 0);
    egress_push(e, egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, 1), 0);
    egress_push(e, egress_fixture_frame(pool, FRAME_LOSSY, LEN, 2), 0);
    egress_push(e, egress_fixture_frame(pool, FRAME_CONTROL, LEN, 3), 0);
    assert_int_equal(egress_fixture_drain(e, tag, at, 4), 3);
    assert_memory_equal(tag, want, sizeof(want));
    assert_int_equal(at[2], 11 * DUR + LATENCY);
    assert_int_equal(egress_stats(e).paused_ps, 10 * DUR);
    egress_pause(e, FRAME_LOSSLESS, 100 * DUR, 20 * DUR);
    egress_push(e, egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, 4), 20 * DUR);
    assert_int_equal(egress_next(e), 100 * DUR);
    egress_pause(e, FRAME_LOSSLESS, 0, 30 * DUR);
    assert_int_equal(egress_stats(e).paused_ps, 20 * DUR);
    egress_fixture_drain(e, NULL, at, 4);
    assert_int_equal(at[0], 31 * DUR + LATENCY);
    egress_destroy(e);
}

/* ---- the pull source ---- */

struct source {
    unsigned left, asked;
    int64_t last_ps;
};

static struct rte_mbuf *pull(void *ctx, int64_t now, bool paused)
{
    struct source *s = ctx;

    s->asked++;
    s->last_ps = now;
    if (paused || !s->left)
        return NULL;
    s->left--;
    return egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, 0);
}

static void a_backlogged_source_fills_the_link_however_late_the_poll(void **state)
{
    struct egress_cfg c = egress_fixture_usual(pool);
    struct source src = {.left = 20};
    struct rte_mbuf *m[32];
    struct egress *e;

    (void)state;
    c.pull = pull, c.ctx = &src;
    e = egress_fixture_make(&c);
    assert_int_equal(egress_next(e), PS_NEVER);
    egress_kick(e, 5000);
    assert_int_equal(egress_next(e), 5000);
    assert_int_equal(egress_pop(e, m, 32, 5000 + 20 * DUR + LATENCY), 20);
    for (int i = 0; i < 20; i++)
        assert_int_equal(frame_meta(m[i])->due_ps, 5000 + (i + 1) * DUR + LATENCY);
    rte_pktmbuf_free_bulk(m, 20);
    /* Found empty: the source is not pulled again before it kicks, and then no frame starts in the
     * past. */
    assert_int_equal(egress_next(e), PS_NEVER);
    src.left = 1;
    egress_kick(e, 200 * DUR);
    assert_int_equal(egress_pop(e, m, 32, 300 * DUR), 1);
    assert_int_equal(frame_meta(m[0])->due_ps, 201 * DUR + LATENCY);
    rte_pktmbuf_free(m[0]);
    egress_destroy(e);
}

static void a_paused_source_is_asked_again_when_the_pause_ends(void **state)
{
    struct egress_cfg c = egress_fixture_usual(pool);
    struct source src = {.left = 2};
    struct egress *e;
    int64_t at[4];

    (void)state;
    c.pull = pull, c.ctx = &src;
    e = egress_fixture_make(&c);
    egress_pause(e, FRAME_LOSSLESS, 50 * DUR, 0);
    egress_kick(e, 0);
    assert_int_equal(egress_fixture_drain(e, NULL, at, 4), 2);
    assert_int_equal(at[0], 51 * DUR + LATENCY);
    assert_int_equal(at[1], 52 * DUR + LATENCY);
    egress_pause(e, FRAME_LOSSLESS, PS_NEVER, 60 * DUR);
    src.left = 1;
    egress_kick(e, 60 * DUR);
    assert_int_equal(egress_fixture_drain(e, NULL, at, 4), 0);
    egress_pause(e, FRAME_LOSSLESS, 0, 70 * DUR);
    assert_int_equal(egress_fixture_drain(e, NULL, at, 4), 1);
    assert_int_equal(at[0], 71 * DUR + LATENCY);
    egress_destroy(e);
}

/* ---- marking, down ---- */

static void frames_above_the_threshold_are_marked_in_a_header_of_their_own(void **state)
{
    struct egress_cfg c = egress_fixture_usual(pool);
    struct rte_mbuf *m[4], *orig, *clone;
    struct egress *e;
    const uint8_t *ip;

    (void)state;
    c.ecn_bytes = BYTES;
    e = egress_fixture_make(&c);
    for (uint32_t i = 0; i < 3; i++)
        egress_push(e, egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, i),
                    0); /* 0 starts, 1 and 2 wait */
    orig = egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, 3);
    clone = frame_clone(orig, pool);
    egress_push(e, clone, 0);
    assert_int_equal(egress_pop(e, m, 4, 100 * DUR), 4);
    for (int i = 0; i < 4; i++) {
        ip = rte_pktmbuf_mtod_offset(m[i], uint8_t *, 14);
        assert_int_equal(ip[1] & 3, i == 3 ? 3 : 2);
        assert_int_equal(switch_fixture_ip_checksum(ip, 20), 0);
    }
    assert_int_equal(m[3]->pkt_len, BYTES);
    ip = rte_pktmbuf_mtod_offset(orig, uint8_t *, 14);
    assert_int_equal(ip[1] & 3, 2);
    assert_int_equal(egress_stats(e).ecn_marks, 1);
    rte_pktmbuf_free_bulk(m, 4);
    rte_pktmbuf_free(orig);
    egress_destroy(e);
}

/* The traffic class of IPv6 is half a byte further to the left, and no checksum covers it. */
static void marks_of_ipv6_change_nothing_else(void **state)
{
    static const struct {
        uint8_t tos, want;
    } tos[] = {{0x6a, 0x6b}, {0x69, 0x6b}, {0x6b, 0x6b}, {0x68, 0x68}};

    (void)state;
    for (size_t i = 0; i < RTE_DIM(tos); i++) {
        struct roce_pkt k = {.opcode = ROCE_OP_RC_ACKNOWLEDGE,
                             .v6 = true,
                             .tos = tos[i].tos,
                             .ttl = 64,
                             .pkey = ROCE_DEFAULT_PKEY,
                             .src_ip = 0x0a000001,
                             .dst_ip = 0x0a000002},
                        got;
        struct rte_mbuf *m = frame_alloc(pool);
        uint64_t marks = 0;

        assert_non_null(m);
        roce_build(m, &k);
        roce_seal(m, &k);
        m = ecn_mark(m, pool, &marks);
        assert_int_equal(marks, i < 2);
        assert_int_equal(roce_parse(m, &got), ROCE_OK);
        assert_int_equal(got.tos, tos[i].want);
        assert_true(roce_icrc_ok(m, &got));
        rte_pktmbuf_free(m);
    }
}

static void count_departed(void *ctx, struct rte_mbuf *const *m, const int64_t *at, uint32_t n,
                           uint32_t bytes)
{
    (void)m, (void)at, (void)bytes;
    *(unsigned *)ctx += n;
}

static void a_link_that_is_down_drops_what_waits_and_what_comes(void **state)
{
    struct egress_cfg c = egress_fixture_usual(pool);
    unsigned departed = 0;
    struct egress *e;

    (void)state;
    c.departed = count_departed, c.ctx = &departed;
    e = egress_fixture_make(&c);
    for (uint32_t i = 0; i < 5; i++)
        egress_push(e, egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, i), 0);
    egress_set_down(e, true, 10);
    assert_int_equal(departed, 5); /* their ingress ports release all of them */
    egress_push(e, egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, 9), 20);
    assert_int_equal(egress_fixture_drain(e, NULL, NULL, 10), 1); /* the one in flight */
    assert_int_equal(egress_stats(e).down_drops, 5);
    egress_set_down(e, false, 10 * DUR);
    egress_push(e, egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, 9), 10 * DUR);
    assert_int_equal(egress_fixture_drain(e, NULL, NULL, 10), 1);
    egress_destroy(e);
}

static void an_unshaped_queue_carries_everything_in_order(void **state)
{
    static uint32_t tag[6000];
    struct egress_cfg c = egress_fixture_usual(pool);
    struct egress *e;

    (void)state;
    c.rate_bps = 0;
    e = egress_fixture_make(&c);
    for (uint32_t i = 0; i < 6000; i++)
        assert_int_equal(egress_push(e, egress_fixture_frame(pool, FRAME_LOSSLESS, 0, i), i), 0);
    assert_int_equal(egress_fixture_drain(e, tag, NULL, 6000), 6000);
    for (uint32_t i = 0; i < 6000; i++)
        assert_int_equal(tag[i], i);
    egress_destroy(e);
}

/* A SuperPOD has 40,960 of them, most of which never hold a dozen frames. */
static void a_queue_takes_no_more_memory_than_what_waits(void **state)
{
    struct egress_cfg c = egress_fixture_usual(pool);
    struct mallinfo2 before;
    struct egress *e[64];

    (void)state;
    c.limit_pkts[FRAME_LOSSLESS] = EGRESS_MAX_PKTS;
    before = mallinfo2();
    for (unsigned i = 0; i < 64; i++)
        e[i] = egress_fixture_make(&c);
    assert_true(mallinfo2().uordblks + mallinfo2().hblkhd <
                before.uordblks + before.hblkhd + 64 * 1024);
    for (unsigned i = 0; i < 64; i++)
        egress_destroy(e[i]);
}

#define T(f) cmocka_unit_test_prestate_setup_teardown(f, NULL, egress_fixture_no_leak, pool)

int main(void)
{
    test_eal_init();
    pool = test_pool(16383);
    const struct CMUnitTest tests[] = {
        T(frames_back_to_back_take_their_wire_time_and_the_latency_to_the_picosecond),
        T(a_rate_that_divides_no_picosecond_rounds_each_frame_up),
        T(a_late_poll_never_lowers_the_rate),
        T(control_overtakes_and_the_other_classes_take_turns),
        T(a_class_is_finite_in_bytes_and_in_frames),
        T(a_queue_takes_no_more_memory_than_what_waits),
        T(a_pause_holds_the_lossless_class_until_it_ends_or_is_taken_back),
        T(a_backlogged_source_fills_the_link_however_late_the_poll),
        T(a_paused_source_is_asked_again_when_the_pause_ends),
        T(frames_above_the_threshold_are_marked_in_a_header_of_their_own),
        T(marks_of_ipv6_change_nothing_else),
        T(a_link_that_is_down_drops_what_waits_and_what_comes),
        T(an_unshaped_queue_carries_everything_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
