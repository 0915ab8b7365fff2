/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of chaos: a case and its draws; for sim/chaos/ and its tests only. */
#ifndef TRIB_SIM_CHAOS_CHAOS_PRIV_H
#define TRIB_SIM_CHAOS_CHAOS_PRIV_H

#include "base/assert.h"
#include "base/random.h"
#include "sim/chaos/chaos.h"
#include "sim/job/sim_job.h"

#define CHAOS_RANKS  16u      /* of a job, at most */
#define CHAOS_BUFFER 262144u  /* bytes of a rank's data in an operation, at most */
#define CHAOS_FAULTY 65536u   /* the same where there are faults */
#define CHAOS_LONG   1048576u /* the same of long ones: several slices of multimem in flight */
#define CHAOS_OTHERS 8192u    /* the same of another job than the first */
#define CHAOS_OPS    16u      /* operations of a job, at most */
#define CHAOS_JOBS   4u       /* of a case, at most */
/* Algorithms that are drawn: a schedule from a file has ranks of its own. */
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
    START_BEFORE, /* the first one: what it is granted, the first is not */
    START_DURING, /* the first one's first operation */
    START_AFTER,  /* all others have ended: it finds what they have given back */
    CHAOS_STARTS
};

const char *chaos_start_name(enum chaos_start s);

/* Jobs are tenants: each has its own key. Those that run at the same time compete for groups,
 * slots and buffers of aggregation nodes. */
struct chaos_job {
    enum chaos_start start; /* of all but the first */
    bool shares;            /* its ranks are processes of the first job */
    int64_t stops_ps;       /* its launcher ends it this long after its last operation has begun; 0:
                               it ends by itself */
    size_t bytes;           /* of a rank's data in an operation, at most */
    unsigned nranks, ops;
    uint16_t host_of_rank[CHAOS_RANKS];
    unsigned process[CHAOS_RANKS]; /* ranks of the world */
    uint16_t tree;
    unsigned n_trees;
    uint32_t group;
    uint64_t key;
    unsigned algos; /* bit of each algorithm that ranks and fabric have */
    uint32_t window;
    enum coll_algo policy[CHAOS_ALGOS];
    unsigned n_policy;
    bool goes_on; /* an algorithm without switches is left whatever switches refuse or fail */
    struct job_op op[CHAOS_OPS]; /* read from a file, or drawn so far */
    unsigned n_ops;
};

struct chaos_case {
    const struct chaos_cfg *cfg;
    uint64_t rng[DRAW_STREAMS];
    const struct fabric *fab;
    struct fabric *own; /* the same where it was drawn or loaded; freed with the case */
    char conf[512];     /* name of a preset, or path (with a '/') of a conf file */
    char *conf_text;    /* contents of a conf file, if it was made up; freed with the case */
    char shape[96];
    bool uneven;     /* hosts have several ports, and rates of links differ */
    char found[256]; /* of a file: what the case once found */
    struct chaos_report *rep;
    uint64_t seed; /* of the links' draws */
    struct chaos_job job[CHAOS_JOBS];
    unsigned n_jobs;
    unsigned nprocs; /* of all jobs; the first ones are the first job's ranks */
    uint16_t host_of_proc[CHAOS_PROCESSES];
    uint64_t mcast;  /* seed of datagrams to groups at the end; 0: none */
    uint64_t slices; /* seed of operations of the first job by slices of time; 0: none */
    struct fault_plan plan;
};

static inline uint64_t below(struct chaos_case *k, enum chaos_stream s, uint64_t n)
{
    return random_next(&k->rng[s]) % n;
}

/* Adds the processes of a job whose hosts, or whose ranks in the first job, are known. False: a
 * host has no slot for one. */
bool chaos_place(struct chaos_case *k, struct chaos_job *j);
/* Whether the case may use the algorithm: of protocols the one that was asked for, alone. */
bool chaos_wants(const struct chaos_case *k, enum coll_algo algo);
void chaos_protocol_policy(struct chaos_case *k, struct chaos_job *j, enum chaos_stream of);
bool chaos_can(const struct chaos_case *k, const struct chaos_job *j, enum coll_algo algo);

/* 0, or -errno with the reason in why (CHAOS_TEXT bytes). */
int chaos_draw_fabric(struct chaos_case *k, char *why);
int chaos_draw_ranks(struct chaos_case *k);
void chaos_draw_jobs(struct chaos_case *k);
int chaos_draw_faults(struct chaos_case *k);
/* How long operations may be; filling and checking them costs more than most of them. */
void chaos_draw_bytes(struct chaos_case *k);
/* Draws an operation that the communicator supports, or any where it has failed and supports
 * none. */
void chaos_draw_op(struct chaos_case *k, const struct chaos_job *j, struct comm *c,
                   struct job_op *op);
/* False: the communicator does not support the operation, but others; no draw gives it. */
bool chaos_op_runs(const struct chaos_job *j, struct comm *c, const struct job_op *op);
const char *chaos_op_text(const struct job_op *op, char *buf, size_t size);

/* What may be expected of a job under the case's faults. */
bool chaos_recoverable(const struct chaos_case *k, const struct chaos_job *j);
bool chaos_may_give_up(const struct chaos_case *k, uint64_t frames);
/* Whether links only delay frames, and nothing else is wrong: then no frame is sent twice. */
bool chaos_only_late(const struct chaos_case *k);
/* The same of links that lose and double some, too: then no path is given up. Where frames overtake
 * each other, connections that carry slices of many packets may be. */
bool chaos_only_noise(const struct chaos_case *k);
/* Whether aggregation nodes may refuse it what it asks for. */
bool chaos_contended(const struct chaos_case *k, const struct chaos_job *j);
/* Whether they may know its group as another job's. */
bool chaos_collides(const struct chaos_case *k, const struct chaos_job *j);

/* Keeps the first thing that is wrong, with the event rings of that moment. */
void chaos_wrong(const struct chaos_case *k, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Writes the case where that is asked for. verdict: NULL: it still runs. */
void chaos_save(struct chaos_case *k, const char *verdict);
/* Of a world in which nothing fails, after all jobs. */
void chaos_run_mcast(struct chaos_case *k, struct world *w);
/* Of a case without faults and other jobs, after the operations. */
void chaos_run_slices(struct chaos_case *k, struct job *j);
/* Runs the case; its report has the verdict. */
void chaos_run_world(struct chaos_case *k);

#endif
