/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost model against the closed forms of cost.h (Fxx below). */
#include "model/predict.h"

#include "protocols/host/registry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#define LEAF_SPINE                                                                                 \
    "name = \"t\"; mtu = 4096; ecmp = \"balanced\";"                                               \
    "leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 4;"                                   \
    "  host_link = { rate = \"400Gb/s\"; latency = \"300ns\"; };"                                  \
    "  spine_link = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };"                              \
    "reduce = { groups = 64; slots = 16384; window = 256; };"
#define SINGLE                                                                                     \
    "name = \"t\"; mtu = 4096;"                                                                    \
    "single_switch = { hosts = 64; host_link = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };"   \
    "reduce = { groups = 64; slots = 16384; window = 256; };"

/* Share of payload in a full frame: 58 bytes of headers, 24 of the link; an ACK of 86 for every 16
 * (ring) or 8 frames. */
#define SHARE_RING  (4096.0 / (4096 + 82 + 86 / 16.0))
#define SHARE_SHARP ((4096.0 - 4) / (4096 + 82 + 86 / 8.0))
#define W           50e9 /* F4 */

static struct fabric *load(const char *text)
{
    static struct fab_errors errs;
    struct fabric *f = fabric_load_string(text, "test.conf", &errs);

    if (!f)
        fab_errors_print(&errs, stderr);
    assert_non_null(f);
    return f;
}

static struct coll_prediction predict(const struct fabric *f, enum coll_algo algo, unsigned n,
                                      uint64_t bytes, unsigned per_host)
{
    struct coll_args a = {
        .kind = COLL_ALLREDUCE, .algo = algo, .count = bytes / 4, .type = DT_FP32};
    uint16_t hosts[64];
    struct coll_prediction p;

    for (unsigned r = 0; r < n; r++)
        hosts[r] = (uint16_t)(r / per_host);
    assert_int_equal(coll_predict(f, &a, n, hosts, 0, 0, &p), 0);
    return p;
}

static void assert_near(double got, double want, double tolerance)
{
    if (got < want * (1 - tolerance) || got > want * (1 + tolerance))
        fail_msg("%g, expected %g within %g %%", got, want, 100 * tolerance);
}

/* F21: 2(N-1)/N B/W. */
static void ring_of_long_vectors_is_f21(void **state)
{
    struct fabric *f = load(SINGLE);
    static const unsigned ranks[] = {2, 3, 4, 8, 16, 64};

    (void)state;
    for (unsigned i = 0; i < 6; i++)
        for (uint64_t b = 1ULL << 28; b <= 1ULL << 34; b *= 8) {
            unsigned n = ranks[i];
            double want = 2.0 * (n - 1) / n * (double)b / W / SHARE_RING;

            assert_near((double)predict(f, ALGO_RING, n, b, 1).time_ps * 1e-12, want, 0.01);
        }
    fabric_free(f);
}

/* F25: B/W, on trees of one and of two levels; the same bytes on the busiest link. */
static void sharp_of_long_vectors_is_f25(void **state)
{
    static const char *const conf[] = {SINGLE, LEAF_SPINE};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct fabric *f = load(conf[i]);

        for (uint64_t b = 1ULL << 26; b <= 1ULL << 34; b *= 4) {
            struct coll_prediction p = predict(f, ALGO_SHARP, 8, b, 1);

            assert_near((double)p.time_ps * 1e-12, (double)b / W / SHARE_SHARP, 0.01);
            assert_near((double)p.busiest_link_bytes, (double)b / SHARE_SHARP, 0.01);
        }
        fabric_free(f);
    }
}

/* F25: for eight ranks 1.75 times as fast as the ring, across leaves too. */
static void sharp_gains_f25_over_the_ring(void **state)
{
    struct fabric *f = load(LEAF_SPINE);
    double ring = (double)predict(f, ALGO_RING, 8, 1ULL << 30, 1).time_ps;
    double sharp = (double)predict(f, ALGO_SHARP, 8, 1ULL << 30, 1).time_ps;

    (void)state;
    assert_near(ring / sharp, 1.75, 0.01);
    fabric_free(f);
}

/* One frame with immediate data over three switches, and its ACK of 86 bytes back: each switch that
 * cuts through waits for 64 bytes of each. Aggregation nodes store frames whole. */
