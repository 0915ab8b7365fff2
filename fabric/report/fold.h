/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which nodes share a box of a picture, so that it is narrow enough to read: steps from a box for
 * each node to one for each role. A step applies to the whole picture; whoever draws takes the
 * first that fits.
 */
#ifndef TRIB_FABRIC_REPORT_FOLD_H
#define TRIB_FABRIC_REPORT_FOLD_H

#include "fabric/fabric.h"

#define FOLD_HOSTS   64 /* that have a box each; more are folded */
#define FOLD_DOMAINS 12 /* GPU nodes that have a box each; more are folded, too */

enum fold {
    FOLD_NONE,
    FOLD_NODES, /* the hosts of a GPU node with its NVSwitches, and those GPU nodes that are attached
                   to the same switches alike; the hosts of a leaf */
    FOLD_TWINS, /* also switches with the same neighbours */
    FOLD_PODS,  /* all that is alike in a pod: what is joined without the highest switches */
    FOLD_ALIKE, /* all that is alike: of one role, with alike neighbours */
    FOLD_ROLES,
    FOLDS
};

/* Equal numbers share a box; 0: a box of its own. key: [f->n_nodes]. -ENOMEM. */
int fold_keys(const struct fabric *f, enum fold fold, uint64_t *key);

#endif
