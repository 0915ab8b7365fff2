/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the parts of trib-keep: keep.c starts a fabric and supervises it, dir.c handles its run
 * directory, oom.c describes how a process ended. */
#ifndef TRIB_HOST_KEEP_KEEP_H
#define TRIB_HOST_KEEP_KEEP_H

#include "host/keep/procs.h"

/* ---- keep.c ---- */

struct keep_cfg {
    const char *dir, *conf, *program; /* the run directory; trib-switch */
    bool lives_with; /* the fabric ends with process `with`; else only its start does */
    pid_t with;      /* our parent */
    unsigned n_procs, n_opts;
    char **procs, **opts;
};

/* Starts a fabric and returns once it is up; a keeper process stays behind. Exit code. */
int keep_start(const struct keep_cfg *cfg);

/* ---- dir.c ---- */

enum { DIR_OURS, DIR_EMPTY, DIR_FOREIGN };
/* Makes DIR and its missing parents. 0 or -errno. */
int dir_make(const char *dir);
/* Whether the directory is a fabric's, empty but for logs, or foreign: TRIB_RUN may name
 * any directory, and a fabric clears its own. */
int dir_kind(int fd);
/* Removes all that the directory holds but `keep` (NULL: all), without following links. 0 or the
 * first -errno. */
int dir_clear(int fd, const char *keep);
/* Removes DIR, which fd is open on; another directory that has taken its name stays. */
int dir_remove(const char *dir, int fd);
/* Removes DIR if it is empty, and then the directory of all fabrics of this user. 0 or -errno. */
int dir_drop(const char *dir);
/* Whether `path` still names the file that fd has open. */
bool dir_is(const char *path, int fd);
/* Replaces a small file; a failure leaves no file and no message. */
void dir_write(int fd, const char *name, const char *text);
/* Copies the last lines of a file to stderr. false: it has none. */
bool dir_tail(int fd, const char *name);

/* ---- oom.c ---- */

/* How many processes of this machine the kernel has killed because memory ran out. */
uint64_t oom_kills(void);
/* Describes how a process ended: "killed by signal 9 (Killed), ...", "ended with exit code 1". */
void oom_describe(char *text, size_t size, int status, bool out_of_memory);
#endif
