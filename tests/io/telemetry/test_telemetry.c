/* SPDX-License-Identifier: BSD-3-Clause */
/* What a switch process says of its nodes, ports, links, aggregation nodes and its clock, whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "switch/queue/egress_priv.h"
#include "tests/io/telemetry/ask.h"

#include <pthread.h>

static const char conf[] = "name = \"told\"; slots_per_host = 2;"
                           "nodes = ( { name = (\"h0\", \"h1\"); kind = \"host\"; },"
                           " { name = (\"s0\", \"s1\"); kind = \"switch\"; } );"
                           "reduce = { groups = 2; slots = 32; window = 8; };"
                           "link_defaults = { rate = \"100Gb/s\"; latency = \"300ns\"; };"
                           "links = ( { a = \"h0\"; b = \"s0\"; }, { a = \"h1\"; b = \"s1\"; },"
                           " { a = \"s0\"; b = \"s1\"; cables = 2; } );";

static struct io_port *a, *b; /* programs of h0 and h1 */

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
    io_port_close(a);
    io_port_close(b);
    a = b = NULL;
    telemetry_serve(NULL, NULL);
    return one_loop_close();
}

/* Each counter of a port has a value of its own. */
static void count_up(const char *name, uint16_t port, uint64_t from)
{
    struct node *nd = net_node(o.l->net, node_of(name));
    struct node_port_counters *c = &nd->cnt[port];
    struct egress_stats *s = &nd->egress[port]->st;

    *c = (struct node_port_counters){from + 1, from + 2, from + 3, from + 4, from + 5, {0}};
    for (unsigned i = 0; i < DROP_REASONS; i++)
        c->drops[i] = from + 100 + i;
    *s = (struct egress_stats){.frames = from + 11,
                               .bytes = from + 12,
                               .busy_ps = (int64_t)(from + 13) * PS_PER_US,
                               .peak_bytes = from + 14,
                               .class_peak_bytes = {from + 15, from + 16, from + 17},
                               .lost = from + 18,
                               .lost_bytes = from + 19,
                               .duplicated = from + 20,
                               .reordered = from + 21,
                               .corrupted = from + 22,
                               .ecn_marks = from + 23,
                               .down_drops = from + 24,
                               .overflows = from + 25,
                               .discarded = from + 26,
                               .paused_ps = (int64_t)(from + 27) * PS_PER_US};
}

/* ---- cases ---- */

static void it_names_nodes_and_ports(void **state)
{
    static const struct told_row rows[] = {
        {"/trib/nodes", NULL, "[\"h0\",\"h1\",\"s0\",\"s1\"]", false},
        {"/trib/nodes", "any", "[\"h0\",\"h1\",\"s0\",\"s1\"]", false},
        {"/trib/ports", NULL,
         "[\"h0:0\",\"h1:0\",\"s0:0\",\"s0:1\",\"s0:2\",\"s1:0\",\"s1:1\",\"s1:2\"]", false},
        {"/trib/an", NULL, "[\"s0\",\"s1\"]", false},
        {"/trib/none", NULL, "", false},
    };
    (void)state;
    TOLD_ROWS(ask, rows);
}

