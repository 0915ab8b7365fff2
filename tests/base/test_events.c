/* SPDX-License-Identifier: BSD-3-Clause */
/* The dump of an engine when an assertion stops a run: its last events, by name. */
#include "base/assert.h"
#include "base/events.h"
#include "base/log.h"
#include "tests/fabric/load.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const names[] = {"port %u up", "QPN %u: RTS -> ERROR, PSN %u"};
static const struct event_kinds kinds = {"switch", names, 2};

static void dump_of(char *text, size_t size)
{
    FILE *f;

    memset(text, 0, size);
    f = fmemopen(text, size, "w");

    assert_non_null(f);
    events_dump(f);
    fclose(f);
}

static void the_last_events_are_dumped_by_name_and_in_order(void **state)
{
    char text[8192];
    struct events r = {0};

    (void)state;
    events_init(&r, &kinds, "leaf0");
    dump_of(text, sizeof(text));
    assert_null(strstr(text, "leaf0")); /* nothing happened */
    for (uint32_t i = 0; i < EVENTS_KEPT; i++)
        events_add(&r, i, 0, i, 0);
    events_add(&r, 1000, 1, 17, 5);
    dump_of(text, sizeof(text));
    assert_non_null(strstr(text, "switch leaf0: the last 32 of 33 events"));
    assert_null(strstr(text, "port 0 up"));
    assert_non_null(strstr(text, "port 1 up"));
    assert_non_null(strstr(text, "1000 ps  QPN 17: RTS -> ERROR, PSN 5"));
    assert_true(strstr(text, "port 31 up") < strstr(text, "QPN 17"));
    events_fini(&r);
    events_fini(&r);
    dump_of(text, sizeof(text));
    assert_null(strstr(text, "leaf0"));
}

static void an_assertion_says_what_is_wrong_and_dumps_then_aborts(void **state)
{
    int p[2], status;
    char text[4096] = "";
    ssize_t n, got = 0;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(p), 0);
    pid = fork();
    if (!pid) {
        struct events r = {0};

        dup2(p[1], 2);
        events_init(&r, &kinds, "spine1");
        events_add(&r, 42, 0, 7, 0);
        T_ASSERT(r.n == 2, "an event was lost");
        _exit(0);
    }
    close(p[1]);
    while ((n = read(p[0], text + got, sizeof(text) - 1 - (size_t)got)) > 0)
        got += n;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, "assertion failed: an event was lost (r.n == 2)"));
    assert_non_null(strstr(text, "switch spine1"));
    assert_non_null(strstr(text, "42 ps  port 7 up"));
}

static void rooms_log_at_the_level_that_was_asked_for(void **state)
{
    char err[320];

    (void)state;
    assert_int_equal(log_set("switch:debug,trunk:info", err, sizeof(err)), 0);
    assert_true(log_on("switch", LOG_DEBUG));
    assert_true(log_on("trunk", LOG_INFO));
    assert_false(log_on("trunk", LOG_DEBUG));
    assert_true(log_on("roce", LOG_WARN));
    assert_false(log_on("roce", LOG_INFO));
    assert_int_equal(log_set("debug", err, sizeof(err)), 0);
    assert_true(log_on("roce", LOG_DEBUG));
    assert_int_equal(log_set("", err, sizeof(err)), 0);
    assert_false(log_on("roce", LOG_INFO));
    assert_int_equal(log_set("none,trunk:error", err, sizeof(err)), 0);
    assert_false(log_on("roce", LOG_ERROR));
    assert_true(log_on("trunk", LOG_ERROR));
}

static void what_cannot_be_a_level_or_room_is_refused_and_changes_nothing(void **state)
{
    static const char *const wrong[] = {"loud",    "switch:loud", "swich:debug",
                                        "switch:", ":debug",      "switch:debug,,"};
    char err[320];

    (void)state;
    assert_int_equal(log_set("trunk:debug", err, sizeof(err)), 0);
    for (unsigned i = 0; i < LEN(wrong); i++) {
        assert_int_equal(log_set(wrong[i], err, sizeof(err)), -EINVAL);
        assert_non_null(strstr(err, "TRIB_LOG: found \""));
        assert_non_null(strstr(err, "rooms: roce switch trunk"));
        assert_true(log_on("trunk", LOG_DEBUG));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_events_are_dumped_by_name_and_in_order),
        cmocka_unit_test(an_assertion_says_what_is_wrong_and_dumps_then_aborts),
        cmocka_unit_test(rooms_log_at_the_level_that_was_asked_for),
        cmocka_unit_test(what_cannot_be_a_level_or_room_is_refused_and_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
