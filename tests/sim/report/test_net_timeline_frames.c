/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs of frames, by flows, and pauses. */
#include "tests/sim/report/line_bed.h"

/* ---- runs of frames ---- */

/* Frames follow each other within a nanosecond, or a new run begins. */
static void runs(void **state)
{
    struct bed b;

    (void)state;
    bed_up(&b);
    frame(&b, H0_LEAF0, H0, H1, 325000); /* nothing is recorded yet */
    net_timeline_begin(b.n, b.w, 0, 0);
    frame(&b, H0_LEAF0, H0, H1, 325000);
    frame(&b, H0_LEAF0, H0, H1, 350000);
    frame(&b, H0_LEAF0, H0, H1, 376000); /* 1 ns behind */
    frame(&b, H0_LEAF0, H0, H1, 402001); /* 1 ns and a bit */
    frame(&b, H0_LEAF0, H0, H1, 410000); /* earlier than it can be: it follows */
    frame(&b, LEAF0_H0, H1, H0, 700000);
    net_timeline_end(b.n);
    frame(&b, H0_LEAF0, H0, H1, 900000); /* nothing any more */
    net_timeline_end(b.n);
    assert_string_equal(events(&b, "link"),
                        "X 3.1 0.000000+0.076000 h0>h1 "
                        "{\"frames\":3,\"bytes\":3750,\"flows\":{\"h0>h1\":3750}}\n"
                        "X 3.1 0.077001+0.050000 h0>h1 "
                        "{\"frames\":2,\"bytes\":2500,\"flows\":{\"h0>h1\":2500}}\n"
                        "X 5.1 0.375000+0.025000 h1>h0 "
                        "{\"frames\":1,\"bytes\":1250,\"flows\":{\"h1>h0\":1250}}\n");
    assert_string_equal(events(&b, NULL),
                        "M 3.0 0.000000 process_name {\"name\":\"h0\"}\n"
                        "M 3.1 0.000000 thread_name {\"name\":\"port 0 to leaf0\"}\n"
                        "M 3.10001 0.000000 thread_name {\"name\":\"port 0 to "
                        "leaf0: pauses\"}\n"
                        "M 5.0 0.000000 process_name {\"name\":\"leaf0\"}\n"
                        "M 5.1 0.000000 thread_name {\"name\":\"port 0 to h0\"}\n"
                        "M 5.10001 0.000000 thread_name {\"name\":\"port 0 to h0: "
                        "pauses\"}\n");
    bed_down(&b);
}

/* A run that began before the operation is cut at its start; a run that ended by then is left
 * out. */
static void runs_before_the_start(void **state)
{
    struct bed b;

    (void)state;
    bed_up(&b);
    go_to(&b, 40000);
    net_timeline_begin(b.n, b.w, 0, 0);
    frame(&b, H0_LEAF0, H0, H1, 340000);     /* from 15 to 40 */
    frame(&b, H1_LEAF1, H1, H0, 341000);     /* from 16 to 41 */
    frame(&b, LEAF0_SPINE0, H1, H0, 365000); /* from 40 */
    net_timeline_end(b.n);
    assert_string_equal(events(&b, "link"),
                        "X 4.1 0.000000+0.001000 h1>h0 "
                        "{\"frames\":1,\"bytes\":1250,\"flows\":{\"h1>h0\":1250}}\n"
                        "X 5.2 0.000000+0.025000 h1>h0 "
                        "{\"frames\":1,\"bytes\":1250,\"flows\":{\"h1>h0\":1250}}\n");
    bed_down(&b);
}

