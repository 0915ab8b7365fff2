/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delivers the frames of one direction of a link between machines once each and in order, whatever
 * the network loses, repeats or reorders. No clock, no IO: times are parameters, frames opaque.
 *
 * The sender numbers frames and keeps each until it is acknowledged, at most FLOW_WINDOW; then the
 * switch process has to wait, as for any full ring. An acknowledgement also names frames that arrived
 * out of order, so that only missing ones are sent again. A retransmission takes wall time, which is
 * short in fabric time; the timeout of a queue pair counts fabric time and would be long in wall time.
 */
#ifndef TRIB_IO_TRUNK_FLOW_H
#define TRIB_IO_TRUNK_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#define FLOW_WINDOW   256u
#define FLOW_ACK_EACH 32u    /* one acknowledgement for so many frames in order */
#define FLOW_GAP_NS   500000 /* a frame counts as missing so long after a later one arrived */
#define FLOW_TAIL_NS                                                                               \
    1000000 /* unacknowledged frames: time to the first question; it doubles for each later one */
#define FLOW_TAIL_MAX 50000000

struct flow_ack {
    uint32_t next; /* every frame before it has arrived */
    uint32_t upto; /* resend what is missing from next to upto; before next: resend nothing */
    uint8_t held[FLOW_WINDOW / 8]; /* bit i: frame next + i has arrived */
};

struct flow_out {
    uint32_t next, acked; /* number of the next frame; every frame before `acked` has arrived */
    void *sent[FLOW_WINDOW];
    int64_t again_ns[FLOW_WINDOW]; /* when each was last sent */
    int64_t asked_ns, wait_ns;     /* last progress or question; interval to the next question */
    int64_t way_ns;                /* round trip time, as the caller last measured it */
};

struct flow_in {
    uint32_t next, highest; /* next: expected; highest: the highest known to have been sent */
    uint32_t oldest;        /* the sender keeps no frame before it */
    bool begun;             /* false: `next` is to be set to the sender's oldest number */
    void *held[FLOW_WINDOW];
    unsigned n_held, in_order; /* frames held; in order since the last acknowledgement */
    int64_t gap_ns;            /* since when a frame is missing, or last asked for; 0: none is */
    bool asked;                /* the sender has asked for an acknowledgement */
};

void flow_out_init(struct flow_out *o);
static inline unsigned flow_room(const struct flow_out *o)
{
    return FLOW_WINDOW - (o->next - o->acked);
}
/* Sends a frame, which the sender keeps until flow_out_done() returns it. Returns its number. The
 * caller checks flow_room() first. */
uint32_t flow_out_put(struct flow_out *o, void *frame, int64_t now_ns);
/* Takes an acknowledgement. Writes the numbers to send again to again[], at most FLOW_WINDOW; returns
 * how many. */
unsigned flow_out_ack(struct flow_out *o, const struct flow_ack *a, int64_t now_ns,
                      uint32_t again[FLOW_WINDOW]);
/* The next acknowledged frame, for the caller to free; NULL: there is none. */
void *flow_out_done(struct flow_out *o);
/* Like flow_out_done(), but of all frames, acknowledged or not: for closing a link. */
void *flow_out_drop(struct flow_out *o);
static inline void *flow_out_frame(const struct flow_out *o, uint32_t number)
{
    return o->sent[number % FLOW_WINDOW];
}
/* Whether to ask the receiver now what it has up to the last number sent, o->next - 1. */
bool flow_out_asks(struct flow_out *o, int64_t now_ns);

/* Takes a frame. oldest: the sender's `acked` when it sent the frame. False: a duplicate, or a number
 * beyond the window; the caller keeps the frame. */
bool flow_in_take(struct flow_in *i, uint32_t number, uint32_t oldest, void *frame, int64_t now_ns);
/* The next frame in order; NULL: it has not arrived yet. */
void *flow_in_next(struct flow_in *i);
/* Any held frame, for closing a link; NULL: there are none, and *i is reset. */
void *flow_in_drop(struct flow_in *i);
/* Takes a question of the sender, whose last frame has number `last`. */
void flow_in_asked(struct flow_in *i, uint32_t last, uint32_t oldest);
/* Whether to send an acknowledgement now; if so writes it to *a. */
bool flow_in_ack(struct flow_in *i, int64_t now_ns, struct flow_ack *a);

/* Time at which flow_out_asks(), or flow_in_ack(), turns true if nothing arrives; INT64_MAX: never. */
int64_t flow_out_next_ns(const struct flow_out *o);
int64_t flow_in_next_ns(const struct flow_in *i);

#endif
