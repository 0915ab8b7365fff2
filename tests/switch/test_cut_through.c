/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of frames through switches that cut through, to the picosecond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <string.h>

#include "roce/wire.h"
#include "tests/support/eal.h"
#include "tests/support/egress_fixture.h"
#include "tests/support/switch_fixture.h"

#define HEADER(ps) (FAB_CUT_BYTES * (ps)) /* ps a byte: 20 at 400 Gb/s, 200 at 40 Gb/s */
#define FRAME(ps)  ((BYTES + 24ll) * (ps))
#define LAT        (300 * PS_PER_NS)
#define DEFAULTS   "mtu = 4096; link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; };"
#define CUT        "forwarding = \"cut-through\";" DEFAULTS
#define STORE      DEFAULTS
/* h2 has a slow link. */
#define SWITCH                                                                                     \
    "nodes = ( { name = (\"h0\", \"h1\", \"h2\", \"h3\"); kind = \"host\"; },"                     \
    " { name = \"sw\"; role = \"leaf\"; } );"                                                      \
    "links = ( { a = (\"h0\", \"h1\", \"h3\"); b = \"sw\"; },"                                     \
    " { a = \"h2\"; b = \"sw\"; rate = \"40Gb/s\"; } );"
/* As SWITCH, and three switches in a row: h0, h2 - a - b - c - far, and `way` between a and b. */
#define ROW(a, b, c, way)                                                                          \
    "nodes = ( { name = (\"h0\", \"h2\", \"far\"); kind = \"host\"; },"                            \
    " { name = \"a\"; role = \"leaf\"; forwarding = \"" a "\"; },"                                 \
    " { name = \"b\"; role = \"spine\"; forwarding = \"" b "\"; },"                                \
    " { name = \"c\"; role = \"leaf\"; forwarding = \"" c "\"; } );"                               \
    "links = ( { a = \"h0\"; b = \"a\"; }, { a = \"h2\"; b = \"a\"; rate = \"40Gb/s\"; },"         \
    " { a = \"a\"; b = \"b\"; rate = \"" way "\"; }, { a = (\"b\", \"far\"); b = \"c\"; } );"

static struct rte_mempool *pool;

/* Time at which the last of n frames of LEN bytes arrives, sent at 0 over idle links; `link`, if not
 * NULL, has got another rate before. */
static int64_t arrives_with(const char *conf, const char *link, uint64_t bps, const char *from,
                            const char *to, unsigned n)
{
    struct prog *src, *dst;
    struct switch_fixture l;
    int64_t at;

    switch_fixture_open(&l, pool, conf);
    if (link) {
        int i = fabric_link_by_name(l.f, link);
        struct link_terms t = {bps, LAT};

        assert_true(i >= 0);
        net_set_link_terms(l.net, (unsigned)i, &t, 0);
    }
    src = prog_new(&l, from, 0);
    dst = prog_new(&l, to, 0);
    prog_stream(&l, src, from, to, n, LEN);
    switch_fixture_run(&l, PS_PER_S);
    assert_int_equal(dst->got, n);
    at = dst->last_ps;
    prog_free(src);
    prog_free(dst);
    switch_fixture_close(&l);
    return at;
}

static int64_t arrives(const char *conf, const char *from, const char *to, unsigned n)
{
    return arrives_with(conf, NULL, 0, from, to, n);
}

static void a_frame_waits_for_its_header_at_a_switch_and_for_its_last_bit_at_the_host(void **state)
{
    (void)state;
    assert_int_equal(arrives(STORE SWITCH, "h0", "h1", 1), 2 * (FRAME(20) + LAT));
    assert_int_equal(arrives(CUT SWITCH, "h0", "h1", 1), HEADER(20) + FRAME(20) + 2 * LAT);
    /* those behind it are back to back */
    assert_int_equal(arrives(CUT SWITCH, "h0", "h1", 9), HEADER(20) + 9 * FRAME(20) + 2 * LAT);
}

