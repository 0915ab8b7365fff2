/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of trib-keep share: keep.c (starting a fabric and looking after it), dir.c (its
 * run directory), trib_keep.c (the command line). */
#ifndef TRIB_HOST_KEEP_KEEP_H
#define TRIB_HOST_KEEP_KEEP_H

#include "host/keep/procs.h"

/* ---- keep.c ---- */

struct keep_cfg {
    const char *dir, *conf, *program; /* the run directory; trib-switch */
    bool lives_with; /* the fabric ends with process `with`; else that is so until it is up */
    pid_t with;      /* our parent */
    unsigned n_procs, n_opts;
    char **procs, **opts;
};

/* Starts a fabric; returns once it is up, and leaves a process behind that keeps it. Exit code. */
int keep_start(const struct keep_cfg *cfg);

/* ---- dir.c ---- */

enum { DIR_OURS, DIR_EMPTY, DIR_FOREIGN };
/* Makes DIR and what is above it where that is missing. 0 or -errno. */
int dir_make(const char *dir);
/* Is it a fabric's, or empty but for logs? What TRIB_RUN names may be anything, and is going to be
 * cleared away. */
int dir_kind(int fd);
/* Removes what is in it, but for `keep` (NULL: nothing), through no link. 0 or the first -errno. */
int dir_clear(int fd, const char *keep);
/* Removes DIR, which fd is of; another one that has its name by now stays. */
int dir_remove(const char *dir, int fd);
/* Removes DIR if it is empty, and then the directory of all fabrics of this user. 0 or -errno. */
int dir_drop(const char *dir);
/* Is fd still what `path` names? */
bool dir_is(const char *path, int fd);
/* Writes a small file anew; silent where that fails. */
void dir_write(int fd, const char *name, const char *text);
/* Copies the last lines of a file to stderr; false: it has none. */
bool dir_tail(int fd, const char *name);

/* ---- oom.c ---- */

/* How many processes the kernel has killed for want of memory. */
uint64_t oom_kills(void);
/* How a process ended, in words: "killed by signal 9 (Killed), ...", "ended with exit code 1". */
void oom_describe(char *text, size_t size, int status, bool out_of_memory);
#endif
