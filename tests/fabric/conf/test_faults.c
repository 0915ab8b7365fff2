/* SPDX-License-Identifier: BSD-3-Clause */
/* Fault plans: every mistake is named with its line, and a printed plan reads back unchanged. */
#include "fabric/conf/faults.h"
#include "tests/fabric/load.h"

#include <stdlib.h>

#define RANKS 8

static struct fabric *load(void)
{
    struct fabric *f = fabric_load("conf/leaf-spine-8.conf", NULL);

    assert_non_null(f);
    return f;
}

static const struct {
    int line;
    const char *what;
} mistakes[] = {
    {2, "at: found \"120\", expected a time"},
    {3, "link: found \"leaf0-leaf1\", expected a link"},
    {4, "found unknown key \"lost\", expected \"loss\"?"},
    {5, "loss: found \"200%\", expected a probability from 0.0 to 1.0, or as \"0.1%\""},
    {6, "found a link alone, expected what happens to it: down, up, loss"},
    {7, "found down and up, expected one of them"},
    {8, "node: found \"leaf7\", expected the name of a node"},
    {9, "restart: found the host h0, expected a switch"},
    {10, "host: found the switch leaf0, expected a host"},
    {11, "slow: found 0, expected an integer from 1"},
    {12, "found told without die"},
    {13, "rank: found 8, expected one of 8, from 0"},
    {14, "an: found h0, which reduces nothing"},
    {15, "found host and an, expected one of them"},
    {16, "found an entry of nothing, expected link, node, host, rank or an"},
    {17, "found unknown key \"loss\", expected one of: at, node, down, up, restart"},
    {18, "found 7, expected a group"},
    {19, "found unknown key \"fault\", expected faults"},
};

static void every_mistake_is_named_with_its_line(void **state)
{
    static const char text[] = "faults = (\n"
                               "  { at = \"120\"; link = \"leaf0-spine0\"; loss = 0.1; },\n" /* 2 */
                               "  { link = \"leaf0-leaf1\"; down = true; },\n"               /* 3 */
                               "  { link = \"leaf0-spine0\"; lost = 0.1; },\n"               /* 4 */
                               "  { link = \"leaf0-spine0\"; loss = \"200%\"; },\n"          /* 5 */
                               "  { link = \"leaf0-spine0\"; },\n"                           /* 6 */
                               "  { link = \"leaf0-spine0\"; down = true; up = true; },\n"   /* 7 */
                               "  { node = \"leaf7\"; down = true; },\n"                     /* 8 */
                               "  { node = \"h0\"; restart = \"1us\"; },\n"                  /* 9 */
                               "  { host = \"leaf0\"; slow = 2; },\n"               /* 10 */
                               "  { host = \"h0\"; slow = 0; },\n"                  /* 11 */
                               "  { host = \"h0\"; slow = 2; told = \"1us\"; },\n"  /* 12 */
                               "  { rank = 8; die = true; },\n"                     /* 13 */
                               "  { an = \"h0\"; mbufs = 1; },\n"                   /* 14 */
                               "  { an = \"leaf0\"; host = \"h0\"; mbufs = 1; },\n" /* 15 */
                               "  { at = \"1us\"; loss = 0.1; },\n"                 /* 16 */
                               "  { node = \"leaf0\"; loss = 0.1; },\n"             /* 17 */
                               "  7 );\n"                                           /* 18 */
                               "fault = 1;\n";                                      /* 19 */
    struct fab_errors *e = calloc(1, sizeof(*e));
    struct fabric *f = load();
    struct fault_plan p;

    (void)state;
    assert_int_not_equal(fault_plan_load_string(&p, text, "x.conf", f, RANKS, e), 0);
    for (unsigned i = 0; i < LEN(mistakes) && i < e->n; i++)
        if (e->e[i].line != mistakes[i].line || !strstr(e->e[i].text, mistakes[i].what))
            fail_msg("line %d: %s\nexpected %d: %s", e->e[i].line, e->e[i].text, mistakes[i].line,
                     mistakes[i].what);
    assert_int_equal(e->n, LEN(mistakes));
    assert_int_not_equal(fault_plan_load_string(&p, "x = 1;", "x.conf", f, RANKS, e), 0);
    assert_int_not_equal(fault_plan_load_string(&p, "faults = (", "x.conf", f, RANKS, e), 0);
    assert_int_not_equal(fault_plan_load(&p, "nowhere.conf", f, RANKS, e), 0);
    assert_non_null(strstr(e->e[0].text, "no readable file"));
    fabric_free(f);
    free(e);
}

