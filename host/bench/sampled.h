/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The possible results of a row's sampled elements. Normally the algorithm that runs the row leaves
 * one result (expected.h). If a failover broke off an operation, the row's own algorithm or any of
 * the policy may have completed it, in part by the chain of ranks that finishes the switches' work
 * (collective/repair.c): then each element may be any of these results. If a switch reduces in
 * order of arrival, or a protocol may have run the operation, there is no single right result, and
 * the row has no samples.
 */
#ifndef TRIB_HOST_BENCH_SAMPLED_H
#define TRIB_HOST_BENCH_SAMPLED_H

#include "host/bench/perf_options.h"
#include "host/bench/row.h"
#include "host/bench/verify/expected.h"

#define SAMPLED_WAYS  ((unsigned)ALGO_COUNT + 1)
#define SAMPLED_BYTES (SAMPLED_WAYS * SAMPLES_MAX * 8u) /* of `want`, at most */

struct sampled {
    uint8_t *want;  /* possible results, by way and sample; allocated when used */
    uint8_t *given; /* contributions by rank and sample; NULL: too many to keep */
    size_t given_bytes;
    unsigned ways; /* 0: the row has no samples, because there is no one right result */
    enum coll_algo by;
    bool cut;
    unsigned n_trees; /* trees of the group of all ranks */
    uint16_t tree[COLL_TREES];
    /* The row to which they belong. */
    struct samples at;
    enum coll_kind kind;
    enum dtype type;
    enum redop op;
    uint64_t count;
    unsigned root;
    bool mm_self;
};

/*
 * Computes s for row r, run by `by`. cut: a failover during the row may have broken off the
 * operation. Values of the same row that are there already stay. l: layout of any rank. 0; -ENOMEM;
 * -EINVAL: ranks' results would differ; -ECANCELED: j->stop returned true.
 */
int sampled_set(struct sampled *s, const struct expected_job *j, const struct perf_opts *o,
                const struct row *r, const struct layout *l, enum coll_algo by, bool cut);
size_t sampled_bytes(const struct sampled *s); /* of `want` in use */
void sampled_free(struct sampled *s);

#endif
