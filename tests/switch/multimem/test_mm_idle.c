/* SPDX-License-Identifier: BSD-3-Clause */
/* Multimem groups whose members never come, or go without a word: they end by name. */
#include "switch/reduce/an_counters.h"
#include "tests/support/mm_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MS      PS_PER_MS
#define MEMBERS 4
#define CONF                                                                                       \
    "mtu = 1024; link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; };\n"                  \
    "nodes = ( { name = ( \"h0\", \"h1\", \"h2\", \"h3\" ); kind = \"host\"; },\n"                 \
    "{ name = \"s\"; role = \"nvswitch\"; multimem = true; } );\n"                                 \
    "links = ( { a = ( \"h0\", \"h1\", \"h2\", \"h3\" ); b = \"s\"; } );\n"

static void open_fixture(struct mm_fixture *b)
{
    mm_fixture_open(
        b, &(struct mm_fixture_cfg){.conf = CONF, .n = MEMBERS, .length = 1 << 20, .seed = 3});
}

/* Another process may have the member's slot already, without an end of this connection. */
static void a_member_that_is_gone_unannounced_while_idle_is_found(void **state)
{
    struct mm_fixture b;

    (void)state;
    open_fixture(&b);
    mm_fixture_bind_all(&b);
    mm_fixture_pass(&b, 30 * PS_PER_S); /* members that are idle stay */
    assert_int_equal(mm_fixture_counters(&b)->mm_aborts, 0);
    assert_true(an_counters(b.an)->keepalives > 0);
    assert_int_equal(qp_modify(b.m[2].qp, &(struct qp_attr){.state = QP_RESET}), 0);
    mm_fixture_pass(&b, 20 * PS_PER_S);
    assert_int_equal(mm_fixture_counters(&b)->mm_aborts, 1);
    for (unsigned i = 0; i < MEMBERS; i++) {
        const struct mm_ctl *c = &b.m[i].got[AGG_MM_ABORT];

        if (i == 2)
            continue;
        assert_int_equal(c->status, RTE_BE16(AGG_E_MEMBER_LOST));
        if (!strstr(c->text, "member 2 (h2) does not answer any more at "))
            fail_msg("member %u: \"%.64s\"", i, c->text);
    }
    assert_true(an_idle(b.an));
    mm_fixture_kill(&b.m[2]);
    mm_fixture_close(&b);
}

static void a_group_that_is_never_complete_ends_in_time_by_name(void **state)
{
    struct mm_fixture b;
    struct mm_ctl c;

    (void)state;
    open_fixture(&b);
    for (unsigned i = 0; i < 2; i++) {
        c = mm_fixture_bind_of(&b.m[i]);
        mm_fixture_say(&b.m[i], AGG_MM_BIND, &c);
        mm_fixture_pass(&b, MS);
        mm_fixture_connect(&b.m[i]);
    }
    mm_fixture_pass(&b, 29 * PS_PER_S);
    assert_false(an_idle(b.an));
    mm_fixture_pass(&b, 2 * PS_PER_S);
    assert_int_equal(mm_fixture_counters(&b)->mm_aborts, 1);
    assert_non_null(strstr(b.m[0].got[AGG_MM_ABORT].text, "has not joined s in time"));
    assert_true(an_idle(b.an));
    for (unsigned i = 0; i < MEMBERS; i++)
        mm_fixture_kill(&b.m[i]);
    mm_fixture_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_that_is_gone_unannounced_while_idle_is_found),
        cmocka_unit_test(a_group_that_is_never_complete_ends_in_time_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
