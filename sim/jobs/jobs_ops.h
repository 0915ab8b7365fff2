/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations of a running job: an iteration runs its list once, out of place, each operation in
 * buffers of its own. Whenever a rank has finished one, every element of its buffers is compared as
 * the rows of trib-perf are, and they are prepared for the next iteration.
 */
#ifndef TRIB_SIM_JOBS_JOBS_OPS_H
#define TRIB_SIM_JOBS_JOBS_OPS_H

#include "host/bench/verify/test_pattern.h"
#include "sim/job/sim_job.h"
#include "sim/jobs/jobs.h"

/* What a rank has done of a job's loop. */
struct jobs_rank {
    unsigned begun;       /* operations */
    unsigned iterations;  /* finished */
    int64_t iteration_ps; /* when the last of these ended */
};

struct jobs_ops {
    const struct jobs_job *job;
    struct world *w;
    struct job *j; /* once it is open */
    bool lengths;
    size_t at[JOBS_OPS]; /* of each operation's buffers, in both of a rank */
    size_t bytes;        /* of each of a rank's two buffers */
    struct test_pattern val[JOBS_OPS];
    struct jobs_rank *rank; /* [nranks] */
    uint64_t wrong, checked;
    unsigned connects; /* operation whose connections are made */
};

/* 0 or -ENOMEM; jobs_ops_free() is the caller's either way. */
int jobs_ops_init(struct jobs_ops *o, const struct jobs_job *job, struct world *w, bool lengths);
void jobs_ops_free(struct jobs_ops *o);
/* Allocates and prepares the buffers of all ranks of o->j. 0 or -errno. */
int jobs_ops_fill(struct jobs_ops *o);
/* Arguments of the rank's next operation, for job_loop; the one before it has ended. */
void jobs_ops_next(void *ctx, unsigned rank, struct coll_args *a);
/* Arguments of operation o->connects, for job_connect_start(). */
void jobs_ops_connect(void *ctx, unsigned rank, struct coll_args *a);
/* The rank has finished all of its operations. */
void jobs_ops_end(struct jobs_ops *o, unsigned rank);

#endif
