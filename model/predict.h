/* SPDX-License-Identifier: BSD-3-Clause */
/* Predicted times of collectives on a fabric. */
#ifndef TRIB_MODEL_PREDICT_H
#define TRIB_MODEL_PREDICT_H

#include "collective/kinds.h"

/*
 * The predicted time, computed from schedule and fabric without running anything.
 *
 * time_ps: from the common start of all ranks until the last one knows that it is done; never below
 * the bound of cost_bound.h. busiest_link_bytes: bytes on the busiest direction of a link: layer-2
 * frames, 24 bytes each for preamble, FCS and gap, and one ACK per message; so its utilisation is 8
 * * bytes / (rate * time). busiest_dirlink: link * 2 + direction. handoffs: hand-offs between
 * processes, one after the other, on the critical path. window: as in comm_cfg, after the switches'
 * quotas are applied. 0, -EINVAL, -ENOTSUP (no aggregation node of the tree reaches all ranks),
 * -ENOMEM.
 */
struct coll_prediction {
    int64_t time_ps;
    int64_t
        next_ps;  /* what an operation adds that follows another at once; 0: as much as the first */
    bool guessed; /* of a protocol without a formula, or of a schedule that is too long to be looked
                    at: of use for a dilation, and for nobody to see */
    bool hashed;  /* ecmp = "hash" chooses paths; the prediction uses those of balanced ECMP */
    unsigned within_percent; /* of a protocol: deviation of runs without loss; 0: unknown */
    uint64_t busiest_link_bytes;
    uint32_t busiest_dirlink;
    unsigned handoffs;
    unsigned
        from_ranks; /* extrapolated from a run of the model with so many; 0: it ran all ranks */
};
int coll_predict(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
                 const uint16_t *host_of_rank, uint16_t tree, uint32_t window,
                 struct coll_prediction *p);
/* As coll_predict(), over several trees. Each rail uses the first one that reaches its ranks. */
int coll_predict_trees(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
                       const uint16_t *host_of_rank, const uint16_t *tree, unsigned n_trees,
                       uint32_t window, struct coll_prediction *p);

/*
 * ALGO_AUTO: chooses, among the allowed algorithms (bits 1 << ALGO_x) that the fabric can run, the
 * one with the shortest prediction; a->algo is ignored. *p: its prediction; why (COLL_WHY bytes): a
 * sentence with the algorithms that it was compared with. Returns what coll_predict() does;
 * -ENOTSUP: none can run.
 */
#define COLL_WHY 160
int coll_auto(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
              const uint16_t *host_of_rank, const uint16_t *tree, unsigned n_trees, uint32_t window,
              unsigned allowed, enum coll_algo *algo, struct coll_prediction *p, char *why);

#endif
