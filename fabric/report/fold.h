/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides which nodes share a box of a picture, so that it is narrow enough to read: in steps from a box for
 * each node to one for each role. A step applies to the whole picture; the caller takes the first that fits.
 */
#ifndef TRIB_FABRIC_REPORT_FOLD_H
#define TRIB_FABRIC_REPORT_FOLD_H

#include "fabric/fabric.h"

#define FOLD_HOSTS   64 /* at most so many hosts have a box each */
#define FOLD_DOMAINS 12 /* at most so many GPU nodes have a box each */

enum fold {
    FOLD_NONE,
    FOLD_NODES, /* the hosts of a GPU node with its NVSwitches, and GPU nodes that are attached to
                   the same switches alike; the hosts of a leaf */
    FOLD_TWINS, /* also switches with the same neighbours */
    FOLD_PODS,  /* also all nodes that are alike in a pod: joined without the highest switches */
    FOLD_ALIKE, /* also all nodes that are alike: of one role, with alike neighbours */
    FOLD_ROLES,
    FOLDS
};

/* Writes key[f->n_nodes]: nodes with equal numbers share a box, one with 0 has its own. -ENOMEM. */
int fold_keys(const struct fabric *f, enum fold fold, uint64_t *key);

#endif