static void a_slower_link_takes_its_own_time(void **state)
{
    (void)state;
    assert_int_equal(arrives(CUT SWITCH, "h0", "h2", 1), HEADER(20) + FRAME(200) + 2 * LAT);
    assert_int_equal(arrives(CUT SWITCH, "h0", "h2", 9), HEADER(20) + 9 * FRAME(200) + 2 * LAT);
}

/* The last bit leaves when it has arrived. */
static void a_faster_link_does_not_run_out_of_bits(void **state)
{
    (void)state;
    assert_int_equal(arrives(STORE SWITCH, "h2", "h0", 1), FRAME(200) + FRAME(20) + 2 * LAT);
    assert_int_equal(arrives(CUT SWITCH, "h2", "h0", 1), FRAME(200) + 2 * LAT);
    assert_int_equal(arrives(CUT SWITCH, "h2", "h0", 9), 9 * FRAME(200) + 2 * LAT);
}

static void one_frame_time_is_paid_on_a_path_of_equal_links(void **state)
{
    (void)state;
    assert_int_equal(
        arrives(STORE ROW("cut-through", "cut-through", "cut-through", "400Gb/s"), "h0", "far", 1),
        3 * HEADER(20) + FRAME(20) + 4 * LAT);
    /* a node's own key counts, whatever the file says */
    assert_int_equal(arrives(CUT ROW("cut-through", "store-and-forward", "cut-through", "400Gb/s"),
                             "h0", "far", 1),
                     2 * HEADER(20) + 2 * FRAME(20) + 4 * LAT);
    assert_int_equal(
        arrives(STORE ROW("store-and-forward", "cut-through", "store-and-forward", "400Gb/s"), "h0",
                "far", 1),
        HEADER(20) + 3 * FRAME(20) + 4 * LAT);
}

/* From 40 up to 400 Gb/s, and down to 40 on the way. */
static void links_of_a_path_differ(void **state)
{
    (void)state;
    assert_int_equal(
        arrives(CUT ROW("cut-through", "cut-through", "cut-through", "400Gb/s"), "h2", "far", 1),
        FRAME(200) + 2 * HEADER(20) + 4 * LAT);
    /* b holds it until its last bit is there, c forwards at once */
    assert_int_equal(
        arrives(CUT ROW("cut-through", "cut-through", "cut-through", "40Gb/s"), "h0", "far", 1),
        HEADER(20) + FRAME(200) + HEADER(20) + 4 * LAT);
}

static void a_link_whose_rate_changes_is_as_one_that_had_it_from_the_beginning(void **state)
{
    const char *const slow = CUT ROW("cut-through", "cut-through", "cut-through", "40Gb/s");
    const char *const fast = CUT ROW("cut-through", "cut-through", "cut-through", "400Gb/s");
    const uint64_t to_40 = 40000000000ull, to_400 = 400000000000ull;

    (void)state;
    for (unsigned n = 1; n < 10; n += 8) {
        assert_int_equal(arrives_with(fast, "a-b", to_40, "h0", "far", n),
                         arrives(slow, "h0", "far", n));
        assert_int_equal(arrives_with(slow, "a-b", to_400, "h0", "far", n),
                         arrives(fast, "h0", "far", n));
        /* what is slow now is the first link, what was slow no longer: the reverse of the conf */
        assert_int_equal(arrives_with(CUT SWITCH, "h2-sw", to_400, "h2", "h0", n),
                         arrives(CUT SWITCH, "h1", "h0", n));
        assert_int_equal(arrives_with(CUT SWITCH, "h1-sw", to_40, "h1", "h0", n),
                         arrives(CUT SWITCH, "h2", "h0", n));
    }
}

