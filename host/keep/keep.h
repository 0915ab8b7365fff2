/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the parts of trib-keep: keep.c starts a fabric and supervises it, dir.c handles its run
 * directory, owner.c whose it is, all.c those of all users, oom.c describes how a process ended. */
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
/* Whether the directory is a fabric's, empty but for logs, or foreign: TRIB_RUN may name
 * any directory, and a fabric clears its own. */
int dir_kind(int fd);
/* Removes DIR, which fd is open on; another directory that has taken its name stays. */
int dir_remove(const char *dir, int fd);
/* Removes DIR if it is empty, and then the directory of all fabrics of this user. 0 or -errno. */
int dir_drop(const char *dir);
/* The ports of the hosts of a trib-switch that has ended are down, as sysfs shows them. */
void keep_lose_ports(int dir, const char *proc);
/* Replaces a small file; a failure leaves no file and no message. */
void dir_write(int fd, const char *name, const char *text);
/* Copies the last lines of a file to stderr. false: it has none. */
bool dir_tail(int fd, const char *name);

/* ---- owner.c ---- */

/* The user's name, or number. The text is good until the next call. */
const char *owner_name(uid_t uid);
/* Refuses another user's directory, and names that user; a service's that this user may use is none,
 * unless its fabric is to be ended. root_too: root is refused too. */
bool owner_is_other(const char *dir, bool root_too, bool to_end);
/*
 * For root and another user's directory: from here on this process has that user's rights, no more,
 * since what it finds there is that user's to choose (a link to /etc). Only the effective user
 * changes, so that user can neither signal nor trace it. Nothing to do for anybody else. 0 or
 * -errno.
 */
int owner_become(const char *dir);
/* Whether `trib` may look into the directory: 0: yes, or it is not there; 1: no, with a message;
 * 3: another user's, with a message; 4: another user's, and this is root, who may list and stop. */
int owner_check(const char *dir);
/* The same as yes or no, without a message; root who may list and stop may not look. */
bool owner_may_look(const char *dir);
/* Whether a trib-switch of the directory lives: 0: one does; 1: none; 3: it is another user's, with a
 * message unless quiet. */
int owner_alive(const char *dir, bool quiet);

/* ---- show.c ---- */

/* Reads a file of the run directory for a script or a message: through no link, waiting for no FIFO, and
 * with '?' for what controls a terminal. The text, which the caller frees, or NULL, with a message
 * where somebody else's hand is seen, unless quiet. */
char *show_file(const char *dir, const char *file, bool quiet, size_t *size);

/* ---- all.c ---- */

/* Prints the fabrics of all users, as far as this user may see them. Exit code. */
int all_print(void);

/* ---- oom.c ---- */

/* How many processes of this machine the kernel has killed because memory ran out. */
uint64_t oom_kills(void);
/* Describes how a process ended: "killed by signal 9 (Killed), ...", "ended with exit code 1". */
void oom_describe(char *text, size_t size, int status, bool out_of_memory);
#endif
