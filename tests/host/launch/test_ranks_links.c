/* SPDX-License-Identifier: BSD-3-Clause */
/* What links carry during a run: counters are read until they rest, by a process that answers as this test says. */
#include "host/launch/ranks_priv.h"
#include "tests/fabric/load.h"
#include "tests/support/far_telemetry.h"

#include <stdlib.h>

#define SEC 1000000000ll

static struct sweep s;
static struct fabric *fab;
static struct rundir rd;
static struct shared sh;
static struct clock_page page;
static struct far_telemetry process;
static unsigned asked;
static const unsigned
    *bytes; /* of link 1's first direction, by question; 0 ends them: the last stays */

static void answer(void *ctx, const char *command, const char *what, char *text, size_t size)
{
    (void)ctx;
    assert_string_equal(command, "/trib/link_bytes");
    assert_string_equal(what, "0");
    snprintf(text, size, "[0,7,1,7,2,%u,3,7]", *bytes);
    asked++;
    bytes += bytes[1] != 0;
}

static void begin(double left_s)
{
    memset(&page, 0, sizeof(page));
    clock_set_dilation(&page, 1);
    fab = load_text(LINKS "single_switch = { hosts = 2; };\n");
    process.answer = answer;
    far_telemetry_open(&process);
    snprintf(rd.path, sizeof(rd.path), "%s", process.dir);
    sh.clock = &page;
    rd.sh = &sh;
    s = (struct sweep){
        .fab = fab, .rd = &rd, .until = clock_mono_ns() + (int64_t)(left_s * (double)SEC)};
    asked = 0;
}

static void end(void)
{
    far_telemetry_close(&process);
    fabric_free(fab);
}

static void counters_are_read_until_they_rest(void **state)
{
    static const struct {
        double left_s; /* of the row */
        unsigned before[6], after[6];
        unsigned asked_before, asked_after;
        uint64_t bytes;
    } rows[] = {
        {60, {5}, {5}, 2, 2, 0},
        {60, {5}, {1005}, 2, 2, 1000},
        {60, {1, 2, 2}, {500, 600, 700, 700, 800}, 3, 4, 698},
        {60, {1, 2, 3, 4, 5, 6}, {500, 600, 700, 800, 900}, 4, 4, 796}, /* four times at most */
        {-1, {1, 2}, {500, 600}, 1, 1, 499}, /* once, where there is no time */
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct link_use u = {.known = false};
        struct ranks_links m;

        begin(rows[i].left_s);
        bytes = rows[i].before;
        ranks_links_begin(&s, &m);
        assert_int_equal(asked, rows[i].asked_before);
        asked = 0;
        bytes = rows[i].after;
        ranks_links_end(&s, &m, &u);
        assert_int_equal(asked, rows[i].asked_after);
        assert_true(u.known);
        assert_int_equal(u.bytes, rows[i].bytes);
        assert_string_equal(u.why, "");
        end();
    }
}

static void a_run_that_failed_is_not_read(void **state)
{
    static const unsigned five[] = {5, 0};
    struct ranks_links m;

    (void)state;
    begin(60);
    bytes = five;
    ranks_links_begin(&s, &m);
    asked = 0;
    ranks_links_end(&s, &m, NULL);
    assert_int_equal(asked, 0);
    end();
}

static void what_does_not_answer_is_named(void **state)
{
    static const unsigned five[] = {5, 0};
    struct link_use u = {.known = true, .bytes = 7};
    struct ranks_links m;

    (void)state;
    begin(60);
    bytes = five;
    ranks_links_begin(&s, &m);
    snprintf(rd.path, sizeof(rd.path), "/nonexistent");
    ranks_links_end(&s, &m, &u);
    assert_false(u.known);
    assert_int_equal(u.bytes, 0);
    assert_true(*u.why);
    end();
    begin(60);
    asked = 0;
    snprintf(rd.path, sizeof(rd.path), "/nonexistent");
    ranks_links_begin(&s, &m);
    snprintf(rd.path, sizeof(rd.path), "%s", process.dir);
    ranks_links_end(&s, &m, &u); /* nothing to compare with */
    assert_int_equal(asked, 0);
    assert_false(u.known);
    assert_true(*u.why);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_are_read_until_they_rest),
        cmocka_unit_test(a_run_that_failed_is_not_read),
        cmocka_unit_test(what_does_not_answer_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
