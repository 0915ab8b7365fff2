/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/formats/words_line.h"

#include <errno.h>
#include <string.h>

#define BLANKS " \t\r\f\v"

void words_next(struct words_line *w)
{
    w->rest += strspn(w->rest, BLANKS);
    w->word = w->rest;
    w->rest += strcspn(w->rest, BLANKS);
    if (*w->rest)
        *w->rest++ = 0;
}

int words_line_next(struct words_line *w, struct trace_input *in, char comment)
{
    char *line;
    size_t n;
    int rc;

    w->in = in;
    w->word = w->rest = NULL;
    while (!(rc = trace_input_line(in, &line, &n))) {
        char *end = comment ? strchr(line, comment) : NULL;

        if (n != strlen(line))
            return trace_refuse_at(in, "", "line %u: found a byte of 0, expected text", in->line);
        if (end)
            *end = 0;
        w->rest = line;
        words_next(w);
        if (*w->word)
            return 0;
    }
    return rc;
}

bool words_is(const struct words_line *w, const char *word)
{
    return !strcmp(w->word, word);
}

int words_refuse(struct words_line *w, const char *expected)
{
    return trace_refuse(w->in, w->word, strlen(w->word), expected);
}

int words_number(struct words_line *w, uint64_t most, bool fraction, const char *expected,
                 uint64_t *value)
{
    const char *at = w->word;
    uint64_t v = 0;

    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (unsigned)(*at - '0'), &v))
            return words_refuse(w, expected);
    if (at == w->word)
        return words_refuse(w, expected);
    if (fraction && *at == '.')
        at += 1 + strspn(at + 1, "0123456789");
    if (*at || v > most)
        return words_refuse(w, expected);
    *value = v;
    words_next(w);
    return 0;
}
