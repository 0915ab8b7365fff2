/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rate and latency of a link while its fabric runs: how far `trib link` and fault plans may change those of
 * the conf. PFC's headroom and the pace at which a host's programs send are set for the conf's terms and do
 * not change, so every process of a fabric decides alike, by the conf alone.
 */
#ifndef TRIB_FABRIC_LINK_TERMS_H
#define TRIB_FABRIC_LINK_TERMS_H

#include "fabric/fabric.h"

#define LINK_TERMS_WHY                                                                             \
    112 /* fits an answer of DPDK's telemetry, of 128 bytes, with a link's name */
/* Bounds of a rate, as in conf files: 1 Mb/s, and 100 Tb/s, where the shortest frame lasts 6.7 ps. */
#define LINK_TERMS_MIN_BPS 1000000ull
#define LINK_TERMS_MAX_BPS 100000000000000ull

struct link_terms {
    uint64_t rate_bps;
    int64_t latency_ps; /* of the link alone, as in the conf */
};

struct link_terms link_terms_of_conf(const struct fabric *f, unsigned link);
/* Whether the link leads outside of the fabric, so that its far end keeps its own terms. */
bool link_terms_fixed(const struct fabric *f, unsigned link);
/* 0, or -EINVAL with "rate: found ..., expected ..." in why. */
int link_terms_check(const struct fabric *f, unsigned link, const struct link_terms *t, char *why,
                     size_t size);
/* Prints the terms that differ from the conf: "rate=100Gb/s latency=1us"; empty if none do. */
void link_terms_print(const struct fabric *f, unsigned link, const struct link_terms *t, char *buf,
                      size_t size);

#endif
