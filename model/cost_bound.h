/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times below which no prediction may be.
 *
 * The physical bound: ranks that some links join to all others (of a host, of a GPU node, of a unit,
 * of a pod) exchange payload with the others that no algorithm can avoid; these links need a time
 * for it. It is below what any schedule takes.
 */
#ifndef TRIB_MODEL_COST_BOUND_H
#define TRIB_MODEL_COST_BOUND_H

#include "collective/kinds.h"

/* 0 too: nothing has to be exchanged. -ENOMEM. */
int64_t bound_ps(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
                 const uint16_t *host_of_rank);

#endif
