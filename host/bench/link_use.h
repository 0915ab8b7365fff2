/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What links carried during the timed operations of a row: measured by the egress queues that send
 * into them, in the model's unit. A frame counts its layer-2 bytes and 24 bytes for preamble, FCS
 * and gap when it starts on the link, whether it arrives or is lost there.
 */
#ifndef TRIB_HOST_BENCH_LINK_USE_H
#define TRIB_HOST_BENCH_LINK_USE_H

#include "fabric/fabric.h"

#define LINK_USE_WHY 160

struct link_use {
    bool known;
    uint64_t bytes;         /* of the busiest direction, by all timed operations together */
    uint64_t rate_bps;      /* of its link */
    char why[LINK_USE_WHY]; /* it is not known; "": nothing was measured */
};

/* The direction that was busy for the longest time; of several the first. before, after:
 * [2 * n_links] bytes sent so far, by link * 2 + direction. */
struct link_use link_use_busiest(const struct fabric *f, const uint64_t *before,
                                 const uint64_t *after);
/* Bytes of one of n operations. */
double link_use_bytes(const struct link_use *u, unsigned n);
/* Share of the time of n operations of time_us each for which the direction was busy, 0..1. */
double link_use_share(const struct link_use *u, unsigned n, double time_us);

#endif
