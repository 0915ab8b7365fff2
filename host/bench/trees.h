/* SPDX-License-Identifier: BSD-3-Clause */
/* Selects the aggregation trees among which a group of ranks shares its vectors. */
#ifndef TRIB_HOST_BENCH_TREES_H
#define TRIB_HOST_BENCH_TREES_H

#include "host/coll/coll.h"

/*
 * Selects the trees of the scale-out network that reach all ranks; else those within the GPU node
 * that do; else the trees of the rails, each of which uses one that reaches its ranks. Returns
 * their number.
 */
unsigned trees_choose(const struct fabric *f, unsigned nranks, const uint16_t *host_of_rank,
                      uint16_t tree[COLL_TREES]);

#endif
