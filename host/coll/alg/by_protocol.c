/* SPDX-License-Identifier: BSD-3-Clause */
/* By an aggregation protocol: one step of the whole vector, which is the protocol's affair. */
#include "host/coll/alg/alg.h"

int alg_protocol_allreduce(struct alg *a)
{
    struct step st = {.op = STEP_PROTOCOL,
                      .last = true,
                      .a = alg_ref(BUF_IN, 0),
                      .dst = alg_ref(BUF_OUT, 0),
                      .len = a->s->in_bytes};

    alg_put(a, LANE_PROTOCOL, 0, a->s->in.algo - ALGO_PROTOCOL, &st);
    return 0;
}
