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
        cmocka_unit_test(long_lines_go_on_below_their_text),
        cmocka_unit_test(words_are_not_broken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
