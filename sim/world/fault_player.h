/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Carries a fault plan out in a world: what the plan has without a time at once, the rest at fabric
 * times from faults_start() on. `restart` and `told` are two things each, one later than the other.
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
    /* The others are told that a rank has died: what a launcher does. */
    void (*told)(void *ctx, unsigned rank);
    void *ctx;
};

/* 0 or -ENOMEM. What has no time has happened then. The plan may go. */
int faults_create(struct faults **f, const struct fault_plan *plan, const struct faults_cfg *cfg);
/* Time 0 of the plan is now. The world's alarm is ours from here on. */
void faults_start(struct faults *f);
/* 0, or -ENOMEM: something of the plan could not be done, and the world is not what the plan
 * says. */
int faults_state(const struct faults *f);
void faults_destroy(struct faults *f);

#endif
