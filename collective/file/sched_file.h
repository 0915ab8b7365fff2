/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A collective's schedule from a file (docs/schedules.md): the steps of every rank, on chunks of
 * the vector. Reading verifies it: both ends of a message have the same length, there is no
 * deadlock in any order of events, steps that may run at the same time touch different memory, and
 * the result is the collective's. So every schedule that sched_file_load() returns can run.
 *
 * It is not changed after that, and must outlive the operations that use it.
 */
#ifndef TRIB_COLLECTIVE_FILE_SCHED_FILE_H
#define TRIB_COLLECTIVE_FILE_SCHED_FILE_H

#include "collective/kinds.h"

/* A rank's scratch memory has 16 times as many chunks as the vector. */
#define SCHED_FILE_NAME    32         /* bytes of a name */
#define SCHED_FILE_BYTES   (4u << 20) /* limit: bytes of a schedule from a file */
#define SCHED_FILE_RANKS   1024u      /* limit: ranks of a schedule from a file */
#define SCHED_FILE_CHUNKS  4096u      /* limit: chunks of its vector */
#define SCHED_FILE_STEPS   8192u      /* limit: steps of a rank in it */
#define SCHED_FILE_AFTER   16u        /* steps that one names */
#define SCHED_FILE_MEMBERS (1u << 24) /* chunks of all ranks, times ranks / 64 where it reduces */

struct file_step;
struct file_part;
struct file_edge;

struct sched_file {
    char name[SCHED_FILE_NAME];
    enum coll_kind kind;
    unsigned nranks, root;
    uint32_t chunks, scratch; /* chunks of `count` in kinds.h, and of each rank's scratch memory */
    bool place[2];            /* may run out of place (always true), in place */
    char *text;               /* the file's text */
    uint32_t hash;            /* hash of the text, not 0 */
    /* Steps of rank r: step[first[r]], ... before step[first[r + 1]]. */
    struct file_step *step;
    uint32_t *first, n_steps;
    uint32_t *after;        /* steps that steps wait for, as numbers within their rank */
    struct file_part *part; /* chunks of all steps */
    struct file_edge *edge; /* pairs of ranks with messages, sorted */
    uint32_t n_after, n_parts, n_edges;
};

/*
 * Reads and verifies a schedule. NULL: refused; errs has the mistakes in order of lines (errs->n >=
 * 1). Each check runs only if the earlier ones passed, so not all mistakes are found at once.
 */
struct sched_file *sched_file_load(const char *path, struct fab_errors *errs);
struct sched_file *sched_file_parse(const char *text, const char *path, struct fab_errors *errs);
void sched_file_free(struct sched_file *f);

#endif
