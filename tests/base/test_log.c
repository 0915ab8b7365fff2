/* SPDX-License-Identifier: BSD-3-Clause */
/* TRIB_LOG: what is printed for each room, in which form, and how often. */
#include "base/log.h"
#include "tests/support/captured.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define EXPECTED                                                                                   \
    "expected LEVEL or ROOM:LEVEL,...; levels: none error warn info debug; rooms: roce switch "    \
    "trunk hca coll exec sim"

static const char *const rooms[] = {"roce", "switch", "trunk", "hca", "coll", "exec", "sim"};

/* The level of a room: the last at which it prints. */
static enum log_level level_of(const char *room)
{
    enum log_level l = LOG_NONE;

    while (l + 1 < LOG_LEVELS && log_on(room, l + 1))
        l++;
    return l;
}

static void every_room_has_the_level_of_the_last_word_for_it(void **state)
{
    static const struct {
        const char *text, *room;
        enum log_level level, others;
    } rows[] = {
        {NULL, "roce", LOG_WARN, LOG_WARN},
        {"", "sim", LOG_WARN, LOG_WARN},
        {"none", "roce", LOG_NONE, LOG_NONE},
        {"error", "exec", LOG_ERROR, LOG_ERROR},
        {"info", "hca", LOG_INFO, LOG_INFO},
        {"debug,", "trunk", LOG_DEBUG, LOG_DEBUG},
        {"sim:debug", "sim", LOG_DEBUG, LOG_WARN},
        {"roce:none", "roce", LOG_NONE, LOG_WARN},
        {"info,coll:error", "coll", LOG_ERROR, LOG_INFO},
        {"coll:error,info", "coll", LOG_INFO, LOG_INFO},
        {"coll:error,coll:debug", "coll", LOG_DEBUG, LOG_WARN},
    };
    char err[320];

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        assert_int_equal(log_set(rows[i].text, err, sizeof(err)), 0);
        for (size_t k = 0; k < LEN(rooms); k++)
            assert_int_equal(level_of(rooms[k]),
                             strcmp(rooms[k], rows[i].room) ? rows[i].others : rows[i].level);
    }
}

static void what_cannot_be_said_is_refused_by_name(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"loud", "TRIB_LOG: found \"loud\", " EXPECTED},
        {"info,hcas:debug,debug", "TRIB_LOG: found \"hcas:debug\", " EXPECTED},
        {"hc:debug", "TRIB_LOG: found \"hc:debug\", " EXPECTED},
        {"hca:", "TRIB_LOG: found \"hca:\", " EXPECTED},
        {":info", "TRIB_LOG: found \":info\", " EXPECTED},
        {",info", "TRIB_LOG: found \"\", " EXPECTED},
        {"inf", "TRIB_LOG: found \"inf\", " EXPECTED},
        {"hca:debug:debug", "TRIB_LOG: found \"hca:debug:debug\", " EXPECTED},
    };
    char err[320];

    (void)state;
    assert_int_equal(log_set("trunk:debug", err, sizeof(err)), 0);
    for (size_t i = 0; i < LEN(rows); i++) {
        assert_int_equal(log_set(rows[i].text, err, sizeof(err)), -EINVAL);
        assert_string_equal(err, rows[i].says);
        assert_int_equal(level_of("trunk"), LOG_DEBUG);
        assert_int_equal(level_of("hca"), LOG_WARN);
    }
}

static void a_line_has_its_second_room_level_and_text(void **state)
{
    struct timespec t;
    struct captured c;
    const char *line;
    char rest[64] = "";
    long long s;
    long us;

    (void)state;
    clock_gettime(CLOCK_MONOTONIC, &t);
    captured_begin(&c, stderr);
    log_line("switch", LOG_INFO, "port %d", 7);
    line = captured_end(&c);
    assert_int_equal(sscanf(line, "%lld.%6ld%63[^\n]", &s, &us, rest), 3);
    assert_int_equal(strchr(line, ' ') - strchr(line, '.'), 7);
    assert_string_equal(rest, " switch info port 7");
    assert_int_equal(line[strlen(line) - 1], '\n');
    assert_true(s * 1000000 + us >= t.tv_sec * 1000000LL + t.tv_nsec / 1000);
    assert_true(s <= t.tv_sec + 60);
    captured_begin(&c, stderr);
    T_LOG("switch", LOG_DEBUG, "not asked for");
    assert_string_equal(captured_end(&c), "");
}

static void one_line_of_a_kind_in_a_second_says_how_many_it_stands_for(void **state)
{
    struct log_limit l = {0};
    unsigned long long held = 99;
    struct timespec t;
    long long now;

    (void)state;
    assert_true(log_may(&l, &held));
    assert_int_equal(held, 0);
    clock_gettime(CLOCK_MONOTONIC, &t);
    now = t.tv_sec * 1000000000LL + t.tv_nsec;
    assert_true(l.next_ns <= now + 1000000000LL);
    l.next_ns = INT64_MAX; /* the second lasts */
    for (int i = 0; i < 3; i++)
        assert_false(log_may(&l, &held));
    assert_int_equal(held, 0);
    l.next_ns = now; /* it is over */
    assert_true(log_may(&l, &held));
    assert_int_equal(held, 3);
    assert_true(l.next_ns >= now + 1000000000LL);
    l.next_ns = 0;
    assert_true(log_may(&l, &held));
    assert_int_equal(held, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_room_has_the_level_of_the_last_word_for_it),
        cmocka_unit_test(what_cannot_be_said_is_refused_by_name),
        cmocka_unit_test(a_line_has_its_second_room_level_and_text),
        cmocka_unit_test(one_line_of_a_kind_in_a_second_says_how_many_it_stands_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
