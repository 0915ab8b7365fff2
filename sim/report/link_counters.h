/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of each direction of each link: of the timed operations of each row, and of the whole
 * run. For a table and for JSON.
 */
#ifndef TRIB_SIM_REPORT_LINK_COUNTERS_H
#define TRIB_SIM_REPORT_LINK_COUNTERS_H

#include "host/bench/row.h"
#include "switch/net/net.h"

#include <stdio.h>

struct counters;
struct json_t;

/* named: [f->n_links] links to report even if they carried nothing; NULL: those that did.
 * 0 or -ENOMEM. */
int counters_create(struct counters **c, const struct fabric *f, const bool *named);
void counters_destroy(struct counters *c); /* NULL: nothing */
/* Around the timed operations of a row in one place. counters_end() leaves its JSON with the run;
 * 0 or -ENOMEM. */
void counters_begin(struct counters *c, struct net *n);
int counters_end(struct counters *c, struct net *n, struct row *r, int place);
/* The same around a run that has no rows: what names it in its table. */
int counters_end_run(struct counters *c, struct net *n, const char *what, double time_us);
/* Of the whole run so far; the caller owns it. NULL: out of memory. */
struct json_t *counters_total(struct counters *c, struct net *n);
/* Prints a table for each row, busiest links first. For rows that ran in and out of place it shows
 * the run out of place. */
void counters_print(const struct counters *c, FILE *out);

#endif
