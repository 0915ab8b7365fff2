/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job in virtual time: a communicator on each of its ranks, operations that run on all of them,
 * results checked by the oracle. One thread calls these functions.
 */
#ifndef TRIB_SIM_JOB_SIM_JOB_H
#define TRIB_SIM_JOB_SIM_JOB_H

#include "host/coll/coll.h"
#include "sim/world/world.h"

struct job;

struct job_cfg {
    struct world *w;
    const struct fabric *fab;
    unsigned nranks;
    const uint16_t *host_of_rank;
    const unsigned *world_rank; /* [nranks] numbers of its ranks in the world; NULL: the same */
    struct job *sibling; /* another job of the same world, running at the same time; NULL: none */
    uint32_t group;
    uint64_t key;
    uint16_t tree;
    unsigned n_trees;      /* trees from `tree` on; 0: one */
    const uint16_t *trees; /* [n_trees] instead of `tree` on; NULL: see n_trees */
    uint32_t window;
    unsigned algos;
    size_t buffer_bytes; /* largest buffer of any operation; 0: that of the first operation */
    unsigned n_policy;   /* as in comm_cfg */
    const enum coll_algo *policy;
    bool any_order;            /* inputs whose reduction is exact in every order */
    bool lengths;              /* data is carried as lengths: job_loop only, nothing is checked */
    int64_t limit_ps;          /* fabric time that each call of this header may take */
    struct timeline *timeline; /* records operations (host/bench/timeline.h); NULL: none */
};

/* One operation on all ranks. */
struct job_op {
    enum coll_kind kind;
    enum coll_algo algo;
    enum dtype type;
    enum redop op;
    size_t count;
    unsigned root, sparse;
    const struct sched_file *file; /* of ALGO_SCHEDULE */
    bool in_place;                 /* where the collective has that */
    bool mm_self;                  /* as in coll_args */
    int64_t skew_ps;               /* ranks start at random times within this ... */
    unsigned late; /* ... or, if not 0, rank late - 1 starts this much after all others */
    uint64_t seed; /* of data and skew */
};

#define JOB_TEXT 512
struct job_result {
    int64_t time_ps;
    uint64_t
        wrong; /* wrong elements; buffers changed where the collective must not write; ranks that
                       left a barrier before the last one entered it */
    int failed_ranks;
    int unnamed; /* failed without a reason in words */
    int dead_ranks;
    char text[JOB_TEXT];
};

/* Connects communicators on all ranks. 0, or -errno and err (COMM_TEXT bytes) names the first rank
 * that failed. */
int job_create(struct job **j, const struct job_cfg *cfg, char *err);
/* Starts the operation on all ranks and runs until each has finished or failed. 0, or -ETIME past
 * the limit (a hang: text names a rank). */
int job_run(struct job *j, const struct job_op *op, struct job_result *res);
/* job_run() in two calls, so that several jobs of a world run at once. */
int job_start(struct job *j, const struct job_op *op, struct job_result *res);
int job_finish(struct job *j, struct job_result *res);

/*
 * Operations back to back: all ranks start the first at the same time, and each starts the next
 * when it has finished one. Data is the caller's, in the buffers that job_buffer() returns.
 */
struct job_loop {
    unsigned n;
    void (*args)(void *ctx, unsigned rank, struct coll_args *a);
    /* Asked after each event, or slice of them (world_slice()); NULL: never */
    bool (*stop)(void *ctx);
    void *ctx;
    bool by_steps;    /* stop() acts on the world: no slices */
    int64_t limit_ps; /* fabric time that the loop may take */
    /* [n] zeros, into which it writes when each operation ended at its last rank, counted from the
     * start; NULL: not asked */
    _Atomic int64_t *ends_ps;
    /* results */
    int64_t time_ps; /* from the start until the last rank knows that its last one has ended */
    int failed_ranks;
    char text[JOB_TEXT];
};
/* 0; -ECANCELED: stopped; -ETIME: past the limit; -EIO: a rank failed, text says which and why. */
int job_loop_run(struct job *j, struct job_loop *l);
/* job_loop_run() in several calls, for jobs of one world that job_step() steps: the caller applies
 * limit and stop(). The loop is over when every living rank has ended or failed. */
void job_loop_start(struct job *j, struct job_loop *l);
bool job_loop_over(const struct job *j);
int job_loop_finish(struct job *j);
/* Ends a running loop after the foremost rank's operation, rounded up to a multiple of `of`
 * operations: every rank runs the same number. */
void job_loop_cut(struct job *j, unsigned of);
/* Whether a rank has finished all operations of the running or the last loop, and when it
 * ended. */
bool job_loop_done(const struct job *j, unsigned rank);
int64_t job_loop_end_ps(const struct job *j, unsigned rank);
/* Makes the connections that operations with these arguments use, before the first of them. 0;
 * -ETIME; what coll_connect() returns, and err says why. */
int job_connect(struct job *j, void (*args)(void *ctx, unsigned rank, struct coll_args *a),
                void *ctx, char *err);
int job_connect_start(struct job *j, void (*args)(void *ctx, unsigned rank, struct coll_args *a),
                      void *ctx, char *err);
bool job_connect_done(struct job *j);
/* Allocates two buffers on every rank. 0 or -ENOMEM. */
int job_buffers(struct job *j, size_t bytes);
void *job_buffer(struct job *j, unsigned rank, unsigned which);
/* Whether the rank's process has died (world_kill). A dead rank takes part in nothing; the others
 * wait for it until they detect the death or are notified. */
bool job_dead(const struct job *j, unsigned rank);
/* Notifies all living ranks of a death, as a launcher does. */
void job_notify_death(struct job *j, unsigned dead);
struct comm *job_comm(struct job *j, unsigned rank);
/* Runs the world until fabric time t or until until(ctx) says so. */
void job_drive(struct job *j, int64_t until_ps, bool (*until)(void *), void *ctx);
/* Runs the world's next event, if it is due by until_ps, and the ranks that it wakes in this job
 * and its siblings. */
void job_step(struct job *j, int64_t until_ps);
/* Leaves all groups, runs the world until they are gone, frees. 0, or -ETIME: some did not
 * close. */
int job_destroy(struct job *j);
/*
 * Creation and end in parts, for several jobs of a world that are stepped by job_step().
 * job_open() begins to connect; job_opened() returns -EAGAIN until that has ended, then what
 * job_create() does. job_close() begins to leave, job_discard() frees, whether all ranks have left or
 * not; what switches still hold then goes by itself.
 */
int job_open(struct job **j, const struct job_cfg *cfg, char *err);
int job_opened(struct job *j, char *err);
void job_close(struct job *j);
bool job_closed(struct job *j);
void job_discard(struct job *j);

#endif
