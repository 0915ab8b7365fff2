/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fabric around links that are down. It is a fabric of its own, as immutable as the one it was
 * made from: same nodes, ports, links and addresses, but routes and the spanning tree use what is
 * left. The rule of routes stays: up, then down, never up again. A destination that cannot be
 * reached so has no next hops.
 */
#ifndef TRIB_FABRIC_ROUTING_REROUTE_H
#define TRIB_FABRIC_ROUTING_REROUTE_H

#include "fabric/fabric.h"

/* down: [f->n_links]. Links of hosts make no difference: there is no other way. f must outlive the
 * result, which fabric_free() frees. NULL: no memory. */
struct fabric *fabric_without(const struct fabric *f, const bool *down);

#endif
