/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a job: its ranks and their buffers; for sim/job*.c only. */
#ifndef TRIB_SIM_JOB_SIM_JOB_PRIV_H
#define TRIB_SIM_JOB_SIM_JOB_PRIV_H

#include "base/assert.h"
#include "base/events.h"
#include "sim/job/sim_job.h"

#include <stdatomic.h>

/* Retries of control messages run on this clock, in fabric time. */
#define JOB_TICK_PS (10 * PS_PER_MS)

struct member {
    struct comm *comm;
    struct coll_req *req;
    char *mem; /* input and output in one registered block */
    char *in, *out;
    char *send, *recv; /* of the running operation; copy: what send held before it */
    char *copy;
    size_t send_bytes;
    int64_t start_ps, end_ps;
    bool started, ended;
    int rc;
    char why[COMM_TEXT];
    bool failed_over;          /* recorded as an event */
    unsigned ops;              /* of a loop: finished */
    struct world_sleep launch; /* of its operation */
};

struct job {
    struct job_cfg cfg;
    struct member *mem;
    size_t bytes; /* of each buffer */
    int64_t next_tick;
    int64_t next_timer; /* no timer of a protocol is due before */
    struct job *next;   /* ring of the jobs of a world */
    struct job_op op;   /* running */
    struct job_loop *loop;
    atomic_uint left, failures; /* of a loop: ranks that have not ended; ranks that failed */
    unsigned at;                /* ranks before this one have connected, or closed */
    bool failed;                /* a communicator failed while connecting */
    unsigned ops;               /* operations and loops so far */
    struct events events;
};

/* The number in its world of the job's rank r. */
static inline unsigned job_world_rank(const struct job *j, unsigned r)
{
    return j->cfg.world_rank ? j->cfg.world_rank[r] : r;
}

/* What happens to a job, for its event ring. */
enum job_event {
    JOB_CONNECTING,
    JOB_CONNECTED,
    JOB_OP_BEGUN,
    JOB_OP_KIND,
    JOB_RANK_STARTED,
    JOB_RANK_ENDED,
    JOB_RANK_FAILED,
    JOB_FAILED_OVER,
    JOB_OP_ENDED,
    JOB_LOOP_BEGUN,
    JOB_LOOP_ENDED,
    JOB_DEATH_NOTIFIED,
    JOB_CLOSING,
    JOB_CLOSED,
    JOB_EVENTS
};

/* By the thread that runs the world, never within a slice. */
static inline void job_record(struct job *j, enum job_event kind, uint32_t a, uint32_t b)
{
    events_add(&j->events, world_now(j->cfg.w), (uint16_t)kind, a, b);
}
void job_events_init(struct job *j);
/* Records the ranks whose communicator has failed over since the last call. */
void job_record_failovers(struct job *j);
/* Runs the rank's communicator until it has nothing to do at this moment. */
void job_progress(struct job *j, unsigned r);
/* Whether a loop waits for the rank: world_await(). */
void job_await(struct job *j, unsigned r, bool on);
/* As job_drive(), but by slices of time where the world can, until(ctx) being asked once a slice.
 * Rests at the end of a slice either way. */
void job_drive_slices(struct job *j, int64_t until_ps, bool (*until)(void *), void *ctx);
/* Two buffers on every rank. 0, -EFBIG: there are smaller ones, or -ENOMEM. */
int job_make_buffers(struct job *j, size_t bytes);
void job_unmap(const struct job *j, char *mem); /* NULL: nothing */
/* Of a loop: tests the rank's operation, and starts its next where that has ended. */
void job_loop_test(struct job *j, unsigned r, int64_t now);
struct coll_args job_args(const struct job_op *op);
/* Fills a rank's buffers before an operation: its input, and a pattern elsewhere. 0 or -ENOMEM. */
int job_fill(struct job *j, const struct job_op *op, unsigned r);
/* Compares all ranks' buffers after it with the oracle's: adds to res->wrong. */
int job_check(struct job *j, struct job_result *res);

#endif
