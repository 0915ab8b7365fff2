/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text in aligned columns, for people to read. A command that has no memory for it says so and ends
 * (base/shortage/enough.h).
 */
#ifndef TRIB_BASE_TABLE_H
#define TRIB_BASE_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#define TABLE_COLUMNS 13
#define TABLE_WIDTH   100 /* characters of a line, where nothing else is asked for */

struct table;

/* A table with these column heads, the last one NULL. */
struct table *table_new(const char *const *heads);
/* The next cell, row by row. Text; an empty one is printed as "-". */
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints all rows, two spaces before each and between columns, and frees the table. */
void table_print(struct table *t, FILE *out);
/*
 * Prints a line. One longer than TABLE_WIDTH goes on in the next, two blanks deeper and behind a '#'
 * if it begins with one; wide: it does not.
 */
void table_line(FILE *out, bool wide, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
