/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses an aggregation tree for each rail of a job, for ranks, models and checks alike. */
#ifndef TRIB_FABRIC_TREE_RAILS_H
#define TRIB_FABRIC_TREE_RAILS_H

#include "fabric/fabric.h"

#define FAB_JOB_TREES 8 /* limit: aggregation trees that a job uses */

/* The ranks of a job; those of one place in their GPU nodes are a rail. */
struct fab_rails {
    unsigned n;
    const fab_id *host, *place; /* [n] index of a rank's host; place < n */
};

/* Writes to tree[] for each of the first n_rails rails the index of its tree; n_trees: none reaches all of
 * its ranks. Rails choose in order. Each takes the tree on which its slowest link is fastest, given what
 * earlier rails send; of equal ones the first. So rails take roots and links of their own as long as there
 * are any, and a rail below one switch stays on the first tree. 0 or -ENOMEM. */
int fabric_rail_trees(const struct fabric *f, const fab_id *tree, unsigned n_trees,
                      const struct fab_rails *r, unsigned n_rails, unsigned *choice);
/* The same for one rail. Returns the index, n_trees: none, or -ENOMEM. */
int fabric_rail_tree(const struct fabric *f, const fab_id *tree, unsigned n_trees,
                     const struct fab_rails *r, unsigned rail);

#endif
