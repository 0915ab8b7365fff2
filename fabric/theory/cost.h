/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a collective by the bandwidth of each level of a fabric: the closed forms of the
 * literature, in seconds and bytes (not ps: these are estimates, no control decision reads them).
 *
 * model/ walks an algorithm's schedule message by message over the links, with
 * latencies, headers and the ends' costs, for the very ranks of a run; this one knows only levels,
 * and shows which of them is the bottleneck and how times scale. For large messages on ideal
 * presets, where no two flows of an algorithm share a cable, simulated packets take these times
 * plus their headers (2.1 to 2.7 % at an MTU of 4096), within 1 % (tests/sim/test_formulas.c).
 *
 * B is the size of the whole vector: for all-gather, reduce-scatter and all-to-all the sum over
 * ranks. Level i joins D_i children, of S_(i-1) GPUs (hosts) each, by W_i bytes per second, child
 * and direction.
 */
#ifndef TRIB_FABRIC_THEORY_COST_H
#define TRIB_FABRIC_THEORY_COST_H

#include "fabric/fabric.h"

struct cost_level {
    enum fab_role role;
    uint32_t tier;         /* of its switches */
    uint32_t below, hosts; /* GPUs of a child, S_(i-1); of a group of this level, S_i */
    uint32_t switches;     /* of a group */
    double child_Bps;      /* W_i */
    /* Islands, of GPUs that lower levels join without NVLinks, such as a rail: struct fab_level. */
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
 * The members of a collective: `degree` GPUs at a distance of `inner` GPUs. The array is sharded
 * over the `inner` GPUs between them, each of which has its own collective at the same time. All
 * GPUs: { 1, n_hosts }.
 */
struct cost_axis {
    uint64_t inner, degree;
};

/* The time of each level, and of the bottleneck: the longest. */
struct cost {
    double s;       /* time of the bottleneck */
    unsigned binds; /* its index */
    double level_s[FAB_MAX_LEVELS];
};

/* How a level's switches take part. */
enum cost_way {
    COST_GATHER,     /* all-gather or reduce-scatter: B (D - 1) / (D W), F28 */
    COST_ALL_REDUCE, /* by the hosts: twice that */
    COST_REDUCED     /* all-reduce in the switches, B / W, F25 */
};

void cost_levels(const struct fabric *f, struct cost_levels *l);
/* Level i takes s, unless it has been given more. */
void cost_record(struct cost *c, unsigned i, double s);

/* D_i of an axis: children of level i that it spans, 1: it stays below the level. */
double cost_children(const struct cost_levels *l, unsigned i, struct cost_axis a);
/* W_i per GPU below it, of those GPUs that the axis uses. */
double cost_gpu_Bps(const struct cost_levels *l, unsigned i, struct cost_axis a);

/* F28, F31, F42, F43: B max_i [ (D_i - 1) / (D_i max(Y, S_(i-1)) W_i) ] with W_i per GPU; how[i]
 * says how level i takes part. */
struct cost cost_collective(const struct cost_levels *l, struct cost_axis a, double bytes,
                            const enum cost_way way[FAB_MAX_LEVELS]);
/*
 * Algorithms that send no byte twice: as above, but a child's links also carry data from beyond its
 * level's group, which F28 leaves out: B (1 - S_(i-1) / N) / W_i. The two agree if one level of the
 * network is used in addition to NVLinks; otherwise F28 is lower by up to 1 / D_i.
 */
struct cost cost_through(const struct cost_levels *l, struct cost_axis a, double bytes,
                         const enum cost_way way[FAB_MAX_LEVELS]);
/* F20, F21: one ring through all levels for each GPU of a child, each by a NIC of its own. */
struct cost cost_rings(const struct cost_levels *l, struct cost_axis a, double bytes, bool reduce);
/* One ring: all data leaves a GPU node by one NIC, and goes from rail to rail, over the level above
 * the rails. The same where GPUs are not in nodes. */
struct cost cost_ring(const struct cost_levels *l, struct cost_axis a, double bytes, bool reduce);
/* F22: all-reduce by halving and doubling, the farthest rank first: step s sends B / 2^s over the
 * narrowest level on its path. Steps are sequential, so the times of levels add up. N is a power of
 * two. */
struct cost cost_halving(const struct cost_levels *l, struct cost_axis a, double bytes);
/* Sequential messages of an all-reduce (F22): 2 (N - 1) for a ring; 2 log2 N for halving, 0 if N is
 * not a power of two. */
unsigned cost_steps_ring(unsigned n);
unsigned cost_steps_halving(unsigned n);
/* SHARP in which every GPU sends its whole vector by its own NIC, even within a node (no level
 * reduces first). */
struct cost cost_flat_sharp(const struct cost_levels *l, struct cost_axis a, double bytes);

/* Density of an all-to-all. */
enum cost_sparsity {
    COST_DENSE,
    COST_SPARSE, /* k of the shards, chosen evenly: min(k / Z, 1), F24 */
    COST_DRAWN   /* k draws, each of any shard: 1 - ((Z - 1) / Z)^k, F24 */
};
double cost_share(enum cost_sparsity s, double k, double shards);
/* F23, F30: B h (N - h) / (N^2 W) at each level, for children of h GPUs. Each GPU has its own NIC,
 * so NVLinks carry only the data that stays in the node. For sparse ones, Z is the number of each
 * level's children. A child forwards data inside, so that all leaves to the level by its own rail:
 * two hops. */
struct cost cost_alltoall_forwarded(const struct cost_levels *l, struct cost_axis a, double bytes,
                                    enum cost_sparsity s, double k);
/* The same, and everything goes straight from its GPU's NIC to that of the other one: what leaves a
 * rail for another one of the same unit crosses the level above, too. Of h GPUs of an island, which
 * share the links W to that level, each sends to all members that are neither among them nor in its
 * node. */
struct cost cost_alltoall(const struct cost_levels *l, struct cost_axis a, double bytes,
                          enum cost_sparsity s, double k);
/* In two hops: within the node to the GPU on the destination's rail, and along that rail. So a
 * node's planes carry all blocks for other rails, too. */
struct cost cost_alltoall_rails(const struct cost_levels *l, struct cost_axis a, double bytes);

/* Bytes at a switch of N GPUs, and at one GPU. */
struct cost_bytes {
    double gpu_out, gpu_in, switch_in, switch_out;
};
/* Of an all-reduce that the switch reduces. own: a GPU's own shard crosses it too (F27), else
 * F26. */
struct cost_bytes cost_bytes_reduced(double bytes, unsigned n, bool own);
/* An all-gather over M nodes of N GPUs (F33): at the leaf level, and at one node's switches. */
struct cost_bytes cost_bytes_leaf(double bytes, unsigned nodes, unsigned gpus);
struct cost_bytes cost_bytes_node(double bytes, unsigned gpus);

#endif
