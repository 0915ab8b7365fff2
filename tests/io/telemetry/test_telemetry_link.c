/* SPDX-License-Identifier: BSD-3-Clause */
/* /trib/link, /trib/node and /trib/offenders: what they change, what they refuse, and what they say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "io/telemetry/telemetry_link.h"
#include "switch/nic.h"
#include "switch/queue/egress_priv.h"
#include "tests/io/telemetry/ask.h"

static const char conf[] = "name = \"told\"; slots_per_host = 2;"
                           "nodes = ( { name = (\"h0\", \"h1\"); kind = \"host\"; },"
                           " { name = (\"s0\", \"s1\"); kind = \"switch\"; } );"
                           "link_defaults = { rate = \"100Gb/s\"; latency = \"300ns\"; };"
                           "links = ( { a = \"h0\"; b = \"s0\"; }, { a = \"h1\"; b = \"s1\"; },"
                           " { a = \"s0\"; b = \"s1\"; cables = 2; } );";

static int setup(void **state)
{
    (void)state;
    return one_loop_open(conf, NULL, 10);
}

static int part(void **state)
{
    (void)state;
    return one_loop_open(conf, "h0 s0 ", 10);
}

static int teardown(void **state)
{
    (void)state;
    return one_loop_close();
}

static bool is_down(unsigned link)
{
    return atomic_load(&o.l->page->link_down[link]);
}

static bool down_in_sysfs(const char *host)
{
    char path[256], text[32] = "";
    FILE *f;

    snprintf(path, sizeof(path), "%s/port/%s/0.state/state", o.rd.path, host);
    f = fopen(path, "r");
    if (f && !fgets(text, sizeof(text), f))
        text[0] = 0;
    if (f)
        fclose(f);
    return !strcmp(text, "1: DOWN\n");
}

static void a_link_is_changed_and_shown(void **state)
{
    static const struct told_row rows[] = {
        {"/trib/link", NULL, "[]", false},
        {"/trib/link", "h0-s0", "[\"h0:0 to s0:0: up; 0 frames\",\"s0:0 to h0:0: up; 0 frames\"]",
         false},
        {"/trib/link", "h0-s0,loss=0.5,dup=0.25",
         "[\"h0:0 to s0:0: loss=0.5 dup=0.25; 0 frames\",\"s0:0 to h0:0: loss=0.5 dup=0.25; 0 "
         "frames\"]",
         false},
        {"/trib/link", "h1-s1,rate=50Gb/s,latency=600ns,jitter=2us,reorder=1%,corrupt=1e-6",
         "[\"h1:0 to s1:0: rate=50Gb/s latency=600ns reorder=0.01 corrupt=1e-06 jitter=2us; 0 "
         "frames\",\"s1:0 to h1:0: rate=50Gb/s latency=600ns reorder=0.01 corrupt=1e-06 "
         "jitter=2us; 0 frames\"]",
         false},
        {"/trib/link", "s0:2-s1:2,down",
         "[\"s0:2 to s1:2: down; 0 frames\",\"s1:2 to s0:2: down; 0 frames\"]", false},
        {"/trib/link", NULL,
         "[\"h0:0-s0:0: loss=0.5 dup=0.25\",\"h1:0-s1:0: rate=50Gb/s latency=600ns reorder=0.01 "
         "corrupt=1e-06 jitter=2us\",\"s0:2-s1:2: down\"]",
         false},
        {"/trib/link", "h0-s0,clear",
         "[\"h0:0 to s0:0: up; 0 frames\",\"s0:0 to h0:0: up; 0 frames\"]", false},
        {"/trib/link", "h1-s1,loss=0.5,clear,up",
         "[\"h1:0 to s1:0: up; 0 frames\",\"s1:0 to h1:0: up; 0 frames\"]", false},
        {"/trib/link", NULL, "[\"s0:2-s1:2: down\"]", false},
        {"/trib/link", "s0:2-s1:2,up,seed=4",
         "[\"s0:2 to s1:2: up; 0 frames\",\"s1:2 to s0:2: up; 0 frames\"]", false},
        {"/trib/link", NULL, "[]", false},
    };
    (void)state;
    TOLD_ROWS(ask, rows);
}

static void what_is_no_link_or_change_is_refused(void **state)
{
    static const struct told_row rows[] = {
        {"/trib/link", "h0-s1",
         "{\"error\":\"found h0-s1, expected a link that trib plan shows, or all; did you mean "
         "h0-s0?\"}",
         false},
        {"/trib/link", "s0-s1",
         "{\"error\":\"found s0-s1, expected one link; that fits several, so name its ports too: "
         "A:0-B:0\"}",
         false},
        {"/trib/link", "s0-s1,down",
         "{\"error\":\"found s0-s1, expected one link; that fits several, so name its ports too: "
         "A:0-B:0\"}",
         false},
        {"/trib/link", "h0-s,down",
         "{\"error\":\"found h0-s, expected a link that trib plan shows, or all; did you mean "
         "h0-s0?\"}",
         false},
        {"/trib/link", "a\"b\\c\td",
         "{\"error\":\"found a?b?c?d, expected a link that trib plan shows, or all\"}", false},
        {"/trib/link", "h0-s0,loss=2",
         "{\"error\":\"found loss=2, expected loss=0.0 to 1.0, 1e-6, or 0% to 100%\"}", false},
        {"/trib/link", "h0-s0,rate=1kb/s",
         "{\"error\":\"rate: found 1kb/s, expected 1Mb/s to 100Tb/s\"}", false},
        {"/trib/link", "h1-s1,rate=50Gb/s,latency=1us",
         "{\"error\":\"latency: found 1us, expected at most 600ns at 50Gb/s, or PFC's headroom is "
         "too small\"}",
         false},
        {"/trib/link", "all,rate=900Gb/s",
         "{\"error\":\"rate: found 900Gb/s, expected at most the conf's 100Gb/s, or PFC's headroom "
         "is too small (h0:0-s0:0)\"}",
         false},
        {"/trib/link", "all,nonsense",
         "{\"error\":\"found nonsense, expected down, up, clear, rate=, latency=, loss=, dup=, "
         "reorder=, corrupt=, jitter= or seed=\"}",
         false},
        {"/trib/link", NULL, "[]", false},
        {"/trib/node", NULL, "{\"error\":\"found , expected a node that trib plan shows\"}", false},
        {"/trib/node", "s9", "{\"error\":\"found s9, expected a node that trib plan shows\"}",
         false},
        {"/trib/node", "s00,down",
         "{\"error\":\"found s00, expected a node that trib plan shows; did you mean s0?\"}",
         false},
        {"/trib/node", "s0,off", "{\"error\":\"expected down, up or forget\"}", false},
        {"/trib/node", "h0,forget", "{\"error\":\"found a host, expected a switch to restart\"}",
         false},
    };
    (void)state;
    TOLD_ROWS(ask, rows);
}

static void all_links_are_changed_at_once(void **state)
{
    static const struct told_row rows[] = {
        {"/trib/link", "all,down,loss=0.5",
         "[\"h0:0-s0:0: down loss=0.5\",\"h1:0-s1:0: down loss=0.5\",\"s0:1-s1:1: down "
         "loss=0.5\",\"s0:2-s1:2: down loss=0.5\"]",
         false},
        {"/trib/link", "all,loss=0.25,latency=2us",
         "{\"error\":\"latency: found 2us, expected at most 300ns at 100Gb/s, or PFC's headroom is "
         "too small (h0:0-s0:0)\"}",
         false},
        {"/trib/link", "all,latency=0ns",
         "[\"h0:0-s0:0: down latency=0ps loss=0.5\",\"h1:0-s1:0: down latency=0ps "
         "loss=0.5\",\"s0:1-s1:1: down latency=0ps loss=0.5\",\"s0:2-s1:2: down latency=0ps "
         "loss=0.5\"]",
         false},
        {"/trib/link", "all,up,clear", "[]", false},
        {"/trib/link", "all", "[]", false},
    };
    (void)state;
    TOLD_ROWS(ask, rows);
}

static void programs_and_sysfs_hear_of_it(void **state)
{
    (void)state;
    json_decref(ask("/trib/link", "h0-s0,down"));
    assert_true(is_down(0) && down_in_sysfs("h0") && !net_link_up(o.l->net, 0));
    assert_false(is_down(1) || down_in_sysfs("h1"));
    json_decref(ask("/trib/link", "h0-s0,loss=0.5")); /* leaves it so */
    assert_true(is_down(0) && !net_link_up(o.l->net, 0));
    json_decref(ask("/trib/link", "h0-s0,up"));
    assert_false(is_down(0) || down_in_sysfs("h0") || !net_link_up(o.l->net, 0));
    json_decref(ask("/trib/link", "all,down"));
    for (unsigned i = 0; i < 4; i++)
        assert_true(is_down(i) && !net_link_up(o.l->net, i));
    json_decref(ask("/trib/link", "all,loss=0"));
    assert_true(is_down(3));
    json_decref(ask("/trib/link", "all,up"));
    for (unsigned i = 0; i < 4; i++)
        assert_false(is_down(i) || !net_link_up(o.l->net, i));
    json_decref(ask("/trib/node", "h1,down"));
    assert_true(is_down(1) && down_in_sysfs("h1") && !is_down(0) && !is_down(2));
    json_decref(ask("/trib/node", "h1,up"));
    assert_false(is_down(1) || down_in_sysfs("h1"));
}

