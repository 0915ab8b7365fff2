/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lower bounds for predictions.
 *
 * The physical bound: take the ranks of a host, GPU node, unit or pod, and the links that join them
 * to all others. No algorithm can avoid sending a certain payload over these links, and the time
 * that they need for it is below that of any schedule.
 */
#ifndef TRIB_MODEL_COST_BOUND_H
#define TRIB_MODEL_COST_BOUND_H

#include "collective/kinds.h"

/* The bound in ps; 0: nothing has to be exchanged. -ENOMEM. */
int64_t bound_ps(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
                 const uint16_t *host_of_rank);

#endif
