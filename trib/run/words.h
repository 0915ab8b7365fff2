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
/* n of them, of an argv or of another list. */
void words_append_n(struct words *w, unsigned n, char *const *from);
void words_append_list(struct words *w, unsigned n, const char *const *from);
/* Several words. */
#define words_append_all(w, ...)                                                                   \
    words_append_list((w), sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *),      \
                      (const char *const[]){__VA_ARGS__})

bool words_have(const struct words *w, const char *word);
void words_sort(struct words *w);
/* Sorts, and leaves one of those alike. */
void words_sort_once(struct words *w);
/* Of lists and of arguments: with `between` between them. */
char *words_join(unsigned n, const char *const *at, const char *between);
/* As a message has them: "$*" of a shell. */
char *words_said(int n, char *const *at);

#endif
