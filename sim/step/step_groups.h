/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The groups of a collective that are simulated together: the one that loads the busiest link of
 * all, and those that share links between switches with it, directly or by others, where all groups
 * together keep these busy. Inside of sim/step/.
 */
#ifndef TRIB_SIM_STEP_STEP_GROUPS_H
#define TRIB_SIM_STEP_STEP_GROUPS_H

#include "host/bench/trees.h"
#include "sim/job/sim_job.h"
#include "sim/step/step.h"

struct step_measurement {
    const struct fabric *f;
    struct cost_levels levels;
    struct world *w;
    struct world_cfg wc; /* of the world */
    const volatile int *stop;
    uint16_t *host; /* [ranks] of the world, in order */
    unsigned ranks;
    uint32_t group; /* of the last job */
    uint64_t seed;
};

/* One group: its hosts, its trees. */
struct step_group {
    unsigned nranks, n_trees;
    uint16_t tree[COLL_TREES], host_of_rank[STEP_MAX_RANKS];
    unsigned world_rank[STEP_MAX_RANKS];
};

/* Chooses ranks and groups of each collective, and the hosts of the world: all of theirs. 0 or
 * -ENOMEM. */
int step_groups_choose(struct step_measurement *ms, struct step_collective *u, unsigned n);
/* The collective's k-th simulated group. */
void step_group_of(const struct step_measurement *ms, const struct step_collective *u, unsigned k,
                   struct step_group *g);

/*
 * What algorithms that send blocks between fixed pairs need at least on the links that all groups
 * of the kind share, or those that are simulated together, of so many bytes each (step_load.h). 0:
 * of others, or where messages are striped over several ports.
 */
double step_groups_bound(const struct step_measurement *ms, const struct step_collective *u,
                         enum coll_algo algo);
double step_groups_load(const struct step_measurement *ms, const struct step_collective *u,
                        enum coll_algo algo, uint64_t bytes);
#define STEP_LOAD_RANKS 512u /* of a group, at most */

/* A job for each group, all connected. */
struct step_jobs {
    unsigned n;
    struct step_group *g; /* [n], which the jobs refer to */
    struct job *j[STEP_MAX_GROUPS];
};
/* 0 or -errno with a sentence in err; what is open must be closed in any case. */
int step_jobs_open(struct step_measurement *ms, const struct step_collective *u,
                   enum coll_algo algo, size_t bytes, struct step_jobs *jobs, char *err);
/* Starts the operation in all groups at the same time; *s: until the last rank of all has ended. */
int step_jobs_time(const struct step_measurement *ms, struct step_jobs *jobs,
                   const struct coll_args *a, double *s, char *err);
/* 0 or -ETIME: not every rank could leave. */
int step_jobs_close(struct step_jobs *jobs);

#define STEP_SWITCH_ALGOS                                                                          \
    (1u << ALGO_SHARP | 1u << ALGO_NVLS | 1u << ALGO_HIER_SHARP | 1u << ALGO_NVLS_SHARP)
/* One operation of a group of so many ranks. */
struct coll_args step_args(const struct step_collective *u, unsigned ranks, uint64_t bytes);
/* Algorithms of hosts alone that may run: the one that the workload names, if it is one of them. */
unsigned step_host_algos(const struct step_collective *u);

#endif
