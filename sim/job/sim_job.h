/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job in virtual time: a communicator on every rank of a world, operations run on all of them,
 * results checked by the oracle.
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
    const unsigned *world_rank; /* [nranks] of this job's ranks; NULL: the world's are the job's */
    struct job *sibling; /* another job of the same world, running at the same time; NULL: none */
    uint32_t group;
    uint64_t key;
    uint16_t tree;
    unsigned n_trees;      /* 0: one; else so many from `tree` on */
    const uint16_t *trees; /* [n_trees] these instead; NULL: see n_trees */
    uint32_t window;
    unsigned algos;
    size_t buffer_bytes; /* largest buffer of the job's operations; 0: that of the first */
    unsigned n_policy;   /* as in comm_cfg */
    const enum coll_algo *policy;
    bool any_order;   /* inputs whose reduction is exact in every order */
    bool lengths;     /* data is carried as lengths: only job_loop, and nothing can be checked */
    int64_t limit_ps; /* fabric time from now on within which each call here must end */
};

/* One operation on all ranks. */
struct job_op {
    enum coll_kind kind;
    enum coll_algo algo;
    enum dtype type;
    enum redop op;
    size_t count;
    unsigned root, sparse;
    bool in_place;   /* where the collective has that */
    bool mm_self;    /* as in coll_args */
    int64_t skew_ps; /* ranks start at random times up to this apart ... */
    unsigned late;   /* ... or, not 0, rank late - 1 so much later than all others */
    uint64_t seed;   /* of data and skew */
};

#define JOB_TEXT 512
struct job_result {
    int64_t time_ps;
    uint64_t wrong; /* elements; bytes that the collective should not have touched count too; ranks
                       that left a barrier before the last one had entered */
    int failed_ranks;
    int unnamed; /* of those: without a word why */
    int dead_ranks;
    char text[JOB_TEXT];
};

/* Communicators on all ranks, joined. 0, or -errno with *err (COMM_TEXT bytes) naming the first
 * rank that failed. */
int job_create(struct job **j, const struct job_cfg *cfg, char *err);
/* Starts on all ranks and runs until every rank has finished or failed; -ETIME past the limit (a
 * hang: text says which ranks). 0 otherwise. */
int job_run(struct job *j, const struct job_op *op, struct job_result *res);
/* The same in two halves, so that several jobs of a world run at once. */
int job_start(struct job *j, const struct job_op *op, struct job_result *res);
int job_finish(struct job *j, struct job_result *res);

/*
 * Operations back to back: every rank starts its next when it has ended one, the first at the same
 * time. Data is the caller's: job_buffer() says where it may be.
 */
struct job_loop {
    unsigned n;
    void (*args)(void *ctx, unsigned rank, struct coll_args *a);
    bool (*stop)(
        void *ctx); /* looked at after each event, or slice of them (world_slice()); NULL: never */
    void *ctx;
    bool by_steps;    /* stop() does something in the world: event by event */
    int64_t limit_ps; /* fabric time within which it must end */
    /* results */
    int64_t time_ps; /* from the start until the last rank knows that its last has ended */
    int failed_ranks;
    char text[JOB_TEXT];
};
/* 0, -ECANCELED: stopped; -ETIME: not ended within the limit; -EIO: text says who failed and
 * why. */
int job_loop_run(struct job *j, struct job_loop *l);
/* Makes two buffers of every rank. 0 or -ENOMEM. */
int job_buffers(struct job *j, size_t bytes);
void *job_buffer(struct job *j, unsigned rank, unsigned which);
/* A rank whose process has died (world_kill) takes part in nothing; the others wait for it until
 * they find out, or are told. */
bool job_dead(const struct job *j, unsigned rank);
/* What a launcher does: every rank that lives hears of the death of one. */
void job_notify_death(struct job *j, unsigned dead);
struct comm *job_comm(struct job *j, unsigned rank);
/* Runs the world until fabric time t or until until(ctx) says so. */
void job_drive(struct job *j, int64_t until_ps, bool (*until)(void *), void *ctx);
/* LEAVEs everywhere and frees; runs the world until the groups are gone. -ETIME: some did not
 * close. */
int job_destroy(struct job *j);

#endif