static void a_switch_that_cuts_through_costs_its_header(void **state)
{
    struct fabric *store = load(LEAF_SPINE),
                  *cut = load("forwarding = \"cut-through\";" LEAF_SPINE);
    const struct fabric *both[] = {store, cut};
    struct coll_args a = {
        .kind = COLL_BROADCAST, .algo = ALGO_CHAIN, .count = 1024, .type = DT_FP32};
    const uint16_t hosts[] = {0, 4};
    struct coll_prediction p[2];

    (void)state;
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(coll_predict(both[i], &a, 2, hosts, 0, 0, &p[i]), 0);
    assert_int_equal(p[0].time_ps - p[1].time_ps, 3 * ((4182 - 64) + (86 - 64)) * 20);
    assert_int_equal(p[0].busiest_link_bytes, p[1].busiest_link_bytes);
    assert_int_equal(predict(store, ALGO_SHARP, 8, 1 << 20, 1).time_ps,
                     predict(cut, ALGO_SHARP, 8, 1 << 20, 1).time_ps);
    fabric_free(store);
    fabric_free(cut);
}

/* From 40 to 400 Gb/s the last bit leaves when it has arrived, also of messages back to back. */
static void a_switch_that_cuts_through_to_a_faster_link_waits(void **state)
{
    static const char *const text =
        "name = \"t\"; mtu = 4096; forwarding = \"cut-through\";"
        "link_defaults = { rate = \"400Gb/s\"; latency = \"1us\"; };"
        "nodes = ( { name = (\"h0\", \"h1\"); kind = \"host\"; }, { name = \"s\"; role = \"leaf\"; "
        "} );"
        "links = ( { a = \"h0\"; b = \"s\"; rate = \"40Gb/s\"; }, { a = \"h1\"; b = \"s\"; } );";
    struct fabric *f = load(text);
    struct coll_args a = {.kind = COLL_BROADCAST, .algo = ALGO_CHAIN, .type = DT_FP32};
    const uint16_t hosts[] = {0, 1};
    struct coll_prediction p;

    (void)state;
    for (unsigned frames = 1; frames <= 4; frames++) {
        a.count = frames * 1024;
        assert_int_equal(coll_predict(f, &a, 2, hosts, 0, 0, &p), 0);
        /* and the ACK, from 400 to 40 Gb/s: its header, and its time on the slow link */
        assert_int_equal(p.time_ps,
                         (int64_t)frames * 4182 * 200 + 64 * 20 + 86 * 200 + 4 * 1000000);
    }
    fabric_free(f);
}

/* F21 by bytes: the busiest link carries what leaves a rank, whatever the latency. */
static void ring_bytes_on_the_busiest_link(void **state)
{
    struct fabric *f = load(LEAF_SPINE);

    (void)state;
    for (uint64_t b = 1 << 20; b <= 1 << 28; b *= 4)
        assert_near((double)predict(f, ALGO_RING, 8, b, 1).busiest_link_bytes,
                    1.75 * (double)b / SHARE_RING, b < 1 << 23 ? 0.02 : 0.005);
    fabric_free(f);
}

/* Extrapolated and simulated sizes lie on one line. */
static void extrapolation_is_seamless(void **state)
{
    struct fabric *f = load(LEAF_SPINE);

    (void)state;
    for (enum coll_algo a = ALGO_RING; a <= ALGO_SHARP; a++)
        for (uint64_t b = 1 << 23; b <= 1ULL << 31; b = b * 5 / 4 / 4 * 4) {
            double t1 = (double)predict(f, a, 8, b, 1).time_ps;
            double t2 = (double)predict(f, a, 8, 2 * b, 1).time_ps;

            assert_true(t2 < 2 * t1 * 1.005);
            assert_true(
                t2 > 2 * t1 - 60e6); /* what is not bandwidth: a few round trips, 60 us at most */
        }
    fabric_free(f);
}

