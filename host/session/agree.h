/* SPDX-License-Identifier: BSD-3-Clause */
/* What every rank chooses by its own conf, and all have to have chosen alike before they rely on it. */
#ifndef TRIB_HOST_SESSION_AGREE_H
#define TRIB_HOST_SESSION_AGREE_H

#include "host/coll/coll.h"

struct agreed {
    uint16_t n_trees, tree[COLL_TREES];
};

/* False: `why` says what `mine` has and what rank 0 has. */
bool agree_with(const struct agreed *mine, const struct agreed *rank0, char *why, size_t size);

#endif
