/* SPDX-License-Identifier: BSD-3-Clause */
/* Choices that each rank makes from its own conf, and that must be equal at all ranks. */
#ifndef TRIB_HOST_SESSION_AGREE_H
#define TRIB_HOST_SESSION_AGREE_H

#include "host/coll/coll.h"

struct agreed {
    uint16_t n_trees, tree[COLL_TREES];
};

/* Whether both are equal. False: `why` has the difference between `mine` and `rank0`. */
bool agree_with(const struct agreed *mine, const struct agreed *rank0, char *why, size_t size);

#endif
