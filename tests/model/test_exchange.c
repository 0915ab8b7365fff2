/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks of a protocol's packets between ranks, switches and servers, against times worked out by hand. */
#include "model/cost_exchange.h"

#include "collective/topo.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#define LATENCY 300000                                       /* ps of a link */
#define BYTES   1000u                                        /* of a packet's head and data */
#define WIRE    (8 * 10 * (int64_t)(BYTES + PROTO_OVERHEAD)) /* ps at 100 Gb/s */
#define TARGET  (8 * 10 * 8)                                 /* who a switch may forward to */

static struct fabric *load(const char *costs)
{
    static struct fab_errors errs;
    char text[600];
    struct fabric *f;

    snprintf(
        text, sizeof(text),
        "name = \"t\"; mtu = 4096; ecmp = \"balanced\"; %s"
        "single_switch = { hosts = 4; host_link = { rate = \"100Gb/s\"; latency = \"300ns\"; }; };"
        "reduce = { };",
        costs);
    f = fabric_load_string(text, "test.conf", &errs);
    if (!f)
        fab_errors_print(&errs, stderr);
    assert_non_null(f);
    return f;
}

/* end_ps: of several operations, of which it returns how many; NULL: the time of one. */
static int64_t walk_with(const char *costs, unsigned nranks, struct trib_exchange x,
                         int64_t end_ps[EXCHANGE_OPS])
{
    static const uint16_t host[] = {0, 1, 2, 3};
    struct fabric *f = load(costs);
    struct fab_members members;
    struct proto_ways ways = {.fab = f, .tree = &f->trees[0], .members = &members};
    struct exchange_on on = {.ways = &ways,
                             .host_of_rank = host,
                             .nranks = nranks,
                             .round_trip_ps = 4 * (LATENCY + WIRE)};
    int64_t t;
    bool waited;

    assert_true(topo_members(f, nranks, host, &members, NULL));
    on.notice_ps = proto_notice_ps(&ways, BYTES, NULL);
    t = end_ps ? exchange_ops(&on, &x, end_ps) : exchange_predict(&on, &x, &waited);
    fabric_free(f);
    return t;
}

static int64_t walk(const char *costs, unsigned nranks, struct trib_exchange x)
{
    return walk_with(costs, nranks, x, NULL);
}

static struct trib_exchange blocks(uint64_t n, uint32_t servers, uint32_t window)
{
    return (struct trib_exchange){
        .blocks = n, .servers = servers, .window = window, .bytes = BYTES, .last_bytes = BYTES};
}

/* The last of the others' parts waits for those before it, and the last result likewise. */
static void a_block_crosses_twice(void **state)
{
    (void)state;
    assert_int_equal(walk("", 2, blocks(1, 1, 4)), 4 * (LATENCY + WIRE));
    assert_int_equal(walk("", 4, blocks(1, 1, 4)), 4 * (LATENCY + WIRE) + 2 * 2 * WIRE);
}

static void an_hca_fetches_every_packet(void **state)
{
    const int64_t cost = 200000;

    (void)state;
    assert_int_equal(walk("costs = { hca = \"200ns\"; };", 2, blocks(1, 1, 4)),
                     4 * (LATENCY + WIRE) + 2 * cost);
    /* results leave one each 200 ns, which is longer than a link has them */
    assert_int_equal(walk("costs = { hca = \"200ns\"; };", 4, blocks(1, 1, 4)),
                     4 * (LATENCY + WIRE) + 2 * WIRE + 2 * cost + 2 * cost);
}

/* A server notices parts, ranks notice results: each packet that much after it has come, however many come
 * together. A switch notices them at once. */
