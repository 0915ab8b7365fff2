/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <rte_mempool.h>
#include <string.h>

#include "switch/queue/pfc.h"
#include "tests/support/eal.h"
#include "tests/support/switch_fixture.h"

static struct rte_mempool *pool;

static void a_pause_frame_reads_byte_for_byte_as_802_1qbb_has_it(void **state)
{
    static const uint8_t src[6] = {0x02, 0x54, 10, 0, 0, 9};
    static const uint8_t want[60] = {
        0x01, 0x80, 0xc2, 0,    0,    1,    0x02, 0x54, 10,
        0,    0,    9,    0x88, 0x08, 0x01, 0x01, 0,    0x08, /* class enable: priority 3 */
        0,    0,    0,    0,    0,    0,    0x12, 0x34};
    struct rte_mbuf *m = pfc_frame(pool, src, 0x1234);

    (void)state;
    assert_int_equal(m->pkt_len, 60);
    assert_memory_equal(rte_pktmbuf_mtod(m, void *), want, 60);
    assert_int_equal(frame_meta(m)->cls, FRAME_CONTROL);
    assert_int_equal(pfc_parse(m), 0x1234);
    rte_pktmbuf_free(m);
}

static void other_mac_control_frames_are_told_apart(void **state)
{
    static const uint8_t src[6];
    struct rte_mbuf *m = pfc_frame(pool, src, 7);
    uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);

    (void)state;
    p[17] = 0x04; /* another priority */
    assert_int_equal(pfc_parse(m), -ENOENT);
    p[17] = 0xff;
    assert_int_equal(pfc_parse(m), 7);
    p[15] = 0x02; /* another opcode */
    assert_int_equal(pfc_parse(m), -EINVAL);
    p[15] = 0x01;
    rte_pktmbuf_trim(m, 60 - 33);
    assert_int_equal(pfc_parse(m), -EINVAL);
    rte_pktmbuf_free(m);
}

static void quanta_are_512_bit_times(void **state)
{
    (void)state;
    assert_int_equal(pfc_quanta_ps(1, 400000000000ull), 1280);
    assert_int_equal(pfc_quanta_ps(65535, 100000000000ull), 65535ll * 5120);
}

static void thresholds_leave_the_headroom_that_the_link_needs(void **state)
{
    struct pfc_cfg c = {.on = true,
                        .rate_bps = 400000000000ull,
                        .latency_ps = 300 * PS_PER_NS,
                        .max_frame = 4208,
                        .share_bytes = 200000,
                        .share_pkts = 300};
    uint64_t round_trip = 2 * (15000 + 4232); /* 300 ns and a frame, at 50 bytes a ns */
    struct pfc p;

    (void)state;
    pfc_init(&p, &c);
    assert_int_equal(p.xoff_bytes, 200000);
    assert_int_equal(p.xoff_pkts, 300);
    assert_true(p.xon_bytes < p.xoff_bytes);
    assert_true(p.headroom_bytes >= round_trip);
    assert_true(p.headroom_bytes <= round_trip + 3 * 4232);
    /* A share too small for the link to run at full rate after XON is raised. */
    c.share_bytes = 10000;
    pfc_init(&p, &c);
    assert_true(p.xon_bytes >= 2 * 15000);
    assert_true(p.xoff_bytes > p.xon_bytes);
    c.lag_ps = PS_PER_US;
    pfc_init(&p, &c);
    assert_true(p.headroom_bytes >= round_trip + 50000);
}

/*
 * The worst case after XOFF: the frame that crossed the threshold was the largest, another one has
 * just begun towards the neighbour, so that the pause waits for its end, and one has just begun at
 * the neighbour when the pause arrives; the link is full both ways, and frames and pauses are late
 * by the lag. Returns the bytes or frames above the threshold.
 */
