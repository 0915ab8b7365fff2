/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The system's clocks as fabric time, and the conversion of waits on them. It calls the system only
 * through machine/clock.c, so that a test can pass a clock page of its own.
 *
 * There are two clocks, which tick at the same rate. MONOTONIC (also RAW, COARSE, BOOTTIME) is the
 * value of CLOCK_MONOTONIC when fabric time was 0, plus fabric time. REALTIME (also COARSE, TAI) is
 * the time of day at that moment, plus fabric time. All processes of a fabric read the same values.
 * Neither clock goes back, or jumps when the dilation changes. CPU clocks are not among them.
 *
 * Times are in ns. INT64_MAX stands for any later time (292 years).
 */
#ifndef TRIB_HOST_CLOCK_PROGRAM_CLOCK_H
#define TRIB_HOST_CLOCK_PROGRAM_CLOCK_H

#include "machine/shared.h"

#include <sys/time.h>
#include <time.h>

enum program_clock { PROGRAM_MONOTONIC, PROGRAM_REALTIME, PROGRAM_CLOCKS };

/* The program clock of an id of clock_gettime(2); -1: the system's clock stays. */
int program_clock_of(clockid_t id);
/* Now, as programs see it. */
int64_t program_clock_ns(const struct shared *sh, enum program_clock clock);
/* Guesses the clock of a deadline: the one whose present time is nearer to it. */
enum program_clock program_clock_guess(const struct shared *sh, int64_t deadline_ns);
/*
 * Wall time in ns to wait for a deadline on a program clock; 0 or less: it has passed. scaled:
 * until the program clock reaches it. Else the difference to the program clock counts as wall time.
 */
int64_t program_wait_ns(const struct shared *sh, enum program_clock clock, int64_t deadline_ns,
                        bool scaled);
/* Converts a relative wait to wall time, and back, rounded up. A wait of 0 stays 0. */
int64_t program_stretch_ns(const struct shared *sh, int64_t ns);
int64_t program_shrink_ns(const struct shared *sh, int64_t ns);

/* ---- time in other units; values that do not fit become INT64_MAX or the unit's largest ---- */

static inline bool timespec_valid(const struct timespec *ts)
{
    return ts->tv_sec >= 0 && ts->tv_nsec >= 0 && ts->tv_nsec < 1000000000;
}

static inline bool timeval_valid(const struct timeval *tv)
{
    return tv->tv_sec >= 0 && tv->tv_usec >= 0 && tv->tv_usec < 1000000;
}

int64_t ns_of_parts(int64_t seconds, int64_t ns);
int64_t ns_sum(int64_t a, int64_t b);

static inline int64_t ns_of_timespec(const struct timespec *ts)
{
    return ns_of_parts(ts->tv_sec, ts->tv_nsec);
}

static inline int64_t ns_of_timeval(const struct timeval *tv)
{
    return ns_of_parts(tv->tv_sec, tv->tv_usec * 1000);
}

static inline struct timespec timespec_of_ns(int64_t ns)
{
    struct timespec ts = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

    if (ts.tv_nsec < 0) {
        ts.tv_sec--;
        ts.tv_nsec += 1000000000;
    }
    return ts;
}

/* Rounds up: 0 would turn a timer off that is set. */
static inline struct timeval timeval_of_ns(int64_t ns)
{
    int64_t us = ns / 1000 + (ns % 1000 > 0);

    return (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
}

#endif
