/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of telemetry: which columns an answer has, how many rows, and where the next one begins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "io/telemetry/telemetry_tables.h"
#include "machine/link_reader.h"
#include "switch/queue/egress_priv.h"
#include "tests/io/telemetry/ask.h"

#define CABLES 270

static const char conf[] = "name = \"told\"; slots_per_host = 3;"
                           "nodes = ( { name = (\"h0\", \"h1\"); kind = \"host\"; },"
                           " { name = (\"s0\", \"s1\"); kind = \"switch\"; } );"
                           "link_defaults = { rate = \"100Gb/s\"; latency = \"300ns\"; };"
                           "links = ( { a = \"h0\"; b = \"s0\"; }, { a = \"h1\"; b = \"s1\"; },"
                           " { a = \"s0\"; b = \"s1\"; cables = 270; } );";

static int setup(void **state)
{
    (void)state;
    return one_loop_open(conf, NULL, 10);
}

static int teardown(void **state)
{
    (void)state;
    return one_loop_close();
}

static long long at(const json_t *v, size_t i)
{
    return json_integer_value(json_array_get(v, i));
}

static struct egress_stats *stats(unsigned d)
{
    const struct fab_link *k = &o.fab->links[d / 2];

    return &net_egress(o.l->net, d & 1 ? k->b : k->a, d & 1 ? k->b_port : k->a_port)->st;
}

/* An answer from `first` on: rows of w columns, the last but one of which ends before `next`. */
static void page(unsigned first, unsigned rows, unsigned w, unsigned next)
{
    char params[16];
    json_t *v;

    snprintf(params, sizeof(params), "%u", first);
    v = ask("/trib/table/ports", params);
    assert_int_equal(json_array_size(v), 3 + rows * w);
    assert_int_equal(at(v, 1), next);
    assert_int_equal(__builtin_popcountll((unsigned long long)at(v, 2)), w);
    for (unsigned i = 0; i < rows; i++)
        assert_int_equal(at(v, 3 + i * w), first + i);
    json_decref(v);
}

/* One column: 480 rows; with two, 240, and a value that comes late ends the answer before it. */
static void an_answer_has_so_many_cells(void **state)
{
    (void)state;
    page(0, 480, 1, 480);
    page(480, 64, 1, 0); /* of 2 * 272 directions */
    page(543, 1, 1, 0);
    page(544, 0, 1, 0);
    page(1000, 0, 1, 0);
    stats(3)->lost = 1;
    page(0, 240, 2, 240);
    page(4, 480, 1, 484);
    stats(3)->lost = 0;
    stats(240)->lost = 9; /* row 241 would be of two columns */
    page(0, 240, 1, 240);
    stats(240)->lost = 0;
    stats(239)->lost = 9; /* row 240 still fits */
    page(0, 240, 2, 240);
    stats(239)->lost = 0;
    stats(543)->lost = 2; /* the last one */
    page(64, 479, 1, 543);
}

/* Each column in its place: the mask names those that are not 0 in all rows. */
static void columns_are_those_that_have_something(void **state)
{
    json_t *v;
    (void)state;

    stats(0)->lost = 5;
    stats(2)->corrupted = 6;
    net_node(o.l->net, node_of("s0"))->cnt[0].drops[DROP_NO_ROUTE] = 7;
    net_node(o.l->net, node_of("s0"))->cnt[0].rx_bytes = 8;
    v = ask("/trib/table/ports", "0");
    assert_int_equal(at(v, 2), 1ll | 1ll << PORT_rx_bytes | 1ll << PORT_lost |
                                   1ll << PORT_corrupted | 1ll << (PORT_drops + DROP_NO_ROUTE));
    for (unsigned i = 0; i < 3; i++) {
        static const int want[3][5] = {{0, 0, 5, 0, 0}, {1, 8, 0, 0, 7}, {2, 0, 0, 6, 0}};

        for (unsigned c = 0; c < 5; c++)
            assert_int_equal(at(v, 3 + 5 * i + c), want[i][c]);
    }
    json_decref(v);
}

