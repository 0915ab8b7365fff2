/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a rank: what rank.c (the launcher's socket, start and end) and rank_op.c (operations)
 * share. */
#ifndef TRIB_HOST_LAUNCH_RANK_PRIV_H
#define TRIB_HOST_LAUNCH_RANK_PRIV_H

#include "host/bench/test_pattern.h"
#include "host/launch/msg.h"
#include "io/shared.h"

struct rank {
    int fd;
    struct inbox in;
    struct msg_init init;
    uint16_t host[FAB_MAX_MEMBERS];
    bool elsewhere;
    struct rundir rd;
    const struct shared *sh; /* the run directory's, or own: a clock at dilation 1 */
    struct shared *own;
    struct fabric *fab;
    struct ibv_context *ctx[FAB_MAX_HOST_PORTS]; /* in order of the host's ports */
    unsigned n_ctx;
    struct comm *comm;
    struct buffer_kind where;
    uint8_t *buf[2]; /* send, recv; a GPU's are not for the CPU to follow */
    size_t buf_bytes;
    struct test_pattern val;
    struct msg_prepare row;
    uint32_t op, limit;              /* RUN: the operation that runs, from 1; how many are run */
    uint32_t stop_after;             /* told to stop: without a LIMIT this is the last; 0: not */
    int64_t look_at, wall, patience; /* ns */
    bool failed, aborted;
    char text[MSG_TEXT];
};

/* ---- rank.c: 0, or -ECANCELED once the rank is to end ---- */

/* The first reason counts. -ECANCELED. */
int rank_fail(struct rank *k, const char *what, const char *why);
/* While an operation runs: has the launcher said that it is over? */
int rank_look(struct rank *k);
/* Told to stop: waits for the limit. */
int rank_wait_limit(struct rank *k);
int rank_answer(struct rank *k, const struct msg_done *what);

/* ---- rank_op.c: commands of the launcher ---- */

int rank_prepare(struct rank *k, const struct msg *m);
int rank_run(struct rank *k, const struct msg *m);
int rank_check(struct rank *k, const struct msg *m);
int rank_error(struct rank *k);

#endif
