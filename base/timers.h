/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deadlines embedded in the structures that own them, in a binary heap. Most deadlines move later (every
 * acknowledgement moves one), so a deadline that moves later leaves the heap alone: its key in the heap is
 * never later than the deadline, and is corrected when it reaches the top.
 *
 * Why this is not base/heap.h: virtual time depends on the order in which equal deadlines expire: here
 * that follows the shape of the binary heap, there the index. One heap for both would have
 * to be binary and lazy, which costs heap.h its speed, or ordered by (time, index) and exact, which
 * costs a move in the heap for every acknowledgement and an index for every queue pair.
 */
#ifndef TRIB_BASE_TIMERS_H
#define TRIB_BASE_TIMERS_H

#include <stdint.h>

struct timer {
    int64_t deadline; /* PS_NEVER: not set */
    uint32_t at;      /* its position in the heap; 0: not in it */
};

/* An entry of the heap. It holds key and deadline, so that finding the earliest deadline reads no
 * timer. */
struct timer_entry {
    int64_t key, deadline; /* key: never later than deadline; deadline: a copy of the timer's */
    struct timer *t;
};

struct timers {
    struct timer_entry *heap; /* [n], least key first */
    uint32_t n;
    uint32_t capacity : 31, own : 1; /* own: the heap was allocated, it is not the owner's `few` */
};

/* few: the owner's memory for n_few timers, used until timers_fit() asks for more. */
void timers_init(struct timers *h, struct timer_entry *few, uint32_t n_few);
int timers_fit(struct timers *h, uint32_t n); /* makes room for n timers; 0 or -ENOMEM */
void timers_fini(struct timers *h);
/* A timer starts zeroed, with deadline PS_NEVER. timers_fit() must have made room for it. */
void timer_set(struct timers *h, struct timer *t, int64_t deadline);
void timer_clear(struct timers *h, struct timer *t);
struct timer *timer_first(struct timers *h); /* the timer with the earliest deadline; NULL: none */
int64_t timers_next(struct timers *h);       /* the earliest deadline; PS_NEVER: none */

#endif
