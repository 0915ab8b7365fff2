/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/run/text.h"

#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *arena;

void *text_room(size_t n, size_t size)
{
    void *p = arena_alloc(&arena, n, size);

    if (p)
        return p;
    fputs("trib: no memory\n", stderr);
    exit(1);
}

char *text_of(const char *fmt, ...)
{
    va_list ap, again;
    char *text;
    int n;

    va_start(ap, fmt);
    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, ap);
    text = text_room(n < 0 ? 1 : (size_t)n + 1, 1);
    if (n >= 0)
        vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(ap);
    return text;
}

char *text_part(const char *from, size_t n)
{
    char *text = text_room(n + 1, 1);

    memcpy(text, from, n);
    return text;
}

bool text_begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

bool text_ends(const char *text, const char *with)
{
    size_t n = strlen(text), m = strlen(with);

    return n >= m && !strcmp(text + n - m, with);
}

const char *text_last(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

void text_chop(char *text)
{
    size_t n = strlen(text);

    while (n && text[n - 1] == '\n')
        text[--n] = 0;
}

bool text_is_empty(const char *text)
{
    return !text || !*text;
}

const char *text_env(const char *name)
{
    const char *value = getenv(name);

    return text_is_empty(value) ? NULL : value;
}
