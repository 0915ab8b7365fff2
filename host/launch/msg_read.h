/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bodies of messages (msg.h), read and checked: the other end may be another build of this program,
 * or run elsewhere (--rsh). What is returned indexes no table beyond its end and fits the buffers.
 * Each returns 0 or -EPROTO, unless it says otherwise.
 */
#ifndef TRIB_HOST_LAUNCH_MSG_READ_H
#define TRIB_HOST_LAUNCH_MSG_READ_H

#include "host/launch/msg.h"

/* ---- for a rank ---- */

/* host: [FAB_MAX_MEMBERS]; the first nranks are filled in. */
int msg_read_init(const struct msg *m, struct msg_init *in, uint16_t *host);
/* -E2BIG: the buffers of buf_bytes hold less. */
int msg_read_prepare(const struct msg *m, unsigned nranks, uint64_t buf_bytes,
                     struct msg_prepare *p);
/* sample_bytes: of each of the ways in which sampled elements may come out. Their bytes follow the
 * struct in the message. */
int msg_read_check(const struct msg *m, uint64_t sample_bytes, struct msg_check *c);

/* 1 to PERF_MAX_ITERS operations. */
int msg_read_run(const struct msg *m, struct msg_run *run);

/* ---- for the launcher ---- */

/* Of the answer to a RUN of at most `iters` operations on this fabric. Its texts end with a zero;
 * behind it in the message are as many ends as it has operations. */
int msg_read_done(const struct msg *m, const struct fabric *f, uint32_t iters, struct msg_done *d);

/* ---- for both ---- */

/* Of a fixed size. */
int msg_read(const struct msg *m, void *body, size_t size);
/* A text, up to a zero or the message's end, without characters that would control a terminal. */
void msg_read_text(const struct msg *m, char *buf, size_t size);

#endif
