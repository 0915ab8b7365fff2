/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processes of a job. Starts a process per rank, carries messages, and watches the processes
 * that the job needs: the ranks and the fabric's trib-switch processes. If one ends too early, a
 * sentence that says so (job_cause) is sent to every remaining rank. Every wait has a limit.
 */
#ifndef TRIB_HOST_LAUNCH_JOB_PROCESSES_H
#define TRIB_HOST_LAUNCH_JOB_PROCESSES_H

#include "host/launch/msg.h"

#include <stdbool.h>
#include <sys/types.h>

struct job_processes;

struct job_processes_cfg {
    const struct fabric *fab;
    const struct rundir *rd; /* NULL: do not watch trib-switch processes */
    unsigned nranks;
    const uint16_t *host_of_rank;
    const char *preload; /* libtribverbs.so; NULL: none */
    const char *rsh;     /* command that starts a rank elsewhere, with the rank's socket as standard
                        input and output. Host outside: RSH HOST trib-perf --remote-rank. Another
                        machine: RSH ADDRESS trib-perf --away-rank FABRIC HOST, without ADDRESS if
                        RSH uses $TRIB_MACHINE, the machine's name. NULL: ssh */
    int (*rank_main)(int fd,
                     unsigned rank); /* runs in the child instead of this program; for tests */
};

/* Called for each rank's answer. 0 or -errno. */
typedef int (*job_fn)(void *ctx, unsigned rank, const struct msg *m);

int job_launch(struct job_processes **j,
               const struct job_processes_cfg *cfg); /* 0 or -errno; then job_cause */
int job_send(struct job_processes *j, unsigned rank, uint32_t type, const void *body, size_t len);
int job_bcast(struct job_processes *j, uint32_t type, const void *body, size_t len);
/*
 * Waits for one message of `type` from every rank. Returns -ECANCELED if something failed or the
 * user interrupted, and -ETIMEDOUT after `seconds`; then all ranks have been sent the cause
 * (job_cause). on_progress (may be NULL) gets MSG_PROGRESS and MSG_EVENTS.
 */
int job_gather(struct job_processes *j, uint32_t type, double seconds, job_fn each,
               job_fn on_progress, void *ctx);
/*
 * As job_gather(), with two limits: calls `soft` once after soft_s seconds (0: never). bound
 * describes the limit of `seconds` in messages; NULL: its length does.
 */
struct job_limits {
    double seconds, soft_s;
    void (*soft)(void *ctx);
    const char *bound;
};
int job_gather_within(struct job_processes *j, uint32_t type, const struct job_limits *l,
                      job_fn each, job_fn on_progress, void *ctx);
/* Fails the job for the caller's reason, which is sent to every rank. */
void job_abort(struct job_processes *j, const char *why);
/* Ends the ranks (QUIT, unless the job failed), waits, and kills those left after 5 s. 0: every
 * rank ended well. */
int job_end(struct job_processes *j);
void job_free(struct job_processes *j);
const char *job_cause(const struct job_processes *j); /* "": nothing has failed */
/* The first signal that asked the launcher to end; 0: none. */
int job_interrupted(const struct job_processes *j);
/* As job_interrupted(), but first reads new signals. For work outside of job_gather(). */
int job_look_interrupted(struct job_processes *j);
pid_t job_pid(const struct job_processes *j, unsigned rank);
bool job_is_away(const struct job_processes *j,
                 unsigned rank); /* it runs on another machine of the conf */
#endif
