/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a collective costs by the bandwidth of each level of a fabric: the closed forms of the
 * literature, in seconds and bytes (not ps: these are estimates, no control decision reads them).
 *
 * host/coll's model walks an algorithm's schedule message by message over the links, with
 * latencies, headers and the ends' costs, for the very ranks of a run; this one knows levels only,
 * and says which of them binds and how a time scales. For large messages on ideal presets packets
 * take these times and what they have beside payload, 2.1 to 2.7 % at an MTU of 4096, within 1 %
 * (tests/sim/test_formulas.c), where no two flows of an algorithm have to share a cable.
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
    uint32_t below, hosts; /* GPUs of a child, S_(i-1); of a group of this level, S_i */
    uint32_t switches;     /* of a group */
    double child_Bps;      /* W_i */
    bool reduces;          /* its switches reduce (SHARP), */
    bool multimem;         /* or read and write multicast regions (NVSwitch) */
};

struct cost_levels {
    unsigned n;
    struct cost_level lv[FAB_MAX_LEVELS];
};

/*
 * The members of a collective: `degree` GPUs, each `inner` GPUs after the one before. The array is
 * sharded over the `inner` ones between them, each of which has a collective of its own at the same
 * time. All GPUs: { 1, n_hosts }.
 */
struct cost_axis {
    uint64_t inner, degree;
};

/* What a level costs, and the one that binds: the longest. */
struct cost {
    double s;       /* of the level that binds */
    unsigned binds; /* its index */
    double level_s[FAB_MAX_LEVELS];
};

/* By which a level's switches take part. */
enum cost_way {
    COST_GATHER,     /* all-gather or reduce-scatter: B (D - 1) / (D W), F28 */
    COST_ALL_REDUCE, /* by the hosts: twice that */
    COST_REDUCED     /* all-reduce in the switches, B / W, F25 */
};

void cost_levels(const struct fabric *f, struct cost_levels *l);

/* D_i of an axis: children of level i that it goes over, 1: it does not get there. */
double cost_children(const struct cost_levels *l, unsigned i, struct cost_axis a);
/* W_i per GPU below it, of those GPUs that the axis uses. */
double cost_gpu_Bps(const struct cost_levels *l, unsigned i, struct cost_axis a);

/* F28, F31, F42, F43: B max_i [ (D_i - 1) / (D_i max(Y, S_(i-1)) W_i) ] with W_i per GPU; each
 * level in its own way. */
struct cost cost_collective(const struct cost_levels *l, struct cost_axis a, double bytes,
                            const enum cost_way way[FAB_MAX_LEVELS]);
/*
 * What algorithms do that send no byte twice: as above, but a child's links also carry what comes
 * from beyond its level's group, which F28 leaves out: B (1 - S_(i-1) / N) / W_i. The two agree
 * where only one level of the network is used beside NVLinks; F28 is below by up to 1 / D_i else.
 */
struct cost cost_through(const struct cost_levels *l, struct cost_axis a, double bytes,
                         const enum cost_way way[FAB_MAX_LEVELS]);
/* F20, F21: as many rings at once through all levels as a child has GPUs, each by a NIC of its
 * own. */
struct cost cost_rings(const struct cost_levels *l, struct cost_axis a, double bytes, bool reduce);
/* One ring: whatever leaves a GPU node does so by one NIC. The same where GPUs are in no nodes. */
struct cost cost_ring(const struct cost_levels *l, struct cost_axis a, double bytes, bool reduce);
/* F22: all-reduce by halving and doubling, the farthest first: of each step B / 2^s, by the
 * narrowest level that it goes over. Steps come one after the other, so levels add up. N a power
 * of two. */
struct cost cost_halving(const struct cost_levels *l, struct cost_axis a, double bytes);
/* Messages one after the other that an all-reduce takes (F22): 2 (N - 1), or 2 log2 N for a power
 * of two; 0 for another N, which halving does not take. */
unsigned cost_steps_ring(unsigned n);
unsigned cost_steps_halving(unsigned n);
/* SHARP in which every GPU sends its whole vector by its own NIC, within a node too (no level joins
 * GPUs first). */
struct cost cost_flat_sharp(const struct cost_levels *l, struct cost_axis a, double bytes);

/* How much of an all-to-all is not empty. */
enum cost_sparsity {
    COST_DENSE,
    COST_SPARSE, /* k of the shards, chosen evenly: min(k / Z, 1), F24 */
    COST_DRAWN   /* k draws, each of any shard: 1 - ((Z - 1) / Z)^k, F24 */
};
double cost_share(enum cost_sparsity s, double k, double shards);
/* F23, F30: B h (N - h) / (N^2 W) at each level, for children of h GPUs. Between GPU nodes each GPU
 * has a NIC of its own, so over NVLink goes what stays in the node. Z of the sparse ones is that of
 * each level's children. */
struct cost cost_alltoall(const struct cost_levels *l, struct cost_axis a, double bytes,
                          enum cost_sparsity s, double k);

/* Bytes at a switch of N GPUs, and at one GPU. */
struct cost_bytes {
    double gpu_out, gpu_in, switch_in, switch_out;
};
/* An all-reduce reduced in it. own: a GPU's own shard crosses it too (F27), else F26. */
struct cost_bytes cost_bytes_reduced(double bytes, unsigned n, bool own);
/* An all-gather over M nodes of N GPUs (F33): at the leaf level, and at one node's switches. */
struct cost_bytes cost_bytes_leaf(double bytes, unsigned nodes, unsigned gpus);
struct cost_bytes cost_bytes_node(double bytes, unsigned gpus);

#endif