/* What waits in a queue, by class; a pause of the lossless class; a link that is down. */
static void a_port_says_what_waits_and_what_is_paused(void **state)
{
    struct egress *e = net_egress(o.l->net, node_of("h0"), 0);
    json_t *v;
    (void)state;

    net_set_link(o.l->net, 0, false, 0);
    for (unsigned i = 0; i < FRAME_CLASSES; i++)
        e->q[i].bytes = 100u << i;
    e->pause_ps[FRAME_LOSSLESS] = PS_PER_S;
    e->st.paused_ps = PS_PER_S;
    v = ask("/trib/table/ports", NULL);
    for (unsigned i = 0; i < FRAME_CLASSES; i++)
        e->q[i].bytes = 0;
    e->pause_ps[FRAME_LOSSLESS] = PS_NEVER;
    assert_int_equal(at(v, 2), 1ll | 1ll << PORT_down | 1ll << PORT_paused |
                                   1ll << PORT_queue_bytes | 1ll << PORT_queue_lossless_bytes);
    assert_int_equal(at(v, 4), 1);
    assert_int_equal(at(v, 5), 1);
    assert_int_equal(at(v, 6), 700);
    assert_int_equal(at(v, 7), 100u << FRAME_LOSSLESS);
    assert_int_equal(at(v, 3 + 5 + 1), 1); /* of the other direction: down, and not paused */
    assert_int_equal(at(v, 3 + 5 + 2), 0);
    json_decref(v);
}

/* Slots that somebody has used or asked for. */
static void slots_that_were_used_are_rows(void **state)
{
    struct io_port_stats *s[4];
    json_t *v;
    (void)state;

    for (unsigned i = 0; i < 4; i++)
        s[i] = (struct io_port_stats *)(uintptr_t)io_port_stats(o.l->io[i].rp);
    v = ask("/trib/table/slots", NULL);
    assert_int_equal(json_array_size(v), 3);
    json_decref(v);
    *s[1] = (struct io_port_stats){11, 12, 13, 20, 15, 1, 0, 0};
    o.l->io[1].overflow = 17;
    *s[3] = (struct io_port_stats){.refused = 2};
    v = ask("/trib/table/slots", NULL);
    assert_string_equal(told_text(v), "[0,0,2037,0,1,1,0,11,12,33,15,17,1,0,0,2,0,0,0,0,0]");
    json_decref(v);
}

static void lateness_is_a_row_of_each_bucket(void **state)
{
    char want[128];
    json_t *v;
    (void)state;

    atomic_store(&o.l->lag->n[0], 3);
    atomic_store(&o.l->lag->n[LAG_BUCKETS - 1], 4);
    v = ask("/trib/table/lag", NULL);
    snprintf(want, sizeof(want), "[0,0,7,0,%lld,3,%d,%lld,4]", (long long)lag_bucket_top(0),
             LAG_BUCKETS - 1, (long long)lag_bucket_top(LAG_BUCKETS - 1));
    assert_string_equal(told_text(v), want);
    json_decref(v);
    now_ns += 7 * US;
    v = ask("/trib/table/lag", "1");
    snprintf(want, sizeof(want), "[700000,0,7,%d,%lld,4]", LAG_BUCKETS - 1,
             (long long)lag_bucket_top(LAG_BUCKETS - 1));
    assert_string_equal(told_text(v), want);
    json_decref(v);
}

/* Pairs; a full page ends with the direction before the next question. */
static void bytes_of_links_come_by_the_page(void **state)
{
    json_t *v = ask("/trib/link_bytes", NULL);
    (void)state;

    assert_int_equal(json_array_size(v), 2 * LINK_READER_PAGE);
    assert_int_equal(at(v, 2 * LINK_READER_PAGE - 2), LINK_READER_PAGE - 1);
    json_decref(v);
    v = ask("/trib/link_bytes", "544");
    assert_int_equal(json_array_size(v), 0);
    json_decref(v);
    v = ask("/trib/link_bytes", "400");
    assert_int_equal(json_array_size(v), 2 * (2 * (CABLES + 2) - 400));
    json_decref(v);
}

/* The list of changed links leaves one entry of an answer free. */
static void a_list_of_links_ends_where_the_answer_does(void **state)
{
    json_t *v = ask("/trib/link", "all,loss=0.5");
    (void)state;

    assert_int_equal(json_array_size(v), CABLES + 2);
    json_decref(v);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(an_answer_has_so_many_cells),
        CASE(columns_are_those_that_have_something),
        CASE(a_port_says_what_waits_and_what_is_paused),
        CASE(slots_that_were_used_are_rows),
        CASE(lateness_is_a_row_of_each_bucket),
        CASE(bytes_of_links_come_by_the_page),
        CASE(a_list_of_links_ends_where_the_answer_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
