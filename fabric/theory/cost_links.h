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

/* A way on idle links: latency, and time of a byte on all of them, and on the first. */
struct cost_route {
    double s, byte_s, first_s;
};

/* Ways of one kind between neighbours of a ring: so many, and what share of a block each way has. */
struct cost_edge {
    struct cost_route way;
    double share;
    unsigned n;
};
#define COST_EDGES 16
/* The ring of all members by the kinds of its edges; n 0: some way is not known. */
struct cost_ring {
    unsigned n;
    struct cost_edge edge[COST_EDGES];
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
    struct cost_ring ring, node_ring, rail_ring; /* of all, of the first node, of its first rail */
};

/* Counts them. 0 or -ENOMEM. */
int cost_links(const struct fabric *f, const struct cost_levels *l, struct cost_axis a,
               struct cost_links *k);
/* From a host to another one; zeroes: to itself, or there is no way. The ring of n hosts, so many
 * apart, from the first one on. */
struct cost_route cost_way_of(const struct fabric *f, unsigned from, unsigned to);
void cost_find_ring(const struct fabric *f, unsigned n, unsigned apart, struct cost_ring *r);
/* Raises c to the busiest link of each level. */
void cost_raise(const struct cost_links *k, enum cost_flows flows, double bytes, struct cost *c);

/*
 * Time of a ring of so many steps with blocks of so many bytes, and of a vector through the switches and
 * back, with headers, acknowledgements and latency. 0: it is not known. A ring's block goes in up to
 * eight slices, of whole frames. A slice's step is over when its last bit is at the next rank: either the
 * slices fill the slowest link, or the last one waits for its way around.
 */
double cost_ring_wire(const struct cost_links *k, const struct cost *c, unsigned steps,
                      double block);
double cost_sharp_wire(const struct cost_links *k, const struct cost *c, double bytes);
/* An all-reduce by levels: a ring in the node, one along the rail, and one in the node. 0: of a vector
 * that goes in several pieces, too. */
double cost_hier_wire(const struct cost_links *k, double bytes);

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
