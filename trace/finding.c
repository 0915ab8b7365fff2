/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/finding.h"

#include "base/printable.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const names[] = {
#define ROW(kind, name, text) name,
    FINDING_TABLE
#undef ROW
};
static const char *const meanings[] = {
#define ROW(kind, name, text) text,
    FINDING_TABLE
#undef ROW
};

void finding_note(struct findings *f, enum finding_kind kind, const char *fmt, ...)
{
    va_list ap;

    if (f->n[kind]++ >= FINDING_KEPT)
        return;
    va_start(ap, fmt);
    vsnprintf(f->text[kind][f->n[kind] - 1], FINDING_TEXT, fmt, ap);
    va_end(ap);
    printable_make(f->text[kind][f->n[kind] - 1], FINDING_TEXT);
}

uint64_t finding_total(const struct findings *f)
{
    uint64_t all = 0;

    for (unsigned k = 0; k < FINDING_KINDS; k++)
        all += f->n[k];
    return all;
}

unsigned finding_kept(const struct findings *f, enum finding_kind kind)
{
    unsigned n = 0;

    while (n < FINDING_KEPT && n < f->n[kind] && f->text[kind][n][0])
        n++;
    return n;
}

const char *finding_name(enum finding_kind kind)
{
    return names[kind];
}

const char *finding_means(enum finding_kind kind)
{
    return meanings[kind];
}
