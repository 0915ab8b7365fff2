/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The result of a reducing collective at its sampled elements (samples.h), bit for bit: the
 * schedules of all ranks are run here, without time and on the sampled elements alone, by the plain
 * rule of rule.h. The order of a sum is the schedules'; in aggregation nodes that of the tree,
 * children in order of index and one rounding a node; in NVSwitches that of the members.
 */
#ifndef TRIB_HOST_BENCH_VERIFY_EXPECTED_H
#define TRIB_HOST_BENCH_VERIFY_EXPECTED_H

#include "host/bench/verify/samples.h"

/* The ranks, and the trees that they have joined. */
struct expected_job {
    const struct fabric *fab;
    unsigned nranks;
    const uint16_t *host_of_rank;
    unsigned n_trees;
    const uint16_t *tree; /* of the group of all ranks, in order of their channels */
    unsigned n_rail_trees;
    const uint16_t *rail_tree; /* each rail takes one: fabric_rail_trees() */
    bool (*stop)(void *ctx);   /* asked now and then; true: give up. NULL: never */
    void *stop_ctx;
};

/*
 * Writes the result at sample i to out[i] (elements of a->type). Uses a->kind, algo, count, type,
 * op, root, mm_self and file, but no buffers. repaired: as after a failover that finds no message
 * of an operation by SHARP done (collective/repair.c). 0; -ENOTSUP: there is no such schedule;
 * -ENODATA: a switch reduces in order of arrival, so that there is no single right result; -EINVAL:
 * ranks would end with different bits; -ECANCELED: stopped; -ENOMEM.
 */
int expected_values(const struct expected_job *j, const struct coll_args *a, bool in_place,
                    bool repaired, const struct samples *s, uint8_t *out);

#endif
