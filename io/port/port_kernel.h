/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel knows of an interface that a port to the outside uses, and DPDK does not say. */
#ifndef TRIB_IO_PORT_KERNEL_H
#define TRIB_IO_PORT_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

/* The packet socket by which this process (its driver af_packet) receives from the interface: a
 * descriptor that stays the driver's; -1: there is none. */
int port_kernel_socket(const char *iface);
/* Frames that the socket's ring had no room for, since the last call. */
uint64_t port_kernel_missed(int socket);
/* Whether senders behind the interface, a veth or tap, leave checksums of TCP and UDP out, as far as
 * this end of it shows. */
bool port_kernel_omits_checksums(const char *iface);

#endif
