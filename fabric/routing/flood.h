/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The spanning tree on which frames without a known destination are flooded: one per network, from
 * its highest switch, so that such a frame takes few hops.
 */
#ifndef TRIB_FABRIC_ROUTING_FLOOD_H
#define TRIB_FABRIC_ROUTING_FLOOD_H

#include "fabric/fabric.h"

/* Fills in `flood` of every port, from links, kinds and tiers. 0 or -ENOMEM. */
int flood_build(struct fabric *f);

#endif
