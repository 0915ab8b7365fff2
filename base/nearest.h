/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The name that somebody meant who wrote another: of an option, a key, a conf, a node, a link.
 */
#ifndef TRIB_BASE_NEAREST_H
#define TRIB_BASE_NEAREST_H

#include <stddef.h>

/* Returns name i, NULL behind the last; "": there is none with this number. It may reuse a buffer. */
typedef const char *nearest_next(const void *ctx, unsigned i);

/*
 * The index of the name closest to a mistyped one: at most two letters, and less than half of them,
 * are wrong, missing, extra or exchanged; case, dashes, underscores, dots, colons and spaces do not
 * count, nor does the order of the words that they separate. Else the first name that begins with
 * the three letters or more that were found. The first of several alike. -ENOENT: none is close.
 */
int nearest_index(const char *found, nearest_next *next, const void *ctx);

/* The same, of a list of texts that stay. NULL: none is close. */
const char *nearest_name(const char *found, nearest_next *next, const void *ctx);
const char *nearest_of(const char *found, const char *const *names, unsigned n);

/* "; did you mean NAME?" for the end of a message; nothing where near is NULL. Returns buf. */
const char *nearest_hint(const char *near, char *buf, size_t size);

#endif
