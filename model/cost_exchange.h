/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Predicts exchanges (struct trib_exchange): ranks send blocks to servers, and results come back.
 * It walks each packet over the queues of links, so short vectors that never reach a steady state
 * are covered, too. Long vectors are extrapolated.
 */
#ifndef TRIB_MODEL_COST_EXCHANGE_H
#define TRIB_MODEL_COST_EXCHANGE_H

#include <tributary/protocol.h>
#include "protocols/host/path.h"

/* The fabric of an exchange. round_trip_ps, notice_ps: as in struct trib_rank. timeout_ps: time
 * after which a rank sends again; 0: derived from the time of full windows at rate_bps. */
struct exchange_on {
    const struct proto_ways *ways;
    const uint16_t *host_of_rank;
    unsigned nranks;
    int64_t round_trip_ps, notice_ps, timeout_ps;
    uint64_t rate_bps; /* of the slowest link */
};

/* The time of an exchange in ps. 0: it has too many packets, or its values are not valid (a
 * protocol may pass any). -ENOTSUP: paths are not known; -EDEADLK: it does not end; -ENOMEM.
 * *waited: ranks had timeouts; the next operation may have more or none. */
int64_t exchange_predict(const struct exchange_on *on, const struct trib_exchange *x, bool *waited);

/* End times in ps of operations that follow each other without a pause: a rank begins the next one
 * once it has all results, while others may still wait for theirs. Returns how many were walked: at
 * most EXCHANGE_OPS, fewer if that costs too much. 0: they are so long that the overlap does not
 * matter, or exchange_predict() refuses them. */
#define EXCHANGE_OPS 9u
unsigned exchange_ops(const struct exchange_on *on, const struct trib_exchange *x,
                      int64_t end_ps[EXCHANGE_OPS]);

#endif
