/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the sampled elements of a row may be. As a rule the algorithm that runs it leaves one result
 * (expected.h). An operation that a failover has cut may have been done by the row's own algorithm,
 * by any of the policy, and in part by the chain of ranks that finishes what the switches have left
 * (collective/repair.c): then each element may be any of these. Where a switch reduces in order of
 * arrival, or a protocol may have done it, there is no one right result, and no sampled element.
 */
#ifndef TRIB_HOST_BENCH_SAMPLED_H
#define TRIB_HOST_BENCH_SAMPLED_H

#include "host/bench/perf_options.h"
#include "host/bench/row.h"
#include "host/bench/verify/expected.h"

#define SAMPLED_WAYS  ((unsigned)ALGO_COUNT + 1)
#define SAMPLED_BYTES (SAMPLED_WAYS * SAMPLES_MAX * 8u) /* of `want`, at most */

struct sampled {
    uint8_t *want;  /* by way and sample; allocated when used */
    uint8_t *given; /* contributions by rank and sample; NULL: too many to keep */
    size_t given_bytes;
    unsigned ways; /* 0: the row has no samples, because there is no one right result */
    enum coll_algo by;
    bool cut;
    unsigned n_trees; /* of all ranks */
    uint16_t tree[COLL_TREES];
    /* Of which row they are. */
    struct samples at;
    enum coll_kind kind;
    enum dtype type;
    enum redop op;
    uint64_t count;
    unsigned root;
    bool mm_self;
};

/*
 * Sets s for row r, run by `by`; cut: a failover during the row may have cut the operation that is
 * looked at. What is there already of the same row stays. l: of any rank. 0; -ENOMEM; -EINVAL: the schedules leave no
 * result that is the same at every rank; -ECANCELED: j->stop says so.
 */
int sampled_set(struct sampled *s, const struct expected_job *j, const struct perf_opts *o,
                const struct row *r, const struct layout *l, enum coll_algo by, bool cut);
size_t sampled_bytes(const struct sampled *s); /* of `want` in use */
void sampled_free(struct sampled *s);

#endif
