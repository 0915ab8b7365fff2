/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which hosts each switch reaches, without a table of routes: for each switch the set of ends that it
 * reaches, which are the switches of its network with hosts, and the hosts attached to each end.
 */
#ifndef TRIB_FABRIC_ROUTING_REACH_H
#define TRIB_FABRIC_ROUTING_REACH_H

#include "fabric/build.h"

struct reach_host {
    fab_id host, end; /* node indices */
    fab_id port;      /* of the host */
    bool several;     /* the host has more ports in this network */
};

struct reach {
    unsigned *words; /* [n_networks] words of a set, 64 ends each */
    size_t *at;      /* [n_networks] where its first switch's set begins in down and all */
    fab_id *end;     /* [n_nodes] number of a switch among the ends of its network */
    uint64_t *down;  /* ends that a switch reaches without going up, */
    uint64_t *all;   /* and by any route */
    size_t *first;   /* [n_networks + 1] attached hosts, sorted by host */
    struct reach_host *attached;
};

const uint64_t *reach_down(const struct fabric *f, const struct reach *r, fab_id node);
const uint64_t *reach_all(const struct fabric *f, const struct reach *r, fab_id node);

static inline bool reach_has(const uint64_t *set, fab_id end)
{
    return set[end / 64] >> (end % 64) & 1;
}

#endif