static void it_names_what_it_runs_alone(void **state)
{
    static const struct told_row rows[] = {
        {"/trib/nodes", NULL, "[\"h0\",\"s0\"]", false},
        {"/trib/ports", NULL, "[\"h0:0\",\"s0:0\",\"s0:1\",\"s0:2\"]", false},
        {"/trib/ports", "s1:0", "{\"error\":\"no such port here, expected NODE:PORT\"}", false},
        {"/trib/an", NULL, "[\"s0\"]", false},
        {"/trib/an", "s1", "{\"error\":\"no such aggregation node here\"}", false},
        {"/trib/link_bytes", NULL, "[0,0,1,25276,4,0,6,0]", false},
        {"/trib/links", NULL, "[\"s0:1-s1:1\",\"s0:2-s1:2\"]", false},
        {"/trib/links", "s0:1-s1:1", "{\"kind\":\"link\",\"state\":\"down\"}", true},
        {"/trib/links", "s0:9-s1:1", "{\"error\":\"no such link leaves this process\"}", false},
        {"/trib/capture/start", "h1-s1,1,/dev/null", "{\"elsewhere\":\"h1:0-s1:0\"}", false},
        {"/trib/link", "h1-s1", "{\"elsewhere\":\"h1:0-s1:0\"}", false},
        {"/trib/table/ports", NULL,
         "[0,0,4503599627367417,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
         "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1,1001,1002,1011,1012,25276,1013000000,1027000000,1014,"
         "1023,1003,1004,1005,1026,1018,1019,1020,1021,1022,1024,1025,1100,1101,1102,1103,1104,"
         "1105,1106,1107,1108,1109,1110,1111,1112,1113,1114,1115,1116,1117,1118,1119,1120,1121,"
         "1122,1123,1124,1125,1126,4,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
         "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,6,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
         "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]",
         false},
    };
    (void)state;
    telemetry_serve(o.l, o.mine);
    count_up("s0", 0, 1000);
    TOLD_ROWS(ask, rows);
}

static void a_port_says_all_of_its_counters(void **state)
{
    static const struct told_row rows[] = {
        {"/trib/ports", "s0:0",
         "{\"rx_frames\":1001,\"rx_bytes\":1002,\"tx_frames\":1011,\"tx_bytes\":1012,\"ecn_marks\":"
         "1023,\"pauses_sent\":1003,\"pauses_received\":1004,\"watchdog_trips\":1005,\"drop_runt\":"
         "1100,\"drop_bad_length\":1101,\"drop_bad_pause\":1102,\"drop_link_local\":1103,\"drop_"
         "unknown_dest\":1104,\"drop_no_route\":1105,\"drop_reflected\":1106,\"drop_queue_full\":"
         "1107,\"drop_pfc_watchdog\":1108,\"drop_no_buffer\":1109,\"drop_unknown_group\":1110,"
         "\"drop_not_mine\":1111,\"drop_not_roce\":1112,\"drop_no_an\":1113,\"drop_an_refused\":"
         "1114,\"drop_no_slot\":1115,\"drop_slot_full\":1116,\"drop_slot_stalled\":1117,\"drop_"
         "detached\":1118,\"drop_foreign_mac\":1119,\"drop_foreign_ip\":1120,\"drop_foreign_arp\":"
         "1121,\"drop_foreign_qpn\":1122,\"drop_foreign_protocol\":1123,\"drop_port_shut\":1124,"
         "\"drop_group_quota\":1125,\"drop_ring_full\":1126,\"egress_frames\":1011,\"egress_link_"
         "bytes\":25276,\"egress_lost\":1018,\"egress_lost_bytes\":1019,\"egress_duplicated\":1020,"
         "\"egress_reordered\":1021,\"egress_corrupted\":1022,\"egress_down_drops\":1024,\"egress_"
         "watchdog_drops\":1026,\"egress_peak_bytes\":1014,\"egress_peak_lossless_bytes\":1015,"
         "\"egress_busy_us\":1013,\"egress_paused_us\":1027}",
         false},
        {"/trib/ports", "s0:1", "{}", true},
        {"/trib/table/ports", "2",
         "[0,0,4503599627367417,2,3001,3002,3011,3012,75276,3013000000,3027000000,3014,3023,3003,"
         "3004,3005,3026,3018,3019,3020,3021,3022,3024,3025,3100,3101,3102,3103,3104,3105,3106,"
         "3107,3108,3109,3110,3111,3112,3113,3114,3115,3116,3117,3118,3119,3120,3121,3122,3123,"
         "3124,3125,3126,3,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
         "0,0,0,0,0,0,0,0,0,0,0,4,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
         "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,5,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
         "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,6,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
         "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,7,2001,2002,2011,2012,50276,2013000000,"
         "2027000000,2014,2023,2003,2004,2005,2026,2018,2019,2020,2021,2022,2024,2025,2100,2101,"
         "2102,2103,2104,2105,2106,2107,2108,2109,2110,2111,2112,2113,2114,2115,2116,2117,2118,"
         "2119,2120,2121,2122,2123,2124,2125,2126]",
         false},
        {"/trib/totals", NULL,
         "{\"rx_frames\":6003,\"rx_bytes\":6006,\"tx_frames\":6033,\"tx_bytes\":6036,\"ecn_marks\":"
         "6069,\"pauses_sent\":6009,\"pauses_received\":6012,\"watchdog_trips\":6015,\"drop_runt\":"
         "6300,\"drop_bad_length\":6303,\"drop_bad_pause\":6306,\"drop_link_local\":6309,\"drop_"
         "unknown_dest\":6312,\"drop_no_route\":6315,\"drop_reflected\":6318,\"drop_queue_full\":"
         "6321,\"drop_pfc_watchdog\":6324,\"drop_no_buffer\":6327,\"drop_unknown_group\":6330,"
         "\"drop_not_mine\":6333,\"drop_not_roce\":6336,\"drop_no_an\":6339,\"drop_an_refused\":"
         "6342,\"drop_no_slot\":6345,\"drop_slot_full\":6348,\"drop_slot_stalled\":6351,\"drop_"
         "detached\":6354,\"drop_foreign_mac\":6357,\"drop_foreign_ip\":6360,\"drop_foreign_arp\":"
         "6363,\"drop_foreign_qpn\":6366,\"drop_foreign_protocol\":6369,\"drop_port_shut\":6372,"
         "\"drop_group_quota\":6375,\"drop_ring_full\":6378,\"paused_us\":6081,\"peak_lossless_"
         "bytes\":3015,\"cable_overflow\":0,\"cable_bad_frames\":0,\"cable_no_buffer\":0,\"refused_"
         "connections\":0}",
         false},
        {"/trib/link_bytes", NULL, "[0,0,1,25276,2,75276,3,0,4,0,5,0,6,0,7,50276]", false},
        {"/trib/link_bytes", "1", "[1,25276,2,75276,3,0,4,0,5,0,6,0,7,50276]", false},
        {"/trib/link_bytes", "7", "[7,50276]", false},
        {"/trib/link_bytes", "8", "[]", false},
    };
    (void)state;
    count_up("s0", 0, 1000);
    count_up("h1", 0, 3000);
    count_up("s1", 2, 2000);
    TOLD_ROWS(ask, rows);
}

