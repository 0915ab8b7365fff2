/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of words: arguments of programs, names. They live until the command ends. */
#ifndef TRIB_TRIB_RUN_WORDS_H
#define TRIB_TRIB_RUN_WORDS_H

#include <stdbool.h>

struct words {
    unsigned n, cap;
    const char **at; /* and a NULL behind the last */
};

void words_append(struct words *w, const char *word);
/* Appends n words of an argv, or of another list. */
void words_append_n(struct words *w, unsigned n, char *const *from);
void words_append_list(struct words *w, unsigned n, const char *const *from);
/* Appends several words. */
#define words_append_all(w, ...)                                                                   \
    words_append_list((w), sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *),      \
                      (const char *const[]){__VA_ARGS__})

bool words_have(const struct words *w, const char *word);
void words_sort(struct words *w);
/* Sorts, and removes duplicates. */
void words_sort_once(struct words *w);
/* Joins n words, with `between` between them. */
char *words_join(unsigned n, const char *const *at, const char *between);
/* Joins n words with blanks, as "$*" of a shell. */
char *words_said(int n, char *const *at);

#endif
