/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRIB_FABRIC_TREE_ROOTS_H
#define TRIB_FABRIC_TREE_ROOTS_H

#include "fabric/build.h"

/* [n_nodes]: for roots a number that is equal for the same hosts; 0 for other nodes. Malloced; NULL and
 * b->no_memory when out of memory. */
uint64_t *tree_roots(struct build *b);

#endif
