/* SPDX-License-Identifier: BSD-3-Clause */
/* What the links of an aggregation tree carry. */
#ifndef TRIB_FABRIC_TREE_RATE_H
#define TRIB_FABRIC_TREE_RATE_H

#include "fabric/fabric.h"

/* The rate at which each edge of a group's tree can send at the same time: of the slowest link that
 * they use, shared by the edges that cross it. hosts: those of hosts too; else between switches
 * alone. 0: there are none, no memory, or the tree does not reach all members. */
uint64_t fabric_tree_bps(const struct fabric *f, const struct fab_tree *t,
                         const struct fab_members *m, bool hosts);

/* The same of several trees of a group that are used at the same time, in bps[n]: links that they
 * share are divided among them, and what a tree cannot use the others have. False: some tree does
 * not reach all members, or there is no memory. n: at most FAB_TREES_AT_ONCE. */
#define FAB_TREES_AT_ONCE 32u
bool fabric_tree_rates(const struct fabric *f, const fab_id *tree, unsigned n,
                       const struct fab_members *m, uint64_t *bps);

#endif
