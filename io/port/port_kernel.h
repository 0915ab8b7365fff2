/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel knows, and DPDK does not report, about the interface of a port to the outside. */
#ifndef TRIB_IO_PORT_KERNEL_H
#define TRIB_IO_PORT_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

/* The packet socket by which this process's af_packet driver receives from the interface. The driver
 * keeps the descriptor; -1: there is none. */
int port_kernel_socket(const char *iface);
/* Frames dropped since the last call because the socket's ring was full. */
uint64_t port_kernel_missed(int socket);
/* Whether senders behind the interface (a veth or tap) leave out checksums of TCP and UDP, judged by
 * this end of it. */
bool port_kernel_omits_checksums(const char *iface);

#endif
