/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processes of a job: starts one per rank, carries messages, and watches the processes that the
 * job needs: the ranks themselves and the fabric's trib-switch processes. One that ends too early
 * becomes one sentence (job_cause) that is sent to every remaining rank. Every wait has a limit.
 */
#ifndef TRIB_HOST_LAUNCH_JOB_PROCESSES_H
#define TRIB_HOST_LAUNCH_JOB_PROCESSES_H

#include "host/launch/msg.h"

#include <stdbool.h>
#include <sys/types.h>

struct job_processes;

struct job_processes_cfg {
    const struct fabric *fab;
    const struct rundir *rd; /* NULL: no trib-switch processes are watched */
    unsigned nranks;
    const uint16_t *host_of_rank;
    const char *preload; /* libtribverbs.so; NULL: none */
    const char *rsh; /* starts a rank on a host that is outside: RSH HOST trib-perf --remote-rank,
                        with the rank's socket as standard input and output; and on another
                        machine: RSH ADDRESS trib-perf --away-rank FABRIC HOST, without ADDRESS
                        where RSH has $TRIB_MACHINE, its name. NULL: ssh */
    int (*rank_main)(int fd,
                     unsigned rank); /* runs in the child instead of this program; for tests */
};

/* Called for each rank's answer. */
typedef int (*job_fn)(void *ctx, unsigned rank, const struct msg *m);

int job_launch(struct job_processes **j,
               const struct job_processes_cfg *cfg); /* 0 or -errno; then job_cause */
int job_send(struct job_processes *j, unsigned rank, uint32_t type, const void *body, size_t len);
int job_bcast(struct job_processes *j, uint32_t type, const void *body, size_t len);
/*
 * Waits for one message of `type` from every rank. -ECANCELED: something failed or the user
 * interrupted (job_cause), and all ranks were sent the cause; -ETIMEDOUT in the same way after
 * `seconds`. on_progress (may be NULL) gets MSG_PROGRESS and MSG_EVENTS.
 */
int job_gather(struct job_processes *j, uint32_t type, double seconds, job_fn each,
               job_fn on_progress, void *ctx);
/*
 * The same with limits of its own. After soft_s seconds (0: never) `soft` is called once. bound:
 * describes the limit of `seconds` in messages, instead of its length.
 */
struct job_limits {
    double seconds, soft_s;
    void (*soft)(void *ctx);
    const char *bound;
};
int job_gather_within(struct job_processes *j, uint32_t type, const struct job_limits *l,
                      job_fn each, job_fn on_progress, void *ctx);
/* Fails the job from the caller's side: every rank is sent the reason. */
void job_abort(struct job_processes *j, const char *why);
/* Ends the ranks (QUIT, unless the job failed), waits, and kills those left after 5 s. 0: every
 * rank ended well. */
int job_end(struct job_processes *j);
void job_free(struct job_processes *j);
const char *job_cause(const struct job_processes *j); /* "": nothing has failed */
/* The first signal that has asked the launcher to end; 0: none. */
int job_interrupted(const struct job_processes *j);
/* The same, for work between waits and after the last: looks whether one has come. */
int job_look_interrupted(struct job_processes *j);
pid_t job_pid(const struct job_processes *j, unsigned rank);
bool job_is_away(const struct job_processes *j,
                 unsigned rank); /* it runs on another machine of the conf */
#endif