static void what_is_no_port_is_refused(void **state)
{
    static const char *const names[] = {"h0", "h9:0",  "h0:1",  "h0:",  "h0:x", "h0:0x",
                                        ":0", "h0:-0", "h0: 0", "s0:3", "h0:+0"};
    char name[FAB_NAME + 4];
    (void)state;

    for (unsigned i = 0; i <= RTE_DIM(names); i++) {
        json_t *v;

        memset(name, 'x', sizeof(name));
        snprintf(name + FAB_NAME, 4, ":0");
        v = ask("/trib/ports", i < RTE_DIM(names) ? names[i] : name);
        assert_string_equal(told_text(v), "{\"error\":\"no such port here, expected NODE:PORT\"}");
        json_decref(v);
    }
}

static void a_number_that_is_none_is_refused(void **state)
{
    static const char bytes[] =
        "{\"error\":\"expected the first direction as a number, link * 2 + direction\"}";
    static const char row[] = "{\"error\":\"expected the first row as a number\"}";
    static const char speed[] = "{\"error\":\"expected a dilation of 1 to 4294967295\"}";
    static const struct told_row rows[] = {
        {"/trib/link_bytes", "x", bytes, false},
        {"/trib/link_bytes", "-1", bytes, false},
        {"/trib/link_bytes", "1x", bytes, false},
        {"/trib/table/ports", "x", row, false},
        {"/trib/table/slots", "-1", row, false},
        {"/trib/table/lag", "0x", row, false},
        {"/trib/table/groups", "1 ", row, false},
        {"/trib/dilation", "0", speed, false},
        {"/trib/dilation", "x", speed, false},
        {"/trib/dilation", "2x", speed, false},
        {"/trib/dilation", "-1", speed, false},
        {"/trib/dilation", "4294967296", speed, false},
        {"/trib/dilation", NULL, "{\"dilation\":10}", false},
        {"/trib/dilation", "", "{\"dilation\":10}", false},
        {"/trib/dilation", "1", "{\"dilation\":1}", false},
        {"/trib/dilation", "4294967295", "{\"dilation\":4294967295}", false},
        {"/trib/dilation", NULL, "{\"dilation\":4294967295}", false},
    };
    (void)state;
    TOLD_ROWS(ask, rows);
}

