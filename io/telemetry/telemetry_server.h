/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The telemetry socket of a trib-switch, in place of DPDK's own: that one serves ten connections, and
 * whoever holds them locks everybody else out. This one speaks the same protocol at the same path
 * and passes commands on by a single connection to DPDK's.
 *
 * At most TELEMETRY_CLIENTS are connected. A new one takes the place of the one that has been idle
 * longest, if that is at least TELEMETRY_IDLE_NS. A client that sends more than a command's length,
 * or does not read its answers, is disconnected.
 */
#ifndef TRIB_IO_TELEMETRY_SERVER_H
#define TRIB_IO_TELEMETRY_SERVER_H

#define TELEMETRY_CLIENTS 64 /* limit: telemetry connections of a process */
#define TELEMETRY_IDLE_NS 100000000

/* Takes over the socket of that path, which DPDK has made, for as long as the process lives. 0 or
 * -errno: DPDK's own serves on. */
int telemetry_server_start(const char *path);

#endif
