/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processes of a run directory: which of them run, and how to signal them without ever
 * signalling another process that has got their pid.
 *
 * A pid file alone proves nothing, because its number may belong to another process by now. A
 * process belongs to the fabric if it holds the lock on proc/<name>.pid (the kernel names the
 * holder), has the pid and the start time of the file, and is trib-switch. If files are missing, it
 * belongs to the fabric if it is a trib-switch or trib-keep of this user with this run directory in
 * its arguments. Both are checked again once a pidfd of the process is open, and signals go through
 * that pidfd. Files of a directory that other users could write to do not count.
 *
 * The holder of a lock may be in another PID namespace (a container that shares the run directory).
 * It runs, but cannot be signalled from here: its pid is PROCESS_AWAY.
 */
#ifndef TRIB_HOST_KEEP_PROCS_H
#define TRIB_HOST_KEEP_PROCS_H

#include "system/process.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define KEEP_PATH 4096
#define KEEP_NAME 256
#define KEEP_FILE "keeper" /* file of the run directory that its trib-keep locks */

struct proc {
    char name[KEEP_NAME]; /* "": the keeper */
    pid_t pid;
    int fd; /* pidfd; -1: PROCESS_AWAY */
};

struct procs {
    unsigned n, cap;
    struct proc *at;
    int missed;       /* -errno of a look that failed for want of memory or descriptors */
    unsigned foreign; /* running processes that pid files name but that are not the fabric's */
    char first_foreign[KEEP_PATH]; /* a sentence about the first of them */
};

/* Finds the running processes. keeper: the keeper too; the keeper itself must pass false, because
 * closing its file would drop its lock. 0; or -ENOMEM, -EMFILE, -ENFILE: who lives is not known. */
int procs_find(struct procs *p, const char *dir, bool keeper);
void procs_free(struct procs *p);
/* Number of processes in a PID namespace that cannot be seen from this one. */
unsigned procs_away(const struct procs *p);
/* Waits until all have ended. false: some still run after `ms`. */
bool procs_wait(const struct procs *p, int ms);
/* Signals all processes, keepers first: they then expect the others to end. 0, or -errno of the first
 * one that could not be signalled. A process that has ended is no failure. */
int procs_signal(const struct procs *p, int sig);
/* Sends SIGTERM, and SIGKILL after a few seconds, until no process of DIR runs. 0 or -errno;
 * -EXDEV: some run in another PID namespace, and none was signalled. */
int procs_stop(const char *dir, bool keeper);

/* Replaces all but printable ASCII, in text of other users that goes to a terminal. */
void procs_printable(char *text);
/* Start time of a process in clock ticks since boot; 0: no such process. */
uint64_t procs_start_time(pid_t pid);

/* A process of a fabric of any user, as the machine's process table shows it. */
struct fabric_seen {
    uid_t uid;
    pid_t pid;
    uint64_t start;       /* in clock ticks since boot */
    bool keeper;          /* trib-keep, not trib-switch */
    char proc[KEEP_NAME]; /* name of the trib-switch; "?": unknown */
    char dir[KEEP_PATH];
};
typedef void (*procs_seen_fn)(void *ctx, const struct fabric_seen *f);
void procs_scan(procs_seen_fn fn, void *ctx);
/* The owner of DIR's fabric: the directory's owner, or else that of a process which names DIR.
 * false: there is neither. */
bool procs_owner(const char *dir, uid_t *uid);
#endif
