/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * By an aggregation protocol: one step for each tree of the job. The protocol's instance on a tree
 * handles that tree's share of the vector.
 */
#include "collective/alg.h"

int alg_protocol_allreduce(struct alg *a)
{
    static const struct sched_trees one = {.n = 1};
    unsigned seat = a->s->in.algo - ALGO_PROTOCOL;
    const struct sched_topo *topo = a->s->in.topo;
    const struct sched_trees *t = topo && topo->protocol[seat].n ? &topo->protocol[seat] : &one;

    for (unsigned k = 0; k < t->n; k++) {
        struct step st = {.op = STEP_PROTOCOL, .last = true};
        uint64_t off;

        sched_share(a->s->in_bytes, a->s->esize, t->bps, t->n, k, &off, &st.len);
        if (!st.len && t->n > 1)
            continue;
        st.a = alg_ref(BUF_IN, off);
        st.dst = alg_ref(BUF_OUT, off);
        alg_put(a, LANE_PROTOCOL, k, seat, &st);
    }
    return 0;
}
