/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the switches' quotas are divided among the aggregation groups of one job, without other jobs.
 * Every rank computes the same from the conf, and so does the model; resources held by other jobs
 * show in the answers to JOINs (fit.c).
 */
#ifndef TRIB_COLLECTIVE_QUOTA_H
#define TRIB_COLLECTIVE_QUOTA_H

#include "collective/kinds.h"

/* The job: its ranks, the trees that they may use, in order, and for which groups. */
struct quota_request {
    const struct fabric *fab;
    unsigned nranks;
    const uint16_t *host_of_rank; /* [nranks] */
    const uint16_t *domain;       /* [nranks] GPU nodes, which define the rails */
    const uint16_t *tree;
    unsigned n_trees;
    bool all, rails; /* a group of all ranks on each tree; a group of each rail on one */
    uint32_t asked;  /* slots of a window, at least 1 */
};

struct quota_grant {
    unsigned n; /* trees that the group of all ranks uses; tree[]: which, in order */
    uint16_t tree[COLL_TREES];
    uint32_t
        window[COLL_TREES]; /* slots of each; fewer than a message takes: the tree cannot be used */
    uint32_t rail;          /* of each rail's */
    /* Groups of the job at the leaf, its parent and so on, 8 bits each, as sent in a JOIN. */
    uint32_t job_groups[COLL_TREES], rail_groups;
    char why[128]; /* the switch that grants less than asked, and why; "": all grant it */
};

/*
 * Slots of a switch are divided by the job's groups there. Trees whose window would hold less than
 * two messages are left out, the smallest first, as long as that helps the others. 0 or -ENOMEM.
 */
int quota_split(const struct quota_request *j, struct quota_grant *s);

#endif
