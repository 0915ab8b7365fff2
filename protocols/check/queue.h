/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue of events in order of time; equal times in order of insertion. */
#ifndef TRIB_PROTOCOLS_CHECK_QUEUE_H
#define TRIB_PROTOCOLS_CHECK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue_event {
    int64_t at_ps;
    uint64_t order;
    unsigned kind;
    unsigned a, b;
    void *data; /* owned by the event */
};

struct queue {
    struct queue_event *e;
    size_t n, room;
    uint64_t order;
};

/* -ENOMEM. */
int queue_push(struct queue *q, int64_t at_ps, unsigned kind, unsigned a, unsigned b, void *data);
bool queue_pop(struct queue *q, struct queue_event *e);
void queue_fini(struct queue *q); /* frees the events' data with free() */

#endif
