/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of results for people. The usual shape has a line for each place, no longer than
 * TABLE_WIDTH: nccl-tests' columns, and the time relative to the model's. The wide one has a line for
 * both places, in nccl-tests' order, and then everything that is known of a row.
 */
#ifndef TRIB_HOST_BENCH_RESULT_ROWS_H
#define TRIB_HOST_BENCH_RESULT_ROWS_H

#include "host/bench/row.h"

#include <stdio.h>

/* staged: the wide table also has the time of copies to and from a GPU. */
void result_rows_heads(FILE *out, const char *algo, bool wide, bool staged);
void result_rows_print(FILE *out, const struct row *r, bool wide);

#endif
