/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of trib-keep share. keep.c starts and supervises a fabric, dir.c handles its run
 * directory, owner.c checks whose it is, all.c lists the fabrics of all users, oom.c describes how
 * a process ended. */
#ifndef TRIB_HOST_KEEP_KEEP_H
#define TRIB_HOST_KEEP_KEEP_H

#include "host/keep/procs.h"

/* ---- keep.c ---- */

struct keep_cfg {
    const char *dir, *conf, *program; /* the run directory; trib-switch */
    bool lives_with; /* the fabric ends when process `with` does; false: only its start does */
    pid_t with;      /* our parent */
    unsigned n_procs, n_opts;
    char **procs, **opts;
};

/* Starts a fabric and its keeper process. Returns the exit code once the fabric is up. */
int keep_start(const struct keep_cfg *cfg);

/* For say(): procs_find() has failed. */
#define KEEP_NOT_KNOWN "cannot find out who lives in %s: no memory or no descriptor is left"

/* ---- dir.c ---- */

enum { DIR_OURS, DIR_EMPTY, DIR_FOREIGN };
/* Whether the directory is a fabric's, empty but for logs, or foreign. TRIB_RUN may name any
 * directory, and a fabric clears only its own. */
int dir_kind(int fd);
/* Removes DIR and its contents. fd is open on DIR; if the name belongs to another directory by now,
 * that one stays. */
int dir_remove(const char *dir, int fd);
/* Removes DIR if it is empty, and then the directory of all fabrics of this user. 0 or -errno. */
int dir_drop(const char *dir);
/* Removes the directory of all fabrics of this user, which DIR is in, if none is in it. */
void dir_drop_base(const char *dir);
/* Records for sysfs that the ports of the hosts of an ended trib-switch are down. */
void keep_lose_ports(int dir, const char *proc);
/* Replaces a small file: it is whole, or as it was before. No message. */
void dir_write(int fd, const char *name, const char *text);
/* Copies the last lines of a file to stderr. false: the file is empty or missing. */
bool dir_tail(int fd, const char *name);

/* ---- owner.c ---- */

/* The user's name, or the number if it has none. The text is valid until the next call. */
const char *owner_name(uid_t uid);
/* Whether the directory is another user's; then prints that user's name. A service's directory that
 * this user may use does not count as another's, except to end its fabric (to_end). root_too:
 * refuse root too. */
bool owner_is_other(const char *dir, bool root_too, bool to_end);
/*
 * If root uses another user's directory, reduces this process to that user's rights for good,
 * because that user chooses what is in the directory (a link to /etc). Only the effective user
 * changes, so that the user can neither signal nor trace the process. Does nothing for others. 0 or
 * -errno.
 */
int owner_become(const char *dir);
/* Whether `trib` may look into the directory. 0: yes, or it does not exist; 1: no, with a message;
 * 3: it is another user's, with a message; 4: it is another user's, and root may list and stop it.
 */
int owner_check(const char *dir);
/* As owner_check() == 0, without a message. */
bool owner_may_look(const char *dir);
/* Whether a trib-switch of the directory runs. 0: one does; 1: none; 3: the directory is another
 * user's, with a message unless quiet. */
int owner_alive(const char *dir, bool quiet);

/* ---- show.c ---- */

/* Reads a file of the run directory for a script or a message. It follows no link, waits for no
 * FIFO, and replaces control characters by '?'. Returns the text, which the caller frees, or NULL.
 * A file that is not this user's gives a message, unless quiet. */
char *show_file(const char *dir, const char *file, bool quiet, size_t *size);

/* ---- all.c ---- */

/* Prints the fabrics of all users, as far as this user may see them. Exit code. */
int all_print(void);

/* ---- oom.c ---- */

/* Number of processes that the kernel has killed on this machine because memory ran out. */
uint64_t oom_kills(void);
/* Describes how a process ended: "killed by signal 9 (Killed), ...", "ended with exit code 1". */
void oom_describe(char *text, size_t size, int status, bool out_of_memory);
#endif
