/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/theory/bom.h"

#define DOWN (DEV_SWITCH_PORTS / 2) /* ports down of a switch below the top: half of all */

static uint64_t bom_divide_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

/* Leaves of a unit: GPU i of every node is on leaf i (F11). If a unit has fewer nodes than a leaf has ports,
 * several rails share a leaf (F15). */
static uint64_t leaves_of_unit(uint64_t nodes, uint64_t gpus)
{
    uint64_t rails = nodes < DOWN ? DOWN / nodes : 1;

    return bom_divide_up(gpus, rails);
}

/* A fat tree: a switch has as many ports up as down; the top tier has all ports down, so it needs
 * half as many switches. t tiers carry 2 * 32^(t-1) leaves (F12 to F14). */
static void add_tiers(struct bom *b)
{
    uint64_t leaves = b->switches[0], most = 1;

    for (b->tiers = 1; most < leaves && b->tiers < BOM_TIERS; b->tiers++)
        most = most == 1 ? DEV_SWITCH_PORTS : most * DOWN;
    b->cables[0] = b->gpus;
    for (unsigned t = 1; t < b->tiers; t++) {
        b->switches[t] = t + 1 < b->tiers ? leaves : bom_divide_up(leaves * DOWN, DEV_SWITCH_PORTS);
        b->cables[t] = leaves * DOWN;
    }
}

struct bom bom_of(uint64_t gpus, const struct gpu_device *d)
{
    struct bom b = {.gpus = gpus,
                    .nodes = bom_divide_up(gpus, d->gpus),
                    .mesh_ports = gpus - 1,
                    .mesh_cables = gpus * (gpus - 1) / 2,
                    .star_cables = gpus};

    b.units = bom_divide_up(b.nodes, DOWN);
    b.nvswitches = b.nodes * d->nvswitches;
    b.nvlinks = gpus * d->links;
    if (b.nodes > 1) {
        b.switches[0] = b.units * leaves_of_unit(b.nodes, d->gpus);
        add_tiers(&b);
    }
    b.all_switches = b.nvswitches;
    for (unsigned t = 0; t < b.tiers; t++) {
        b.all_switches += b.switches[t];
        b.all_cables += b.cables[t];
    }
    return b;
}
