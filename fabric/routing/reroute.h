/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fabric that routes around links that are down: a new immutable fabric with the same nodes,
 * ports, links and addresses, whose routes and spanning tree use only links that are up. Routes
 * still go up, then down, never up again. A destination that is unreachable by this rule has no
 * next hops.
 */
#ifndef TRIB_FABRIC_ROUTING_REROUTE_H
#define TRIB_FABRIC_ROUTING_REROUTE_H

#include "fabric/fabric.h"

/* down: [f->n_links]. Links of hosts have no effect, because hosts have no alternative. f must outlive the
 * result, which the caller frees by fabric_free(). NULL: out of memory. */
struct fabric *fabric_without(const struct fabric *f, const bool *down);

#endif
