/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several jobs on one fabric in virtual time: what each of them suffers from the others, who is
 * refused what by the switches, and when the resources of one that dies are back.
 *
 *   jobs_conf*.c   the file: jobs, checked against the fabric
 *   jobs_ops.c     operations of a job: their buffers, arguments and the check of each result
 *   jobs_run.c     a job from state to state: it connects, runs its loop and leaves
 *   jobs_world.c   one world with its jobs and faults, in order of events
 *   jobs.c         all jobs together, then each alone on a fresh world; fairness
 *   jobs_report.c  the tables and the JSON
 *
 * Each rank of a job is a process of its own, alone or together: the idle processes of the other
 * jobs are there too when a job runs alone, so that it has the same addresses, queue pairs and
 * routes.
 */
#ifndef TRIB_SIM_JOBS_JOBS_H
#define TRIB_SIM_JOBS_JOBS_H

#include "fabric/conf/faults.h"
#include "host/coll/coll.h"
#include "sim/report/congestion.h"
#include "sim/report/link_counters.h"

#include <rte_mempool.h>

#define JOBS_MAX       32u   /* limit: jobs of a --jobs file */
#define JOBS_OPS       8u    /* limit: operations of a job's list */
#define JOBS_RANKS     4096u /* limit: ranks of all jobs */
#define JOBS_GROUP_MAX 0xfffffu
#define JOBS_NEVER     (-1)

struct jobs_op {
    enum coll_kind kind;
    enum coll_algo algo, asked; /* asked: ALGO_AUTO where the model has chosen algo */
    enum dtype type;
    enum redop op;
    unsigned root;
    uint64_t bytes, count; /* bytes as nccl-tests count them; count as in coll_args */
    int64_t model_ps;      /* predicted, alone */
    double bound;          /* of a protocol that quantises, as in struct row; 0: exact */
};

struct jobs_job {
    char name[FAB_NAME];
    unsigned nranks, first_rank; /* first_rank: number of its rank 0 among those of all jobs */
    uint16_t *host_of_rank;      /* [nranks] */
    unsigned n_ops;
    struct jobs_op op[JOBS_OPS]; /* one iteration */
    uint32_t repeat;             /* iterations; 0: until the jobs that count theirs have ended */
    int64_t start_ps, die_ps;    /* die_ps: JOBS_NEVER */
    unsigned n_policy;           /* as in comm_cfg */
    enum coll_algo policy[ALGO_COUNT];
    unsigned n_trees;
    uint16_t tree[COLL_TREES];
    uint32_t window, group;
    unsigned algos; /* bits of those that switches may have to set up */
};

struct jobs_plan {
    unsigned n, nranks; /* nranks: of all */
    struct jobs_job job[JOBS_MAX];
    uint16_t *host_of_rank; /* [nranks] in order of jobs */
};

/* Loads a file and checks it against the fabric. 0, or -EINVAL with all mistakes in errs. The caller
 * frees the plan. */
int jobs_load(struct jobs_plan *p, const char *path, const struct fabric *f,
              struct fab_errors *errs);
int jobs_load_string(struct jobs_plan *p, const char *text, const char *path,
                     const struct fabric *f, struct fab_errors *errs);
void jobs_free(struct jobs_plan *p);

/* Bytes of the buffers of all ranks of a job. */
uint64_t jobs_data_bytes(const struct jobs_job *j);

/* The one place where a job's algorithm is looked up by its name: an algorithm, or "auto"
 * (ALGO_AUTO). -EINVAL: none. */
int jobs_algo_by_name(const char *name);

/* ---- one world ---- */

enum jobs_end {
    JOBS_DONE,
    JOBS_DIED,    /* a rank of it, or all */
    JOBS_REFUSED, /* it could not connect */
    JOBS_FAILED,  /* an operation ended with an error */
    JOBS_HANGS,   /* it did not end within the limit */
    JOBS_ENDS
};
const char *jobs_end_name(enum jobs_end e);

/* What a job did in a world. Times are fabric time from time 0, JOBS_NEVER: it did not. */
struct jobs_result {
    enum jobs_end end;
    char why[COMM_TEXT];             /* JOBS_DIED and later */
    unsigned iterations;             /* finished by all of its ranks */
    double iteration_ps;             /* of the slowest rank, on average; 0: it has finished none */
    uint64_t wrong, checked;         /* elements; results of ranks compared */
    int64_t began_ps, ended_ps;      /* its first operation begins; the last rank has ended */
    int64_t died_ps, released_ps;    /* its last group has gone from the last switch */
    unsigned groups;                 /* groups at switches, at most at any one time */
    enum coll_algo ran_by[JOBS_OPS]; /* at its end */
    char fell_back[COMM_TEXT];       /* comm_fell_back() of the first rank that has; "": none */
    struct coll_grant grant;
};

struct jobs_world_cfg {
    const struct fabric *fab;
    const struct jobs_plan *plan;
    const struct fault_plan *faults; /* NULL: none; ranks are those of all jobs */
    int only;                        /* the job that runs alone; JOBS_NEVER: all */
    unsigned iterations;             /* of that one, instead of its own; 0: its own */
    uint64_t seed;
    bool lengths; /* lengths without data; nothing is checked */
    struct rte_mempool *pool;
    unsigned frames; /* of the pool, in use at most */
    net_tap_fn tap;
    void *tap_ctx;
    struct counters *counters; /* NULL: none */
    const volatile int *stop;
};

/* Of a world, at its end. */
struct jobs_totals {
    int64_t fabric_ps;
    uint64_t events, frames, trace;
    unsigned pool_peak;
    struct congestion congestion;
    struct json_t *links; /* counters of the whole run; NULL: none. The caller's */
};

/* Fills res[] of the jobs that run. 0 or -errno with a sentence in err (COMM_TEXT bytes); -ECANCELED:
 * stopped. */
int jobs_run_world(const struct jobs_world_cfg *cfg, struct jobs_result *res,
                   struct jobs_totals *totals, char *err);

/* ---- all of it ---- */

/* Jain's index of n throughputs, each relative to running alone: 1 when all are alike, 1 / n when
 * one has everything. 0 of none. */
double jobs_jain(const double *x, unsigned n);

struct jobs_opts {
    const struct fabric *fab;
    const struct jobs_plan *plan;
    const struct fault_plan *faults; /* NULL: none */
    const char *file, *json;         /* json: NULL: none */
    bool wide;                       /* every column */
    struct provenance *from;
    uint64_t seed;
    bool lengths;
    struct rte_mempool *pool;
    unsigned frames;
    net_tap_fn tap; /* of the jobs together */
    void *tap_ctx;
    struct counters *counters;
    const volatile int *stop;
};

struct jobs_report {
    const struct jobs_opts *o;
    struct jobs_result together[JOBS_MAX], alone[JOBS_MAX];
    double slowdown[JOBS_MAX]; /* 0: one of both has no time */
    double fairness;
    unsigned compared; /* jobs that have a slowdown */
    struct jobs_totals totals;
};

/* Runs the jobs together, then each alone, and prints. 0; -EBADMSG: elements are wrong, or a job ended
 * with an error that nobody planned; -errno with a sentence in err (COMM_TEXT bytes). */
int jobs_run(const struct jobs_opts *o, char *err);

void jobs_print(const struct jobs_report *r);
/* 0 or -errno. */
int jobs_write(const struct jobs_report *r);

#endif
