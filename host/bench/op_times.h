/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times of the single timed operations of a row, which run back to back. An operation ends when the
 * last rank has seen its end. Its time is that since the end of the previous operation, or since
 * the common start, so the mean is the row's time of an operation. A rank may begin the next
 * operation before that.
 */
#ifndef TRIB_HOST_BENCH_OP_TIMES_H
#define TRIB_HOST_BENCH_OP_TIMES_H

#include <stdint.h>

#define OP_TIMES_KEPT 65536u /* with more operations only statistics are kept */

struct json_t;

struct op_times {
    unsigned n; /* number of operations in the statistics; 0: not known */
    double *us; /* [n]; NULL: not kept */
    double min_us, median_us;
    double p99_us;    /* the smallest that at least 99 % of them do not exceed */
    double stddev_us; /* sample standard deviation (n - 1); 0 for one operation */
};

/* ends_ps: fabric time since the common start at which each of n operations ended, ascending.
 * Frees what t had before. 0 or -ENOMEM. */
int op_times_set(struct op_times *t, const int64_t *ends_ps, unsigned n);
void op_times_free(struct op_times *t);
/* Adds times_us, min_us, median_us, p99_us and stddev_us: null where they are not known. */
void op_times_json(const struct op_times *t, struct json_t *row);

#endif
