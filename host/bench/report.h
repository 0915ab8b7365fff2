/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results for programs: the JSON object that -J writes (system/atomic_output.h).
 */
#ifndef TRIB_HOST_BENCH_REPORT_H
#define TRIB_HOST_BENCH_REPORT_H

#include "host/bench/perf_options.h"
#include "host/bench/row.h"

/* Writes the report, with the switches' grants (NULL: unknown) and one more object under `key`,
 * which it takes over. error: the reason of an early end, or "". 0 or -errno. */
struct json_t;
int report_write_more(const char *path, const struct perf_opts *o, unsigned nranks,
                      const struct row *rows, unsigned n, const char *error,
                      const struct coll_grant *g, const char *key, struct json_t *more);

/* JSON of the grants for the group of all ranks, and for rank 0's rail. The caller frees it. */
struct json_t *report_granted(const struct coll_grant *g);
/* The results of rows as a list of objects. The caller frees it. */
struct json_t *report_rows(const struct row *rows, unsigned n);
/* Writes them as CSV (report_csv.c). 0 or -errno. */
int report_csv(const char *path, const struct row *rows, unsigned n);
/* Whether the files of -J, --csv and --timeline can be written. Call it before a run whose results
 * would be lost. If not, prints why in the name of `program`. "-" becomes standard output
 * (atomic_output_path()). */
bool report_can_write(const char *program, struct perf_opts *o);

#endif
