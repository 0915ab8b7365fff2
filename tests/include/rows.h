/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of calls that a library refuses, each in a process of its own so that a crash has the call's name.
 * A table is a function of rows:
 *
 *   static void table(int only)
 *   {
 *       int row = 0;
 *       ROW(trib_comm_size(NULL), 0, "");       result, and what the reason has ("": nothing is looked at)
 *   }
 */
#ifndef TESTS_INCLUDE_ROWS_H
#define TESTS_INCLUDE_ROWS_H

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#define ROWS_END (-1) /* lists: every row's call, a line each, on standard output */

static char why[512]; /* rows may pass it as err */

static inline void row_check(const char *call, long found, long expected, const char *reason)
{
    if (found == expected && strstr(why, reason))
        _exit(0);
    fprintf(stderr, "%s: found %ld, \"%s\", expected %ld, \"%s\"\n", call, found, why, expected,
            reason);
    _exit(1);
}

#define ROW(call, expected, reason)                                                                \
    do {                                                                                           \
        if (only == ROWS_END)                                                                      \
            printf("%s\n", #call);                                                                 \
        else if (row++ == only)                                                                    \
            row_check(#call, (long)(call), (long)(expected), reason);                              \
    } while (0)
#define VOID(call) ROW((call, 0), 0, "")

/* All rows; a table ends in its child by _exit(2) where there is no such row. */
static inline void rows_run(void (*table)(int only))
{
    unsigned bad = 0, n = 0;

    for (;; n++) {
        int status;
        pid_t child = fork();

        assert_true(child >= 0);
        if (!child) {
            *why = 0;
            table((int)n);
            _exit(2);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
            break;
        if (!WIFEXITED(status))
            fprintf(stderr, "row %u: killed by signal %d\n", n, WTERMSIG(status));
        bad += status != 0;
    }
    if (bad || !n)
        fail_msg("%u of %u rows", bad, n);
}

/* What a table prints of its calls. */
static inline void rows_text(void (*table)(int only), char *text, size_t size)
{
    size_t n = 0;
    ssize_t got = 1;
    int p[2];

    assert_int_equal(pipe(p), 0);
    fflush(NULL);
    if (!fork()) {
        dup2(p[1], 1);
        table(ROWS_END);
        fflush(NULL);
        _exit(0);
    }
    close(p[1]);
    while (got > 0 && n < size - 1) {
        got = read(p[0], text + n, size - 1 - n);
        n += got > 0 ? (size_t)got : 0;
    }
    close(p[0]);
    wait(NULL);
    text[n] = 0;
}

/* Every function whose name begins so and that the header declares is in a row. */
static inline void rows_cover(void (*table)(int only), const char *header, const char *prefix)
{
    static char text[1 << 17];
    char line[512], name[128];
    unsigned n = 0, bad = 0;
    FILE *f = fopen(header, "r");

    assert_non_null(f);
    rows_text(table, text, sizeof(text));
    while (fgets(line, sizeof(line), f)) {
        const char *at = strstr(line, prefix);
        size_t len = 0;

        if (!at || isspace((unsigned char)*line) || *line == '#' || *line == '/')
            continue;
        while (at[len] == '_' || isalnum((unsigned char)at[len]))
            len++;
        if (at[len] != '(')
            continue;
        snprintf(name, sizeof(name), "%.*s(", (int)len, at);
        n++;
        if (!strstr(text, name)) {
            fprintf(stderr, "%s: no row of %s)\n", header, name);
            bad++;
        }
    }
    fclose(f);
    if (bad || !n)
        fail_msg("%u of %u functions of %s have no row", bad, n, header);
}

#endif
