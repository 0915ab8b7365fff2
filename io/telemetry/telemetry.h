/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Telemetry of a trib-switch: its counters and state by DPDK's protocol.
 *
 *   /trib/nodes                    nodes that this process runs
 *   /trib/ports[,NODE:PORT]        names; counters of one: drops by reason, its egress queue
 *   /trib/links[,NAME]             links that leave the process: to host processes, to other
 *                                  switch processes, to the outside
 *   /trib/link[,LINK[,WORD...]]    links with faults; the state of one; change it: down,
 *                                  up, clear, loss=0.1% and the other faults of a conf's link
 *   /trib/an[,NODE]                aggregation nodes and their counters
 *   /trib/totals                   sums over all ports
 *   /trib/capture/start,LINK,FILE  frames on LINK into FILE (pcap)
 *   /trib/capture/stop
 */
#ifndef TRIB_IO_TELEMETRY_H
#define TRIB_IO_TELEMETRY_H

#include "io/loop.h"

struct rte_tel_data;

/* Serves loop l; NULL ends it. One loop per process, because DPDK's callbacks carry no context. */
void telemetry_serve(struct loop *l, const bool *mine);
/* Answers one command, in the loop's thread. params: the text after the command's first comma, or NULL.
 * Leaves d as it is if there is no such command. */
void telemetry_answer(struct loop *l, const char *cmd, const char *params, struct rte_tel_data *d);

#endif
