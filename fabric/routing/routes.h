/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes that are computed when they are asked for of a large fabric.
 */
#ifndef TRIB_FABRIC_ROUTING_ROUTES_H
#define TRIB_FABRIC_ROUTING_ROUTES_H

#include "fabric/fabric.h"

/* Count and ports of the next hops from a switch to another one of its network, valid until routes
 * to a third one are asked for; NULL: no route. */
const fab_id *routes_find(const struct fabric *f, fab_id from, fab_id to);

#endif
