/* SPDX-License-Identifier: BSD-3-Clause */
/* CPU time, wall time and frames of timed operations, each from its first event on: start-up does
 * not count. */
#ifndef TRIB_SIM_WORLD_STOPWATCH_H
#define TRIB_SIM_WORLD_STOPWATCH_H

#include "base/assert.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct stopwatch {
    double cpu_s, wall_s; /* of all that are over; CPU time of all threads */
    uint64_t frames;
    bool on;
    double from_cpu_s, from_wall_s;
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
static inline void stopwatch_tick(struct stopwatch *t, uint64_t frames)
{
    if (__builtin_expect(t->on, 1))
        return;
    t->on = true;
    t->from_cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    t->from_wall_s = wall_s();
    t->from_frames = frames;
}

/* At the end of an operation. */
static inline void stopwatch_end(struct stopwatch *t, uint64_t frames)
{
    if (!t->on)
        return;
    T_ASSERT(frames >= t->from_frames, "the count of frames went back in an operation");
    t->on = false;
    t->cpu_s += clock_s(CLOCK_PROCESS_CPUTIME_ID) - t->from_cpu_s;
    t->wall_s += wall_s() - t->from_wall_s;
    t->frames += frames - t->from_frames;
}

#endif
