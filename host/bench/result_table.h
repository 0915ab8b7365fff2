/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results for people: headings and footers of rows (result_rows.h), and algorithms side by side.
 * Rows are printed as they are measured. wide: do not break lines.
 */
#ifndef TRIB_HOST_BENCH_RESULT_TABLE_H
#define TRIB_HOST_BENCH_RESULT_TABLE_H

#include "host/bench/perf_options.h"
#include "host/bench/row.h"

#include <stdio.h>

void table_header(FILE *out, const char *program, const struct perf_opts *o,
                  const struct fabric *fab, unsigned nranks, const uint16_t *host_of_rank);
void table_memory(FILE *out, bool wide, const char *where);
/* The switches' grants, if they are smaller than requested. */
void table_granted(FILE *out, bool wide, const struct coll_grant *g);
/* Heading of the rows that this machine's own GPUs run. */
void table_gpus(FILE *out, bool wide, unsigned n, const char *gpu);
void table_left_out(FILE *out, bool wide, enum coll_algo algo, const char *why);
/* Prints out of bounds values, average bus bandwidth, and the fidelity of all rows. max_wall: limit
 * in s of rows whose dilation this job may choose; if runs lag for lack of time, it suggests a
 * larger one. 0: this job may not choose. */
void table_footer(FILE *out, bool wide, double max_wall, const struct row *rows, unsigned n);
/* Compares each algorithm with the first one that ran: a line for each size, type and operation
 * that both ran. Prints nothing if there is none. */
void table_compare(FILE *out, const struct row *rows, unsigned n);
/* The error of each row in ULP, where it was measured. */
void table_error(FILE *out, const struct row *rows, unsigned n);
#endif
