/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text in aligned columns, for people to read. A command without enough memory for it says so and ends
 * (base/shortage/enough.h).
 */
#ifndef TRIB_BASE_TABLE_H
#define TRIB_BASE_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#define TABLE_COLUMNS 13
#define TABLE_WIDTH   100 /* characters in a line, unless the caller asks for wide lines */

struct table;

/* Creates a table with these column heads; the list ends with NULL. */
struct table *table_new(const char *const *heads);
/* Sets the next cell, row by row. Empty text is printed as "-". */
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints all rows, with two spaces before the row and between columns, and frees the table. */
void table_print(struct table *t, FILE *out);
/*
 * Prints a line. A line longer than TABLE_WIDTH is continued in the next one, two blanks deeper, and behind
 * a '#' if it begins with one. wide: lines are not broken.
 */
void table_line(FILE *out, bool wide, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
