/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of a rank that wait for an answer: what is to be sent first, when it is sent again, and
 * when to give up. A flight is one packet and its place in the window; the protocol says what it
 * carries. Used by the rank halves of all protocols here.
 *
 * A flight is resent after `timeout`, and again after as much. Where answers take long without being
 * lost (ranks that share a link), the timeout follows the quickest of the last answers. A rank that
 * is answered nothing at all resends after twice the time, up to 16 times, and gives up after
 * `patience`. (Doubling by flight was slower by far: one that waits for another rank's part backs
 * off without a loss of its own.)
 */
#ifndef TRIB_PROTOCOLS_WINDOW_H
#define TRIB_PROTOCOLS_WINDOW_H

#include <tributary/protocol.h>

struct flight {
    uint64_t seq; /* the protocol's number of the packet */
    int64_t sent_ps, due_ps;
    uint8_t state; /* enum flight_state */
    uint8_t tries; /* how often it was overdue, at most 255 */
};
enum flight_state { FLIGHT_IDLE, FLIGHT_QUEUED, FLIGHT_SENT };

struct window {
    uint32_t n, busy; /* flights; those not idle */
    struct flight *flight;
    uint32_t *queue; /* of flights to send: a ring */
    uint32_t head, queued;
    int64_t timeout_ps, patience_ps;
    int64_t timer_ps, heard_ps; /* as set; the last answer, or start */
    int64_t quick_ps[2];        /* the quickest answer of the last 64, and of these so far */
    uint32_t samples;
    bool pumping;
};

/* Sends flight i; false: no buffer is free. An answer may come before it returns. */
typedef bool (*window_send)(struct trib_rank *r, uint32_t i);

int window_open(struct window *w, uint32_t n, int64_t timeout_ps, int64_t patience_ps);
void window_close(struct window *w);
/* Flight i, idle, is to carry packet seq. */
void window_queue(struct window *w, struct trib_rank *r, uint32_t i, uint64_t seq);
/* Sends what is queued while there are buffers. */
void window_pump(struct window *w, struct trib_rank *r, window_send send);
/* Flight i is answered. */
void window_answer(struct window *w, struct trib_rank *r, uint32_t i);
/* Flight i, sent and not answered, is to be sent again at once. */
void window_resend(struct window *w, uint32_t i);
/* At the timer: queues what is overdue and returns how many. -1: nothing is answered any more. */
int window_overdue(struct window *w, struct trib_rank *r);

/* A key that does not fit the job, for open() to return: names what was found and expected; text as
 * printf. */
int key_refuse(struct trib_rank *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The key `servers`: 0, or -errno, refused. */
int key_servers(struct trib_rank *r, int64_t servers);

/* ceil(a / b); the next power of two. */
static inline uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static inline uint32_t power_of_two(uint64_t n, uint32_t most)
{
    uint32_t p = 1;

    while (p < n && p < most)
        p *= 2;
    return p;
}

/* Time of bytes on a link. */
static inline int64_t link_ps(uint64_t bytes, uint64_t rate_bps)
{
    return (int64_t)((double)bytes * 8e12 / (double)(rate_bps ? rate_bps : 1));
}

#endif
