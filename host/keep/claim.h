/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The claim on a run directory: a write lock on its file `keeper`, held for as long as a fabric's
 * keeper lives. So two keepers cannot start one fabric, and the second one names the first.
 */
#ifndef TRIB_HOST_KEEP_CLAIM_H
#define TRIB_HOST_KEEP_CLAIM_H

#include "host/keep/keep.h"

struct claim {
    const char *path; /* of the run directory */
    int dir, lock;    /* open descriptors of the directory and of its keeper file; -1: none */
};

/* Makes the directory and locks it. Exit code: 0, or 1 after a message on stderr. */
int claim_take(struct claim *c);
/* Whether another command has claimed the directory: somebody has removed the lock file, or the
 * directory, meanwhile. */
bool claim_is_lost(const struct claim *c);
/* Records in the lock file that all processes of the fabric are up. The next command that wants the
 * directory reads it. */
void claim_mark_up(const struct claim *c);
/* Closes both descriptors, which drops the lock. The path stays. */
void claim_release(struct claim *c);
/* As claim_release(), for a fabric that was not started: also removes a directory that is empty. */
void claim_abandon(struct claim *c);

/* Removes a directory that no keeper holds. If another command has claimed it meanwhile, it stays.
 * 0 or -errno. */
int claim_remove(const char *path);
/* As claim_remove(), for a keeper that was killed during the start. claimed: the keeper had the
 * directory, so its processes are ended too; else the directory is removed only if it is empty. */
int claim_undo(const char *path, bool claimed);

/* The last component of the run directory's path. */
const char *fabric_name(const char *path);
/* Prints "trib: " and a line to stderr. Returns 1, the exit code of a failure. */
int say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
