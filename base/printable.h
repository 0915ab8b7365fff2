/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes texts from others (names of files, values of confs) safe for a terminal or a line of a log.
 */
#ifndef TRIB_BASE_PRINTABLE_H
#define TRIB_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a text is one line without control characters: neither ASCII's nor C1's (0xc2 0x80 to 0xc2 0x9f
 * in UTF-8, some of which terminals obey). */
bool printable(const char *text);
/* Replaces control characters by \x1b and the like, within the text's buffer of `size` bytes; truncates
 * what no longer fits. */
void printable_make(char *text, size_t size);

#endif