static void a_node_loses_its_links(void **state)
{
    static const struct told_row rows[] = {
        {"/trib/node", "s0", "[\"s0: 3 links, 0 down\"]", false},
        {"/trib/node", "s0,down", "[\"s0: 3 links, 3 down\"]", false},
        {"/trib/node", "s1", "[\"s1: 3 links, 2 down\"]", false},
        {"/trib/node", "h1", "[\"h1: 1 links, 0 down\"]", false},
        {"/trib/link", NULL, "[\"h0:0-s0:0: down\",\"s0:1-s1:1: down\",\"s0:2-s1:2: down\"]",
         false},
        {"/trib/node", "s0,forget", "[\"s0: 3 links, 3 down\"]", false},
        {"/trib/node", "s0,up", "[\"s0: 3 links, 0 down\"]", false},
        {"/trib/link", NULL, "[]", false},
    };
    (void)state;
    TOLD_ROWS(ask, rows);
}

/* Of a process that runs a part: it lists what it has an end of. */
static void a_process_speaks_of_its_ends(void **state)
{
    static const struct told_row rows[] = {
        {"/trib/link", "h1-s1", "{\"elsewhere\":\"h1:0-s1:0\"}", false},
        {"/trib/link", "h1-s1,down,loss=0.5", "{\"elsewhere\":\"h1:0-s1:0\"}", false},
        {"/trib/link", "h1-s1,rate=900Gb/s", "{\"elsewhere\":\"h1:0-s1:0\"}", false},
        {"/trib/link", "s0:1-s1:1,loss=0.5", "[\"s0:1 to s1:1: loss=0.5; 0 frames\"]", false},
        {"/trib/link", NULL, "[\"s0:1-s1:1: loss=0.5\"]", false},
        {"/trib/node", "s1,forget", "{\"elsewhere\":\"s1\"}", false},
        {"/trib/node", "s1", "[\"s1: 3 links, 1 down\"]", false},
    };
    (void)state;
    TOLD_ROWS(ask, rows);
    assert_true(is_down(1));
}

