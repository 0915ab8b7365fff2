/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a job: job_processes.c watches its processes, job_start.c starts them. */
#ifndef TRIB_HOST_LAUNCH_JOB_PROCESSES_PRIV_H
#define TRIB_HOST_LAUNCH_JOB_PROCESSES_PRIV_H

#include "base/assert.h"
#include "host/launch/job_processes.h"
#include "machine/process_monitor.h"
#include "machine/suspect.h"

#include <poll.h>
#include <signal.h>

struct job_process {
    pid_t pid; /* 0: reaped */
    int fd;    /* -1: closed */
    struct inbox in;
    bool answered, failed;
    struct suspect stop;
};

struct job_processes {
    const struct fabric *fab;
    const struct rundir *rd;
    unsigned nranks;
    uint16_t machine; /* index of this machine; FAB_NONE: the conf has no machines */
    uint16_t *host;
    struct job_process *rank;
    struct pollfd *pfd;            /* ranks, then the signal descriptor */
    struct process_monitor *watch; /* NULL: no run directory */
    int sigfd;
    sigset_t old_mask;
    bool aborted; /* every rank was sent the cause */
    bool quitting;
    int interrupted; /* the first signal that asked the launcher to end; 0: none */
    int bad_exits;
    int64_t held_since; /* when a failure that a rank reported arrived; 0: none */
    int64_t watched;    /* when the trib-switch processes were last checked */
    char held[MSG_TEXT], cause[MSG_TEXT];
    char lost[MSG_TEXT / 2]; /* names a dead trib-switch that the job does not need */
};

static inline const char *job_host(const struct job_processes *j, unsigned rank)
{
    return j->fab->nodes[j->fab->hosts[j->host[rank]]].name;
}

/* The machine on which the rank runs; NULL: this one. */
static inline const struct fab_machine *job_machine(const struct job_processes *j, unsigned rank)
{
    const struct fab_node *host = &j->fab->nodes[j->fab->hosts[j->host[rank]]];

    return rundir_is_away(j->machine, host) ? &j->fab->machines[host->machine] : NULL;
}

/* Sets the cause of the job's failure, unless there is one already. */
void job_set_cause(struct job_processes *j, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
