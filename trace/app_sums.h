/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations and bytes of a rank by kind. */
#ifndef TRIB_TRACE_APP_SUMS_H
#define TRIB_TRACE_APP_SUMS_H

#include "trace/app_graph.h"

struct app_sums {
    uint64_t n[APP_KINDS], bytes[APP_KINDS], ns[APP_KINDS];
    uint64_t coll_n[APP_COLLS], coll_bytes[APP_COLLS];
    uint64_t deps, start_deps; /* that wait for an end, for a start */
    uint64_t any;              /* receives from any source, or of any tag */
    uint64_t marks;            /* sends of 0 bytes to no rank: Schedgen's mark of a collective */
    uint64_t busy_ns;          /* computation of the stream with most of it */
    uint32_t busy_stream;
};

/* Sums of one rank. */
void app_sums_of(const struct app_graph *g, uint32_t rank, struct app_sums *s);
/* Adds those of another rank; the busy stream is that of the busier one. */
void app_sums_join(struct app_sums *s, const struct app_sums *of);

/* A send that is no message: of 0 bytes, to a rank beyond all. */
static inline bool app_op_is_mark(const struct app_graph *g, const struct app_op *op)
{
    return op->kind == APP_SEND && !op->bytes && op->peer >= g->n_ranks;
}

#endif
