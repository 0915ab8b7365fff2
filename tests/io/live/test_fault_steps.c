/* SPDX-License-Identifier: BSD-3-Clause */
/* A fault plan becomes commands in order of time, which those of `trib link` and `trib node` read. */
#include "io/live/fault_steps.h"
#include "io/link_change.h"
#include "tests/fabric/load.h"

#include <errno.h>
#include <stdlib.h>

static struct fab_errors errs;
static struct fault_plan plan;

static int make(struct fault_steps *s, const struct fabric *f, const char *entries, bool machines)
{
    char text[1024];
    int rc;

    snprintf(text, sizeof(text), "faults = (\n%s );", entries);
    if (fault_plan_load_string(&plan, text, "x.conf", f, 65535, &errs))
        fail_msg("%s", errs.e[0].text);
    rc = fault_steps_make(s, &plan, f, "x.conf", machines, &errs);
    fault_plan_free(&plan);
    return rc;
}

static void entries_become_commands_in_order_of_time(void **state)
{
    static const struct {
        int64_t at_ps;
        const char *command, *params;
        unsigned line;
    } want[] = {
        {FAULT_ALWAYS, "/trib/link", "all,seed=7,loss=0.01,jitter=100ns", 4},
        {1000000, "/trib/link", "h0:0-leaf0:0,clear,rate=99500Mb/s,latency=0ps,up", 2},
        {2000000, "/trib/node", "spine0,down", 3},
        {2000000, "/trib/node", "spine0,forget", 3},
        {2000000, "/trib/node", "h7,down", 5},
        {5000000, "/trib/link", "leaf0:4-spine0:0,dup=1e-06,down", 6},
        {52000000, "/trib/node", "spine0,up", 3},
    };
    struct fabric *f = fabric_load("conf/leaf-spine-8.conf", NULL);
    struct fault_steps s;

    (void)state;
    assert_int_equal(make(&s, f,
                          "{ at = \"1us\"; link = \"leaf0-h0\"; clear = true; rate = \"99.5Gb/s\"; "
                          "latency = \"0ns\"; up = true; },\n"
                          "{ at = \"2us\"; node = \"spine0\"; restart = \"50us\"; },\n"
                          "{ link = \"all\"; loss = \"1%\"; jitter = \"100ns\"; seed = 7; },\n"
                          "{ at = \"2us\"; node = \"h7\"; down = true; },\n"
                          "{ at = \"5us\"; link = \"leaf0-spine0\"; dup = 1e-6; down = true; }",
                          false),
                     0);
    assert_int_equal(s.n, LEN(want));
    for (unsigned i = 0; i < LEN(want); i++) {
        const char *words = strchr(s.a[i].params, ',') + 1;
        struct link_change c = {0};
        char why[128] = "";

        assert_int_equal(s.a[i].at_ps, want[i].at_ps);
        assert_string_equal(s.a[i].command, want[i].command);
        assert_string_equal(s.a[i].params, want[i].params);
        assert_int_equal(s.a[i].line, want[i].line);
        if (!strcmp(s.a[i].command, "/trib/link") && link_change_parse(&c, words, why, sizeof(why)))
            fail_msg("%s", why);
    }
    fault_steps_free(&s);
    fabric_free(f);
}

static void what_a_fabric_that_is_up_cannot_do_is_refused_by_line(void **state)
{
    static const char *const why[] = {"found a slow host", "found the death of a host",
                                      "found a rank", "found an aggregation node's buffers"};
    struct fabric *f = fabric_load("conf/leaf-spine-8.conf", NULL);
    struct fault_steps s;

    (void)state;
    assert_int_equal(make(&s, f,
                          "{ host = \"h1\"; slow = 3; },\n{ host = \"h1\"; die = true; },\n"
                          "{ rank = 4000; late = \"1us\"; },\n{ an = \"leaf0\"; mbufs = 1; },\n"
                          "{ link = \"all\"; down = true; }",
                          false),
                     -EINVAL);
    assert_int_equal(errs.n, LEN(why));
    for (unsigned i = 0; i < LEN(why); i++) {
        assert_int_equal(errs.e[i].line, i + 2);
        assert_non_null(strstr(errs.e[i].text, why[i]));
        assert_non_null(strstr(errs.e[i].text, "expected "));
    }
    assert_int_equal(make(&s, f, "{ node = \"leaf0\"; down = true; }", true), -EINVAL);
    assert_int_equal(make(&s, f, "{ link = \"all\"; down = true; }", true), 0);
    fault_steps_free(&s);
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_become_commands_in_order_of_time),
        cmocka_unit_test(what_a_fabric_that_is_up_cannot_do_is_refused_by_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
