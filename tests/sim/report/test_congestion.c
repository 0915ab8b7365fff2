/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion of a run: read from every port and every rank, printed where there was any, and as JSON. */
#include "sim/report/congestion.h"
#include "switch/net/net_stats.h"
#include "tests/fabric/load.h"
#include "tests/support/eal.h"

#include <jansson.h>
#include <stdlib.h>

#define ROOM 1024u

static struct rte_mempool *pool;

/* The counters of a rank's port as its engine has them. */
static struct roce_counters *counters(struct world *w, unsigned rank)
{
    return (struct roce_counters *)(uintptr_t)rnic_counters(hca_rnic(world_hca(w, rank, 0)));
}

static void sums_of_ports_and_ranks(void **state)
{
    static const uint16_t hosts[] = {0, 1};
    struct fabric *f = load_leaf_spine(2, 1, 1, 1, "");
    struct world_cfg cfg = {.fab = f, .nranks = 2, .host_of_rank = hosts, .pool = pool, .seed = 1};
    struct congestion c, zero = {0};
    struct world *w;
    struct net *n;

    (void)state;
    assert_int_equal(world_create(&w, &cfg), 0);
    n = world_net(w);
    congestion_read(&c, w, f);
    assert_memory_equal(&c, &zero, sizeof(c));

    *counters(w, 0) = (struct roce_counters){
        .cnps_received = 1, .rate_cuts = 20, .retransmits = 300, .timeouts = 4000};
    *counters(w, 1) = (struct roce_counters){
        .cnps_received = 5, .rate_cuts = 60, .retransmits = 700, .timeouts = 8000};
    net_node(n, node(f, "h0"))->cnt[0].pauses_sent = 1;
    net_node(n, node(f, "spine0"))->cnt[1].pauses_sent = 2;
    net_node(n, node(f, "leaf0"))->cnt[0].drops[DROP_QUEUE_FULL] = 3;
    net_node(n, node(f, "leaf1"))->cnt[1].drops[DROP_QUEUE_FULL] = 40;
    net_node(n, node(f, "leaf0"))->cnt[0].watchdog_trips = 5;
    net_node(n, node(f, "leaf1"))->cnt[0].watchdog_trips = 60;
    egress_pause(net_egress(n, node(f, "leaf0"), 0), FRAME_LOSSLESS, 1000, 0);
    egress_pause(net_egress(n, node(f, "leaf1"), 0), FRAME_LOSSLESS, 20000, 0);
    net_advance(n, 10000); /* one pause has ended, the other holds since then */
    congestion_read(&c, w, f);
    assert_int_equal(c.cnps, 6);
    assert_int_equal(c.cuts, 80);
    assert_int_equal(c.retransmits, 1000);
    assert_int_equal(c.timeouts, 12000);
    assert_int_equal(c.pauses, 3);
    assert_int_equal(c.overflows, 43);
    assert_int_equal(c.watchdog, 65);
    assert_int_equal(c.paused_ps, 11000);
    assert_int_equal(c.marks, 0);
    assert_int_equal(c.discarded, 0);
    world_destroy(w);
    fabric_free(f);
}

static const char *printed(const struct congestion *c, bool wide)
{
    static char text[ROOM];
    FILE *out = fmemopen(text, sizeof(text), "w");

    memset(text, 0, sizeof(text));
    congestion_print(c, wide, out);
    fclose(out);
    return text;
}

static void text(void **state)
{
    static const struct congestion all = {.marks = 1,
                                          .cnps = 2,
                                          .cuts = 3,
                                          .pauses = 4,
                                          .paused_ps = 5600000,
                                          .overflows = 6,
                                          .retransmits = 7,
                                          .timeouts = 8,
                                          .watchdog = 9,
                                          .discarded = 10};
    static const struct congestion some[] = {
        {.marks = 1}, {.pauses = 1}, {.overflows = 1}, {.retransmits = 1}};
    static const struct congestion none = {
        .cnps = 1, .cuts = 1, .timeouts = 1, .watchdog = 1, .discarded = 1, .paused_ps = 1};
    static const char line[] = "# Congestion: 1 frames marked, 2 notifications, 3 rate cuts; 4 "
                               "pauses, 5.6 us of waiting; 6 "
                               "frames dropped in full queues, 7 packets sent again, 8 timeouts\n";
    static const char watchdog[] =
        "# PFC watchdog: queues found stuck 9 times, 10 frames dropped\n";
    struct congestion less = all;
    char want[ROOM];

    (void)state;
    snprintf(want, sizeof(want), "%s%s", line, watchdog);
    assert_string_equal(printed(&all, true), want);
    assert_int_not_equal(strncmp(printed(&all, false), line, strlen(line)),
                         0); /* two lines of it */
    less.watchdog = 0;
    assert_string_equal(printed(&less, true), line);
    for (unsigned i = 0; i < LEN(some); i++)
        assert_int_equal(strncmp(printed(&some[i], true), "# Congestion: ", 14), 0);
    assert_string_equal(printed(&none, true), "");
}

static void json(void **state)
{
    static const struct congestion c = {.marks = 1,
                                        .cnps = 2,
                                        .cuts = 3,
                                        .pauses = 4,
                                        .paused_ps = 5500000,
                                        .overflows = 6,
                                        .retransmits = 7,
                                        .timeouts = 8,
                                        .watchdog = 9,
                                        .discarded = 10};
    json_t *j = congestion_json(&c);
    char *s = json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(6));

    (void)state;
    assert_string_equal(
        s, "{\"ecn_marks\":1,\"cnps\":2,\"rate_cuts\":3,\"pauses\":4,\"paused_us\":5.5,"
           "\"dropped_full\":6,\"retransmits\":7,\"timeouts\":8,"
           "\"watchdog_trips\":9,\"watchdog_dropped\":10}");
    free(s);
    json_decref(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_ports_and_ranks),
        cmocka_unit_test(text),
        cmocka_unit_test(json),
    };

    test_eal_init();
    pool = test_pool(4096);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
