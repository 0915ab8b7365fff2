/*
 * Deadlines in a binary heap, of things that have one each. Deadlines mostly move later (every
 * acknowledgement does that), so a later deadline leaves the heap alone: the key in it is never
 * later than the deadline, and is corrected when it comes to the top.
 */
#ifndef TRIB_ROCE_TIMERS_H
#define TRIB_ROCE_TIMERS_H

#include <stdint.h>

struct timer {
    int64_t deadline, key; /* key: place in the heap, never later than deadline */
    uint32_t at;           /* 0: not in it */
};

struct timers {
    struct timer **heap; /* [1 ..n], least key first */
    uint32_t n;
};

int timers_init(struct timers *h, uint32_t most); /* 0 or -ENOMEM */
void timers_fini(struct timers *h);
/* A timer that was never set must be zero but for deadline, PS_NEVER. */
void timer_set(struct timers *h, struct timer *t, int64_t deadline);
void timer_clear(struct timers *h, struct timer *t);
struct timer *timer_first(struct timers *h); /* of the earliest deadline; NULL: none */

#endif
