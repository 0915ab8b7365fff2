/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of an aggregation protocol during a row: of its ranks and, in virtual time, of its
 * switches. */
#ifndef TRIB_HOST_BENCH_ROW_COUNTERS_H
#define TRIB_HOST_BENCH_ROW_COUNTERS_H

#include "host/coll/coll.h"

#include <stdio.h>

#define ROW_COUNTERS 40u

struct row_counters {
    unsigned n;
    struct {
        char name[48];
        uint64_t v;
        bool level; /* adding takes the maximum instead of the sum */
    } c[ROW_COUNTERS];
};

/* Adds to the counter of that name, and makes it if it is missing and there is room. */
void row_counters_add(struct row_counters *r, const char *name, uint64_t v, bool level);
/* Adds the counters of the ranks' halves, in order of their names. */
void row_counters_add_ranks(struct row_counters *r, enum coll_algo a,
                            const uint64_t v[TRIB_COUNTERS]);
/* Subtracts what was counted before. */
void row_counters_since(struct row_counters *r, const struct row_counters *before);
/* Prints a line, which is not broken if wide; nothing if there are no counters. */
void row_counters_print(const struct row_counters *r, bool wide, FILE *out);
struct json_t;
struct json_t *row_counters_json(const struct row_counters *r); /* NULL: none, or no memory */

#endif
