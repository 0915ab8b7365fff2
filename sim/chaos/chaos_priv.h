/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of chaos: a case and its draws; for sim/chaos/ and its tests only. */
#ifndef TRIB_SIM_CHAOS_CHAOS_PRIV_H
#define TRIB_SIM_CHAOS_CHAOS_PRIV_H

#include "base/assert.h"
#include "base/random.h"
#include "sim/chaos/chaos.h"
#include "sim/job/sim_job.h"

#define CHAOS_RANKS  16u      /* most ranks of a job */
#define CHAOS_BUFFER 262144u  /* most bytes of a rank's data in an operation */
#define CHAOS_FAULTY 65536u   /* ... if there are faults */
#define CHAOS_LONG   1048576u /* ... of long operations, with several multimem slices in flight */
#define CHAOS_OTHERS 8192u    /* ... of jobs other than the first */
#define CHAOS_OPS    16u      /* most operations of a job */
#define CHAOS_JOBS   4u       /* most jobs of a case */
/* Algorithms that are drawn. A schedule from a file is not, because it fixes the ranks. */
#define CHAOS_ALGOS     ALGO_SCHEDULE
#define CHAOS_PROCESSES (CHAOS_JOBS * CHAOS_RANKS)

/* One stream of draws for each kind of draw, so that one kind can change without the others. */
enum chaos_stream {
    DRAW_FABRIC,
    DRAW_RANKS,
    DRAW_OPS,
    DRAW_FAULTS,
    DRAW_JOBS,
    DRAW_UNEVEN, /* fabrics whose links differ, and how many of their trees a job has */
    DRAW_STREAMS
};

/* When a job other than the first connects. */
enum chaos_start {
    START_BEFORE, /* before the first job, which gets the rest of the resources */
    START_DURING, /* during the first operation of the first job */
    START_AFTER,  /* after all others have ended and given their resources back */
    CHAOS_STARTS
};

const char *chaos_start_name(enum chaos_start s);

/* Jobs are tenants: each has its own key. Those that run at the same time compete for groups,
 * slots and buffers of aggregation nodes. */
struct chaos_job {
    enum chaos_start start; /* not used for the first job */
    bool shares;            /* its ranks are processes of the first job */
    int64_t stops_ps;       /* from the start of its last operation until its launcher ends it; 0:
                               it ends by itself */
    size_t bytes;           /* most bytes of a rank's data in an operation */
    unsigned nranks, ops;
    uint16_t host_of_rank[CHAOS_RANKS];
    unsigned process[CHAOS_RANKS]; /* ranks of the world */
    uint16_t tree;
    unsigned n_trees;
    uint32_t group;
    uint64_t key;
    unsigned algos; /* bits of the algorithms that ranks and fabric support */
    uint32_t window;
    enum coll_algo policy[CHAOS_ALGOS];
    unsigned n_policy;
    bool goes_on; /* the policy has an algorithm without switches, which cannot be refused */
    struct job_op op[CHAOS_OPS]; /* read from a file, or drawn so far */
    unsigned n_ops;
};

struct chaos_case {
    const struct chaos_cfg *cfg;
    uint64_t rng[DRAW_STREAMS];
    const struct fabric *fab;
    struct fabric *own; /* the fabric, if it was drawn or loaded; freed with the case */
    char conf[512];     /* name of a preset, or path (with a '/') of a conf file */
    char *conf_text;    /* contents of a generated conf file; freed with the case */
    char shape[96];
    bool uneven;     /* hosts have several ports, and rates of links differ */
    char found[256]; /* of a case from a file: the defect that it once found */
    struct chaos_report *rep;
    uint64_t seed; /* for the draws of links */
    struct chaos_job job[CHAOS_JOBS];
    unsigned n_jobs;
    unsigned nprocs; /* processes of all jobs; the first ones are the first job's ranks */
    uint16_t host_of_proc[CHAOS_PROCESSES];
    uint64_t mcast;  /* seed of multicast datagrams at the end (chaos_mcast.c); 0: none */
    uint64_t slices; /* seed of the first job's operations in slices (chaos_slices.c); 0: none */
    struct fault_plan plan;
};

static inline uint64_t below(struct chaos_case *k, enum chaos_stream s, uint64_t n)
{
    return random_next(&k->rng[s]) % n;
}

/* Adds the processes of a job whose hosts, or whose ranks in the first job, are known. False: a
 * host has no slot for one. */
bool chaos_place(struct chaos_case *k, struct chaos_job *j);
/* Whether the case may use the algorithm. Of protocols it is only the requested one. */
bool chaos_wants(const struct chaos_case *k, enum coll_algo algo);
void chaos_protocol_policy(struct chaos_case *k, struct chaos_job *j, enum chaos_stream of);
bool chaos_can(const struct chaos_case *k, const struct chaos_job *j, enum coll_algo algo);

/* 0, or -errno with the reason in why (CHAOS_TEXT bytes). */
int chaos_draw_fabric(struct chaos_case *k, char *why);
int chaos_draw_ranks(struct chaos_case *k);
void chaos_draw_jobs(struct chaos_case *k);
int chaos_draw_faults(struct chaos_case *k);
/* Draws the limits of the operations' lengths: filling and checking costs more than most
 * operations. */
void chaos_draw_bytes(struct chaos_case *k);
/* Draws an operation that the communicator supports, or any operation if it supports none. */
void chaos_draw_op(struct chaos_case *k, const struct chaos_job *j, struct comm *c,
                   struct job_op *op);
/* Whether a draw could give this operation: the communicator supports it, or supports none. */
bool chaos_op_runs(const struct chaos_job *j, struct comm *c, const struct job_op *op);
const char *chaos_op_text(const struct job_op *op, char *buf, size_t size);

/* Whether the job must have its result under the case's faults. */
bool chaos_recoverable(const struct chaos_case *k, const struct chaos_job *j);
bool chaos_may_give_up(const struct chaos_case *k, uint64_t frames);
/* Whether the only faults are links that delay frames: then no frame is retransmitted. */
bool chaos_only_late(const struct chaos_case *k);
/* Whether the only faults are links that delay, lose, corrupt or duplicate frames: then no path is
 * given up. With reordering, connections with slices of many packets may be given up. */
bool chaos_only_noise(const struct chaos_case *k);
/* Whether aggregation nodes may refuse requests of the job, because others are connected. */
bool chaos_contended(const struct chaos_case *k, const struct chaos_job *j);
/* Whether another connected job uses the same group id. */
bool chaos_collides(const struct chaos_case *k, const struct chaos_job *j);

/* Fails the case. Keeps the first failure, with the event rings of that moment. */
void chaos_wrong(const struct chaos_case *k, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Writes the case if a file was requested. verdict: NULL if it still runs. */
void chaos_save(struct chaos_case *k, const char *verdict);
/* Runs multicast datagrams after all jobs, in a case without faults. */
void chaos_run_mcast(struct chaos_case *k, struct world *w);
/* Runs operations in slices after the others, in a case without faults and other jobs. */
void chaos_run_slices(struct chaos_case *k, struct job *j);
/* Runs the case; its report has the verdict. */
void chaos_run_world(struct chaos_case *k);

#endif
