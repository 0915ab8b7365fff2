/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bill of material for N GPUs: nodes, and between them a scale-out network of full bisection, as rails of
 * 64-port switches in as few tiers as possible; for comparison, two alternatives.
 */
#ifndef TRIB_FABRIC_THEORY_BOM_H
#define TRIB_FABRIC_THEORY_BOM_H

#include "fabric/gpu_device.h"

#define BOM_TIERS    6
#define BOM_MAX_GPUS 100000000ull

struct bom {
    uint64_t gpus, nodes, units; /* unit: nodes that share leaves, 32 (F11) */
    uint64_t nvswitches, nvlinks;
    unsigned tiers;                    /* of scale-out switches; 0: one node needs none */
    uint64_t switches[BOM_TIERS];      /* leaves, spines, cores */
    uint64_t cables[BOM_TIERS];        /* from below: NICs to leaves, leaves to spines, ... */
    uint64_t all_switches, all_cables; /* scale-out and NVSwitches; scale-out */
    /* The alternatives: a cable between every two GPUs (F16), or one switch with a port for each. */
    uint64_t mesh_ports, mesh_cables, star_cables;
};

/* gpus: 1 to BOM_MAX_GPUS. The last node may have fewer GPUs; units have all their leaves. */
struct bom bom_of(uint64_t gpus, const struct gpu_device *d);

#endif