/* A node that cuts through has a frame with its first 64 bytes, of 1.28 ns. */
static void cut_through(void **state)
{
    struct bed b;

    (void)state;
    bed_up(&b);
    b.f->nodes[LEAF0].cut_through = true;
    b.f->nodes[H1].ports[0].rate_bps = 0;
    net_timeline_begin(b.n, b.w, 0, 0);
    frame(&b, H0_LEAF0, H0, H1, 301280);
    frame(&b, H1_LEAF1, H0, H1, 400000); /* no time on a link without a rate: no run */
    net_timeline_end(b.n);
    assert_string_equal(events(&b, "link"),
                        "X 3.1 0.000000+0.025000 h0>h1 "
                        "{\"frames\":1,\"bytes\":1250,\"flows\":{\"h0>h1\":1250}}\n");
    bed_down(&b);
}

/* ---- flows ---- */

static void flows(void **state)
{
    struct bed b;

    (void)state;
    bed_up(&b);
    net_timeline_begin(b.n, b.w, 0, 0);
    frame(&b, H0_LEAF0, H0, H1, 325000);
    arrive(&b, H0_LEAF0, other(), 326680); /* of 1.68 ns */
    arrive(&b, H0_LEAF0, other(), 501680);
    /* Queue pairs of the second process of a host are not of its rank; switches have none. */
    arrive(&b, H0_LEAF0, packet(ip_of(&b, H0), ip_of(&b, H1), 2u << 16), 725000);
    arrive(&b, H0_LEAF0, packet(ip_of(&b, H0), ip_of(&b, H1), 0x1ffff), 925000);
    arrive(&b, H0_LEAF0, packet(ip_of(&b, H0), ip_of(&b, H1), 2u << 16), 950000);
    arrive(&b, H0_LEAF0, packet(ip_of(&b, H0), ip_of(&b, LEAF1), 9u << 16), 1125000);
    arrive(&b, H0_LEAF0, packet(ip_of(&b, H0), 1, 1), 1325000);
    arrive(&b, H0_LEAF0, packet(1, ip_of(&b, H0), 1), 1525000);
    net_timeline_end(b.n);
    assert_string_equal(
        events(&b, "link"),
        "X 3.1 0.000000+0.026680 2 flows "
        "{\"frames\":2,\"bytes\":1334,\"flows\":{\"h0>h1\":1250,\"others\":84}}\n"
        "X 3.1 0.200000+0.001680 1 flows {\"frames\":1,\"bytes\":84,\"flows\":{\"others\":84}}\n"
        "X 3.1 0.400000+0.025000 h0>h1 "
        "{\"frames\":1,\"bytes\":1250,\"flows\":{\"h0>h1 (background)\":1250}}\n"
        "X 3.1 0.600000+0.050000 2 flows {\"frames\":2,\"bytes\":2500,\"flows\":{\"h0>h1\":1250,"
        "\"h0>h1 (background)\":1250}}\n"
        "X 3.1 0.800000+0.025000 h0>leaf1 "
        "{\"frames\":1,\"bytes\":1250,\"flows\":{\"h0>leaf1\":1250}}\n"
        "X 3.1 1.000000+0.025000 1 flows "
        "{\"frames\":1,\"bytes\":1250,\"flows\":{\"others\":1250}}\n"
        "X 3.1 1.200000+0.025000 1 flows "
        "{\"frames\":1,\"bytes\":1250,\"flows\":{\"others\":1250}}\n");
    bed_down(&b);
}

/* 24 flows are told apart; what is of another is of the others, also when one of the 24 comes again. */
static void many_flows(void **state)
{
    int64_t ps = 325000;
    const char *text;
    struct bed b;

    (void)state;
    bed_up(&b);
    net_timeline_begin(b.n, b.w, 0, 0);
    for (unsigned i = 0; i < NODES * NODES; i++, ps += 25000)
        frame(&b, H0_LEAF0, i / NODES, i % NODES, ps);
    frame(&b, H0_LEAF0, H0, H0, ps);
    frame(&b, H0_LEAF0, SPINE0, SPINE0, ps + 25000);
    net_timeline_end(b.n);
    text = events(&b, "link");
    assert_non_null(
        strstr(text, "X 3.1 0.000000+0.675000 25 flows {\"frames\":27,\"bytes\":33750,"));
    assert_non_null(strstr(text, "{\"h0>h0\":2500,\"h0>h1\":1250,"));
    assert_non_null(strstr(text, "\"spine0>leaf1\":1250,\"others\":2500}"));
    assert_null(strstr(text, "spine0>spine0"));
    bed_down(&b);
}

