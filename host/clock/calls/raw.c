/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syscall(2). The C++ library uses it to wait on futexes, with deadlines of the clocks that it
 * reads, and some programs use it to read clocks.
 */
#include "host/clock/calls/tribclock.h"

#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>

#define ARGS 6

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

/* The timeout is the fourth argument. The operation decides whether it is relative, or a deadline
 * on a clock. */
static long raw_futex(const long a[ARGS])
{
    const struct timespec *t = (const struct timespec *)(uintptr_t)a[3], *real = t;
    clockid_t id = a[1] & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    struct timespec out;

    switch (t ? a[1] & FUTEX_CMD_MASK : FUTEX_WAKE) {
    case FUTEX_WAIT:
        real = tribclock.scale_waits ? tribclock_stretched(t, &out) : t;
        break;
    case FUTEX_LOCK_PI:
        id = CLOCK_REALTIME;
        real = tribclock_deadline(id, t, &out);
        break;
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAIT_REQUEUE_PI:
    case FUTEX_LOCK_PI2:
        real = tribclock_deadline(id, t, &out);
        break;
    default: /* no timeout, or the argument means something else */
        break;
    }
    return tribclock.syscall(SYS_futex, a[0], a[1], a[2], (long)(uintptr_t)real, a[4], a[5]);
}

/* Does a raw system call that reads a clock. It cannot call clock_gettime(): calls from this
 * library return wall time. False: pass the call on. */
static bool clock_call(long number, const long a[ARGS], long *rc)
{
    struct timespec *ts = (struct timespec *)(uintptr_t)a[1];
    struct timeval *tv = (struct timeval *)(uintptr_t)a[0];
    int clock = number == SYS_clock_gettime ? program_clock_of((clockid_t)a[0]) : PROGRAM_REALTIME;
    int64_t ns;

    *rc = 0;
    if (clock < 0)
        return false;
    ns = program_clock_ns(tribclock.fabric, (enum program_clock)clock);
    if (number == SYS_clock_gettime && ts)
        *ts = timespec_of_ns(ns);
    else if (number == SYS_gettimeofday && tv && !a[1])
        *tv = (struct timeval){.tv_sec = ns / 1000000000, .tv_usec = ns % 1000000000 / 1000};
    else
        return false;
    return true;
}

CALL long syscall(long number, ...)
{
    long a[ARGS], rc;
    va_list ap;

    va_start(ap, number);
    for (unsigned i = 0; i < ARGS; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (APPLIES()) {
        if ((number == SYS_clock_gettime || number == SYS_gettimeofday) &&
            clock_call(number, a, &rc))
            return rc;
        if (number == SYS_futex)
            return raw_futex(a);
    }
    return tribclock.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
