/* SPDX-License-Identifier: BSD-3-Clause */
/* What an aggregation protocol has counted during a row: its ranks, and in virtual time its
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
        bool level; /* not a count: the greatest of those that are added */
    } c[ROW_COUNTERS];
};

/* Adds to the counter of that name, which is made where there is none and room. */
void row_counters_add(struct row_counters *r, const char *name, uint64_t v, bool level);
/* Those of the ranks' halves, in order of their names. */
void row_counters_add_ranks(struct row_counters *r, enum coll_algo a,
                            const uint64_t v[TRIB_COUNTERS]);
/* Takes away what was counted before. */
void row_counters_since(struct row_counters *r, const struct row_counters *before);
/* A line, not broken if wide; nothing where there are none. */
void row_counters_print(const struct row_counters *r, bool wide, FILE *out);
struct json_t;
struct json_t *row_counters_json(const struct row_counters *r); /* NULL: none, or no memory */

#endif
