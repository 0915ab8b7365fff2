/* SPDX-License-Identifier: BSD-3-Clause */
/* The prediction of an aggregation protocol: its own formula, with the fabric's times. */
#ifndef TRIB_MODEL_COST_PROTOCOL_H
#define TRIB_MODEL_COST_PROTOCOL_H

#include "model/predict.h"

/* tree: the job's trees, of which the protocol uses those of protocol_choose_trees(); n_trees 0:
 * none. Returns what coll_predict() does. */
int protocol_predict(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
                     const uint16_t *host_of_rank, const uint16_t *tree, unsigned n_trees,
                     struct coll_prediction *p);

#endif