/* Two hosts send to one: the second frame starts when the first has left. */
static void a_frame_behind_another_starts_when_the_link_is_free(void **state)
{
    static const struct {
        const char *conf;
        int64_t first;
    } rows[] = {{STORE SWITCH, FRAME(20)}, {CUT SWITCH, HEADER(20)}};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct prog *p[3];
        struct switch_fixture l;

        switch_fixture_open(&l, pool, rows[i].conf);
        p[0] = prog_new(&l, "h0", 0), p[1] = prog_new(&l, "h1", 0), p[2] = prog_new(&l, "h3", 0);
        prog_stream(&l, p[0], "h0", "h3", 1, LEN);
        prog_stream(&l, p[1], "h1", "h3", 1, LEN);
        switch_fixture_run(&l, PS_PER_S);
        assert_int_equal(p[2]->first_ps, rows[i].first + FRAME(20) + 2 * LAT);
        assert_int_equal(p[2]->last_ps, rows[i].first + 2 * FRAME(20) + 2 * LAT);
        for (unsigned k = 0; k < 3; k++)
            prog_free(p[k]);
        switch_fixture_close(&l);
    }
}

/* h2's frame needs 836 ns for its last bit. Until then its output serves others, and it is not
 * behind them. */
static void a_frame_that_is_not_ready_holds_nobody_up(void **state)
{
    struct prog *p[3];
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool, CUT SWITCH);
    p[0] = prog_new(&l, "h0", 0), p[1] = prog_new(&l, "h2", 0), p[2] = prog_new(&l, "h1", 0);
    p[2]->keep = true;
    prog_stream(&l, p[0], "h0", "h1", 5, LEN);
    prog_stream(&l, p[1], "h2", "h1", 1, 4000);
    switch_fixture_run(&l, PS_PER_S);
    assert_int_equal(p[2]->got, 6);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(p[2]->rx[i]->pkt_len, i < 5 ? BYTES : 54 + 4000 + 4);
    assert_int_equal(p[2]->first_ps, HEADER(20) + FRAME(20) + 2 * LAT);
    assert_int_equal(p[2]->last_ps, (54 + 4000 + 4 + 24) * 200ll + 2 * LAT);
    for (unsigned k = 0; k < 3; k++)
        prog_free(p[k]);
    switch_fixture_close(&l);
}

/* In real time frames come in bursts. */
static void frames_of_a_burst_wait_too(void **state)
{
    struct rte_mbuf *m[2];
    struct switch_fixture l;
    struct prog *p;

    (void)state;
    switch_fixture_open(&l, pool, CUT SWITCH);
    p = prog_new(&l, "h0", 0);
    for (unsigned i = 0; i < 2; i++) {
        struct frame_spec s = {.src_ip = switch_fixture_ip(&l, "h2"),
                               .dst_ip = switch_fixture_ip(&l, "h0"),
                               .dqpn = 1 << 16 | 7,
                               .len = LEN};

        m[i] = switch_fixture_frame(pool, &s);
    }
    net_input(l.net, switch_fixture_node(&l, "sw"),
              l.f->nodes[switch_fixture_node(&l, "h2")].ports[0].peer_port, m, 2, 0);
    switch_fixture_run(&l, PS_PER_S);
    assert_int_equal(p->got, 2);
    assert_int_equal(p->first_ps, FRAME(200) - HEADER(200) + LAT);
    assert_int_equal(p->last_ps, FRAME(200) - HEADER(200) + FRAME(20) + LAT);
    prog_free(p);
    switch_fixture_close(&l);
}

/* Sends one frame from h0 to dst_ip, and returns when `to` has it. */
static int64_t one_frame(struct switch_fixture *l, struct prog *to, uint32_t dst_ip,
                         const uint8_t mac[6])
{
    struct frame_spec s = {
        .src_ip = switch_fixture_ip(l, "h0"), .dst_ip = dst_ip, .dqpn = 1 << 16 | 7, .len = LEN};
    struct prog *p = prog_new(l, "h0", 0);
    int64_t at;

    memcpy(s.dst_mac, mac, 6);
    prog_send(p, ENDPOINT_DATA, switch_fixture_frame(pool, &s));
    net_kick(l->net, switch_fixture_node(l, "h0"), 0, 0, 0);
    switch_fixture_run(l, PS_PER_S);
    assert_int_equal(to->got, 1);
    at = to->last_ps;
    prog_free(p);
    return at;
}

