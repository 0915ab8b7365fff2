/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of one direction of a link between machines, each once and in order, whatever the network
 * between them loses, repeats or reorders. Without clock or IO: times are parameters, frames opaque.
 *
 * Both ends number frames. The sender keeps a frame until it is acknowledged, FLOW_WINDOW of them at
 * most; then the switch process has to wait, as for any full ring. An acknowledgement says what has
 * arrived out of order, too, so that only what is missing is sent again. Wall time that this takes is
 * short in fabric time; a queue pair's timeout would not be in wall time.
 */
#ifndef TRIB_IO_TRUNK_FLOW_H
#define TRIB_IO_TRUNK_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#define FLOW_WINDOW   256u
#define FLOW_ACK_EACH 32u    /* frames in order that are acknowledged together */
#define FLOW_GAP_NS   500000 /* before a frame that others have overtaken counts as missing */
#define FLOW_TAIL_NS                                                                               \
    1000000 /* unacknowledged frames: the first question after it, later ones double it */
#define FLOW_TAIL_MAX 50000000

struct flow_ack {
    uint32_t next; /* all numbers before it have arrived */
    uint32_t upto; /* those missing from next to this one are to be sent again; before next: none */
    uint8_t held[FLOW_WINDOW / 8]; /* bit of next + i: it has arrived */
};

struct flow_out {
    uint32_t next, acked; /* number of the next frame; all before `acked` have arrived */
    void *sent[FLOW_WINDOW];
    int64_t again_ns[FLOW_WINDOW]; /* when it was last sent */
    int64_t asked_ns, wait_ns;     /* last progress or question, and time from it to the next */
    int64_t way_ns;                /* there and back, as far as the caller knows */
};

struct flow_in {
    uint32_t next, highest; /* expected; highest that is known to have been sent */
    uint32_t oldest;        /* the sender has none before it any more */
    bool begun;             /* false: the sender's oldest number is the first */
    void *held[FLOW_WINDOW];
    unsigned n_held, in_order; /* since the last acknowledgement */
    int64_t gap_ns;            /* since when one is missing, or was last asked for; 0: none */
    bool asked;                /* the sender wants an acknowledgement */
};

void flow_out_init(struct flow_out *o);
static inline unsigned flow_room(const struct flow_out *o)
{
    return FLOW_WINDOW - (o->next - o->acked);
}
/* The frame stays the sender's until it is returned by flow_out_done(). Returns its number. There must
 * be room. */
uint32_t flow_out_put(struct flow_out *o, void *frame, int64_t now_ns);
/* Takes an acknowledgement. Numbers that are to be sent again, at most FLOW_WINDOW, are written to
 * again[]; returns how many. */
unsigned flow_out_ack(struct flow_out *o, const struct flow_ack *a, int64_t now_ns,
                      uint32_t again[FLOW_WINDOW]);
/* The next frame that has arrived and is not needed any more; NULL: there is none. */
void *flow_out_done(struct flow_out *o);
/* Every frame, as at the end; NULL: there are none. */
void *flow_out_drop(struct flow_out *o);
static inline void *flow_out_frame(const struct flow_out *o, uint32_t number)
{
    return o->sent[number % FLOW_WINDOW];
}
/* Whether the receiver is to be told the last number, o->next - 1, and asked what it has. */
bool flow_out_asks(struct flow_out *o, int64_t now_ns);

/* oldest: the sender's `acked` when it was sent. False: it was received before, or cannot have been
 * sent: the caller keeps the frame. */
bool flow_in_take(struct flow_in *i, uint32_t number, uint32_t oldest, void *frame, int64_t now_ns);
/* The next frame in order; NULL: it has not arrived. */
void *flow_in_next(struct flow_in *i);
/* Any frame that is held back, as at the end; NULL: there are none. */
void *flow_in_drop(struct flow_in *i);
/* The sender has asked, and said that `last` is the last number. */
void flow_in_asked(struct flow_in *i, uint32_t last, uint32_t oldest);
/* Whether an acknowledgement is to be sent now: it is written to *a. */
bool flow_in_ack(struct flow_in *i, int64_t now_ns, struct flow_ack *a);

/* When flow_out_asks(), and flow_in_ack(), will be true if nothing arrives; INT64_MAX: never. */
int64_t flow_out_next_ns(const struct flow_out *o);
int64_t flow_in_next_ns(const struct flow_in *i);

#endif