/* The longest names there are. */
static void long_names(void **state)
{
    struct bed b;

    (void)state;
    bed_up(&b);
    strcpy(b.f->nodes[H0].name, "a-host-with-a-name-of-31-letter");
    strcpy(b.f->nodes[H1].name, "b-host-with-a-name-of-31-letter");
    net_timeline_begin(b.n, b.w, 0, 0);
    arrive(&b, H0_LEAF0, packet(ip_of(&b, H0), ip_of(&b, H1), 2u << 16), 325000);
    net_timeline_end(b.n);
    assert_string_equal(
        events(&b, "link"),
        "X 3.1 0.000000+0.025000 "
        "a-host-with-a-name-of-31-letter>b-host-with-a-name-of-31-letter "
        "{\"frames\":1,\"bytes\":1250,"
        "\"flows\":{\"a-host-with-a-name-of-31-letter>b-host-with-a-name-of-31-letter "
        "(background)\":1250}}\n");
    bed_down(&b);
}

/* ---- pauses ---- */

/* 100 quanta are 51200 bits, 128 ns: the pause is of the other direction, and until the last frame that
 * extends it says so. */
static void pauses(void **state)
{
    struct rte_mbuf *m;
    struct bed b;

    (void)state;
    bed_up(&b);
    pause_frame(&b, LEAF0_H0, 100, 1000); /* nothing is recorded yet */
    pause_frame(&b, LEAF0_H0, 0, 2000);
    net_timeline_begin(b.n, b.w, 0, 0);
    pause_frame(&b, LEAF0_H0, 0, 50000); /* none is there to end */
    pause_frame(&b, LEAF0_H0, 100, 100000);
    pause_frame(&b, LEAF0_H0, 100, 200000);
    pause_frame(&b, LEAF0_H0, 0, 300000);
    pause_frame(&b, LEAF0_H0, 100, 400000);
    pause_frame(&b, LEAF0_H0, 100, 528000); /* when the one before is over */
    pause_frame(&b, LEAF0_H0, 100, 655999); /* just before */
    m = other();                            /* no pause, though of the class that has them */
    frame_meta(m)->cls = FRAME_CONTROL;
    arrive(&b, LEAF0_H0, m, 700000);
    m = pfc_frame(pool, (const uint8_t[6]){2}, 0); /* of another class */
    frame_meta(m)->cls = FRAME_LOSSY;
    arrive(&b, LEAF0_H0, m, 700000);
    pause_frame(&b, LEAF0_SPINE0 ^ 1, 200, 700000);
    go_to(&b, 783999);
    net_timeline_step(b.n); /* ends the first at its time, 783.999, and not the second */
    assert_string_equal(events(&b, "pause"),
                        "X 3.10001 0.100000+0.200000 paused {\"by\":\"leaf0\"}\n"
                        "X 3.10001 0.400000+0.128000 paused {\"by\":\"leaf0\"}\n"
                        "X 3.10001 0.528000+0.255999 paused {\"by\":\"leaf0\"}\n");
    go_to(&b, 800000);
    net_timeline_end(b.n);
    assert_non_null(
        strstr(events(&b, "pause"), "X 5.10002 0.700000+0.100000 paused {\"by\":\"spine0\"}\n"));
    bed_down(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs),        cmocka_unit_test(runs_before_the_start),
        cmocka_unit_test(cut_through), cmocka_unit_test(flows),
        cmocka_unit_test(many_flows),  cmocka_unit_test(long_names),
        cmocka_unit_test(pauses),
    };

    test_eal_init();
    pool = test_pool(8192);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
