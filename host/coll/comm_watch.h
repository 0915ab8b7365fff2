/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An observer of a communicator's operations, for time lines: it is told when steps are handed to
 * their transport and when they are done. It reads schedules and changes nothing. Without one, a
 * message costs two tests of a pointer.
 */
#ifndef TRIB_HOST_COLL_COMM_WATCH_H
#define TRIB_HOST_COLL_COMM_WATCH_H

#include <stdint.h>

struct coll_req;

/* comm_cfg.watch; the caller's, until comm_destroy(). Called on the communicator's thread; lane: an index of
 * r->s.lane. */
struct comm_watch {
    /* The operation starts. Called again when a failover has given it another schedule. */
    void (*begin)(void *ctx, const struct coll_req *r);
    /* Step n of the lane has been handed on: a message, or work for a GPU. */
    void (*posted)(void *ctx, const struct coll_req *r, unsigned lane, uint64_t n);
    /* The steps before n are done. */
    void (*done)(void *ctx, const struct coll_req *r, unsigned lane, uint64_t n);
    void (*end)(void *ctx, const struct coll_req *r);
    void *ctx;
};

#endif