static void a_gpu_notices_what_comes_to_a_rank(void **state)
{
    static const char costs[] = "costs = { gpu = \"2us\"; };";
    const int64_t there = 2 * (LATENCY + WIRE) + 2000000;
    struct trib_exchange x = blocks(1, 1, 4);
    int64_t end[EXCHANGE_OPS];

    (void)state;
    assert_int_equal(walk(costs, 2, blocks(1, 1, 4)), 2 * there);
    assert_int_equal(walk(costs, 4, blocks(1, 1, 4)), 2 * there + 2 * 2 * WIRE);
    /* each round trip of a window has it */
    assert_int_equal(walk(costs, 2, blocks(5, 1, 1)), 5 * 2 * there);
    assert_int_equal(walk(costs, 2, blocks(12, 1, 4)), 3 * 2 * there + 3 * WIRE);
    assert_int_equal(walk_with(costs, 2, blocks(1, 2, 4), end), EXCHANGE_OPS);
    for (unsigned k = 0; k < EXCHANGE_OPS; k++)
        assert_int_equal(end[k], (k + 2) * there + k * WIRE);
    x.aggregators = 64;
    assert_int_equal(walk(costs, 4, x), 2 * there + TARGET);
}

/* LL has a shorter step, and passes one packet after another at its rate, which is half the port's: the second
 * waits for the first. Its first bit has been there for as long as the port took for it. */
static void a_short_protocol_passes_packets_at_its_rate(void **state)
{
    static const char costs[] =
        "costs = { gpu = \"1us\"; network = { step = \"9us\"; ll = { step = "
        "\"2us\"; rate = \"6.25GB/s\"; }; }; };";
    const int64_t len = 8 * 10 * (int64_t)PROTO_RECEIVED(BYTES); /* at the port's rate */
    const int64_t there = 2 * (LATENCY + WIRE) + 3000000 + len;

    (void)state;
    assert_int_equal(walk(costs, 2, blocks(1, 1, 4)), 2 * there);
    assert_int_equal(walk(costs, 2, blocks(4, 1, 4)), 2 * there + 3 * 2 * len);
}

/* A window of one block is a round trip for each. */
static void a_window_holds_blocks_back(void **state)
{
    (void)state;
    assert_int_equal(walk("", 2, blocks(5, 1, 1)), 5 * 4 * (LATENCY + WIRE));
}

/* One sum goes to the server in place of three parts, and one result comes to all others. */
static void switches_add_what_their_ranks_send(void **state)
{
    struct trib_exchange x = blocks(1, 1, 4);

    (void)state;
    x.aggregators = 64;
    assert_int_equal(walk("", 4, x), 4 * (LATENCY + WIRE) + TARGET);
}

/* Where ranks are servers in turn, the server of one operation has its result first, and sends its part of the next
 * one right behind it: to the other rank, which has its own part there. */
static void operations_in_a_row_overlap(void **state)
{
    const int64_t across = 2 * (LATENCY + WIRE);
    int64_t end[EXCHANGE_OPS];

    (void)state;
    assert_int_equal(walk_with("", 2, blocks(1, 2, 4), end), EXCHANGE_OPS);
    for (unsigned k = 0; k < EXCHANGE_OPS; k++)
        assert_int_equal(end[k], (k + 2) * across + k * WIRE);
    /* With one server nothing overlaps: the other rank has to have the result first. */
    assert_int_equal(walk_with("", 2, blocks(1, 1, 4), end), EXCHANGE_OPS);
    for (unsigned k = 0; k < EXCHANGE_OPS; k++)
        assert_int_equal(end[k], (k + 1) * 2 * across);
    assert_int_equal(walk_with("", 2, blocks(7, 2, 4), end), EXCHANGE_OPS);
    assert_int_equal(walk_with("", 2, blocks(8, 2, 4), end), 0); /* two windows */
    /* A walk costs so much at most: one that is long is of one operation, one that is too long is none. */
    assert_int_equal(walk_with("", 4, blocks(20000, 4, 20000), end), 1);
    assert_int_equal(end[0], walk("", 4, blocks(20000, 4, 20000)));
    assert_int_equal(walk_with("", 4, blocks(200000, 4, 200000), end), 0);
}

