/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events that transports report: a part of the in-network path fails, or a JOIN is answered. The
 * communicator passes them on to recovery, which decides what follows.
 */
#ifndef TRIB_HOST_COLL_TRANSPORT_TRANSPORT_EVENTS_H
#define TRIB_HOST_COLL_TRANSPORT_TRANSPORT_EVENTS_H

#include <stddef.h>

struct agg;
struct comm;

struct transport_events {
    /* These parts are refused or fail; why has COMM_TEXT bytes at most. */
    void (*failed)(struct comm *c, unsigned parts, const char *why);
    /* All answers to JOINs are here. */
    void (*joins_answered)(struct comm *c);
    /* An answer to a JOIN of a tree that was given up is here; such a tree has been left. */
    void (*lost_answered)(struct comm *c);
    void (*lost_left)(struct comm *c, struct agg *a);
    /* A datagram of another rank's recovery. */
    void (*input)(struct comm *c, const void *msg, size_t len);
};

/* Text as printf. */
void transport_failed(struct comm *c, unsigned parts, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
