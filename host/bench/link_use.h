/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes on links during the timed operations of a row, as the egress queues measure them, in the
 * model's unit. A frame counts when it starts on the link, even if it is lost there: its layer-2
 * bytes, and 24 bytes for preamble, FCS and gap.
 */
#ifndef TRIB_HOST_BENCH_LINK_USE_H
#define TRIB_HOST_BENCH_LINK_USE_H

#include "fabric/fabric.h"

#define LINK_USE_WHY 160

struct link_use {
    bool known;
    uint64_t bytes;         /* bytes of all timed operations on the busiest direction */
    uint64_t rate_bps;      /* of its link */
    char why[LINK_USE_WHY]; /* it is not known; "": nothing was measured */
};

/* Finds the direction that was busy for the longest time; of equal ones the first. before, after:
 * [2 * n_links] bytes sent so far, by link * 2 + direction. */
struct link_use link_use_busiest(const struct fabric *f, const uint64_t *before,
                                 const uint64_t *after);
/* Bytes of one of n operations. */
double link_use_bytes(const struct link_use *u, unsigned n);
/* Fraction of the time of n operations of time_us each in which the direction was busy, 0..1. */
double link_use_share(const struct link_use *u, unsigned n, double time_us);

#endif
