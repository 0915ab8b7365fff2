/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that was stopped, at the moments from which on it is named, forgotten, or holds the job up. */
#include "machine/suspect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static void a_stop_is_named_from_and_until_a_moment(void **state)
{
    static const struct {
        struct suspect s;
        int64_t now;
        const char *says; /* NULL: nothing */
        bool stuck;
    } rows[] = {
        {{0, 0}, 60000, NULL, false},
        {{1000, 0}, 1000, "is stopped, for 0.0 s now", false},
        {{1000, 0}, 16000, "is stopped, for 15.0 s now", false},
        {{1000, 0}, 16001, "is stopped, for 15.0 s now", true},
        {{1000, 2250}, 2300, "was stopped for 1.2 s", false},
        {{1000, 1049}, 1100, NULL, false},
        {{1000, 1050}, 1100, "was stopped for 0.1 s", false},
        {{1000, 1050}, 11050, "was stopped for 0.1 s", false},
        {{1000, 1050}, 11051, NULL, false},
        {{1000, 20000}, 20000, "was stopped for 19.0 s", false}, /* it runs again */
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[64] = "";
        bool says = suspect_says(&rows[i].s, rows[i].now, text, sizeof(text));

        if (says != !!rows[i].says || strcmp(text, rows[i].says ? rows[i].says : "") != 0)
            fail_msg("row %u: found \"%s\"", i, text);
        assert_int_equal(suspect_is_stuck(&rows[i].s, rows[i].now), rows[i].stuck);
    }
}

static void what_is_seen_again_changes_nothing(void **state)
{
    struct suspect s = {0, 0};

    (void)state;
    suspect_note(&s, false, 10); /* it runs, as ever */
    assert_int_equal(s.since_ms, 0);
    assert_int_equal(s.until_ms, 0);
    suspect_note(&s, true, 20);
    suspect_note(&s, true, 30);
    assert_int_equal(s.since_ms, 20);
    assert_int_equal(s.until_ms, 0);
    suspect_note(&s, false, 40);
    suspect_note(&s, false, 50);
    assert_int_equal(s.since_ms, 20);
    assert_int_equal(s.until_ms, 40);
    suspect_note(&s, true, 60); /* the last stop counts */
    assert_int_equal(s.since_ms, 60);
    assert_int_equal(s.until_ms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_is_named_from_and_until_a_moment),
        cmocka_unit_test(what_is_seen_again_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
