/* SPDX-License-Identifier: BSD-3-Clause */
/* Terms that a link may have while its fabric runs: bounds, what PFC and hosts keep, and the texts. */
#include "fabric/link_terms.h"

#include "base/units.h"
#include "tests/fabric/load.h"

#include <errno.h>

/* Links: 0 and 1 of hosts, 2 and 3 between switches, 4 and 5 to the outside. PFC on 0, 1 and 3. */
static const char conf[] =
    "costs = { switch = \"100ns\"; };\n"
    "link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; };\n"
    "nodes = ( { name = (\"h0\", \"h1\", \"g\", \"g1\"); kind = \"host\"; },\n"
    "  { name = (\"l0\", \"l1\"); role = \"leaf\"; } );\n"
    "links = ( { a = \"h0\"; b = \"l0\"; }, { a = \"l1\"; b = \"h1\"; pfc = false; },\n"
    "  { a = \"l0\"; b = \"l1\"; pfc = false; }, { a = \"l0\"; b = \"l1\"; },\n"
    "  { a = \"g\"; b = \"l0\"; port = \"vhost:g.sock\"; },\n"
    "  { a = \"l1\"; b = \"g1\"; port = \"vhost:g1.sock\"; } );";

#define PFC     "or PFC's headroom is too small"
#define OUTSIDE "rate, latency: found a link to the outside, expected one whose ends are emulated"

static const struct {
    unsigned link;
    uint64_t bps;
    int64_t ps;
    const char *why; /* NULL: it may */
} rows[] = {
    {0, 400000000000, 300000, NULL},
    {0, 1000000, 0, NULL},
    {0, 999999, 0, "rate: found 999999b/s, expected 1Mb/s to 100Tb/s"},
    {0, 0, 0, "rate: found 0b/s, expected 1Mb/s to 100Tb/s, or the word down"},
    {2, 100000000000000, 300000, NULL}, /* nothing bounds it */
    {2, 100000000000001, 300000, "rate: found 100000000000001b/s, expected 1Mb/s to 100Tb/s"},
    {2, 400000000000, -1, "latency: found 18446744073709551615ps, expected 0ns to 1s"},
    {2, 400000000000, PS_PER_S, NULL},
    {2, 400000000000, PS_PER_S + 1, "latency: found 1000000000001ps, expected 0ns to 1s"},
    {0, 400000000001, 0, "rate: found 400000000001b/s, expected at most the conf's 400Gb/s, " PFC},
    {3, 400000000001, 0, "rate: found 400000000001b/s, expected at most the conf's 400Gb/s, " PFC},
    {1, 400000000001, 0,
     "rate: found 400000000001b/s, expected at most the conf's 400Gb/s, by which programs pace "
     "themselves"},
    {1, 400000000000, PS_PER_S, NULL},
    {0, 400000000000, 300001, "latency: found 300001ps, expected at most 300ns at 400Gb/s, " PFC},
    /* A port holds what its rate carries in the latency and the switch's 100 ns: at half the rate
     * twice 400 ns, of which the link has all but 100 ns; at a host's port twice 300 ns. */
    {0, 200000000000, 600000, NULL},
    {0, 200000000000, 600001, "latency: found 600001ps, expected at most 600ns at 200Gb/s, " PFC},
    {3, 200000000000, 700000, NULL},
    {3, 200000000000, 700001, "latency: found 700001ps, expected at most 700ns at 200Gb/s, " PFC},
    {3, 1000000, 159999900000, NULL}, /* 160 ms without 100 ns */
    {3, 1000000, 159999900001,
     "latency: found 159999900001ps, expected at most 159999900ns at 1Mb/s, " PFC},
    {4, 400000000000, 300000, OUTSIDE},
    {5, 400000000000, 300000, OUTSIDE},
};

static void only_what_ports_and_hosts_are_laid_out_for_is_taken(void **state)
{
    struct fabric *f = load_text(conf);
    char why[LINK_TERMS_WHY];

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct link_terms t = {rows[i].bps, rows[i].ps};
        int rc = link_terms_check(f, rows[i].link, &t, why, sizeof(why));

        assert_int_equal(link_terms_fixed(f, rows[i].link), rows[i].link >= 4);
        if (rc != (rows[i].why ? -EINVAL : 0))
            fail_msg("row %u: %d, %s", i, rc, why);
        if (rows[i].why)
            assert_string_equal(why, rows[i].why);
    }
    fabric_free(f);
}

/* A slow link of a long latency: no more than a second. */
static void no_latency_is_above_a_second(void **state)
{
    struct fabric *f = load_text("single_switch = { hosts = 1; host_link = { rate = \"10Mb/s\"; "
                                 "latency = \"500ms\"; }; };");
    struct link_terms t = {1000000, PS_PER_S};
    char why[LINK_TERMS_WHY];

    (void)state;
    assert_int_equal(link_terms_check(f, 0, &t, why, sizeof(why)), 0);
    t.latency_ps++;
    assert_int_equal(link_terms_check(f, 0, &t, why, sizeof(why)), -EINVAL);
    assert_string_equal(why, "latency: found 1000000000001ps, expected 0ns to 1s");
    fabric_free(f);
}

static void what_differs_from_the_conf_is_printed(void **state)
{
    static const struct {
        uint64_t bps;
        int64_t ps;
        const char *text;
    } terms[] = {
        {400000000000, 300000, ""},
        {100000000000, 300000, "rate=100Gb/s"},
        {400000000000, 1000000, "latency=1us"},
        {100000000000, 1000000, "rate=100Gb/s latency=1us"},
        {400000000000, 0, "latency=0ps"},
    };
    struct fabric *f = load_text(conf);
    struct link_terms own = link_terms_of_conf(f, 2);
    char text[64], cut[8];

    (void)state;
    assert_int_equal(own.rate_bps, 400000000000);
    assert_int_equal(own.latency_ps, 300000); /* of the link alone */
    for (unsigned i = 0; i < LEN(terms); i++) {
        struct link_terms t = {terms[i].bps, terms[i].ps};

        link_terms_print(f, 2, &t, text, sizeof(text));
        assert_string_equal(text, terms[i].text);
        link_terms_print(f, 2, &t, cut, sizeof(cut));
        assert_true(strlen(cut) < sizeof(cut) && !strncmp(cut, terms[i].text, strlen(cut)));
    }
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_ports_and_hosts_are_laid_out_for_is_taken),
        cmocka_unit_test(no_latency_is_above_a_second),
        cmocka_unit_test(what_differs_from_the_conf_is_printed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