/* What happened to frames of a direction is shown where there is any. */
static void a_link_says_what_it_did_to_frames(void **state)
{
    static const struct told_row rows[] = {
        {"/trib/link", "h0-s0",
         "[\"h0:0 to s0:0: up; 100 frames, 1 lost, 2 doubled, 3 reordered, 4 corrupted, 5 dropped "
         "while down\",\"s0:0 to h0:0: up; 0 frames, 7 corrupted\"]",
         false},
    };
    struct egress_stats *s = &net_egress(o.l->net, node_of("h0"), 0)->st;
    (void)state;

    s->frames = 100, s->lost = 1, s->duplicated = 2, s->reordered = 3, s->corrupted = 4;
    s->down_drops = 5;
    net_egress(o.l->net, node_of("s0"), 0)->st.corrupted = 7;
    TOLD_ROWS(ask, rows);
}

/* ---- offenders ---- */

static struct io_port *a;

static void offend(unsigned n)
{
    while (n) {
        unsigned burst = n < 32 ? n : 32;

        for (unsigned i = 0; i < burst; i++) {
            struct rte_mbuf *m = datagram("h0", "h1", 0, 64);

            memset(rte_pktmbuf_mtod_offset(m, uint8_t *, 6), 0x22, 6); /* of another MAC */
            assert_int_equal(io_port_tx(a, ENDPOINT_DATA, &m, 1), 1);
        }
        n -= burst;
        steps(8, US);
    }
}

