/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a job: its ranks and their buffers; for sim/job*.c only. */
#ifndef TRIB_SIM_JOB_SIM_JOB_PRIV_H
#define TRIB_SIM_JOB_SIM_JOB_PRIV_H

#include "sim/job/sim_job.h"

#include <stdatomic.h>

/* Retries of control messages run on this clock, in fabric time. */
#define JOB_TICK_PS (10 * PS_PER_MS)

struct member {
    struct comm *comm;
    struct coll_req *req;
    char *mem; /* input and output in one registered block */
    char *in, *out;
    char *send, *recv; /* of the running operation; `copy` is what `send` had before it */
    char *copy;
    size_t send_bytes;
    int64_t start_ps, end_ps;
    bool started, ended;
    int rc;
    char why[COMM_TEXT];
    unsigned ops; /* of a loop: done */
};

struct job {
    struct job_cfg cfg;
    struct member *mem;
    size_t bytes; /* of each buffer */
    int64_t next_tick;
    struct job *next; /* ring of jobs in the same world */
    struct job_op op; /* running */
    struct job_loop *loop;
    atomic_uint left, failures; /* ranks that are in it; of those that are not, who failed */
    /* Of connecting and closing: those before `at` have; somebody has failed. */
    unsigned at;
    bool failed;
};

/* The number in its world of the job's rank r. */
static inline unsigned job_world_rank(const struct job *j, unsigned r)
{
    return j->cfg.world_rank ? j->cfg.world_rank[r] : r;
}

/* What a rank's communicator can do at this moment. */
void job_progress(struct job *j, unsigned r);
/* A loop waits for the rank, or no more: world_await(). */
void job_await(struct job *j, unsigned r, bool on);
/* job_drive(), but by slices of time where the world can (then until(ctx) is asked once a slice);
 * comes to rest at the end of one either way. */
void job_drive_slices(struct job *j, int64_t until_ps, bool (*until)(void *), void *ctx);
/* Two buffers of every rank. 0, -EFBIG: there are smaller ones, or -ENOMEM. */
int job_make_buffers(struct job *j, size_t bytes);
void job_unmap(const struct job *j, char *mem); /* NULL: nothing */
/* Of a loop: the rank's operation may have ended. */
void job_loop_look(struct job *j, unsigned r, int64_t now);
struct coll_args job_args(const struct job_op *op);
/* A rank's buffers before an operation: its input in place, all else a pattern. 0 or -ENOMEM. */
int job_fill(struct job *j, const struct job_op *op, unsigned r);
/* All ranks' buffers after it, against the oracle: res->wrong. */
int job_check(struct job *j, struct job_result *res);

#endif
