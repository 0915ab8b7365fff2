/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/table.h"

#include "base/assert.h"
#include "base/shortage/enough.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct table {
    unsigned columns, n, cap;
    size_t width[TABLE_COLUMNS];
    char **cell;
};

static void table_add(struct table *t, char *text)
{
    if (t->n == t->cap) {
        unsigned cap = t->cap ? 2 * t->cap : 128;
        char **cell = realloc(t->cell, cap * sizeof(*cell));

        if (!cell)
            enough_is_not();
        t->cell = cell;
        t->cap = cap;
    }
    if (strlen(text) > t->width[t->n % t->columns])
        t->width[t->n % t->columns] = strlen(text);
    t->cell[t->n++] = text;
}

static char *text_of(const char *fmt, va_list ap)
{
    char *text = NULL;

    if (vasprintf(&text, fmt, ap) < 0)
        enough_is_not();
    return text;
}

void table_cell(struct table *t, const char *fmt, ...)
{
    va_list ap;
    char *text;

    va_start(ap, fmt);
    text = text_of(fmt, ap);
    va_end(ap);
    if (!*text) {
        free(text);
        text = strdup("-");
        if (!text)
            enough_is_not();
    }
    table_add(t, text);
}

struct table *table_new(const char *const *heads)
{
    struct table *t = enough_memory(1, sizeof(*t));

    while (t->columns < TABLE_COLUMNS && heads[t->columns])
        t->columns++;
    T_ASSERT(t->columns > 0, "a table has no columns");
    T_ASSERT(t->columns < TABLE_COLUMNS || !heads[TABLE_COLUMNS],
             "a table has more columns than TABLE_COLUMNS");
    for (unsigned i = 0; i < t->columns; i++)
        table_cell(t, "%s", heads[i]);
    return t;
}

void table_print(struct table *t, FILE *out)
{
    for (unsigned i = 0; i < t->n; i++) {
        unsigned c = i % t->columns;
        bool last = c + 1 == t->columns || i + 1 == t->n;

        fprintf(out, "  %-*s%s", last ? 0 : (int)t->width[c], t->cell[i], last ? "\n" : "");
        free(t->cell[i]);
    }
    free(t->cell);
    free(t);
}

/* Where a line of `width` characters breaks: the last blank that leaves some text on the line. */
static size_t break_at(const char *s, size_t width)
{
    size_t skip = strspn(s, "# "), at = width;

    while (at > skip && s[at] != ' ')
        at--;
    return at > skip ? at : skip + strcspn(s + skip, " ");
}

void table_line(FILE *out, bool wide, const char *fmt, ...)
{
    const char *s;
    va_list ap;
    int indent = 0;
    char *text;

    va_start(ap, fmt);
    text = text_of(fmt, ap);
    va_end(ap);
    s = text;
    while (!wide && strlen(s) + (size_t)indent > TABLE_WIDTH) {
        size_t n = break_at(s, TABLE_WIDTH - (size_t)indent);

        if (!s[n])
            break;
        if (s == text)
            indent = (int)strspn(s, "# ") + 2;
        fprintf(out, "%.*s\n%-*s", (int)n, s, indent, *text == '#' ? "#" : "");
        s += n + 1;
    }
    fprintf(out, "%s\n", s);
    free(text);
}
