/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between the launcher and its ranks over a stream socket: length-prefixed, with the same
 * program on both ends, on the same machine or (--rsh) one of the same kind. The launcher sends a
 * command to every rank and waits for every rank's answer, which is also the barrier between
 * commands.
 *
 *   rank       launcher
 *   HELLO  ->            its device is open; BLOB bytes for the others
 *          <-  CONNECT   every rank's blob, in order
 *   DONE   ->            the communicator is ready
 *          <-  PREPARE   a row and a place: fill buffers, poison the output
 *   DONE   ->
 *          <-  RUN       n operations back to back; DONE carries when each ended
 *          <-  RECORD    a RUN of one operation, for a time line; EVENTS come before DONE
 *          <-  CHECK     DONE carries the number of wrong elements
 *          <-  ERROR     once with random floats; DONE carries their error
 *          <-  QUIT      leave the group and end; or ABORT, with the reason, at any time
 *   PROGRESS ->          rank 0, every 200 ms: operations done
 *          <-  STOP      the row's time is over. A rank that has begun the k-th operation answers
 *                        PROGRESS k and waits after one more
 *          <-  LIMIT     all ranks end there: one more than the most that any rank has begun
 *   EVENTS ->            of a time line, a piece of their text
 *   FAIL   ->            in words; the launcher answers ABORT
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
    MSG_LIMIT,  /* struct msg_progress: the RUN ends after this many */
    MSG_FABRIC, /* after INIT, to a rank elsewhere: the text of the fabric's conf */
    MSG_SCHEDULE, /* after them: the text of a schedule, where INIT says so, in pieces */
    MSG_RECORD,
    MSG_EVENTS,
    MSG_GRANTED, /* when all are connected: requests the switches' grants */
};

/* Every rank's blob, or a rank's times of all operations of a run. */
#define MSG_MAX  (PERF_MAX_ITERS * 8u + sizeof(struct msg_done))
#define MSG_TEXT 400

struct msg_init {
    uint32_t rank, nranks, group, window, algos, n_trees, n_policy;
    uint32_t schedule;              /* bytes of the schedule that follows; 0: none */
    uint32_t timeline;              /* whether there will be a RECORD */
    int32_t gpu;                    /* buffer.h */
    uint8_t policy[ALGO_COUNT + 1]; /* in order; padded */
    uint16_t tree[COLL_TREES];
    uint64_t key, buf_bytes; /* of a buffer */
};
struct msg_prepare {
    uint32_t coll, algo, type, op, root, sparse, in_place, mm_self;
    uint32_t sampled; /* whether some elements are samples.h's */
    uint64_t count;
    double bound; /* as in struct row */
};
struct msg_run {
    uint32_t n;        /* PERF_MAX_ITERS at most */
    uint32_t progress; /* whether to report it */
    int64_t start_ps;  /* fabric time at which all start; 0: at once */
};
struct msg_check {
    uint32_t again;   /* in place: the buffer is n times summed; fill it and run once more */
    uint32_t late;    /* barrier: it is run once more, and this rank enters it ... */
    uint64_t late_ns; /* ... by this much wall time after the others */
    uint32_t ways;    /* results that sampled elements may have; their bytes follow (sampled.h) */
};
/* After it, of RUN: for each of ops the fabric time since the first's start at which this rank saw
 * its end, int64_t in ps. */
struct msg_done {
    uint32_t ops;                /* RUN: operations done */
    int64_t late_ns;             /* RUN: wall time by which its first operation began too late */
    uint64_t wrong;              /* CHECK */
    int64_t entered_ps, left_ps; /* CHECK of a barrier, by the fabric's clock; RECORD */
    uint32_t schedules;          /* RECORD: that the operation ran */
    int64_t slow_ps, slow_of_ps; /* RECORD: lateness_of_host() */
    struct ulp ulp;              /* ERROR */
    uint64_t counted[TRIB_COUNTERS]; /* RUN: by the row's protocol during it */
    uint32_t aggregated;             /* RUN: operations that ended by the requested algorithm */
    uint32_t algo;                   /* PREPARE: the one that the row would run by now; RECORD */
    uint8_t goes_on;                 /* RUN: the next would run by the requested algorithm */
    uint8_t lacks_trees;             /* RUN: comm_lacks_trees() of the row's algorithm */
    int64_t staging_ns;        /* RUN: wall time in which copies to and from a GPU were under way */
    char fell_back[COMM_TEXT]; /* comm_fell_back(); "": nothing has failed */
    struct coll_grant granted; /* GRANTED: the first's */
    uint32_t last_trees;       /* comm_last_trees() */
    uint16_t last_tree[COLL_TREES];
    char memory[COMM_TEXT + 80]; /* of the first: its memory, comm_gpudirect(); "": the host's */
};
struct msg_progress {
    uint32_t done;
    uint32_t begun; /* in answer to STOP; else 0 */
};

struct msg {
    uint32_t type, len;
    const uint8_t *body; /* valid until the next msg_next() or msg_fill() */
};

/* Bytes read and not yet consumed. */
struct inbox {
    uint8_t *buf;
    size_t size, head, tail;
};

int msg_send(int fd, uint32_t type, const void *body,
             size_t len); /* 0 or -errno; -EPIPE: other end is gone */
int msg_fill(
    struct inbox *in,
    int fd); /* reads available data, without waiting; > 0, 0: nothing, -EPIPE: end, -errno */
int msg_next(struct inbox *in, struct msg *m); /* 1: a whole message; 0: none; -EPROTO */
void msg_free(struct inbox *in);
#endif
