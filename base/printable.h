/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts of others on their way to a terminal or into a line of a log: names of files, values of confs.
 */
#ifndef TRIB_BASE_PRINTABLE_H
#define TRIB_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a text is one line without control characters: none of ASCII's, and none of C1's (in
 * UTF-8 0xc2 0x80 to 0xc2 0x9f, some of which terminals obey). */
bool printable(const char *text);
/* Writes control characters of a text as \x1b, in its own buffer of `size` bytes; what then has no
 * room is cut off. */
void printable_make(char *text, size_t size);

#endif
