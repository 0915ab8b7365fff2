/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mistakes in a file: collected, sorted by line, printed.
 */
#include "base/printable.h"
#include "fabric/build.h"

#include <stdarg.h>
#include <string.h>

void build_error(struct build *b, int line, const char *fmt, ...)
{
    struct fab_errors *errs = b->errs;
    struct fab_error *e;
    va_list ap;

    errs->total++;
    if (errs->n == FAB_MAX_ERRORS)
        return;
    e = &errs->e[errs->n++];
    snprintf(e->file, sizeof(e->file), "%s", b->path);
    e->line = line;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    printable_make(e->file, sizeof(e->file));
    printable_make(e->text, sizeof(e->text));
}

bool build_failed(const struct build *b)
{
    return b->errs->total || b->no_memory;
}

/* Stable insertion sort: at most FAB_MAX_ERRORS entries, and mistakes of one line stay in the order
 * found. */
void fab_errors_sort(struct fab_errors *errs)
{
    for (unsigned i = 1; i < errs->n; i++) {
        struct fab_error e = errs->e[i];
        unsigned j = i;

        for (; j > 0 && errs->e[j - 1].line > e.line; j--)
            errs->e[j] = errs->e[j - 1];
        errs->e[j] = e;
    }
}

void fab_errors_print(const struct fab_errors *errs, FILE *out)
{
    for (unsigned i = 0; i < errs->n; i++) {
        const struct fab_error *e = &errs->e[i];

        if (e->line > 0)
            fprintf(out, "%s:%d: %s\n", e->file, e->line, e->text);
        else
            fprintf(out, "%s: %s\n", e->file, e->text);
    }
    if (errs->total > errs->n)
        fprintf(out, "and %u more\n", errs->total - errs->n);
}
