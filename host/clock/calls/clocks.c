/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that return the time. */
#include "host/clock/calls/tribclock.h"

static int64_t now_ns(enum program_clock clock)
{
    return program_clock_ns(tribclock.fabric, clock);
}

CALL int clock_gettime(clockid_t id, struct timespec *ts)
{
    int clock = program_clock_of(id);

    if (!APPLIES() || clock < 0)
        return tribclock.clock_gettime(id, ts);
    *ts = timespec_of_ns(now_ns((enum program_clock)clock));
    return 0;
}

/* tv may be NULL, although the header declares it as never NULL: programs that want only the zone.
 */
CALL int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timeval *at = tv;
    int rc = 0;
    int64_t us;

    if (!APPLIES())
        return tribclock.gettimeofday(tv, zone);
    __asm__("" : "+r"(at)); /* keeps the compiler from removing the check for NULL */
    if (zone)
        rc = tribclock.gettimeofday(tv, zone);
    if (rc || !at)
        return rc;
    us = now_ns(PROGRAM_REALTIME) / 1000;
    *at = (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
    return 0;
}

CALL time_t time(time_t *at)
{
    time_t now;

    if (!APPLIES())
        return tribclock.time(at);
    now = now_ns(PROGRAM_REALTIME) / 1000000000;
    if (at)
        *at = now;
    return now;
}

CALL int timespec_get(struct timespec *ts, int base)
{
    if (!APPLIES() || base != TIME_UTC)
        return tribclock.timespec_get(ts, base);
    *ts = timespec_of_ns(now_ns(PROGRAM_REALTIME));
    return base;
}

/* The CPU times in buf stay wall time; the return value is fabric time. */
CALL clock_t times(struct tms *buf)
{
    clock_t rc = tribclock.times(buf);

    if (!APPLIES() || rc == (clock_t)-1)
        return rc;
    return now_ns(PROGRAM_MONOTONIC) / (1000000000 / sysconf(_SC_CLK_TCK));
}
