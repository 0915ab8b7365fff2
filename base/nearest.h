/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the name that a user meant who mistyped it: an option, a key, a conf, a node, a link.
 */
#ifndef TRIB_BASE_NEAREST_H
#define TRIB_BASE_NEAREST_H

#include <stddef.h>

/* Returns name i; NULL behind the last; "": there is no name i. It may reuse a buffer. */
typedef const char *nearest_next(const void *ctx, unsigned i);

/*
 * The index of the name closest to a mistyped one. At most two letters, and fewer than half of them, may be
 * wrong, missing, extra or exchanged; case, dashes, underscores, dots, colons, spaces and the order of the
 * words that these separate do not count. If no name is that close: the first one that begins with what
 * was typed, if that is three letters or more. Among equals the first. -ENOENT: none is close.
 */
int nearest_index(const char *found, nearest_next *next, const void *ctx);

/* The same, but returns the name; nearest_of() looks in a list. NULL: none is close. */
const char *nearest_name(const char *found, nearest_next *next, const void *ctx);
const char *nearest_of(const char *found, const char *const *names, unsigned n);

/* Writes "; did you mean NAME?" for the end of a message, or "" where near is NULL. Returns buf. */
const char *nearest_hint(const char *near, char *buf, size_t size);

#endif
