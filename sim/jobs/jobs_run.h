/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a world of jobs: its state; for sim/jobs/ only. */
#ifndef TRIB_SIM_JOBS_JOBS_RUN_H
#define TRIB_SIM_JOBS_JOBS_RUN_H

#include "sim/job/sim_job.h"
#include "sim/jobs/jobs_ops.h"

#define JOBS_CONNECT_PS (60 * PS_PER_S) /* fabric time, for connecting and for leaving */
/* For frames in flight when the last rank has left or died. */
#define JOBS_SETTLE_PS (100 * PS_PER_US)

enum jobs_state {
    JOBS_WAITING,
    JOBS_CONNECTING,
    JOBS_BINDING,
    JOBS_READY,
    JOBS_RUNNING,
    JOBS_LEAVING,
    JOBS_GONE
};

struct jobs_running {
    const struct jobs_job *job;
    struct jobs_result *res;
    enum jobs_state state;
    struct job *j; /* NULL: not open */
    struct jobs_ops ops;
    struct job_loop loop;
    unsigned *world_rank; /* [nranks] */
    uint64_t key;
    int64_t until_ps; /* of the state; PS_NEVER: none */
};

struct jobs_world {
    const struct jobs_world_cfg *cfg;
    struct world *w;
    struct jobs_running of[JOBS_MAX];
    unsigned n;
    struct fault_plan plan; /* the file's, and deaths of jobs */
    struct faults *faults;
    int64_t zero_ps; /* JOBS_NEVER: not yet */
    uint64_t pool_read, missed;
    unsigned peak;
    bool few;
    int rc; /* of what cannot go on */
};

/* Fabric time from time 0; before it 0. */
static inline int64_t jobs_since_zero(const struct jobs_world *r)
{
    return r->zero_ps >= 0 ? world_now(r->w) - r->zero_ps : 0;
}

/* A job whose communicators are there; NULL: none. */
struct job *jobs_open_one(const struct jobs_world *r);
/* Begins to connect. */
void jobs_open(struct jobs_world *r, struct jobs_running *u);
/* Changes the job's state as long as one is over; after each event. */
void jobs_advance(struct jobs_world *r, struct jobs_running *u);
/* It has gone, and so has all that it held. */
bool jobs_over(const struct jobs_world *r, const struct jobs_running *u);

#endif
