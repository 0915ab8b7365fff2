/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks that ranks send to servers, and results that come back (struct trib_exchange), packet by
 * packet over the queues of links: for vectors so short that no steady state follows, as well as for
 * long ones, which are extrapolated.
 */
#ifndef TRIB_MODEL_COST_EXCHANGE_H
#define TRIB_MODEL_COST_EXCHANGE_H

#include <tributary/protocol.h>
#include "protocols/host/path.h"

/* What an exchange is walked on. round_trip_ps, notice_ps: as in struct trib_rank.
 * timeout_ps: after which a rank sends again; 0: as long as full windows take at rate_bps. */
struct exchange_on {
    const struct proto_ways *ways;
    const uint16_t *host_of_rank;
    unsigned nranks;
    int64_t round_trip_ps, notice_ps, timeout_ps;
    uint64_t rate_bps; /* of the slowest link */
};

/* Its time in ps; 0: it has too many packets, or is none (a protocol may ask for anything); -ENOTSUP:
 * ways are not known; -EDEADLK: it does not end; -ENOMEM. waited: for timeouts of
 * ranks, which the next operation may have none of, or more. */
int64_t exchange_predict(const struct exchange_on *on, const struct trib_exchange *x, bool *waited);

/* When operations that follow each other without a pause end, in ps: a rank begins the next one when it
 * has all results of one, while others wait for theirs. How many were walked: EXCHANGE_OPS at
 * most, fewer where that is long; 0: they are so long that it does not show, or of what
 * exchange_predict() refuses. */
#define EXCHANGE_OPS 9u
unsigned exchange_ops(const struct exchange_on *on, const struct trib_exchange *x,
                      int64_t end_ps[EXCHANGE_OPS]);

#endif
