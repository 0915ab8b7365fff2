/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/clock/program_clock.h"

#define SECOND 1000000000LL

int program_clock_of(clockid_t id)
{
    switch (id) {
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
    case CLOCK_BOOTTIME_ALARM:
        return PROGRAM_MONOTONIC;
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_REALTIME_ALARM:
    case CLOCK_TAI:
        return PROGRAM_REALTIME;
    default: /* clocks of CPU time and of devices */
        return -1;
    }
}

/* ---- units ---- */

static int64_t saturated(__int128 ns)
{
    return ns > INT64_MAX ? INT64_MAX : ns < -INT64_MAX ? -INT64_MAX : (int64_t)ns;
}

int64_t ns_of_parts(int64_t seconds, int64_t ns)
{
    return saturated((__int128)seconds * SECOND + ns);
}

int64_t ns_sum(int64_t a, int64_t b)
{
    return saturated((__int128)a + b);
}

/* ---- clocks ---- */

static int64_t start_of(const struct shared *sh, enum program_clock clock)
{
    return clock == PROGRAM_REALTIME ? sh->clock->start_real_ns : sh->clock->start_ns;
}

int64_t program_clock_ns(const struct shared *sh, enum program_clock clock)
{
    return start_of(sh, clock) + clock_fabric_ps(sh) / 1000;
}

/* |a - b|. Unsigned subtraction does not overflow for any pair. */
static uint64_t time_distance(int64_t a, int64_t b)
{
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

enum program_clock program_clock_guess(const struct shared *sh, int64_t deadline_ns)
{
    int64_t fabric_ns = clock_fabric_ps(sh) / 1000;

    return time_distance(start_of(sh, PROGRAM_MONOTONIC) + fabric_ns, deadline_ns) <
                   time_distance(start_of(sh, PROGRAM_REALTIME) + fabric_ns, deadline_ns)
               ? PROGRAM_MONOTONIC
               : PROGRAM_REALTIME;
}

/* ---- waits ---- */

int64_t program_wait_ns(const struct shared *sh, enum program_clock clock, int64_t deadline_ns,
                        bool scaled)
{
    int64_t left = ns_sum(deadline_ns, -program_clock_ns(sh, clock));
    __int128 fabric_ps = ((__int128)deadline_ns - start_of(sh, clock)) * 1000;

    if (left <= 0 || !scaled)
        return left;
    return fabric_ps > INT64_MAX ? INT64_MAX : clock_wall_ns_until(sh, (int64_t)fabric_ps);
}

int64_t program_stretch_ns(const struct shared *sh, int64_t ns)
{
    return saturated((__int128)ns * clock_dilation(sh));
}

int64_t program_shrink_ns(const struct shared *sh, int64_t ns)
{
    uint32_t by = clock_dilation(sh);

    return ns / by + (ns % by > 0);
}