/* Long vectors are extrapolated; each server's link is full all the time. */
static void long_vectors_fill_the_links(void **state)
{
    double n = 200000, t = (double)walk("", 4, blocks(200000, 4, 64));

    (void)state;
    assert_true(t > n * 1.5 * WIRE && t < n * 1.5 * WIRE * 1.02);
}

static void what_cannot_be_walked_is_left_alone(void **state)
{
    (void)state;
    assert_int_equal(walk("", 4, blocks(0, 4, 64)), 0);
    assert_int_equal(walk("", 4, blocks(10000000, 4, 1u << 20)), 0);
}

/* ---- drawn ones ---- */

static uint32_t drawn(uint32_t least, uint32_t most)
{
    static uint64_t z = 1;

    z = z * 6364136223846793005u + 1442695040888963407u;
    return least + (uint32_t)((z >> 33) % (most - least + 1));
}

/* Hosts at links of 10 to 400 Gb/s; those that are slower than the others are listed. */
static struct fabric *draw_fabric(unsigned hosts, uint64_t *slowest_bps)
{
    static const unsigned rates[] = {10, 25, 50, 100, 200, 400};
    unsigned usual = rates[drawn(0, 5)], slow = drawn(0, 3), least = usual;
    bool two_levels = hosts % 4 == 0 && hosts > 4 && drawn(0, 1);
    static struct fab_errors errs;
    char text[4000];
    struct fabric *f;
    size_t n = 0;

    n += (size_t)snprintf(
        text, sizeof(text), "name = \"t\"; mtu = 4096; reduce = { }; costs = { %s %s };",
        drawn(0, 2) ? "" : "hca = \"200ns\";", drawn(0, 2) ? "" : "gpu = \"5us\";");
    if (two_levels)
        n += (size_t)snprintf(text + n, sizeof(text) - n,
                              "leaf_spine = { leaves = %u; spines = 1; hosts_per_leaf = 4;"
                              "host_link = { rate = \"%uGb/s\"; latency = \"300ns\"; };"
                              "spine_link = { rate = \"%uGb/s\"; latency = \"300ns\"; }; };",
                              hosts / 4, usual, usual);
    else
        n += (size_t)snprintf(text + n, sizeof(text) - n,
                              "single_switch = { hosts = %u; host_link = { rate = \"%uGb/s\";"
                              "latency = \"300ns\"; }; }; links = (",
                              hosts, usual);
    for (unsigned i = 0; !two_levels && i < slow && i < hosts; i++) {
        unsigned rate = rates[drawn(0, 5)];

        least = rate < least ? rate : least;
        n += (size_t)snprintf(text + n, sizeof(text) - n,
                              "%s{ of = \"h%u-switch0\"; rate = \"%uGb/s\"; }", i ? "," : "", i,
                              rate);
    }
    if (!two_levels)
        snprintf(text + n, sizeof(text) - n, ");");
    *slowest_bps = least * 1000000000ull;
    f = fabric_load_string(text, "drawn.conf", &errs);
    if (!f)
        fab_errors_print(&errs, stderr);
    assert_non_null(f);
    return f;
}

static struct trib_exchange draw_exchange(unsigned ranks)
{
    uint32_t servers = drawn(0, 1) ? ranks : drawn(1, ranks);
    uint32_t window = drawn(1, drawn(0, 1) ? 4096 : 64);
    struct trib_exchange x = blocks(drawn(1, 20000 / ranks), servers,
                                    window < servers ? servers : window / servers * servers);

    x.first = drawn(0, 100000);
    x.bytes = drawn(1, 2000);
    x.last_bytes = drawn(1, x.bytes);
    if (drawn(0, 3))
        x.aggregators = drawn(1, drawn(0, 1) ? 4096 : 16);
    return x;
}

/* Whatever waits for what: it ends, and links carry what they must. Few are given up, as ranks send
 * everything again and again. */
