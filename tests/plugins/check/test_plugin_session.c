/* SPDX-License-Identifier: BSD-3-Clause */
/* What checks NCCL's plug-ins, with the tests' plug-in: right, and by plants that end or stop ranks.
 * Under a sanitizer that finds leaks neither end has any. */
#include "plugins/check/plugin_rank.h"
#include "plugins/check/plugin_session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef __SANITIZE_ADDRESS__
#define LEAKS true
#else
#define LEAKS false
#endif

static struct session_plan plan = {.limit_s = 60};
static char mock[PATH_MAX];

static int prepare(void **state)
{
    ssize_t n = readlink("/proc/self/exe", mock, sizeof(mock) - 64);
    char *slash;

    (void)state;
    assert_true(n > 0);
    for (unsigned i = 0; i < 3; i++) { /* tests/plugins/check/ */
        slash = strrchr(mock, '/');
        assert_non_null(slash);
        *slash = 0;
    }
    strcat(mock, "/fake/libnccl-net-mock.so");
    plan.fd = board_make(&plan.b);
    assert_true(plan.fd >= 0);
    snprintf(plan.b->file, sizeof(plan.b->file), "%s", mock);
    plan.b->dead_s = 60;
    return 0;
}

/* The row of a name, after a run of the named cases ("": all). */
static const struct board_row *check(const char *plant, unsigned table, const char *name)
{
    const struct plugin_case *c;
    unsigned n, at = 0;

    memset(plan.b->at, 0, sizeof(plan.b->at));
    plan.b->table = table;
    plan.b->n_ranks = table < TABLES / 2 ? 2 : 4;
    plan.b->run_mask = 0;
    c = cases_of(table >= TABLES / 2, &n);
    for (unsigned i = 0; i < n; i++) {
        if (*name && strcmp(name, c[i].name) != 0)
            continue;
        plan.b->run_mask |= (uint64_t)((int)(table % (TABLES / 2)) + TABLES_FIRST >= c[i].from)
                            << i;
        at = i;
    }
    setenv("MOCK_PLANT", plant, 1);
    session_run(&plan);
    return &plan.b->at[at];
}

static void test_right_plugin(void **state)
{
    (void)state;
    for (unsigned table = 0; table < TABLES; table++) {
        unsigned n;
        const struct plugin_case *c = cases_of(table >= TABLES / 2, &n);

        check("none", table, "");
        for (unsigned i = 0; i < n; i++)
            if (plan.b->run_mask >> i & 1 && plan.b->at[i].state != ROW_OK)
                fail_msg("%s, %s: %s", table_name(table), c[i].name, plan.b->at[i].text);
    }
}

static void fails(const char *plant, const char *name, const char *text)
{
    const struct board_row *row = check(plant, 0, name);

    assert_int_equal(row->state, ROW_FAILED);
    if (!strstr(row->text, text))
        fail_msg("%s: found '%s', expected '%s'", plant, row->text, text);
}

static void test_rows_of_failures(void **state)
{
    (void)state;
    fails("size-plus-one", "sizes", "found a size of 1 bytes, expected 0 of a receive of 0");
    fails("close-crash", "close-requests", "rank 1: ended by signal");
    fails("no-isend", "init", "isend: found NULL");
    plan.limit_s = 2;
    fails("accept-blocks", "would-block", "found no end in 2 s, expected one: rank 0 was last in");
    plan.limit_s = 60;
}

/* Cases behind one that ends the ranks run with new ones. */
static void test_next_case_has_new_ranks(void **state)
{
    unsigned n, ok = 0;
    const struct plugin_case *c = cases_of(false, &n);

    (void)state;
    check("close-crash", 0, "");
    for (unsigned i = 0; i < n; i++)
        ok += plan.b->at[i].state == ROW_OK;
    assert_true(ok > n / 2);
    assert_string_equal(c[n - 1].name, "end");
    assert_int_equal(plan.b->at[n - 1].state, ROW_SKIPPED);
}

static void test_init_that_fails_skips_all(void **state)
{
    (void)state;
    check("init-fails", 2, "");
    assert_int_equal(plan.b->at[0].state, ROW_FAILED);
    assert_int_equal(plan.b->at[5].state, ROW_SKIPPED);
}

static void test_leaks(void **state)
{
    const struct board_row *end;
    unsigned n;

    (void)state;
    if (!LEAKS)
        skip();
    (void)cases_of(false, &n);
    end = &plan.b->at[n - 1];
    assert_int_equal(check("close-leaks", 0, "reopen")->state, ROW_OK);
    assert_int_equal(end->state, ROW_FAILED);
    assert_non_null(strstr(end->text, "ended with status"));
}

static void test_probe(void **state)
{
    char why[BOARD_TEXT];

    (void)state;
    setenv("MOCK_PLANT", "load-crash", 1);
    assert_int_equal(session_probe(&plan, why, sizeof(why)), -1);
    assert_non_null(strstr(why, "loading it ended by signal 6"));
    setenv("MOCK_PLANT", "", 1);
    assert_int_equal(session_probe(&plan, why, sizeof(why)), 0x3ff);
    snprintf(plan.b->file, sizeof(plan.b->file), "/dev/null");
    assert_int_equal(session_probe(&plan, why, sizeof(why)), -1);
    assert_string_equal(why, "found a device, expected a shared object");
    snprintf(plan.b->file, sizeof(plan.b->file), "%s", mock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_plugin),
        cmocka_unit_test(test_rows_of_failures),
        cmocka_unit_test(test_next_case_has_new_ranks),
        cmocka_unit_test(test_init_that_fails_skips_all),
        cmocka_unit_test(test_leaks),
        cmocka_unit_test(test_probe),
    };

    return cmocka_run_group_tests(tests, prepare, NULL);
}
