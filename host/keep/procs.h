/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processes of a run directory: which of them live, and how to signal them without ever hitting
 * another process that has been given their pid.
 *
 * A pid file alone proves nothing: its number may belong to another process by now, or be arbitrary
 * text. A process belongs to the fabric when it holds the lock on proc/<name>.pid (the kernel names
 * the holder), has the pid and the start time that the file says, and is trib-switch; or, where
 * files are missing, when it is trib-switch or trib-keep of this user with this run directory in
 * its arguments. Both are checked again once a pidfd of the process is open, and signals go through
 * that pidfd. Files of a directory that other users could write to do not count.
 *
 * A lock whose holder this PID namespace does not show (a container that shares the run directory)
 * tells that a process lives. It cannot be signalled from here: its pid is PROCESS_AWAY.
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
#define KEEP_FILE "keeper" /* of the run directory: locked by its trib-keep */

struct proc {
    char name[KEEP_NAME]; /* "": the keeper */
    pid_t pid;
    int fd; /* pidfd; -1: PROCESS_AWAY */
};

struct procs {
    unsigned n, cap;
    struct proc *at;
    unsigned foreign; /* living processes that pid files name and that are not the fabric's */
    char first_foreign[KEEP_PATH]; /* the first of them, in words */
};

/* Finds the processes that live. keeper: the keeper too; the keeper itself must not set it, because
 * closing its file would drop its lock. 0 or -ENOMEM. */
int procs_find(struct procs *p, const char *dir, bool keeper);
void procs_free(struct procs *p);
/* How many of them run in a PID namespace that this one does not show. */
unsigned procs_away(const struct procs *p);
/* Waits until all have ended. false: some live after `ms`. */
bool procs_wait(const struct procs *p, int ms);
/* 0, or -errno of the first process that could not be signalled. A process that has ended is no
 * failure. */
int procs_signal(const struct procs *p, int sig);
/* Sends SIGTERM, and SIGKILL after a few seconds, until no process of DIR lives. 0 or -errno; -EXDEV:
 * some run in another PID namespace, and none is signalled. */
int procs_stop(const char *dir, bool keeper);

/* Replaces what is not printable ASCII: text of other users on its way to a terminal. */
void procs_printable(char *text);
/* Start time of a process in clock ticks since boot; 0: no such process. */
uint64_t procs_start_time(pid_t pid);

/* A fabric of any user, as the machine's process table shows it. */
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
/* The owner of DIR's fabric: the directory's, else that of a process which names it.
 * false: none. */
bool procs_owner(const char *dir, uid_t *uid);
#endif
