/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What switches reach, without a table of routes: sets of the ends of their network, which are its
 * switches with hosts, and who is attached to them.
 */
#ifndef TRIB_FABRIC_ROUTING_REACH_H
#define TRIB_FABRIC_ROUTING_REACH_H

#include "fabric/build.h"

struct reach_host {
    fab_id host, end; /* nodes */
    fab_id port;      /* of the host */
    bool several;     /* the host has further ports at the network */
};

struct reach {
    unsigned *words; /* [n_networks] 64 ends each, of a set */
    size_t *at;      /* [n_networks] sets of its first switch in down and all */
    fab_id *end;     /* [n_nodes] number of the switch among the ends of its network */
    uint64_t *down;  /* ends that are reached without going up, */
    uint64_t *all;   /* and at all */
    size_t *first;   /* [n_networks + 1] attached hosts, in order of hosts */
    struct reach_host *attached;
};

const uint64_t *reach_down(const struct fabric *f, const struct reach *r, fab_id node);
const uint64_t *reach_all(const struct fabric *f, const struct reach *r, fab_id node);

static inline bool reach_has(const uint64_t *set, fab_id end)
{
    return set[end / 64] >> (end % 64) & 1;
}

#endif
