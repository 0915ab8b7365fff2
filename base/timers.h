/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deadlines in a binary heap, of things that have one each. Deadlines mostly move later (every
 * acknowledgement does that), so a later deadline leaves the heap alone: the key in it is never
 * later than the deadline, and is corrected when it comes to the top.
 */
#ifndef TRIB_BASE_TIMERS_H
#define TRIB_BASE_TIMERS_H

#include <stdint.h>

struct timer {
    int64_t deadline; /* PS_NEVER: not set */
    uint32_t at;      /* its place in the heap; 0: not in it */
};

/* Who asks for the first deadline touches no timer but the first, mostly not even that. */
struct timer_place {
    int64_t key, deadline; /* key: never later than deadline, which is the timer's */
    struct timer *t;
};

struct timers {
    struct timer_place *heap; /* [n], least key first */
    uint32_t n;
    uint32_t room : 31, own : 1; /* own: the heap was taken here, and is not the owner's few */
};

/* few: memory of the owner for so many, as long as they are no more. */
void timers_init(struct timers *h, struct timer_place *few, uint32_t n_few);
int timers_fit(struct timers *h, uint32_t n); /* 0 or -ENOMEM */
void timers_fini(struct timers *h);
/* A timer that was never set must be zero but for deadline, PS_NEVER. */
void timer_set(struct timers *h, struct timer *t, int64_t deadline);
void timer_clear(struct timers *h, struct timer *t);
struct timer *timer_first(struct timers *h); /* of the earliest deadline; NULL: none */
int64_t timers_next(struct timers *h);       /* that deadline; PS_NEVER: none */

#endif
