/* SPDX-License-Identifier: BSD-3-Clause */
/* The rates at which an aggregation tree's edges can send. */
#ifndef TRIB_FABRIC_TREE_RATE_H
#define TRIB_FABRIC_TREE_RATE_H

#include "fabric/fabric.h"

/* The rate at which all edges of a group's tree can send at the same time: that of the slowest link, shared
 * by the edges that cross it. hosts: includes the edges of hosts; otherwise only those between switches. 0:
 * there are none, there is no memory, or the tree does not reach all members. */
uint64_t fabric_tree_bps(const struct fabric *f, const struct fab_tree *t,
                         const struct fab_members *m, bool hosts);

/* The same for several trees of a group that are used at the same time, in bps[n]. They divide shared links;
 * what one tree cannot use, the others get. False: some tree does not reach all members, or there is no
 * memory. n: at most FAB_TREES_AT_ONCE. */
#define FAB_TREES_AT_ONCE 32u
bool fabric_tree_rates(const struct fabric *f, const fab_id *tree, unsigned n,
                       const struct fab_members *m, uint64_t *bps);

#endif
