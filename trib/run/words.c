/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/run/words.h"

#include "trib/run/text.h"

#include <stdlib.h>
#include <string.h>

void words_append(struct words *w, const char *word)
{
    if (w->n + 1 >= w->cap) {
        unsigned cap = w->cap ? 2 * w->cap : 16;
        const char **at = text_room(cap, sizeof(*at));

        if (w->n)
            memcpy(at, w->at, w->n * sizeof(*at));
        w->at = at;
        w->cap = cap;
    }
    w->at[w->n++] = word;
    w->at[w->n] = NULL;
}

void words_append_n(struct words *w, unsigned n, char *const *from)
{
    words_append_list(w, n, (const char *const *)from);
}

void words_append_list(struct words *w, unsigned n, const char *const *from)
{
    for (unsigned i = 0; i < n; i++)
        words_append(w, from[i]);
}

bool words_have(const struct words *w, const char *word)
{
    for (unsigned i = 0; i < w->n; i++)
        if (!strcmp(w->at[i], word))
            return true;
    return false;
}

static int word_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void words_sort(struct words *w)
{
    if (w->n)
        qsort(w->at, w->n, sizeof(*w->at), word_compare);
}

void words_sort_once(struct words *w)
{
    unsigned n = 0;

    words_sort(w);
    for (unsigned i = 0; i < w->n; i++)
        if (!n || strcmp(w->at[n - 1], w->at[i]) != 0)
            w->at[n++] = w->at[i];
    w->n = n;
    if (w->at)
        w->at[n] = NULL;
}

char *words_join(unsigned n, const char *const *at, const char *between)
{
    size_t size = 1, step = strlen(between);
    char *all, *to;

    for (unsigned i = 0; i < n; i++)
        size += strlen(at[i]) + step;
    all = to = text_room(size, 1);
    for (unsigned i = 0; i < n; i++) {
        if (i)
            to = stpcpy(to, between);
        to = stpcpy(to, at[i]);
    }
    return all;
}

char *words_said(int n, char *const *at)
{
    return words_join(n > 0 ? (unsigned)n : 0, (const char *const *)at, " ");
}
