/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text in aligned columns, for people to read.
 */
#ifndef TRIB_BASE_TABLE_H
#define TRIB_BASE_TABLE_H

#include <stdio.h>

#define TABLE_COLUMNS 12

struct table;

/* A table with these column heads, the last one NULL. NULL: no memory. */
struct table *table_new(const char *const *heads);
/* The next cell, row by row. Text; an empty one is printed as "-". */
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints all rows, two spaces before each and between columns, and frees the table. */
void table_print(struct table *t, FILE *out);

#endif
