/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processes of a run directory: which of them live, and how to signal them without ever meeting
 * another process that has their number by now.
 *
 * A pid file says nothing by itself: its number may be another process's, or anybody's text. A
 * process belongs to the fabric when it holds the lock on proc/<name>.pid (the kernel says who
 * does), was started when proc/<name>.start says, and is trib-switch; or, where files are missing,
 * when it is trib-switch or trib-keep of this user with this run directory in its arguments. Both
 * are looked at again once there is a pidfd of it, through which it is signalled.
 */
#ifndef TRIB_HOST_KEEP_PROCS_H
#define TRIB_HOST_KEEP_PROCS_H

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
    int fd; /* pidfd */
};

struct procs {
    unsigned n, room;
    struct proc *at;
    unsigned foreign; /* living processes named in pid files that are not the fabric's: how many, */
    char told[KEEP_PATH]; /* and the first of them, in words */
};

/* Those that live. keeper: the keeper too, which must not ask for itself: closing the file would
 * drop its lock. 0 or -ENOMEM. */
int procs_find(struct procs *p, const char *dir, bool keeper);
void procs_free(struct procs *p);
/* Waits until all have ended. false: some live after `ms`. */
bool procs_wait(const struct procs *p, int ms);
/* 0, or -errno of the first that could not be signalled; one that has ended is none. */
int procs_signal(const struct procs *p, int sig);
/* TERM, then KILL after a few seconds; until nobody of DIR lives. 0 or -errno. */
int procs_stop(const char *dir, bool keeper);

/* Who holds the write lock on this file; 0: nobody. */
pid_t procs_lock_holder(const char *path);
/* Start of a process in clock ticks since boot; 0: there is none. */
uint64_t procs_start_time(pid_t pid);

/* A fabric as the machine's process table shows it, whoever's it is. */
struct fabric_seen {
    uid_t uid;
    pid_t pid;
    char dir[KEEP_PATH];
};
typedef void (*procs_seen_fn)(void *ctx, const struct fabric_seen *f);
void procs_scan(procs_seen_fn fn, void *ctx);
/* Whose fabric DIR is: of the directory, else of a process that runs in it. false: nobody's. */
bool procs_owner(const char *dir, uid_t *uid);
#endif