/* One small message: 14 steps of leaf or spine paths; the closed form by hand. */
static void latency_of_one_packet(void **state)
{
    struct fabric *f = load(SINGLE);
    /* two links of 300 ns each, frame of 4 bytes: 58 + 4 + 4 (immediate) + 24 = 90 at 20 ps a byte;
     * ACK 86 */
    double hop = 2 * (300e3 + 90 * 20), ack = 2 * (300e3 + 86 * 20);
    /* what came last is acknowledged before the next message goes out */
    double acked = 5 * 86 * 20;
    /* header 32 + 4 bytes up and down; frame 58 + 36 + 24 = 118, behind the ACK */
    double sharp = 2 * (300e3 + 118 * 20) + 86 * 20;

    (void)state;
    assert_near((double)predict(f, ALGO_RING, 4, 16, 1).time_ps, 6 * hop + ack + acked, 0.0001);
    assert_near((double)predict(f, ALGO_SHARP, 4, 4, 1).time_ps, sharp, 0.0001);
    fabric_free(f);
}

/* Two ranks a host share its link: SHARP sends both vectors over it, the ring only every second
 * message. */
static void ranks_that_share_a_host_share_its_link(void **state)
{
    struct fabric *f = load(SINGLE);
    uint64_t b = 1 << 28;

    (void)state;
    assert_near((double)predict(f, ALGO_SHARP, 8, b, 2).time_ps * 1e-12,
                2 * (double)b / W / SHARE_SHARP, 0.01);
    assert_near((double)predict(f, ALGO_RING, 8, b, 2).time_ps * 1e-12,
                1.75 * (double)b / W / SHARE_RING, 0.01);
    /* four ranks on one host: all four flows of 1.5 B go through the loop of its NIC */
    assert_near((double)predict(f, ALGO_RING, 4, b, 4).time_ps * 1e-12,
                4 * 1.5 * (double)b / W / SHARE_RING, 0.01);
    fabric_free(f);
}

/* A window shorter than the round trip holds messages back. */
static void small_windows_cost_bandwidth(void **state)
{
    struct fabric *f = load(LEAF_SPINE);
    struct coll_args a = {
        .kind = COLL_ALLREDUCE, .algo = ALGO_SHARP, .count = 1 << 22, .type = DT_FP32};
    uint16_t hosts[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct coll_prediction small, large;

    (void)state;
    assert_int_equal(coll_predict(f, &a, 8, hosts, 0, 8, &small), 0);
    assert_int_equal(coll_predict(f, &a, 8, hosts, 0, 64, &large), 0);
    assert_true(small.time_ps > 3 * large.time_ps);
    fabric_free(f);
}

static void handoffs_count_processes_on_the_way(void **state)
{
    struct fabric *f = load(LEAF_SPINE);

    (void)state;
    assert_int_equal(predict(f, ALGO_RING, 8, 1 << 20, 1).handoffs, 2 * 7 * 2);
    assert_int_equal(predict(f, ALGO_SHARP, 8, 1 << 20, 1).handoffs, 2);
    fabric_free(f);
    f = load(LEAF_SPINE "processes = \"per_node\";");
    /* leaf, spine and leaf are processes: two more on the two edges of the ring that cross, and up
     * and down the tree */
    assert_int_equal(predict(f, ALGO_RING, 8, 1 << 20, 1).handoffs, 2 * (8 * 2 + 2 * 2 - 2));
    assert_int_equal(predict(f, ALGO_SHARP, 8, 1 << 20, 1).handoffs, 4);
    fabric_free(f);
}

/* The bound is ten times the usual duration: it detects millions of steps and is no benchmark. */
static void prediction_is_bounded_in_work(void **state)
{
    struct fabric *f = load(SINGLE);
    clock_t t = clock();

    (void)state;
    predict(f, ALGO_RING, 64, 1ULL << 38, 1);
    predict(f, ALGO_SHARP, 64, 1ULL << 38, 1);
    print_message("two predictions of 256 GiB: %.1f ms\n",
                  1e3 * (double)(clock() - t) / CLOCKS_PER_SEC);
    fabric_free(f);
}

/* Ports of 100 and 200 Gb/s at each host, with a tree behind each; and spines that differ. */
static void trees_share_a_vector_by_what_their_links_carry(void **state)
{
    static const char *const two_ports =
        "mtu = 4096; ecmp = \"balanced\"; link_defaults = { latency = \"300ns\"; };"
        "nodes = ( { name = (\"h0\", \"h1\", \"h2\", \"h3\"); kind = \"host\"; },"
        "  { name = (\"fast\", \"slow\"); role = \"leaf\"; } );"
        "links = ( { a = (\"h0\", \"h1\", \"h2\", \"h3\"); b = \"fast\"; rate = \"200Gb/s\"; },"
        "  { a = (\"h0\", \"h1\", \"h2\", \"h3\"); b = \"slow\"; rate = \"100Gb/s\"; } );"
        "reduce = { groups = 64; slots = 16384; window = 2048; };";
    static const char *const two_spines =
        "mtu = 4096; ecmp = \"balanced\";"
        "link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; };"
        "nodes = ( { name = (\"h0\", \"h1\", \"h2\", \"h3\"); kind = \"host\"; },"
        "  { name = (\"l0\", \"l1\"); role = \"leaf\"; },"
        "  { name = (\"s0\", \"s1\"); role = \"spine\"; } );"
        "links = ( { a = (\"h0\", \"h1\"); b = \"l0\"; }, { a = (\"h2\", \"h3\"); b = \"l1\"; },"
        "  { a = (\"l0\", \"l1\"); b = \"s0\"; },"
        "  { a = (\"l0\", \"l1\"); b = \"s1\"; rate = \"100Gb/s\"; } );"
        "reduce = { groups = 64; slots = 16384; window = 2048; };";
    static const struct {
        const char *conf;
        double Bps;
    } rows[] = {{two_ports, 37.5e9}, {two_spines, W}};
    const uint16_t hosts[] = {0, 1, 2, 3}, trees[] = {0, 1};
    struct coll_args a = {
        .kind = COLL_ALLREDUCE, .algo = ALGO_SHARP, .count = 1 << 22, .type = DT_FP32};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct fabric *f = load(rows[i].conf);
        struct coll_prediction p;

        assert_int_equal(f->n_trees, 2);
        assert_int_equal(coll_predict_trees(f, &a, 4, hosts, trees, 2, 0, &p), 0);
        assert_near((double)p.time_ps * 1e-12, 4. * (1 << 22) / rows[i].Bps / SHARE_SHARP, 0.05);
        fabric_free(f);
    }
}

