/* SPDX-License-Identifier: BSD-3-Clause */
/* Words for links, sizes and states. */
#include "tests/io/live/looked.h"

static void links_have_their_ports_where_there_are_several(void **state)
{
    struct live_fabric *x = looked_new();
    static const struct {
        unsigned d;
        const char *from, *to;
    } rows[] = {{0, "h0", "s"}, {1, "s", "h0"}, {2, "h1:0", "s:1"}, {5, "s:2", "h1:1"}};
    char from[40], to[40];

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        live_names(x->f, rows[i].d, from, to, sizeof(from));
        assert_string_equal(from, rows[i].from);
        assert_string_equal(to, rows[i].to);
    }
    looked_free(x);
}

static void sizes_have_two_or_three_digits(void **state)
{
    static const struct {
        double n;
        const char *text;
    } rows[] = {{0, "0"},          {1, "1"},        {999, "999"},     {999.4, "999"},
                {999.5, "1.0k"},   {1000, "1.0k"},  {1240, "1.2k"},   {9949, "9.9k"},
                {9950, "10k"},     {12345, "12k"},  {999499, "999k"}, {999500, "1.0M"},
                {1234567, "1.2M"}, {2.5e9, "2.5G"}, {3e12, "3.0T"},   {4e15, "4.0P"},
                {5e18, "5.0E"},    {6e21, "6000E"}};
    char buf[16];

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++)
        assert_string_equal(live_size(rows[i].n, buf, sizeof(buf)), rows[i].text);
}

static void drops_are_listed_as_far_as_they_fit(void **state)
{
    struct live_fabric *x = looked_new();
    char buf[64], cut[8], exact[28];

    (void)state;
    assert_true(live_drops_text(x, 2, buf, sizeof(buf)));
    assert_string_equal(buf, "");
    assert_true(live_drops_text(x, 1, buf, sizeof(buf)));
    assert_string_equal(buf, "9 lost");
    assert_true(live_drops_text(x, 0, buf, sizeof(buf)));
    assert_string_equal(buf, "2 no_route, 12 queue_full");
    assert_false(live_drops_text(x, 0, cut, sizeof(cut)));
    assert_string_equal(cut, "2 no_ro");
    assert_true(live_drops_text(x, 0, exact, sizeof("2 no_route, 12 queue_full")));
    assert_false(live_drops_text(x, 0, exact, sizeof("2 no_route, 12 queue_full") - 1));
    looked_free(x);
}

static void a_state_is_that_of_the_link_and_its_faults(void **state)
{
    static const char *const texts[] = {
        "paused loss=0.1%", "loss=0.1%", "dup=1%", "dup=1%", "down", "up", "up", "up"};
    struct live_fabric *x = looked_new();
    char buf[80];

    (void)state;
    for (unsigned d = 0; d < LEN(texts); d++) {
        live_state_text(x, d, buf, sizeof(buf));
        assert_string_equal(buf, texts[d]);
    }
    x->now.dir[0].v[PORT_down] = 1;
    live_state_text(x, 0, buf, sizeof(buf));
    assert_string_equal(buf, "down loss=0.1%");
    looked_free(x);
}

static void the_headline_says_whether_a_fabric_keeps_up(void **state)
{
    struct live_fabric *x = looked_new();
    char line[256];

    (void)state;
    live_headline(x, line, sizeof(line));
    assert_string_equal(line, "lab: dilation 20, fabric time 2.000 s, the last 500.000 ms of it; "
                              "hand-offs p99 1000.0 us late, 50.000 us of fabric time; 1 of 3 "
                              "processes do not answer");
    x->proc[1].state = LIVE_READY;
    x->dilation = 0; /* not known */
    live_headline(x, line, sizeof(line));
    assert_string_equal(line, "lab: dilation 0, fabric time 2.000 s, the last 500.000 ms of it; "
                              "hand-offs p99 1000.0 us late, 1000.000 us of fabric time");
    memset(x->now.lag, 0, sizeof(x->now.lag));
    live_headline(x, line, sizeof(line));
    assert_string_equal(line, "lab: dilation 0, fabric time 2.000 s, the last 500.000 ms of it; no "
                              "hand-offs");
    x->proc[1].state = LIVE_SILENT;
    live_headline(x, line, 30);
    assert_string_equal(line, "lab: dilation 0, fabric time ");
    looked_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_have_their_ports_where_there_are_several),
        cmocka_unit_test(sizes_have_two_or_three_digits),
        cmocka_unit_test(drops_are_listed_as_far_as_they_fit),
        cmocka_unit_test(a_state_is_that_of_the_link_and_its_faults),
        cmocka_unit_test(the_headline_says_whether_a_fabric_keeps_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
