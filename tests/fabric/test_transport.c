/* SPDX-License-Identifier: BSD-3-Clause */
/* Round trip and window by hand: four hops of latency and frame time each way, two ways, two of them
 * in the window. */
#include "tests/fabric/load.h"

static void expect(const char *text, int64_t round_trip_ps, uint32_t window)
{
    struct fabric *f = load_text(text);

    assert_int_equal(f->transport.round_trip_ps, round_trip_ps);
    assert_int_equal(f->transport.window, window);
    fabric_free(f);
}

#define LS                  "leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 2; };\n"
#define RATE(rate, latency) "link_defaults = { rate = \"" rate "\"; latency = \"" latency "\"; };\n"

static void the_window_is_twice_what_a_round_trip_holds(void **state)
{
    (void)state;
    expect(RATE("400Gb/s", "300ns") LS, 2 * 4 * (300000 + 83560), 256);
    expect(RATE("400Gb/s", "20us") LS, 2 * 4 * (20000000 + 83560), 2 * 1923);
    expect("mtu = 256;\n" RATE("400Gb/s", "300ns") LS, 2 * 4 * (300000 + 6760), 2 * 364);
    expect(RATE("40Gb/s", "16us") "single_switch = { hosts = 3; };", 2 * 2 * (16000000 + 835600),
           256);
    expect("transport = { window = 7; };\n" RATE("400Gb/s", "20us") LS, 2 * 4 * (20000000 + 83560),
           7);
}

/* Three switches in a row, a slow link at one end, and the host with the fastest port in the
 * middle: the farthest host of each counts, and the port that has the most in flight. */
static void every_port_is_asked(void **state)
{
    (void)state;
    expect("link_defaults = { rate = \"40Gb/s\"; latency = \"1us\"; };\n"
           "nodes = ( { name = (\"s0\", \"s2\"); role = \"leaf\"; },\n"
           "  { name = \"s1\"; role = \"spine\"; },\n"
           "  { name = (\"a\", \"b\", \"c\"); kind = \"host\"; } );\n"
           "links = ( { a = \"a\"; b = \"s0\"; }, { a = (\"s0\", \"s2\"); b = \"s1\"; },\n"
           "  { a = \"c\"; b = \"s2\"; latency = \"30us\"; },\n"
           "  { a = \"b\"; b = \"s1\"; rate = \"400Gb/s\"; } );",
           2 * (3 * (1000000 + 835600) + 30000000 + 835600), 2 * 808);
}

static void switch_time_counts_and_other_networks_do_not(void **state)
{
    struct fabric *f = load_text(RATE("400Gb/s", "300ns") "costs = { switch = \"150ns\"; };\n" LS);

    (void)state;
    assert_int_equal(f->transport.round_trip_ps, 2 * (4 * (300000 + 83560) + 3 * 150000));
    fabric_free(f);
}

/* A switch that cuts through waits for 64 bytes (1,280 ps at 400 Gb/s) instead of a frame, and
 * aggregation nodes store frames all the same. */
static void switches_that_cut_through_shorten_the_round_trip(void **state)
{
    static const char *const cut = "forwarding = \"cut-through\";\n";
    char text[512];
    struct fabric *f;

    (void)state;
    snprintf(text, sizeof(text), "%s%s", cut, RATE("400Gb/s", "300ns") LS);
    f = load_text(text);
    assert_int_equal(f->transport.round_trip_ps, 2 * (4 * 300000 + 3 * 1280 + 83560));
    assert_int_equal(f->transport.stored_round_trip_ps, 2 * 4 * (300000 + 83560));
    fabric_free(f);
    /* From 40 to 40 Gb/s over a link of 400: the frame starts there so late that its last bit has
     * arrived when it leaves. */
    snprintf(
        text, sizeof(text),
        "%slink_defaults = { rate = \"400Gb/s\"; latency = \"1us\"; };\n"
        "nodes = ( { name = (\"s0\", \"s1\"); role = \"leaf\"; },\n"
        "  { name = (\"a\", \"b\"); kind = \"host\"; } );\n"
        "links = ( { a = \"s0\"; b = \"s1\"; }, { a = \"a\"; b = \"s0\"; rate = \"40Gb/s\"; },\n"
        "  { a = \"b\"; b = \"s1\"; rate = \"40Gb/s\"; } );",
        cut);
    f = load_text(text);
    assert_int_equal(f->transport.round_trip_ps,
                     2 * (3 * 1000000 + 835600 - 83560 + 1280 + 835600));
    fabric_free(f);
}

static void timeouts_are_rounded_up_to_those_of_verbs(void **state)
{
    static const struct {
        const char *text;
        unsigned n;
    } rows[] = {{"8.192us", 1}, {"8.2us", 2}, {"1ms", 8}, {"67.2ms", 15}, {"67ms", 14}, {"1s", 18}};

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        char text[256];
        struct fabric *f;

        snprintf(text, sizeof(text),
                 LINKS "transport = { ack_timeout = \"%s\"; retry_count = %u; };\n"
                       "single_switch = { hosts = 2; };",
                 rows[i].text, i);
        f = load_text(text);
        assert_int_equal(f->transport.ack_timeout, rows[i].n);
        assert_int_equal(f->transport.retry_count, i);
        fabric_free(f);
    }
}

static void slots_are_kept_until_polled_unless_the_conf_says_otherwise(void **state)
{
    struct fabric *f = load_text(LINKS "single_switch = { hosts = 2; };");

    (void)state;
    assert_false(f->transport.early_slots);
    fabric_free(f);
    f = load_text(LINKS "transport = { early_slots = true; };\nsingle_switch = { hosts = 2; };");
    assert_true(f->transport.early_slots);
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_kept_until_polled_unless_the_conf_says_otherwise),
        cmocka_unit_test(the_window_is_twice_what_a_round_trip_holds),
        cmocka_unit_test(every_port_is_asked),
        cmocka_unit_test(switch_time_counts_and_other_networks_do_not),
        cmocka_unit_test(switches_that_cut_through_shorten_the_round_trip),
        cmocka_unit_test(timeouts_are_rounded_up_to_those_of_verbs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
