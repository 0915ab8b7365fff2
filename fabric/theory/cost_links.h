/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an algorithm's messages put on single links. The formulas of cost.h divide what crosses a
 * level by all of its links. Balanced ECMP gives each flow one way, and where flows do not divide
 * evenly among the links, or meet above the leaves, the link with the most of them takes longer.
 * So each level's time is raised to that of its busiest link, in payload, by the routes that frames
 * take. With ecmp = "hash" no flow has a way of its own, and nothing is raised; nor is it in a
 * large fabric (fabric_is_large()), where pairs of hosts are too many.
 */
#ifndef TRIB_FABRIC_THEORY_COST_LINKS_H
#define TRIB_FABRIC_THEORY_COST_LINKS_H

#include "fabric/theory/cost.h"

/* Who sends to whom, between GPU nodes (or hosts). Nodes are those of the axis, of equal size. */
enum cost_flows {
    COST_FLOWS_NONE,
    COST_FLOWS_RING,   /* each member to the next one; */
    COST_FLOWS_RINGS,  /* in rings of all members, a ring for each GPU of a node (rings.c); */
    COST_FLOWS_RAILS,  /* each GPU to that of its own place in the next node; */
    COST_FLOWS_TREES,  /* the GPUs of one place in their nodes up the tree of their rail; */
    COST_FLOWS_SHARP,  /* all members up all trees that have them, by the trees' rates; */
    COST_FLOWS_DIRECT, /* each member to each one of another node; */
    COST_FLOWS_PXN,    /* each GPU to those of its own place in all other nodes */
    COST_N_FLOWS
};

/* A way on idle links: latency, and time of a byte on all of them. */
struct cost_route {
    double s, byte_s;
};

/* Of an axis: seconds per byte of the vector at each level's busiest link. Rings: once around. */
struct cost_links {
    double s[COST_N_FLOWS][FAB_MAX_LEVELS];
    uint32_t mtu;
    unsigned members, local; /* of a group; of a node, 0: nodes differ */
    unsigned rails;          /* leaves (or sets of them) that a node's members are on */
    unsigned spine;          /* the level above the leaves; the number of levels: none */
    /* From the first member to the last one; along its rail to that one's node; in its node. */
    struct cost_route far, rail, plane;
};

/* Counts them. 0 or -ENOMEM. */
int cost_links(const struct fabric *f, const struct cost_levels *l, struct cost_axis a,
               struct cost_links *k);
/* Raises c to the busiest link of each level. */
void cost_raise(const struct cost_links *k, enum cost_flows flows, double bytes, struct cost *c);

/*
 * Time of an all-to-all (COST_FLOWS_DIRECT or _PXN) of c with messages of so many bytes, all of
 * which leave at once: with their frames' headers, latency, the last acknowledgement, and the time
 * until all links are busy. Directly, all GPUs of a node begin with the next node's first GPU, so
 * the last rail waits for the first frames to all others. In two hops, a NIC that has sent its own
 * blocks waits for those of the node's other GPUs.
 */
double cost_wire(const struct cost_links *k, enum cost_flows flows, const struct cost *c,
                 double message_bytes);

#endif
