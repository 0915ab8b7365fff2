/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names are compared in lower case and without separators: "leafspine-8" and "Leaf_Spine_8" equal
 * "leaf-spine-8". So does "8-leaf-spine", whose sorted words are the same. The edit distance decides the rest.
 */
#include "base/nearest.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEAR      2   /* letters that may be wrong */
#define NAME_SIZE 120 /* longest name that is compared; a longer one is close to nothing */
#define WORDS     16

struct plain {
    char text[NAME_SIZE + 1];   /* in lower case, without separators */
    char sorted[NAME_SIZE + 1]; /* the same with its words in order */
};

static bool separates(char c)
{
    return c && strchr("-_.: ", c) != NULL;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_words(char *words, char *out)
{
    char *word[WORDS] = {NULL}, *save = NULL;
    size_t n = 0;

    for (char *w = strtok_r(words, "-", &save); w && n < WORDS; w = strtok_r(NULL, "-", &save))
        word[n++] = w;
    qsort(word, n, sizeof(*word), by_text);
    *out = 0;
    for (size_t i = 0; i < n; i++)
        out = stpcpy(out, word[i]);
}

/* False: the name is empty or too long to be compared. */
static bool simplify(const char *name, struct plain *p)
{
    char words[NAME_SIZE + 1];
    size_t n = 0, len = strlen(name);

    if (len > NAME_SIZE)
        return false;
    for (size_t i = 0; i < len; i++) {
        words[i] = separates(name[i]) ? '-' : (char)tolower((unsigned char)name[i]);
        if (words[i] != '-')
            p->text[n++] = words[i];
    }
    p->text[n] = words[len] = 0;
    sort_words(words, p->sorted);
    return n > 0;
}

/* Edit distance: letters to change, insert, remove or exchange with the next one. */
static unsigned word_distance(const char *a, const char *b)
{
    unsigned row[3][NAME_SIZE + 1];
    size_t n = strlen(a), m = strlen(b);

    if ((n > m ? n - m : m - n) > NEAR)
        return NEAR + 1;
    for (size_t j = 0; j <= m; j++)
        row[0][j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned *now = row[i % 3], *last = row[(i - 1) % 3], *before = row[(i + 1) % 3];

        now[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned d = last[j - 1] + (a[i - 1] != b[j - 1]);

            d = last[j] + 1 < d ? last[j] + 1 : d;
            d = now[j - 1] + 1 < d ? now[j - 1] + 1 : d;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < d)
                d = before[j - 2] + 1;
            now[j] = d;
        }
    }
    return row[n % 3][m];
}

int nearest_index(const char *found, nearest_next *next, const void *ctx)
{
    unsigned least = NEAR + 1;
    int best = -ENOENT, begins = -ENOENT;
    struct plain f, p;
    const char *name;
    size_t n;

    if (!simplify(found, &f))
        return -ENOENT;
    n = strlen(f.text);
    for (unsigned i = 0; least && (name = next(ctx, i)); i++) {
        unsigned d;

        if (!simplify(name, &p))
            continue;
        d = strcmp(f.sorted, p.sorted) ? word_distance(f.text, p.text) : 0;
        if (d < least && d * 2 < n) {
            least = d;
            best = (int)i;
        }
        if (begins < 0 && n >= 3 && !strncmp(f.text, p.text, n))
            begins = (int)i;
    }
    return best >= 0 ? best : begins;
}

const char *nearest_name(const char *found, nearest_next *next, const void *ctx)
{
    int i = nearest_index(found, next, ctx);

    return i < 0 ? NULL : next(ctx, (unsigned)i);
}

struct names {
    const char *const *name;
    unsigned n;
};

static const char *name_at(const void *ctx, unsigned i)
{
    const struct names *l = ctx;

    return i < l->n ? l->name[i] : NULL;
}

const char *nearest_of(const char *found, const char *const *names, unsigned n)
{
    return nearest_name(found, name_at, &(struct names){names, n});
}

const char *nearest_hint(const char *near, char *buf, size_t size)
{
    *buf = 0;
    if (near)
        snprintf(buf, size, "; did you mean %s?", near);
    return buf;
}
