/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Applies a fault plan to a world: entries without a time at once, the others at fabric times from
 * faults_start() on. An entry with `restart` or `told` is two actions, one later than the other.
 */
#ifndef TRIB_SIM_WORLD_FAULT_PLAYER_H
#define TRIB_SIM_WORLD_FAULT_PLAYER_H

#include "fabric/conf/faults.h"
#include "sim/world/world.h"

struct faults;

struct faults_cfg {
    struct world *w;
    const struct fabric *fab;
    unsigned nranks;
    const uint16_t *host_of_rank;
    /* Notifies the other ranks that a rank has died, as a launcher does; NULL: nobody. */
    void (*notify_death)(void *ctx, unsigned rank);
    void *ctx;
};

/* 0 or -ENOMEM. Entries without a time have been applied then; the plan may be freed. */
int faults_create(struct faults **f, const struct fault_plan *plan, const struct faults_cfg *cfg);
/* Time 0 of the plan is now. Uses the world's alarm from here on. */
void faults_start(struct faults *f);
/* 0, or -ENOMEM: an entry could not be applied, and the world is not in the state that the plan
 * describes. */
int faults_state(const struct faults *f);
void faults_destroy(struct faults *f);

#endif
