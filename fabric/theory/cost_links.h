/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The traffic of an algorithm's messages on single links. The formulas of cost.h divide what crosses a level
 * by all of its links. But balanced ECMP gives each flow one path, and if flows do not divide evenly among
 * links, or meet above the leaves, the link with most of them takes longer. So each level's time is raised to
 * that of its busiest link, in payload, by the routes that frames take. With ecmp = "hash" no flow has a path
 * of its own, so nothing is raised; neither in a large fabric (fabric_is_large()), which has too many pairs
 * of hosts.
 */
#ifndef TRIB_FABRIC_THEORY_COST_LINKS_H
#define TRIB_FABRIC_THEORY_COST_LINKS_H

#include "fabric/theory/cost.h"

/* Which flows there are between GPU nodes (or hosts). Nodes are those of the axis, of equal size. */
enum cost_flows {
    COST_FLOWS_NONE,
    COST_FLOWS_RING,   /* each member to the next; */
    COST_FLOWS_RINGS,  /* in rings of all members, a ring for each GPU of a node (rings.c); */
    COST_FLOWS_RAILS,  /* each GPU to the GPU of the same place in the next node; */
    COST_FLOWS_TREES,  /* the GPUs of one place in their nodes, up their rail's tree; */
    COST_FLOWS_SHARP,  /* all members up all trees that reach them, by the trees' rates; */
    COST_FLOWS_DIRECT, /* each member to each member of another node; */
    COST_FLOWS_PXN,    /* each GPU to the GPUs of the same place in all other nodes */
    COST_N_FLOWS
};

/* A path over idle links: its latency, and the time of a byte on all of its links and on the first. */
struct cost_route {
    double s, byte_s, first_s;
};

/* Paths of one kind between neighbours of a ring: their number, and the share of a block on each. */
struct cost_edge {
    struct cost_route way;
    double share;
    unsigned n;
};
#define COST_EDGES 16
/* The kinds of edges of the ring of all members; n 0: some path is unknown. */
struct cost_ring {
    unsigned n;
    struct cost_edge edge[COST_EDGES];
};

/* For an axis: seconds per byte of the vector at each level's busiest link. For rings: once around. */
struct cost_links {
    double s[COST_N_FLOWS][FAB_MAX_LEVELS];
    uint32_t mtu;
    unsigned members, local; /* of a group; of a node, 0: nodes differ */
    unsigned rails;          /* leaves (or sets of leaves) on which a node's members are */
    unsigned spine;          /* level above the leaves; the number of levels: there is none */
    /* Paths from the first member to the last one; along its rail to that one's node; within its node. */
    struct cost_route far, rail, plane;
    struct cost_ring ring, node_ring, rail_ring; /* of all, of the first node, of its first rail */
};

/* Counts the flows of an axis. 0 or -ENOMEM. */
int cost_links(const struct fabric *f, const struct cost_levels *l, struct cost_axis a,
               struct cost_links *k);
/* The path from a host to another one; all zero: to itself, or there is none. The ring of n hosts from
 * the first one on, at a distance. */
struct cost_route cost_way_of(const struct fabric *f, unsigned from, unsigned to);
void cost_find_ring(const struct fabric *f, unsigned n, unsigned apart, struct cost_ring *r);
/* Raises the times in c to those of each level's busiest link. */
void cost_raise(const struct cost_links *k, enum cost_flows flows, double bytes, struct cost *c);

/*
 * Times with headers, acknowledgements and latency: of a ring of so many steps with blocks of so many bytes,
 * and of a vector through the switches and back. 0: unknown. A ring's block is sent in up to eight slices
 * of whole frames. A slice's step is over when its last bit is at the next rank: either the slices fill the
 * slowest link, or the last one waits for its way around.
 */
double cost_ring_wire(const struct cost_links *k, const struct cost *c, unsigned steps,
                      double block);
double cost_sharp_wire(const struct cost_links *k, const struct cost *c, double bytes);
/* Time of an all-reduce by levels: a ring in the node, one along the rail, and one in the node. 0: unknown, or
 * the vector is sent in several pieces. */
double cost_hier_wire(const struct cost_links *k, double bytes);

/*
 * Time of an all-to-all (COST_FLOWS_DIRECT or _PXN) of c with messages of so many bytes, which are all sent
 * at once: with headers of frames, latency, the last acknowledgement, and the time until all links are busy.
 * Directly, all GPUs of a node begin with the next node's first GPU, so the last rail waits for the first
 * frames to all others. In two hops, a NIC that has sent its own blocks waits for those of the node's other
 * GPUs.
 */
double cost_wire(const struct cost_links *k, enum cost_flows flows, const struct cost *c,
                 double message_bytes);

#endif