static void only_who_has_the_clock_changes_it(void **state)
{
    static const struct told_row rows[] = {
        {"/trib/dilation", "7", "{\"elsewhere\":\"another process has the clock\"}", false},
        {"/trib/dilation", NULL, "{\"dilation\":10}", false},
    };
    struct clock_page *own = o.rd.sh->own_clock;
    (void)state;

    o.rd.sh->own_clock = NULL;
    TOLD_ROWS(ask, rows);
    o.rd.sh->own_clock = own;
}

static void frames_of_programs_are_counted_on_their_way(void **state)
{
    static const struct told_row before[] = {
        {"/trib/links", NULL, "[]", false},
        {"/trib/links", "h0.0.0",
         "{\"kind\":\"process\",\"state\":\"down\",\"connects\":0,\"refused\":0,\"rx_frames\":0,"
         "\"tx_frames\":0,\"rx_bad\":0,\"tx_bad\":0,\"no_buffer\":0,\"overflow\":0,\"drop_slot_"
         "stalled\":0}",
         false},
        {"/trib/table/slots", NULL, "[0,0,1]", false},
    };
    static const struct told_row rows[] = {
        {"/trib/links", NULL, "[\"h0.0.0\",\"h1.0.1\"]", false},
        {"/trib/links", "h0.0.0",
         "{\"kind\":\"process\",\"state\":\"up\",\"connects\":1,\"refused\":6,\"rx_frames\":5,\"tx_"
         "frames\":0,\"rx_bad\":3,\"tx_bad\":4,\"no_buffer\":5,\"overflow\":7,\"drop_slot_"
         "stalled\":0}",
         false},
        {"/trib/links", "h1.0.1",
         "{\"kind\":\"process\",\"state\":\"up\",\"connects\":1,\"refused\":0,\"rx_frames\":0,\"tx_"
         "frames\":5,\"rx_bad\":0,\"tx_bad\":0,\"no_buffer\":0,\"overflow\":0,\"drop_slot_"
         "stalled\":0}",
         false},
        {"/trib/links", "h0.0.9", "{\"error\":\"no such link leaves this process\"}", false},
        {"/trib/totals", NULL,
         "{\"rx_frames\":15,\"rx_bytes\":4830,\"tx_frames\":15,\"tx_bytes\":4830,\"cable_"
         "overflow\":27,\"cable_bad_frames\":7,\"cable_no_buffer\":5,\"refused_connections\":6}",
         true},
        {"/trib/link_bytes", NULL, "[0,1730,1,0,2,0,3,1730,4,0,5,0,6,1730,7,0]", false},
        {"/trib/table/kinds", NULL, "[\"tree\",\"multimem\",\"switchml\",\"ps\",\"atp\"]", false},
        {"/trib/table/groups", NULL, "[0,0,1]", false},
    };
    struct io_port_stats *st;
    (void)state;

    TOLD_ROWS(ask, before);
    a = program("h0", 0, 0);
    b = program("h1", 0, 1);
    send_from(a, "h0", "h1", 1, 5, 256);
    steps(50, 10 * US);
    assert_int_equal(taken(b), 5);
    st = (struct io_port_stats *)(uintptr_t)io_port_stats(o.l->io[0].rp);
    st->rx_bad = 3, st->tx_bad = 4, st->rx_nobuf = 5, st->refused = 6;
    o.l->io[0].overflow = 7;
    o.l->io[1].overflow = 20;
    o.l->sh->own_clock->state[1].change_ns = now_ns; /* fabric time 0 is now */
    TOLD_ROWS(ask, rows);
}

