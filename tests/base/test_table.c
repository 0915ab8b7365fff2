/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables and lines for people: columns are as wide as their cells, and lines fit a terminal. */
#include "base/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *line(bool wide, const char *s)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    assert_non_null(f);
    table_line(f, wide, "%s", s);
    fclose(f);
    return text;
}

static void columns_are_as_wide_as_their_cells(void **state)
{
    static const char *const heads[] = {"a", "second", NULL};
    struct table *t = table_new(heads);
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    (void)state;
    table_cell(t, "%s", "longer");
    table_cell(t, "%s", "");
    table_print(t, f);
    fclose(f);
    assert_string_equal(text, "  a       second\n  longer  -\n");
    free(text);
}

static void a_row_may_end_early_and_there_may_be_many(void **state)
{
    static const char *const heads[] = {"a", "b", "c", NULL};
    struct table *t = table_new(heads);
    char want[20000] = "  a     b    c\n", *text = NULL;
    size_t size, at = strlen(want);
    FILE *f = open_memstream(&text, &size);

    (void)state;
    for (int i = 0; i < 300; i++) {
        table_cell(t, "%d", i);
        table_cell(t, "%03d", i);
        table_cell(t, i % 2 ? "" : "x");
        at += (size_t)sprintf(want + at, "  %-4d  %03d  %s\n", i, i, i % 2 ? "-" : "x");
    }
    table_cell(t, "last");
    sprintf(want + at, "  last\n");
    table_print(t, f);
    fclose(f);
    assert_string_equal(text, want);
    free(text);
}

/* Lines of so many characters, with blanks at these places: where they break. */
static void a_line_breaks_at_the_last_blank_that_fits(void **state)
{
    static const struct {
        const char *begins;
        int length, blanks[3];
        const char *goes_on; /* NULL: it does not */
        int at;
    } rows[] = {
        {"", 100, {50}, NULL, 0},          {"", 101, {50}, "  ", 50},
        {"", 101, {100}, "  ", 100},       {"", 102, {101}, "  ", 101}, /* no blank that fits */
        {"", 101, {0}, NULL, 0},                                        /* no blank at all */
        {"  ", 101, {60, 90}, "    ", 90}, {"# ", 101, {60}, "#   ", 60},
        {"#", 101, {60}, "#  ", 60},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char s[256], want[300], *text;
        int at = rows[i].at;

        memset(s, 'x', sizeof(s));
        memcpy(s, rows[i].begins, strlen(rows[i].begins));
        for (int k = 0; k < 3; k++)
            if (rows[i].blanks[k])
                s[rows[i].blanks[k]] = ' ';
        s[rows[i].length] = 0;
        if (rows[i].goes_on)
            snprintf(want, sizeof(want), "%.*s\n%s%s\n", at, s, rows[i].goes_on, s + at + 1);
        else
            snprintf(want, sizeof(want), "%s\n", s);
        text = line(false, s);
        assert_string_equal(text, want);
        free(text);
    }
}

static void long_lines_go_on_below_their_text(void **state)
{
    char s[400] = "#   ", *text;

    (void)state;
    for (int i = 0; i < 30; i++)
        strcat(s, i ? " twelve chars" : "twelve chars");
    text = line(false, s);
    for (char *l = strtok(text, "\n"), *first = l; l; l = strtok(NULL, "\n")) {
        assert_true(strlen(l) <= TABLE_WIDTH);
        assert_int_equal(strncmp(l, l == first ? "#   t" : "#     ", 5), 0);
        assert_true(strlen(l) > TABLE_WIDTH - 13 || strlen(l) < 40);
    }
    free(text);
    text = line(true, s);
    assert_int_equal(strlen(text), strlen(s) + 1);
    free(text);
}

static void words_are_not_broken(void **state)
{
    char word[150], s[320], *text;

    (void)state;
    memset(word, 'x', sizeof(word) - 1);
    word[sizeof(word) - 1] = 0;
    snprintf(s, sizeof(s), "# %s %s", word, word);
    text = line(false, s);
    assert_int_equal(strlen(text), 2 + 149 + 1 + 4 + 149 + 1);
    assert_true(strchr(text, '\n') == text + 151);
    free(text);
    snprintf(s, sizeof(s), "%.100s", word);
    text = line(false, s);
    assert_int_equal(strlen(text), 101);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_as_wide_as_their_cells),
        cmocka_unit_test(a_row_may_end_early_and_there_may_be_many),
        cmocka_unit_test(a_line_breaks_at_the_last_blank_that_fits),
        cmocka_unit_test(long_lines_go_on_below_their_text),
        cmocka_unit_test(words_are_not_broken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
