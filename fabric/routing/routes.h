/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes of a large fabric, which are computed on demand.
 */
#ifndef TRIB_FABRIC_ROUTING_ROUTES_H
#define TRIB_FABRIC_ROUTING_ROUTES_H

#include "fabric/fabric.h"

/* The number and the ports of the next hops from a switch to another one of its network, valid until the
 * next call with another destination; NULL: no route. */
const fab_id *routes_find(const struct fabric *f, fab_id from, fab_id to);

#endif
