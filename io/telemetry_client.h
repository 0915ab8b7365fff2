/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Client of DPDK's telemetry sockets, of all processes of a fabric at once.
 */
#ifndef TRIB_IO_TELEMETRY_CLIENT_H
#define TRIB_IO_TELEMETRY_CLIENT_H

/*
 * Sends a command to the processes of the fabric in run directory dir, or only to that named proc
 * if it is not NULL, and prints one JSON object with an answer for each. Lists without a name
 * (/trib/ports, /trib/links, /trib/an) are followed into each entry. program: for messages. Returns
 * 0, or 1 with a message if no process executed it.
 */
int telemetry_client_query(const char *program, const char *dir, const char *proc, const char *cmd);

#endif
