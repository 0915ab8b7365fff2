/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The forwarding table of a node: from the destination's MAC to an egress port. Addresses of the
 * fabric need no table of MACs, because the IPv4 address is in the MAC (roce_mac_of_ip); an open
 * hash gives the next hops that fabric/ computed. Addresses of hosts outside the fabric are learned
 * from their frames, on ports of the spanning tree only, so that a chain of learned entries cannot
 * form a loop as long as no frame leaves by the port it came in.
 */
#ifndef TRIB_SWITCH_FIB_H
#define TRIB_SWITCH_FIB_H

#include "fabric/fabric.h"
#include "switch/classify.h"

/* An unreachable address of the fabric, or this node's own. */
#define FIB_NO_PORT 0xffffu
#define FIB_OUTSIDE 0xfffeu /* neither in the fabric nor learned */

struct fib;

int fib_create(struct fib **fib, const struct fabric *f, uint16_t node);
void fib_destroy(struct fib *fib);
/* Replaces the routes by those of another fabric with the same nodes and addresses
 * (fabric/routing/reroute.h). Forgets learned addresses. */
void fib_reroute(struct fib *fib, const struct fabric *f);
/* Egress port for a unicast MAC, FIB_NO_PORT or FIB_OUTSIDE. *any: it is the same for every frame
 * to this address. */
uint16_t fib_lookup(struct fib *fib, const uint8_t dst[6], const struct packet_class *k, bool *any);
/* The port of every frame to this address; FIB_NO_PORT: call fib_lookup(). */
uint16_t fib_only_port(const struct fib *fib, const uint8_t dst[6]);
/* A frame with this source came in by `port`, which is on the spanning tree. Addresses of the
 * fabric are not learned. */
void fib_learn(struct fib *fib, const uint8_t src[6], uint16_t port);
void fib_forget_port(struct fib *fib, uint16_t port);

#endif
