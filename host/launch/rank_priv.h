/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a rank: shared by rank.c (launcher socket, start, end) and rank_op.c (operations). */
#ifndef TRIB_HOST_LAUNCH_RANK_PRIV_H
#define TRIB_HOST_LAUNCH_RANK_PRIV_H

#include "host/bench/timeline.h"
#include "host/bench/verify/test_pattern.h"
#include "host/launch/msg.h"
#include "machine/shared.h"

struct launch_rank {
    int fd;
    struct inbox in;
    struct msg_init init;
    uint16_t host[FAB_MAX_MEMBERS];
    bool elsewhere;
    struct rundir rd;
    const struct shared *sh; /* of the run directory; elsewhere own->sh, a clock at dilation 1 */
    struct own_clock {
        struct shared sh;
        struct clock_page clock;
    } * own;
    struct fabric *fab;
    struct sched_file *file;                     /* schedule of rows by ALGO_SCHEDULE; or NULL */
    struct ibv_context *ctx[FAB_MAX_HOST_PORTS]; /* in order of the host's ports */
    unsigned n_ctx;
    struct comm *comm;
    struct timeline *timeline; /* NULL: none */
    struct buffer_kind memory;
    uint8_t *buf[2]; /* send, recv; in a GPU's memory the CPU must not dereference them */
    size_t buf_bytes;
    struct test_pattern val;
    struct samples samples; /* of the row */
    struct msg_prepare row;
    uint32_t op, limit;  /* RUN: the running operation, from 1; the last one to run */
    uint32_t stop_after; /* after STOP: wait for LIMIT after this operation; 0: no STOP */
    int64_t look_at, wall, patience; /* ns */
    bool failed, aborted;
    char text[MSG_TEXT];
};

/* ---- rank.c: 0, or -ECANCELED once the rank is to end ---- */

/* Fails the rank; the first reason is kept. Returns -ECANCELED. */
int rank_fail(struct launch_rank *k, const char *what, const char *why);
/* Called during an operation; every 2 ms it drives timers and reads the launcher's socket. */
int rank_look(struct launch_rank *k);
/* After STOP: waits for the LIMIT. */
int rank_wait_limit(struct launch_rank *k);
/* Sends DONE. ends[what->ops]: when each operation ended; NULL if there are none. */
int rank_answer(struct launch_rank *k, const struct msg_done *what, const int64_t *ends);

/* ---- rank_op.c: commands of the launcher ---- */

int rank_prepare(struct launch_rank *k, const struct msg *m);
int rank_run(struct launch_rank *k, const struct msg *m);
int rank_check(struct launch_rank *k, const struct msg *m);
int rank_error(struct launch_rank *k);
/* Runs one operation. own may be NULL; *own: coll_as_asked(). */
int rank_operate(struct launch_rank *k, bool *own);
/* Sleeps until start_ps, at which all ranks start. Returns the fabric time from which the run
 * counts; *late_ns: wall time by which this rank woke up late. */
int64_t rank_wait_for_start(const struct launch_rank *k, int64_t start_ps, int64_t *late_ns);

/* ---- rank_timeline.c ---- */

int rank_timeline_open(struct launch_rank *k);
int rank_record(struct launch_rank *k, const struct msg *m);

#endif
