/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads and checks bodies of messages (msg.h): the other end may be another build of this program,
 * or run elsewhere (--rsh). Checked values index no table beyond its end and fit the buffers. Each
 * function returns 0 or -EPROTO, unless stated otherwise.
 */
#ifndef TRIB_HOST_LAUNCH_MSG_READ_H
#define TRIB_HOST_LAUNCH_MSG_READ_H

#include "host/launch/msg.h"

/* ---- for a rank ---- */

/* host: [FAB_MAX_MEMBERS], of which the first nranks are set. */
int msg_read_init(const struct msg *m, struct msg_init *in, uint16_t *host);
/* -E2BIG: the row needs more than buf_bytes per buffer. */
int msg_read_prepare(const struct msg *m, unsigned nranks, uint64_t buf_bytes,
                     struct msg_prepare *p);
/* sample_bytes: length of each possible result of the sampled elements; they follow the struct in
 * the message. */
int msg_read_check(const struct msg *m, uint64_t sample_bytes, struct msg_check *c);

/* 1 to PERF_MAX_ITERS operations. */
int msg_read_run(const struct msg *m, struct msg_run *run);

/* ---- for the launcher ---- */

/* Reads a DONE; iters: operations of the RUN that it answers. Its texts end with a zero and are
 * printable. d->ops end times follow the struct in the message. */
int msg_read_done(const struct msg *m, const struct fabric *f, uint32_t iters, struct msg_done *d);

/* ---- for both ---- */

/* Reads a body of fixed size. */
int msg_read(const struct msg *m, void *body, size_t size);
/* Reads a text, up to a zero or the message's end; control characters become '?'. */
void msg_read_text(const struct msg *m, char *buf, size_t size);

#endif
