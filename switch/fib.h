/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a node sends a frame: from the destination's MAC to an egress port. Inner addresses need no
 * table of MACs, the address is in the MAC (roce_mac_of_ip), and an open hash gives the next hops
 * that fabric/ computed. Addresses of hosts outside the fabric are learned from what they send, on
 * ports of the spanning tree only, so that a chain of learned entries can never close to a loop as
 * long as no frame leaves by the port it came in.
 */
#ifndef TRIB_SWITCH_FIB_H
#define TRIB_SWITCH_FIB_H

#include "fabric/fabric.h"
#include "switch/classify.h"

#define FIB_NO_PORT                                                                                \
    0xffffu                 /* inner address that cannot be reached from here, or this node's own  \
                             */
#define FIB_OUTSIDE 0xfffeu /* not an address of the fabric, and not learned */

struct fib;

int fib_create(struct fib **fib, const struct fabric *f, uint16_t node);
void fib_destroy(struct fib *fib);
/* Routes of another fabric of the same nodes and addresses (fabric/routing/reroute.h). What was learned of
 * the outside is forgotten. */
void fib_reroute(struct fib *fib, const struct fabric *f);
/* Egress port for a unicast MAC, FIB_NO_PORT or FIB_OUTSIDE. *any: it is so for every frame to this
 * address. */
uint16_t fib_lookup(struct fib *fib, const uint8_t dst[6], const struct packet_class *k, bool *any);
/* What a lookup begins with, then (when that is there) where it finds this address, are on their
 * way into the CPU's caches. */
void fib_prefetch(const struct fib *fib);
void fib_prefetch_to(const struct fib *fib, const uint8_t dst[6]);
/* The port of every frame to this address, or FIB_NO_PORT: fib_lookup() knows. */
uint16_t fib_only_port(const struct fib *fib, const uint8_t dst[6]);
/* A frame with this source came in by `port`, one of the spanning tree. Inner addresses are not
 * learned. */
void fib_learn(struct fib *fib, const uint8_t src[6], uint16_t port);
void fib_forget_port(struct fib *fib, uint16_t port);

#endif
