/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows of aggregation trees, and slots of messages. */
#include "collective/in_flight.h"

#include "base/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define DIM(a) (sizeof(a) / sizeof((a)[0]))

/* Two hosts at each of two leaves, two spines. */
static struct fabric *fab;

static int load(void **state)
{
    (void)state;
    fab = fabric_load_string(
        "name = \"a\"; mtu = 1024; leaf_spine = { leaves = 2; spines = 3; hosts_per_leaf = 2; "
        "host_link = { rate = \"100Gb/s\"; latency = \"300ns\"; }; spine_link = { rate = "
        "\"100Gb/s\"; latency = \"1us\"; }; }; reduce = { groups = 8; slots = 1024; window = 128; "
        "};",
        "agg.conf", NULL);
    return fab ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    fabric_free(fab);
    return 0;
}

/* Two round trips, or 10 us, at the rate of the fastest port; 64 slots at least and 2048 at most. */
static void a_window_is_what_two_round_trips_take(void **state)
{
    static const struct {
        uint32_t asked;
        int64_t round_trip_ps;
        uint64_t rate_bps; /* of the last host's port */
        uint32_t slots;
    } rows[] = {
        {1, 0, 0, 1}, /* as asked, */
        {2048, 0, 0, 2048},
        {2049, 0, 0, 2048}, /* up to the most */
        {0, 0, 0, 122},     /* 100 Gb/s for 10 us are 125000 bytes */
        {0, 5 * PS_PER_US, 0, 122},
        {0, 10 * PS_PER_US, 0, 244},
        {0, 10 * PS_PER_US, 400000000000, 976},
        {0, 20 * PS_PER_US, 400000000000, 1953},
        {0, 30 * PS_PER_US, 400000000000, 2048},
        {0, 1, 1, 122}, /* a slow one does not count */
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct fab_port *last = &fab->nodes[fab->hosts[fab->n_hosts - 1]].ports[0];

        fab->transport.stored_round_trip_ps = rows[i].round_trip_ps;
        last->rate_bps = rows[i].rate_bps ? rows[i].rate_bps : 100000000000;
        assert_int_equal(agg_window(fab, rows[i].asked), rows[i].slots);
    }
    for (unsigned h = 0; h < fab->n_hosts; h++)
        fab->nodes[fab->hosts[h]].ports[0].rate_bps = 10000000000;
    fab->transport.stored_round_trip_ps = 0;
    assert_int_equal(agg_window(fab, 0), 64);
    for (unsigned h = 0; h < fab->n_hosts; h++)
        fab->nodes[fab->hosts[h]].ports[0].rate_bps = 100000000000;
}

/* A header of 32 bytes, and the elements, in packets. */
static void a_message_takes_a_slot_for_each_packet(void **state)
{
    (void)state;
    assert_int_equal(agg_slots(0, 1024), 1);
    assert_int_equal(agg_slots(992, 1024), 1);
    assert_int_equal(agg_slots(993, 1024), 2);
    assert_int_equal(agg_slots(AGG_MSG_BYTES(1024), 1024), AGG_MSG_PKTS);
    assert_int_equal(agg_slots(AGG_MSG_BYTES(4096), 4096), AGG_MSG_PKTS);
    assert_int_equal(agg_slots(AGG_MSG_BYTES(4096) + 1, 4096), AGG_MSG_PKTS + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_is_what_two_round_trips_take),
        cmocka_unit_test(a_message_takes_a_slot_for_each_packet),
    };

    return cmocka_run_group_tests(tests, load, unload);
}