/* Operations of a protocol overlap, but each rank launches each of them. */
static void every_operation_of_a_row_is_launched(void **state)
{
    static const char star[] = "single_switch = { hosts = 2; host_link = { rate = \"400Gb/s\"; "
                               "latency = \"300ns\"; }; }; reduce = { };";
    enum coll_algo ps = ALGO_PROTOCOL + (enum coll_algo)proto_seat("ps");
    struct coll_prediction without, with;
    char launched[300];
    struct fabric *f = load(star);

    (void)state;
    without = predict(f, ps, 2, 1024, 1);
    fabric_free(f);
    snprintf(launched, sizeof(launched), "costs = { network = { launch = \"20us\"; }; }; %s", star);
    f = load(launched);
    with = predict(f, ps, 2, 1024, 1);
    fabric_free(f);
    assert_in_range(without.next_ps, 1, without.time_ps - 1);
    assert_int_equal(with.time_ps, without.time_ps + 20000000);
    assert_int_equal(with.next_ps, without.next_ps + 20000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_of_long_vectors_is_f21),
        cmocka_unit_test(sharp_of_long_vectors_is_f25),
        cmocka_unit_test(trees_share_a_vector_by_what_their_links_carry),
        cmocka_unit_test(sharp_gains_f25_over_the_ring),
        cmocka_unit_test(a_switch_that_cuts_through_costs_its_header),
        cmocka_unit_test(a_switch_that_cuts_through_to_a_faster_link_waits),
        cmocka_unit_test(ring_bytes_on_the_busiest_link),
        cmocka_unit_test(extrapolation_is_seamless),
        cmocka_unit_test(latency_of_one_packet),
        cmocka_unit_test(ranks_that_share_a_host_share_its_link),
        cmocka_unit_test(small_windows_cost_bandwidth),
        cmocka_unit_test(handoffs_count_processes_on_the_way),
        cmocka_unit_test(prediction_is_bounded_in_work),
        cmocka_unit_test(every_operation_of_a_row_is_launched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
