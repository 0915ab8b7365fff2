/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The telemetry socket of a trib-switch, in place of DPDK's own. DPDK's serves ten connections, and
 * whoever holds them locks everybody else out. This one speaks the same protocol at the same path, and
 * passes commands on by a single connection to DPDK's.
 *
 * It serves at most TELEMETRY_CLIENTS. A further client replaces the one that has been idle longest, if
 * that is at least TELEMETRY_IDLE_NS. It disconnects clients that send more than a command's length or
 * do not read their answers.
 */
#ifndef TRIB_IO_TELEMETRY_SERVER_H
#define TRIB_IO_TELEMETRY_SERVER_H

#define TELEMETRY_CLIENTS 64 /* limit: telemetry connections of a process */
#define TELEMETRY_IDLE_NS 100000000

/* Takes over the socket at that path, which DPDK has made, until the process ends. 0 or -errno: DPDK's
 * own continues to serve. */
int telemetry_server_start(const char *path);

#endif