static void offenders_are_named_and_let_in_again(void **state)
{
    static const struct told_row none[] = {{"/trib/offenders", NULL, "[]", false}};
    static const struct told_row some[] = {
        {"/trib/offenders", NULL, "[\"h0.0.0 sent 3 frames that it may not send: foreign_mac\"]",
         false}};
    static const struct told_row shut[] = {
        {"/trib/offenders", NULL,
         "[\"h0.0.0 is shut: 1000 frames that it may not send: foreign_mac\"]", false}};
    static const struct told_row other[] = {
        {"/trib/link", "h1-s1,up",
         "[\"h1:0 to s1:0: up; 0 frames\",\"s1:0 to h1:0: up; 0 frames\"]", false},
        {"/trib/offenders", NULL,
         "[\"h0.0.0 is shut: 1000 frames that it may not send: foreign_mac\"]", false}};
    static const struct told_row again[] = {
        {"/trib/link", "h0-s0,up",
         "[\"h0:0 to s0:0: up; 0 frames\",\"s0:0 to h0:0: up; 0 frames\"]", false},
        {"/trib/offenders", NULL, "[]", false}};
    struct nic_offender x;
    (void)state;

    a = program("h0", 0, 0);
    TOLD_ROWS(ask, none);
    offend(3);
    TOLD_ROWS(ask, some);
    offend(NIC_OFFENCES);
    TOLD_ROWS(ask, shut);
    assert_true(nic_offences(net_node(o.l->net, node_of("h0")), 0, 0, &x) && x.shut);
    TOLD_ROWS(ask, other);
    TOLD_ROWS(ask, again);
    assert_false(nic_offences(net_node(o.l->net, node_of("h0")), 0, 0, &x) && x.shut);
    io_port_close(a);
    steps(3, MS);
}

static void a_word_for_users_has_nothing_that_json_escapes(void **state)
{
    struct rte_tel_data d = {NULL};
    char text[400];
    (void)state;

    telemetry_say(&d, "error", "a\"b\\c\nd\x1f\x7f ~");
    assert_string_equal(told_text(d.v), "{\"error\":\"a?b?c?d?\x7f ~\"}");
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = 0;
    telemetry_say(&d, "what", text);
    assert_int_equal(strlen(json_string_value(json_object_get(d.v, "what"))),
                     RTE_TEL_MAX_STRING_LEN - 1);
    json_decref(d.v);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_link_is_changed_and_shown),
        CASE(what_is_no_link_or_change_is_refused),
        CASE(all_links_are_changed_at_once),
        CASE(programs_and_sysfs_hear_of_it),
        CASE(a_node_loses_its_links),
        cmocka_unit_test_setup_teardown(a_process_speaks_of_its_ends, part, teardown),
        CASE(a_link_says_what_it_did_to_frames),
        CASE(offenders_are_named_and_let_in_again),
        CASE(a_word_for_users_has_nothing_that_json_escapes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