static void drawn_walks_end(void **state)
{
    unsigned given_up = 0;

    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        unsigned ranks = drawn(2, 32);
        struct trib_exchange x = draw_exchange(ranks);
        struct fab_members members;
        uint16_t host[32];
        uint64_t bps, own = x.blocks / x.servers + 1;
        struct fabric *f = draw_fabric(ranks, &bps);
        struct proto_ways ways = {.fab = f, .tree = &f->trees[0], .members = &members};
        double wire = (double)(x.bytes + PROTO_OVERHEAD) * 8e12 / (double)bps, t;
        bool waited;

        for (unsigned r = 0; r < ranks; r++)
            host[r] = (uint16_t)r;
        assert_true(topo_members(f, ranks, host, &members, NULL));
        t = (double)exchange_predict(
            &(struct exchange_on){.ways = &ways,
                                  .host_of_rank = host,
                                  .nranks = ranks,
                                  .rate_bps = bps,
                                  .round_trip_ps = proto_round_trip_ps(&ways, 4096),
                                  .notice_ps = proto_notice_ps(&ways, 4096, NULL)},
            &x, &waited);
        given_up += t == -EDEADLK;
        if (t != -EDEADLK && (t <= 0 || t < ((double)x.blocks - (double)own - 1) * wire))
            fail_msg("walk %u of %u ranks, %u blocks, %u servers, window %u, %u aggregators at %g "
                     "Gb/s takes %g ps",
                     i, ranks, (unsigned)x.blocks, x.servers, x.window, x.aggregators,
                     (double)bps / 1e9, t);
        fabric_free(f);
    }
    assert_in_range(given_up, 0, 300 / 20);
}

/* A plug-in may ask for anything. */
static void absurd_exchanges_are_not_walked(void **state)
{
    const struct trib_exchange bad[] = {
        {0},
        {.blocks = 4, .servers = 0, .window = 4},
        {.blocks = 4, .servers = 5, .window = 5, .bytes = 8, .last_bytes = 8},
        {.blocks = 4, .servers = 4, .window = 6, .bytes = 8, .last_bytes = 8},
        {.blocks = 4, .servers = 4, .window = 0, .bytes = 8, .last_bytes = 8},
        {.blocks = 4, .servers = 4, .window = 4, .bytes = UINT32_MAX, .last_bytes = 8},
        {.blocks = 4, .servers = 4, .window = 4, .bytes = 8, .last_bytes = UINT32_MAX},
        {.blocks = 4, .servers = 4, .window = 4, .aggregators = UINT32_MAX},
        {.blocks = UINT64_MAX, .servers = 4, .window = UINT32_MAX - 3, .bytes = 8},
        {.blocks = UINT64_MAX, .servers = 1, .window = 1, .bytes = 4000, .last_bytes = 4000},
    };
    const struct trib_exchange good[] = {
        {.blocks = 4, .servers = 4, .window = UINT32_MAX - 3},
        {.blocks = 4, .servers = 1, .window = UINT32_MAX, .aggregators = 1},
        {.blocks = 4, .servers = 1, .window = 1, .aggregators = 1, .first = UINT64_MAX},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(walk("", 4, bad[i]), 0);
    for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(walk("", 4, good[i]) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_crosses_twice),
        cmocka_unit_test(an_hca_fetches_every_packet),
        cmocka_unit_test(a_gpu_notices_what_comes_to_a_rank),
        cmocka_unit_test(a_short_protocol_passes_packets_at_its_rate),
        cmocka_unit_test(a_window_holds_blocks_back),
        cmocka_unit_test(switches_add_what_their_ranks_send),
        cmocka_unit_test(operations_in_a_row_overlap),
        cmocka_unit_test(long_vectors_fill_the_links),
        cmocka_unit_test(what_cannot_be_walked_is_left_alone),
        cmocka_unit_test(drawn_walks_end),
        cmocka_unit_test(absurd_exchanges_are_not_walked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
