/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole output against a file of expected text beside the test. Where a change of the output is meant, EXPECTED=write in the
 * environment writes the files anew, and `git diff` shows what has changed.
 */
#ifndef TESTS_EXPECTED_H
#define TESTS_EXPECTED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* An output that is collected: print to .out, then expected_same(). */
struct expected {
    FILE *out;
    char *text;
    size_t size;
};

static inline FILE *expected_begin(struct expected *e)
{
    e->text = NULL;
    e->out = open_memstream(&e->text, &e->size);
    assert_non_null(e->out);
    return e->out;
}

static inline char *expected_read(const char *path)
{
    char *text = NULL;
    size_t size;
    FILE *in = fopen(path, "r"), *out = open_memstream(&text, &size);

    assert_non_null(out);
    for (int c; in && (c = fgetc(in)) != EOF;)
        fputc(c, out);
    if (in)
        fclose(in);
    fclose(out);
    return text;
}

/* Fails at the first line that differs. */
static inline void expected_lines(const char *path, const char *is, const char *want)
{
    for (unsigned line = 1; *is || *want; line++) {
        int n = (int)strcspn(is, "\n"), m = (int)strcspn(want, "\n");

        if (n != m || strncmp(is, want, (size_t)n) || is[n] != want[m])
            fail_msg("%s:%u: found\n%.*s\nexpected\n%.*s", path, line, n, is, m, want);
        is += n + (is[n] != 0);
        want += m + (want[m] != 0);
    }
}

static inline void expected_same(struct expected *e, const char *path)
{
    const char *mode = getenv("EXPECTED");
    char *want;
    FILE *f;

    fclose(e->out);
    if (mode && !strcmp(mode, "write")) {
        f = fopen(path, "w");
        assert_non_null(f);
        fputs(e->text, f);
        fclose(f);
    }
    want = expected_read(path);
    expected_lines(path, e->text, want);
    free(want);
    free(e->text);
}

#endif
