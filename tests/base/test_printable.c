/* SPDX-License-Identifier: BSD-3-Clause */
/* Control characters in texts of others become printable, within the room there is. */
#include "base/printable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *text, *shown;
    size_t size;
} rows[] = {
    {"plain \xc3\xa9", "plain \xc3\xa9", 16},
    {"a\033[2Jb", "a\\x1b[2Jb", 16},
    {"\n\r\t\177", "\\x0a\\x0d\\x09\\x7f", 32},
    {"a\xc2\x9bz\xc2\xa0", "a\\x9bz\xc2\xa0", 32},
    {"ab\033cdef", "ab\\x1bc", 8},
    {"abcde\033x", "abcde", 8},
    {"\033", "", 4},
    {"\033", "\\x1b", 5},
};

static void control_characters_are_shown(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char buf[40];

        strcpy(buf, rows[i].text);
        assert_int_equal(printable(buf), !i);
        memset(buf + rows[i].size, '#', sizeof(buf) - rows[i].size);
        if (strlen(rows[i].text) >= rows[i].size)
            continue;
        printable_make(buf, rows[i].size);
        assert_string_equal(buf, rows[i].shown);
        assert_int_equal(buf[rows[i].size], '#');
        assert_true(printable(buf));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(control_characters_are_shown)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
