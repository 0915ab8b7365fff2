/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The oracle: the result of a collective, computed in the plainest way.
 */
#ifndef TRIB_SIM_JOB_ORACLE_H
#define TRIB_SIM_JOB_ORACLE_H

#include "aggregation/arith.h"
#include "fabric/fabric.h"
#include "host/coll/coll.h"

/*
 * Fills a rank's input. any_order: small whole numbers whose result is exact whatever the order (a
 * ring's order is not the tree's); else random bits, finite for floats, so that order and rounding
 * show.
 */
void oracle_fill(void *buf, enum dtype t, enum redop op, size_t count, unsigned rank,
                 unsigned nranks, uint64_t seed, bool any_order);

/* The all-reduce of in[0..nranks) by the group's tree: children in order at every AN, one pass each
 * (arith.h's rule). out: count elements. */
int oracle_tree(const struct fabric *f, const struct fab_tree *t, const struct fab_members *m,
                enum dtype type, enum redop op, size_t count, const void *const *in, void *out);
/* The all-reduce in order of rank. */
void oracle_plain(enum dtype type, enum redop op, size_t count, unsigned nranks,
                  const void *const *in, void *out);
/*
 * The receive buffer that `rank` must have after a collective, from all ranks' send buffers (of a
 * broadcast or scatter only the root's is read). reduced: the reduction of all of in[],
 * where the collective reduces. Writes `out`, whose other bytes stay as they are; returns how many
 * from its beginning on are the collective's (0: none on this rank).
 */
size_t oracle_expect(const struct coll_args *a, unsigned rank, unsigned nranks,
                     const void *const *in, const void *reduced, void *out);
/* Elements of a rank's send and receive buffers, as coll_args.count counts. */
size_t oracle_in_count(const struct coll_args *a, unsigned rank, unsigned nranks);
size_t oracle_out_count(const struct coll_args *a, unsigned rank, unsigned nranks);
/* Elements of a that differ from b in any bit. */
uint64_t oracle_wrong(const void *a, const void *b, enum dtype type, size_t count);

#endif
