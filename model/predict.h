/* SPDX-License-Identifier: BSD-3-Clause */
/* Predicted times of collectives on a fabric. */
#ifndef TRIB_MODEL_PREDICT_H
#define TRIB_MODEL_PREDICT_H

#include "collective/kinds.h"

/*
 * The predicted time, from the schedule and the fabric, without running anything.
 * time_ps: from the moment at which all ranks start to the one at which the last knows that it is
 * done. busiest_link_bytes: what the busiest direction of a link carries in all, layer-2 frames and
 * 24 bytes each for preamble, FCS and gap, one ACK a message included; so its utilisation is 8 *
 * bytes / (rate * time). busiest_dirlink: link * 2 + direction. handoffs: from process to process,
 * one after the other, on the critical path. No time is below what the payload takes on the links
 * that it has to cross (cost_bound.h). window as in comm_cfg; what the
 * switches' quotas leave the trees is applied. 0, -EINVAL, -ENOTSUP (no aggregation node of the
 * tree reaches all ranks), -ENOMEM.
 */
struct coll_prediction {
    int64_t time_ps;
    int64_t
        next_ps;  /* what an operation adds that follows another at once; 0: as much as the first */
    bool guessed; /* of a protocol without a formula, or of a schedule that is too long to be looked
                    at: of use for a dilation, and for nobody to see */
    bool hashed;  /* ecmp = "hash" chooses among ways, which are taken as balanced ECMP has them */
    unsigned within_percent; /* of a protocol: what runs without loss differ by; 0: unknown */
    uint64_t busiest_link_bytes;
    uint32_t busiest_dirlink;
    unsigned handoffs;
    unsigned
        from_ranks; /* extrapolated from a run of the model with so many; 0: it ran all ranks */
};
int coll_predict(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
                 const uint16_t *host_of_rank, uint16_t tree, uint32_t window,
                 struct coll_prediction *p);
/* The same over several trees; each rail takes the first one that reaches its ranks. */
int coll_predict_trees(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
                       const uint16_t *host_of_rank, const uint16_t *tree, unsigned n_trees,
                       uint32_t window, struct coll_prediction *p);

/*
 * ALGO_AUTO: the fastest by the model of the algorithms allowed (bit 1 << ALGO_x) that the fabric
 * can run; a->algo is not looked at. *p is its prediction, why (COLL_WHY bytes) says in words what
 * it was compared with. What coll_predict returns; -ENOTSUP: none can.
 */
#define COLL_WHY 160
int coll_auto(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
              const uint16_t *host_of_rank, const uint16_t *tree, unsigned n_trees, uint32_t window,
              unsigned allowed, enum coll_algo *algo, struct coll_prediction *p, char *why);

#endif
