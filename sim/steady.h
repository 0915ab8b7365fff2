/* What timed operations cost of the CPU, from their first event on: start-up is not counted. */
#ifndef TRIB_SIM_STEADY_H
#define TRIB_SIM_STEADY_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct steady {
    double s; /* of all that are over */
    uint64_t frames;
    bool on;
    double from_s;
    uint64_t from_frames;
};

static inline double clock_s(clockid_t which)
{
    struct timespec t;

    clock_gettime(which, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline double wall_s(void)
{
    return clock_s(CLOCK_MONOTONIC);
}

/* At each event; frames: so far. */
static inline void steady_tick(struct steady *t, uint64_t frames)
{
    if (__builtin_expect(t->on, 1))
        return;
    *t = (struct steady){t->s, t->frames, true, clock_s(CLOCK_PROCESS_CPUTIME_ID), frames};
}

/* At the end of an operation. */
static inline void steady_end(struct steady *t, uint64_t frames)
{
    if (!t->on)
        return;
    t->on = false;
    t->s += clock_s(CLOCK_PROCESS_CPUTIME_ID) - t->from_s;
    t->frames += frames - t->from_frames;
}

#endif
