/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between the launcher and its ranks over a stream socket. They are length-prefixed, and
 * in native byte order: the program is the same at both ends, and so is the machine, or (--rsh) its
 * kind. The launcher sends a command to every rank and waits for every rank's answer, which is also
 * the barrier between commands.
 *
 *   rank       launcher
 *   HELLO  ->            its device is open; BLOB bytes for the others
 *          <-  CONNECT   every rank's blob, in order
 *   DONE   ->            the communicator is ready
 *          <-  PREPARE   a row, in or out of place: fill buffers, poison the output
 *   DONE   ->
 *          <-  RUN       n operations back to back; DONE carries when each ended
 *          <-  RECORD    a RUN of one operation, for a time line; EVENTS come before DONE
 *          <-  CHECK     DONE carries the number of wrong elements
 *          <-  ERROR     once with random floats; DONE carries their error
 *          <-  QUIT      leave the group and end; or ABORT, with the reason, at any time
 *   PROGRESS ->          rank 0, every 200 ms: operations done
 *          <-  STOP      the row's time is over. A rank that runs operation k answers PROGRESS k,
 *                        and waits for LIMIT after operation k + 1
 *          <-  LIMIT     the last operation of all ranks: the one after the largest such k
 *   EVENTS ->            a piece of the text of a time line's events
 *   FAIL   ->            the reason in words; the launcher answers ABORT
 */
#ifndef TRIB_HOST_LAUNCH_MSG_H
#define TRIB_HOST_LAUNCH_MSG_H

#include "host/bench/buffer.h"
#include "host/bench/perf_options.h"
#include "host/bench/verify/exact.h"
#include "machine/rundir.h"

#include <stddef.h>
#include <stdint.h>

enum msg_type {
    MSG_INIT = 1, /* struct msg_init, then nranks uint16_t: host of each rank */
    MSG_HELLO,
    MSG_CONNECT,
    MSG_PREPARE,
    MSG_RUN,
    MSG_CHECK,
    MSG_ERROR,
    MSG_QUIT,
    MSG_ABORT,
    MSG_DONE,
    MSG_PROGRESS,
    MSG_FAIL,
    MSG_STOP,   /* during a RUN: the rank answers (PROGRESS) with the number of operations begun */
    MSG_LIMIT,  /* struct msg_progress: the RUN ends after this many operations */
    MSG_FABRIC, /* after INIT, to a rank elsewhere: the text of the fabric's conf */
    MSG_SCHEDULE, /* then, if INIT announces one: the text of a schedule, in pieces */
    MSG_RECORD,
    MSG_EVENTS,
    MSG_GRANTED, /* once all ranks are connected: asks for the switches' grants */
};

/* The longest bodies: the blobs of all ranks, or a rank's end times of all operations of a RUN. */
#define MSG_MAX  (PERF_MAX_ITERS * 8u + sizeof(struct msg_done))
#define MSG_TEXT 400

struct msg_init {
    uint32_t rank, nranks, group, window, algos, n_trees, n_policy;
    uint32_t schedule;              /* bytes of the schedule that follows; 0: none */
    uint32_t timeline;              /* whether there will be a RECORD */
    int32_t gpu;                    /* buffer.h */
    uint8_t policy[ALGO_COUNT + 1]; /* enum coll_algo, in order of preference; padded */
    uint16_t tree[COLL_TREES];
    uint64_t key, buf_bytes; /* the group's key; bytes of each buffer */
};
struct msg_prepare {
    uint32_t coll, algo, type, op, root, sparse, in_place, mm_self;
    uint32_t sampled; /* whether some elements are samples (samples.h) */
    uint64_t count;
    double bound; /* as in struct row */
};
struct msg_run {
    uint32_t n;        /* PERF_MAX_ITERS at most */
    uint32_t progress; /* whether rank 0 reports progress */
    int64_t start_ps;  /* fabric time at which all ranks start; 0: at once */
};
struct msg_check {
    uint32_t again;   /* in place the buffer holds n reductions: fill it and run once more */
    uint32_t late;    /* barrier: run it once more, and this rank enters it ... */
    uint64_t late_ns; /* ... this much wall time after the others */
    uint32_t ways;    /* possible results of sampled elements; their bytes follow (sampled.h) */
};
/* The answer to a command. To a RUN, `ops` int64_t follow: the fabric time, in ps since the start
 * of the first operation, at which this rank saw each operation end. */
struct msg_done {
    uint32_t ops;                /* RUN: operations done */
    int64_t late_ns;             /* RUN: wall time by which the first operation began late */
    uint64_t wrong;              /* CHECK */
    int64_t entered_ps, left_ps; /* CHECK of a barrier, and RECORD: fabric time of begin and end */
    uint32_t schedules;          /* RECORD: number of schedules that the operation ran */
    int64_t slow_ps, slow_of_ps; /* RECORD: lateness_of_host() */
    struct ulp ulp;              /* ERROR */
    uint64_t counted[TRIB_COUNTERS]; /* RUN: what the row's protocol counted during it */
    uint32_t aggregated;             /* RUN: operations that the requested algorithm completed */
    uint32_t algo;                   /* PREPARE, RECORD: the algorithm that runs the row now */
    uint8_t goes_on;                 /* RUN: the requested algorithm would run the next one */
    uint8_t lacks_trees;             /* RUN: comm_lacks_trees() of the row's algorithm */
    int64_t staging_ns;              /* RUN: wall time of copies to and from a GPU */
    char fell_back[COMM_TEXT];       /* comm_fell_back(); "": nothing has failed */
    struct coll_grant granted;       /* GRANTED: rank 0's counts */
    uint32_t last_trees;             /* comm_last_trees() */
    uint16_t last_tree[COLL_TREES];
    char memory[COMM_TEXT + 80]; /* rank 0: kind of memory, comm_gpudirect(); "": the host's */
};
struct msg_progress {
    uint32_t done;
    uint32_t begun; /* in answer to STOP; else 0 */
};

struct msg {
    uint32_t type, len;
    const uint8_t *body; /* valid until the next msg_next() or msg_fill() */
};

/* Bytes that were read and not yet consumed. */
struct inbox {
    uint8_t *buf;
    size_t size, head, tail;
};

int msg_send(int fd, uint32_t type, const void *body,
             size_t len); /* 0 or -errno; -EPIPE: other end is gone */
int msg_fill(
    struct inbox *in,
    int fd); /* reads what is there, without waiting: bytes; 0: nothing; -EPIPE: end; -errno */
int msg_next(struct inbox *in, struct msg *m); /* 1: a whole message; 0: none; -EPROTO */
void msg_free(struct inbox *in);
#endif