static void an_aggregation_node_says_its_counters(void **state)
{
    json_t *v = ask("/trib/an", "s0");
    static const char *const keys[] = {"groups", "joins_granted", "operations", "bytes_out",
                                       "drop_uc_error"};
    (void)state;

    for (unsigned i = 0; i < RTE_DIM(keys); i++)
        assert_true(json_is_integer(json_object_get(v, keys[i])));
    json_decref(v);
    v = ask("/trib/an", "s9");
    assert_string_equal(told_text(v), "{\"error\":\"no such aggregation node here\"}");
    json_decref(v);
}

/* ---- by DPDK's thread ---- */

static volatile sig_atomic_t stop;

static void ready(void *ctx)
{
    *(bool *)ctx = true;
}

static void *run(void *arg)
{
    loop_run(o.l, &stop, ready, arg);
    return NULL;
}

static const char *const paths[] = {"/trib/nodes",
                                    "/trib/ports",
                                    "/trib/links",
                                    "/trib/an",
                                    "/trib/link",
                                    "/trib/node",
                                    "/trib/offenders",
                                    "/trib/link_bytes",
                                    "/trib/table/ports",
                                    "/trib/table/groups",
                                    "/trib/table/slots",
                                    "/trib/table/lag",
                                    "/trib/table/kinds",
                                    "/trib/totals",
                                    "/trib/dilation",
                                    "/trib/capture/start",
                                    "/trib/capture/filtered",
                                    "/trib/capture/flush",
                                    "/trib/capture/stop"};

static void questions_go_to_the_loop(void **state)
{
    bool was_ready = false;
    unsigned n = 0;
    pthread_t t;
    json_t *v;
    int rc;
    (void)state;

    telemetry_serve(o.l, NULL);
    telemetry_serve(o.l, NULL);             /* registers once */
    for (unsigned i = 0; i < told_n; i++) { /* DPDK's own are there, too */
        if (strncmp(told_commands[i].path, "/trib/", 6) != 0)
            continue;
        assert_true(n < RTE_DIM(paths));
        assert_string_equal(told_commands[i].path, paths[n++]);
        assert_true(strlen(told_commands[i].help) > 10);
    }
    assert_int_equal(n, RTE_DIM(paths));
    now_ns = 0; /* the loop's thread has the system's clock */
    stop = 0;
    assert_int_equal(pthread_create(&t, NULL, run, &was_ready), 0);
    for (unsigned i = 0; i < RTE_DIM(paths); i++) {
        struct rte_tel_data d = {NULL};
        json_t *by_hand;

        if (strstr(paths[i], "table") || strstr(paths[i], "dilation"))
            continue;
        v = told_by(paths[i], "", &rc);
        assert_int_equal(rc, 0);
        assert_non_null(v);
        telemetry_answer(o.l, paths[i], NULL, &d);
        by_hand = d.v;
        assert_true(json_equal(v, by_hand));
        json_decref(by_hand);
        json_decref(v);
    }
    v = told_by("/trib/an", "s9", &rc); /* with its parameters */
    assert_string_equal(told_text(v), "{\"error\":\"no such aggregation node here\"}");
    json_decref(v);
    stop = 1;
    pthread_join(t, NULL);
    assert_true(was_ready);
    telemetry_serve(NULL, NULL);
    assert_null(told_by("/trib/nodes", NULL, &rc));
    assert_int_equal(rc, -ENOENT);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(it_names_nodes_and_ports),
        cmocka_unit_test_setup_teardown(it_names_what_it_runs_alone, part, teardown),
        CASE(a_port_says_all_of_its_counters),
        CASE(what_is_no_port_is_refused),
        CASE(a_number_that_is_none_is_refused),
        CASE(only_who_has_the_clock_changes_it),
        CASE(frames_of_programs_are_counted_on_their_way),
        CASE(an_aggregation_node_says_its_counters),
        CASE(questions_go_to_the_loop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
