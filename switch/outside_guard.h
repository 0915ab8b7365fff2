/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides which frames a switch admits from a port to the outside. A frame must not carry an address of
 * the fabric that is not behind that port. If the conf names the host behind the port, IPv4 and ARP must
 * carry that host's address (or none, as before a host has one). MACs of such hosts, and IPv6 addresses
 * that do not stand for one of the fabric, are free: the conf does not declare them.
 */
#ifndef TRIB_SWITCH_OUTSIDE_GUARD_H
#define TRIB_SWITCH_OUTSIDE_GUARD_H

#include "fabric/fabric.h"
#include "switch/source_guard.h"

/* SOURCE_ADMITTED, or why the frame is dropped. port: a port to the outside, with or without a link
 * to a host. k: as classified from m. */
enum drop outside_guard(const struct fabric *f, const struct fab_port *port, struct rte_mbuf *m,
                        const struct packet_class *k);

#endif