static uint64_t worst(const struct pfc_cfg *c, uint32_t frame, bool count)
{
    uint64_t wire = frame + FRAME_LINK_OVERHEAD;
    int64_t pause = link_time_ps(FRAME_MIN_BYTES + FRAME_LINK_OVERHEAD, c->rate_bps);
    int64_t obeyed = link_time_ps(c->max_frame + FRAME_LINK_OVERHEAD, c->rate_bps) + pause +
                     2 * c->latency_ps + c->lag_ps;
    uint64_t later = (uint64_t)(((unsigned __int128)obeyed * c->rate_bps) / (8 * PS_PER_S)) / wire;

    return (1 + later + 1) * (count ? 1 : frame);
}

static void everything_that_comes_before_a_pause_is_obeyed_has_room(void **state)
{
    static const struct {
        uint64_t gbps;
        int64_t latency_ns, lag_ns;
        uint32_t max_frame;
    } rows[] = {{400, 300, 0, 4208},  {400, 0, 0, 4208},      {400, 0, 0, 340},
                {1, 0, 0, 9000},      {100, 500, 0, 1136},    {10, 5000, 0, 4208},
                {3600, 100, 0, 4208}, {400, 300, 2000, 4208}, {400, 1000, 0, 1136},
                {25, 0, 700, 624}};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct pfc_cfg c = {.on = true,
                            .rate_bps = rows[i].gbps * 1000000000ull,
                            .latency_ps = rows[i].latency_ns * PS_PER_NS,
                            .lag_ps = rows[i].lag_ns * PS_PER_NS,
                            .max_frame = rows[i].max_frame,
                            .share_bytes = 50000,
                            .share_pkts = 100};
        struct pfc p;

        pfc_init(&p, &c);
        if (p.headroom_bytes < worst(&c, c.max_frame, false))
            fail_msg("%u: %lu bytes, %lu can come", i, p.headroom_bytes,
                     worst(&c, c.max_frame, false));
        if (p.headroom_pkts < worst(&c, FRAME_MIN_BYTES, true))
            fail_msg("%u: %u frames, %lu can come", i, p.headroom_pkts,
                     worst(&c, FRAME_MIN_BYTES, true));
        /* XON comes early enough for the link not to run dry. */
        assert_true(p.xon_bytes >= (uint64_t)(2 * c.latency_ps / PS_PER_NS) * rows[i].gbps / 8);
        assert_true(p.xon_pkts < p.xoff_pkts && p.xoff_pkts >= 64);
    }
}

static void crossing_the_thresholds_speaks_once_each_way(void **state)
{
    struct pfc_cfg c = {.on = true,
                        .rate_bps = 400000000000ull,
                        .max_frame = 1000,
                        .share_bytes = 20000,
                        .share_pkts = 100};
    struct pfc p;
    unsigned xoff = 0, xon = 0;

    (void)state;
    pfc_init(&p, &c);
    for (int i = 0; i < 30; i++)
        xoff += pfc_enter(&p, 1000, 5) == PFC_XOFF;
    assert_int_equal(xoff, 1);
    assert_true(p.over && p.due_ps == 5 + p.refresh_ps);
    assert_true(p.refresh_ps < pfc_quanta_ps(PFC_MAX_QUANTA, c.rate_bps));
    for (int i = 0; i < 30; i++)
        xon += pfc_leave(&p, 1000) == PFC_XON;
    assert_int_equal(xon, 1);
    assert_true(!p.over && p.due_ps == PS_NEVER && p.bytes == 0 && p.pkts == 0);
    for (int i = 0; i < 101; i++) /* many small frames: an mbuf each */
        xoff += pfc_enter(&p, 60, 5) == PFC_XOFF;
    assert_int_equal(xoff, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_frame_reads_byte_for_byte_as_802_1qbb_has_it),
        cmocka_unit_test(other_mac_control_frames_are_told_apart),
        cmocka_unit_test(quanta_are_512_bit_times),
        cmocka_unit_test(thresholds_leave_the_headroom_that_the_link_needs),
        cmocka_unit_test(everything_that_comes_before_a_pause_is_obeyed_has_room),
        cmocka_unit_test(crossing_the_thresholds_speaks_once_each_way),
    };

    test_eal_init();
    pool = test_pool(63);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