/* An aggregation node sums whole frames. */
static void a_frame_for_the_switch_itself_is_stored_whole(void **state)
{
    struct prog an = {.take = -1, .timer_ps = PS_NEVER};
    struct endpoint ep = prog_endpoint(&an);
    struct switch_fixture l;
    uint8_t mac[6];

    (void)state;
    switch_fixture_open(&l, pool, CUT SWITCH);
    assert_int_equal(net_attach(l.net, switch_fixture_node(&l, "sw"), 0, 0, &ep), 0);
    roce_mac_of_ip(switch_fixture_ip(&l, "sw"), mac);
    assert_int_equal(one_frame(&l, &an, switch_fixture_ip(&l, "sw"), mac), FRAME(20) + LAT);
    switch_fixture_close(&l);
}

/* 224.0.0.5: a local group, which reaches every host. */
static void copies_cut_through_to_links_of_any_rate(void **state)
{
    static const uint8_t mac[6] = {0x01, 0x00, 0x5e, 0, 0, 5};
    struct prog *slow;
    struct switch_fixture l;
    struct prog *fast;

    (void)state;
    switch_fixture_open(&l, pool, CUT SWITCH);
    slow = prog_new(&l, "h2", 0);
    fast = prog_new(&l, "h1", 0);
    assert_int_equal(one_frame(&l, fast, 0xe0000005, mac), HEADER(20) + FRAME(20) + 2 * LAT);
    assert_int_equal(slow->last_ps, HEADER(20) + FRAME(200) + 2 * LAT);
    prog_free(slow);
    prog_free(fast);
    switch_fixture_close(&l);
}

/* A frame that is ready later is where it would be if it were pushed then, also in a run. */
static void frames_start_in_order_of_the_time_from_which_they_may(void **state)
{
    static const uint32_t want[] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct egress_cfg c = egress_fixture_usual(pool);
    struct egress *e;
    struct rte_mbuf *run[2];
    uint32_t tag[8];
    int64_t at[8];

    (void)state;
    c.limit_bytes[FRAME_LOSSLESS] = 8 * BYTES;
    e = egress_fixture_make(&c);
    for (unsigned i = 0; i < 2; i++)
        run[i] = egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, 3 + i);
    assert_int_equal(
        egress_push_later(e, egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, 7), 20 * DUR, 0), 0);
    assert_int_equal(egress_next(e), 20 * DUR);
    assert_int_equal(
        egress_push_later(e, egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, 6), 10 * DUR, 0), 0);
    assert_int_equal(egress_next(e), 10 * DUR);
    assert_int_equal(
        egress_push_later(e, egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, 8), 20 * DUR, 0), 0);
    assert_int_equal(egress_push(e, egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, 1), 0), 0);
    assert_int_equal(egress_push(e, egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, 2), 0), 0);
    assert_true(egress_push_run(e, run, 2, 2 * BYTES, 0));
    assert_int_equal(egress_push(e, egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, 5), 0), 0);
    assert_int_equal(egress_occupancy(e, FRAME_LOSSLESS), 8 * BYTES);
    run[0] = egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, 9);
    assert_int_equal(egress_push_later(e, run[0], 5 * DUR, 0), -ENOBUFS);
    rte_pktmbuf_free(run[0]);
    assert_int_equal(egress_fixture_drain(e, tag, at, 8), 8);
    assert_memory_equal(tag, want, sizeof(want));
    for (int i = 0; i < 5; i++)
        assert_int_equal(at[i], (i + 1) * DUR + LATENCY);
    assert_int_equal(at[5], 11 * DUR + LATENCY);
    assert_int_equal(at[6], 21 * DUR + LATENCY);
    assert_int_equal(at[7], 22 * DUR + LATENCY);
    assert_int_equal(egress_stats(e).overflows, 1);
    egress_destroy(e);
}