/* By the terms that the link has at that time. */
static void rates_and_latencies_that_a_link_cannot_have_are_refused_by_line(void **state)
{
    static const struct {
        const char *entries, *why; /* NULL: it may */
        int line;
    } rows[] = {
        {"{ link = \"all\"; rate = \"100Gb/s\"; }", NULL, 0},
        {"{ link = \"h0-leaf0\"; rate = \"0b/s\"; }", "rate: found \"0b/s\", expected a rate from",
         1},
        {"{ link = \"h0-leaf0\"; latency = \"2s\"; }", "latency: found \"2s\", expected", 1},
        {"\n{ link = \"h0-leaf0\"; rate = \"401Gb/s\"; }",
         "rate: found 401Gb/s, expected at most the conf's 400Gb/s, or PFC's headroom", 2},
        {"{ link = \"leaf0-spine0\"; latency = \"301ns\"; }",
         "latency: found 301ns, expected at most 300ns at 400Gb/s, or PFC's headroom", 1},
        {"{ link = \"leaf0-spine0\"; rate = \"100Gb/s\"; latency = \"1200ns\"; }", NULL, 0},
        {"{ link = \"leaf0-spine0\"; rate = \"100Gb/s\"; latency = \"1201ns\"; }",
         "expected at most 1200ns at 100Gb/s", 1},
        {"{ at = \"2us\"; link = \"h0-leaf0\"; rate = \"400Gb/s\"; },\n"
         "{ at = \"1us\"; link = \"all\"; rate = \"100Gb/s\"; latency = \"1us\"; }",
         "latency: found 1us, expected at most 300ns at 400Gb/s", 1},
        {"{ at = \"2us\"; link = \"h0-leaf0\"; clear = true; latency = \"300ns\"; },\n"
         "{ at = \"1us\"; link = \"all\"; rate = \"100Gb/s\"; latency = \"1us\"; }",
         NULL, 0},
    };
    struct fab_errors *e = calloc(1, sizeof(*e));
    struct fabric *f = load();
    struct fault_plan p;
    char text[256];

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        snprintf(text, sizeof(text), "faults = ( %s );", rows[i].entries);
        if (!fault_plan_load_string(&p, text, "x.conf", f, RANKS, e) != !rows[i].why)
            fail_msg("%s: %s", rows[i].entries, e->n ? e->e[0].text : "taken");
        if (!rows[i].why)
            fault_plan_free(&p);
        else if (e->n != 1 || e->e[0].line != rows[i].line || !strstr(e->e[0].text, rows[i].why))
            fail_msg("line %d: %s\nexpected %d: %s", e->e[0].line, e->e[0].text, rows[i].line,
                     rows[i].why);
    }
    fabric_free(f);
    free(e);
}

static char *printed(const struct fault_plan *p, const struct fabric *f)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    fault_plan_print(p, f, out);
    fclose(out);
    return text;
}

static void what_is_printed_reads_as_what_was_read(void **state)
{
    static const char text[] =
        "faults = ({ at = \"1.5us\"; link = \"spine0-leaf0\"; loss = \"1%\"; dup = 0.02; reorder = "
        "1; "
        "corrupt = 0.0; jitter = \"2us\"; seed = 7; rate = \"99.5Gb/s\"; latency = \"0ns\"; },"
        "{ link = \"all\"; clear = true; }, { at = \"0ns\"; node = \"leaf1\"; down = true; },"
        "{ at = \"2us\"; node = \"spine0\"; restart = \"50us\"; },"
        "{ at = \"2us\"; host = \"h7\"; slow = 4; die = true; told = \"1ms\"; },"
        "{ at = \"1us\"; rank = 3; late = \"3us\"; die = true; }, { an = \"spine1\"; mbufs = 0; "
        "});";
    struct fab_errors *e = calloc(1, sizeof(*e));
    struct fabric *f = load();
    struct fault_plan p, q;
    char *a, *b;

    (void)state;
    if (fault_plan_load_string(&p, text, "x.conf", f, RANKS, e))
        fail_msg("%d: %s", e->e[0].line, e->e[0].text);
    assert_int_equal(p.n, 7);
    for (unsigned i = 1; i < p.n; i++)
        assert_true(p.e[i - 1].at_ps <= p.e[i].at_ps);
    assert_int_equal(p.e[0].at_ps, FAULT_ALWAYS);
    assert_true(p.e[0].of == FAULT_LINK && p.e[0].which == FAULT_ALL && p.e[0].clear);
    assert_true(p.e[1].of == FAULT_AN && p.e[1].mbufs == 0);
    assert_true(p.e[2].down && p.e[2].at_ps == 0);
    assert_true(p.e[4].loss == 0.01 && p.e[4].dup == 0.02 && p.e[4].reorder == 1 &&
                p.e[4].corrupt == 0 && p.e[4].jitter_ps == 2000000 && p.e[4].seed == 7 &&
                p.e[4].rate_bps == 99500000000 && p.e[4].latency_ps == 0);
    assert_true(p.e[3].of == FAULT_RANK && p.e[3].die && p.e[3].late_ps == 3000000);
    assert_true(p.e[5].restart_ps == 50000000 && p.e[5].told_ps == FAULT_NOBODY);
    assert_true(p.e[6].slow == 4 && p.e[6].die && p.e[6].told_ps == 1000000000);
    a = printed(&p, f);
    if (fault_plan_load_string(&q, a, "again", f, RANKS, e))
        fail_msg("%d: %s\n%s", e->e[0].line, e->e[0].text, a);
    b = printed(&q, f);
    assert_string_equal(a, b);
    assert_int_equal(q.n, p.n);
    for (unsigned i = 0; i < p.n; i++)
        assert_true(p.e[i].at_ps == q.e[i].at_ps && p.e[i].which == q.e[i].which);
    free(a), free(b);
    fault_plan_free(&p);
    fault_plan_free(&q);
    fabric_free(f);
    free(e);
}

static void the_plans_that_come_with_it_are_right(void **state)
{
    static const char *const plans[] = {"conf/faults/flap.conf", "conf/faults/bad-day.conf"};
    struct fab_errors *e = calloc(1, sizeof(*e));
    struct fabric *f = load();
    struct fault_plan p;

    (void)state;
    for (unsigned i = 0; i < LEN(plans); i++) {
        if (fault_plan_load(&p, plans[i], f, RANKS, e))
            fail_msg("%s:%d: %s", plans[i], e->e[0].line, e->e[0].text);
        assert_true(p.n > 2);
        fault_plan_free(&p);
    }
    fabric_free(f);
    free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mistake_is_named_with_its_line),
        cmocka_unit_test(rates_and_latencies_that_a_link_cannot_have_are_refused_by_line),
        cmocka_unit_test(what_is_printed_reads_as_what_was_read),
        cmocka_unit_test(the_plans_that_come_with_it_are_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
