/* SPDX-License-Identifier: BSD-3-Clause */
/* Prefetches the cache lines that a start or an arrival reads (net_prefetch.c says when). */
#include "switch/queue/egress_priv.h"

#include "base/cacheline.h"

void egress_prefetch(const struct egress *e, bool starts)
{
    rte_prefetch0(&e->flight);
    if (starts)
        cacheline_prefetch(e, offsetof(struct egress, cfg));
}

const struct rte_mbuf *egress_arriving(const struct egress *e)
{
    return e->flight.n ? e->flight.first : NULL;
}

void egress_prefetch_frame(const struct egress *e, bool starts)
{
    const struct line *l = starts ? &e->q[FRAME_LOSSLESS].line : &e->flight;

    if (l->n)
        frame_prefetch(l->first);
}

void egress_prefetch_body(const struct egress *e)
{
    const struct rte_mbuf *m = e->flight.first;

    for (uint32_t i = RTE_CACHE_LINE_SIZE; e->flight.n && i < m->data_len; i += RTE_CACHE_LINE_SIZE)
        rte_prefetch1(rte_pktmbuf_mtod_offset(m, const char *, i));
}
