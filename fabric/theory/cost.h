/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a collective by the bandwidth of each level of a fabric: the closed forms of the literature,
 * in seconds and bytes (not ps: these are estimates that no control decision reads).
 *
 * model/ follows an algorithm's schedule message by message over the links, with latencies, headers and the
 * costs of the ends, for the very ranks of a run. This code knows only levels; it shows which of them is the
 * bottleneck and how times scale. For large messages on ideal presets, if no two flows of an algorithm share
 * a cable, simulated packets take these times plus their headers (2.1 to 2.7 % at an MTU of 4096), within
 * 1 % (tests/sim/test_formulas.c).
 *
 * B is the size of the whole vector; for all-gather, reduce-scatter and all-to-all the sum over ranks. Level
 * i joins D_i children of S_(i-1) GPUs (hosts) each, with W_i bytes per second for each child and direction.
 */
#ifndef TRIB_FABRIC_THEORY_COST_H
#define TRIB_FABRIC_THEORY_COST_H

#include "fabric/fabric.h"

struct cost_level {
    enum fab_role role;
    uint32_t tier;         /* of its switches */
    uint32_t below, hosts; /* GPUs of a child, S_(i-1); GPUs of a group of this level, S_i */
    uint32_t switches;     /* of a group */
    double child_Bps;      /* W_i */
    /* Islands: GPUs that lower levels join without NVLinks, such as a rail; as in struct fab_level. */
    uint32_t island, island_local, island_stride;
    double island_Bps;
    bool reduces;  /* its switches reduce (SHARP), */
    bool multimem; /* or read and write multicast regions (NVSwitch) */
};

struct cost_levels {
    unsigned n;
    struct cost_level lv[FAB_MAX_LEVELS];
};

/*
 * The members of a collective: `degree` GPUs at a distance of `inner` GPUs. The array is sharded over the
 * `inner` GPUs between two members, each of which has a collective of its own at the same time. All GPUs:
 * { 1, n_hosts }.
 */
struct cost_axis {
    uint64_t inner, degree;
};

/* The time of each level, and of the bottleneck, which takes longest. */
struct cost {
    double s;       /* time of the bottleneck */
    unsigned binds; /* index of the bottleneck */
    double level_s[FAB_MAX_LEVELS];
};

/* How a level's switches take part. */
enum cost_way {
    COST_GATHER,     /* all-gather or reduce-scatter: B (D - 1) / (D W), F28 */
    COST_ALL_REDUCE, /* all-reduce by the hosts: twice that */
    COST_REDUCED     /* all-reduce in the switches, B / W, F25 */
};

void cost_levels(const struct fabric *f, struct cost_levels *l);
/* Records that level i takes s, unless it already has a longer time. */
void cost_record(struct cost *c, unsigned i, double s);

/* D_i of an axis: children of level i that it spans; 1: it stays below the level. */
double cost_children(const struct cost_levels *l, unsigned i, struct cost_axis a);
/* W_i divided by the GPUs below it that the axis uses. */
double cost_gpu_Bps(const struct cost_levels *l, unsigned i, struct cost_axis a);

/* F28, F31, F42, F43: B max_i [ (D_i - 1) / (D_i max(Y, S_(i-1)) W_i) ] with W_i per GPU. how[i]: how level
 * i takes part. */
struct cost cost_collective(const struct cost_levels *l, struct cost_axis a, double bytes,
                            const enum cost_way way[FAB_MAX_LEVELS]);
/*
 * For algorithms that send no byte twice: as above, but a child's links also carry data from beyond its
 * level's group, which F28 leaves out: B (1 - S_(i-1) / N) / W_i. The two agree if the network has one used
 * level besides NVLinks; otherwise F28 is lower by up to 1 / D_i.
 */
struct cost cost_through(const struct cost_levels *l, struct cost_axis a, double bytes,
                         const enum cost_way way[FAB_MAX_LEVELS]);
/* F20, F21: one ring through all levels for each GPU of a child, each with its own NIC. */
struct cost cost_rings(const struct cost_levels *l, struct cost_axis a, double bytes, bool reduce);
/* One ring: all data leave a GPU node by one NIC and go from rail to rail over the level above the rails.
 * Also for GPUs that are not in nodes. */
struct cost cost_ring(const struct cost_levels *l, struct cost_axis a, double bytes, bool reduce);
/* F22: all-reduce by halving and doubling, the farthest rank first: step s sends B / 2^s over the
 * narrowest level on its path. Steps are sequential, so the times of levels add up. N is a power of
 * two. */
struct cost cost_halving(const struct cost_levels *l, struct cost_axis a, double bytes);
/* Sequential messages of an all-reduce (F22): 2 (N - 1) for a ring; 2 log2 N for halving, 0 if N is
 * not a power of two. */
unsigned cost_steps_ring(unsigned n);
unsigned cost_steps_halving(unsigned n);
/* SHARP in which every GPU sends its whole vector by its own NIC, even within a node (no lower level reduces
 * first). */
struct cost cost_flat_sharp(const struct cost_levels *l, struct cost_axis a, double bytes);

/* Density of an all-to-all. */
enum cost_sparsity {
    COST_DENSE,
    COST_SPARSE, /* k of the shards, chosen evenly: min(k / Z, 1), F24 */
    COST_DRAWN   /* k draws, each of any shard: 1 - ((Z - 1) / Z)^k, F24 */
};
double cost_share(enum cost_sparsity s, double k, double shards);
/* F23, F30: B h (N - h) / (N^2 W) at each level, for children of h GPUs. Each GPU has its own NIC, so
 * NVLinks carry only the data that stay in the node. For sparse data, Z is the number of each level's
 * children. Within a child data are forwarded, so that all of them leave for the level by their own rail:
 * two hops. */
struct cost cost_alltoall_forwarded(const struct cost_levels *l, struct cost_axis a, double bytes,
                                    enum cost_sparsity s, double k);
/* The same without forwarding: data go straight from a GPU's NIC to the destination's, so data for another
 * rail of the same unit cross the level above, too. The h GPUs of an island share the links W to that level;
 * each sends to all members that are neither on the island nor in its node. */
struct cost cost_alltoall(const struct cost_levels *l, struct cost_axis a, double bytes,
                          enum cost_sparsity s, double k);
/* In two hops: within the node to the GPU on the destination's rail, then along that rail. So a node's planes
 * carry all blocks for other rails, too. */
struct cost cost_alltoall_rails(const struct cost_levels *l, struct cost_axis a, double bytes);

/* Bytes at a switch that joins N GPUs, and at one GPU. */
struct cost_bytes {
    double gpu_out, gpu_in, switch_in, switch_out;
};
/* For an all-reduce in the switch. own: a GPU's own shard crosses the switch too (F27); otherwise F26. */
struct cost_bytes cost_bytes_reduced(double bytes, unsigned n, bool own);
/* For an all-gather over M nodes of N GPUs (F33): at the leaf level, and at one node's switches. */
struct cost_bytes cost_bytes_leaf(double bytes, unsigned nodes, unsigned gpus);
struct cost_bytes cost_bytes_node(double bytes, unsigned gpus);

#endif
