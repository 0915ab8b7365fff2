/* SPDX-License-Identifier: BSD-3-Clause */
/* Aggregation protocols that options of trib-perf and trib-sim name. */
#ifndef TRIB_HOST_BENCH_PERF_PROTOCOLS_H
#define TRIB_HOST_BENCH_PERF_PROTOCOLS_H

/* Call before options are read. Loads the shared objects that a conf file among the arguments
 * names, so that their protocols are algorithms. 0, or -errno with a message. */
int perf_load_protocols(int argc, char **argv);
/* Adds the loaded shared objects to the origin of results. */
struct provenance;
void perf_protocol_files(struct provenance *p);

#endif
