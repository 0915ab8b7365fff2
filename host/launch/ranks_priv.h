/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks of a sweep: ranks.c runs them, ranks_connect.c connects them, ranks_command.c sends
 * them a command and adds up their answers.
 */
#ifndef TRIB_HOST_LAUNCH_RANKS_PRIV_H
#define TRIB_HOST_LAUNCH_RANKS_PRIV_H

#include "base/assert.h"
#include "collective/sched.h"
#include "host/bench/verify/layout.h"
#include "host/launch/job_processes.h"
#include "host/launch/ranks.h"
#include "machine/rundir.h"
#include "machine/shared.h"

#define RANKS_OVER_S 2.0 /* seconds by which a row may exceed --max-wall, */
#define RANKS_OVER   0.1 /* plus this fraction of it; beyond that, the job ends */

/* The sum of the ranks' answers to a command. */
struct answers {
    struct sweep *s;
    uint8_t *blobs; /* [nranks * COMM_BLOB], while connecting */
    /* [iters] of a RUN: fabric time in ps from its start until the last rank has seen each
     * operation end; ascending. */
    int64_t *ends;
    uint64_t wrong;
    int64_t entered_ps, left_ps; /* when the last rank entered a barrier, and the first one left */
    struct ulp ulp;
    uint32_t aggregated, algo, ops;
    struct run_end end;                 /* of a RUN */
    uint64_t counted[TRIB_COUNTERS];    /* sum over the ranks' halves of a protocol */
    bool sampled;                       /* the row has sampled elements (samples.h) */
    enum coll_algo by;                  /* the algorithm that runs the row */
    char before[COMM_TEXT];             /* s->fell_back when the row began */
    int64_t staging_ns;                 /* of the rank that staged longest */
    int64_t late_ns;                    /* of the rank that began last */
    const struct coll_prediction *pred; /* of the row's algorithm, or of its replacement */
    struct coll_prediction instead;
    const char *label;
    unsigned iters;
    /* A RUN is to end early. */
    bool stopping;
    uint32_t foremost; /* the latest operation that a rank has begun */
    uint32_t n_begun;  /* ranks that have reported the operation that they have begun; has_begun[r]:
                          whether rank r has */
    uint8_t has_begun[FAB_MAX_MEMBERS];
};

static inline double ranks_left_s(int64_t until)
{
    return (double)(until - clock_mono_ns()) * 1e-9;
}

void ranks_set_dilation(struct sweep *s, unsigned dilation);

/* Whether the rank's host is outside of the emulation. */
static inline bool rank_is_elsewhere(const struct sweep *s, unsigned rank)
{
    return s->fab->nodes[s->fab->hosts[s->host_of_rank[rank]]].outside;
}

/*
 * Measures what links carry while ranks run: reads the counters before, once earlier operations
 * have left the fabric, and after, once the last ACKs have been sent.
 */
struct ranks_links {
    uint64_t *before, *after; /* [2 * n_links] */
    char why[LINK_USE_WHY];   /* why it cannot be measured; "": it can */
};
/* ranks_links_end() must follow: it frees memory. u: NULL if the run has failed. */
void ranks_links_begin(struct sweep *s, struct ranks_links *m);
void ranks_links_end(struct sweep *s, struct ranks_links *m, struct link_use *u);

/*
 * Sends a command to all ranks and waits for all answers, no longer than the row's time allows.
 * Once that is over, it stops a RUN. 0 or -errno, see job_gather().
 */
int ranks_command(struct sweep *s, uint32_t type, const void *body, size_t len, double seconds,
                  struct answers *a);
/* A job_fn: adds a DONE to struct answers. */
int ranks_take_done(void *ctx, unsigned rank, const struct msg *m);

#endif
