/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts that live until the command ends. */
#ifndef TRIB_TRIB_RUN_TEXT_H
#define TRIB_TRIB_RUN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Returns n * size bytes; ends the command if no memory is left. */
void *text_room(size_t n, size_t size);
char *text_of(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The n bytes at `from` as a text. */
char *text_part(const char *from, size_t n);

bool text_begins(const char *text, const char *with);
bool text_ends(const char *text, const char *with);
/* The part behind the last slash. */
const char *text_last(const char *path);
/* Removes newlines at the end. */
void text_chop(char *text);

/* NULL counts as empty. */
bool text_is_empty(const char *text);
/* A variable of the environment; NULL if it is not set, or empty. */
const char *text_env(const char *name);

#endif