/* ---- threads ---- */

struct trace {
    uint64_t sum, n;
    bool apart;
};

/* Independent of the order of events on different links. */
static void trace(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now)
{
    struct trace *t = ctx;
    uint64_t h = (uint64_t)now * 0x9e3779b97f4a7c15u ^ (uint64_t)dirlink << 48 ^ m->pkt_len;

    t->sum += (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
    t->n++;
}

static void served(void *ctx, uint16_t node, int64_t now_ps)
{
    (void)ctx, (void)node, (void)now_ps;
}

static bool awaited(void *ctx, uint16_t node)
{
    (void)ctx;
    return node != FAB_NONE;
}

/* All to next on leaf_spine with slow spines; partitions 0: in one order of events. */
static struct trace history(unsigned partitions)
{
    struct trace t = {0};
    struct prog *p[8];
    struct switch_fixture l;
    struct net_turn turn = {.served = served, .awaited = awaited};

    switch_fixture_open(&l, pool,
                        CUT "leaf_spine = { leaves = 4; spines = 2; hosts_per_leaf = 2;"
                            " spine_link = { rate = \"100Gb/s\"; latency = \"20ns\"; }; };");
    net_tap(l.net, trace, &t);
    for (unsigned i = 0; i < 8; i++) {
        char a[8], b[8];

        snprintf(a, sizeof(a), "h%u", i);
        snprintf(b, sizeof(b), "h%u", (i + 3) % 8);
        p[i] = prog_new(&l, a, 0);
        prog_stream(&l, p[i], a, b, 200, LEN - 64 * i);
    }
    if (partitions) {
        assert_int_equal(net_partition(l.net, partitions), partitions);
        assert_int_equal(net_apart(l.net, true), 0);
        for (int64_t at = net_next(l.net); at != PS_NEVER; at = net_next(l.net))
            net_slice(l.net, at, &turn);
        assert_int_equal(net_apart(l.net, false), 0);
    }
    switch_fixture_run(&l, PS_PER_S);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(p[i]->got, 200);
        prog_free(p[i]);
    }
    switch_fixture_close(&l);
    return t;
}

static void nodes_that_run_apart_see_the_same_times(void **state)
{
    struct trace together = history(0);

    (void)state;
    assert_true(together.n >= 8 * 200 * 4);
    for (unsigned k = 1; k <= 4; k *= 2) {
        struct trace apart = history(k);

        assert_int_equal(apart.n, together.n);
        assert_true(apart.sum == together.sum);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_waits_for_its_header_at_a_switch_and_for_its_last_bit_at_the_host),
        cmocka_unit_test(a_slower_link_takes_its_own_time),
        cmocka_unit_test(a_faster_link_does_not_run_out_of_bits),
        cmocka_unit_test(one_frame_time_is_paid_on_a_path_of_equal_links),
        cmocka_unit_test(links_of_a_path_differ),
        cmocka_unit_test(a_link_whose_rate_changes_is_as_one_that_had_it_from_the_beginning),
        cmocka_unit_test(a_frame_behind_another_starts_when_the_link_is_free),
        cmocka_unit_test(a_frame_that_is_not_ready_holds_nobody_up),
        cmocka_unit_test(frames_of_a_burst_wait_too),
        cmocka_unit_test(a_frame_for_the_switch_itself_is_stored_whole),
        cmocka_unit_test(copies_cut_through_to_links_of_any_rate),
        cmocka_unit_test(frames_start_in_order_of_the_time_from_which_they_may),
        cmocka_unit_test(nodes_that_run_apart_see_the_same_times),
    };

    test_eal_init();
    pool = frame_pool_create("frames", 16383, 0);
    if (!pool)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
