/* SPDX-License-Identifier: BSD-3-Clause */
/* Aggregation protocols, as far as the options of trib-perf and trib-sim name them. */
#ifndef TRIB_HOST_BENCH_PERF_PROTOCOLS_H
#define TRIB_HOST_BENCH_PERF_PROTOCOLS_H

/* Before options are read: loads the shared objects that a conf file among the arguments names, so
 * that their protocols are algorithms. 0; -errno of a protocol that cannot be had, and says so. */
int perf_load_protocols(int argc, char **argv);
/* Adds the shared objects that are loaded to where results come from. */
struct provenance;
void perf_protocol_files(struct provenance *p);

#endif
