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

#endif
