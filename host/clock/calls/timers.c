/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timers, and the timeouts of sockets. An absolute time of a timer becomes a relative one. Only
 * with --scale-waits, intervals are multiplied by the dilation and remaining times divided by it.
 */
#include "host/clock/calls/tribclock.h"

#include <limits.h>

#define CPU_TIMERS 64

/* Timers on CPU clocks, plus 1 (0: a free entry). They are not changed. If there are more of them,
 * the rest is treated like other timers. */
static _Atomic uintptr_t cpu_timer[CPU_TIMERS];

static void swap_cpu_timer(uintptr_t old, uintptr_t next)
{
    for (unsigned i = 0; i < CPU_TIMERS; i++) {
        uintptr_t expected = old;

        if (atomic_compare_exchange_strong(&cpu_timer[i], &expected, next))
            return;
    }
}

static bool is_cpu_timer(timer_t timer)
{
    for (unsigned i = 0; i < CPU_TIMERS; i++)
        if (atomic_load(&cpu_timer[i]) == (uintptr_t)timer + 1)
            return true;
    return false;
}

CALL int timer_create(clockid_t id, struct sigevent *restrict event, timer_t *restrict timer)
{
    bool applies = APPLIES();
    int rc = tribclock.timer_create(id, event, timer);

    if (applies && !rc && program_clock_of(id) < 0)
        swap_cpu_timer(0, (uintptr_t)*timer + 1);
    return rc;
}

CALL int timer_delete(timer_t timer)
{
    if (APPLIES())
        swap_cpu_timer((uintptr_t)timer + 1, 0);
    return tribclock.timer_delete(timer);
}

/* ---- POSIX timers, timers as descriptors ---- */

static void stretch(struct timespec *t)
{
    if (tribclock.scale_waits)
        *t = timespec_of_ns(program_stretch_ns(tribclock.fabric, ns_of_timespec(t)));
}

/* The setting to pass to the kernel, relative to now. A first expiry in the past becomes 1 ns,
 * because 0 would disarm the timer. */
static struct itimerspec real_timer(const struct itimerspec *set, bool absolute)
{
    struct itimerspec real = *set;
    int64_t at = ns_of_timespec(&set->it_value), wait;

    stretch(&real.it_interval);
    if (absolute && at) {
        wait = program_wait_ns(tribclock.fabric, program_clock_guess(tribclock.fabric, at), at,
                               tribclock.scale_waits);
        real.it_value = timespec_of_ns(wait > 0 ? wait : 1);
    } else {
        stretch(&real.it_value);
    }
    return real;
}

static void shrink_timer(struct itimerspec *t)
{
    if (!t || !tribclock.scale_waits)
        return;
    t->it_interval =
        timespec_of_ns(program_shrink_ns(tribclock.fabric, ns_of_timespec(&t->it_interval)));
    t->it_value = timespec_of_ns(program_shrink_ns(tribclock.fabric, ns_of_timespec(&t->it_value)));
}

static bool settable(const struct itimerspec *set)
{
    return set && timespec_valid(&set->it_value) && timespec_valid(&set->it_interval);
}

CALL int timer_settime(timer_t timer, int flags, const struct itimerspec *restrict set,
                       struct itimerspec *restrict old)
{
    struct itimerspec real;
    int rc;

    if (!APPLIES() || !settable(set) || is_cpu_timer(timer))
        return tribclock.timer_settime(timer, flags, set, old);
    real = real_timer(set, flags & TIMER_ABSTIME);
    rc = tribclock.timer_settime(timer, flags & ~TIMER_ABSTIME, &real, old);
    if (!rc)
        shrink_timer(old);
    return rc;
}

CALL int timer_gettime(timer_t timer, struct itimerspec *left)
{
    int rc = tribclock.timer_gettime(timer, left);

    if (!rc && APPLIES() && !is_cpu_timer(timer))
        shrink_timer(left);
    return rc;
}

CALL int timerfd_settime(int fd, int flags, const struct itimerspec *set, struct itimerspec *old)
{
    const int absolute = TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET;
    struct itimerspec real;
    int rc;

    if (!APPLIES() || !settable(set))
        return tribclock.timerfd_settime(fd, flags, set, old);
    real = real_timer(set, flags & TFD_TIMER_ABSTIME);
    rc = tribclock.timerfd_settime(fd, flags & TFD_TIMER_ABSTIME ? flags & ~absolute : flags, &real,
                                   old);
    if (!rc)
        shrink_timer(old);
    return rc;
}

CALL int timerfd_gettime(int fd, struct itimerspec *left)
{
    int rc = tribclock.timerfd_gettime(fd, left);

    if (!rc && APPLIES())
        shrink_timer(left);
    return rc;
}

/* ---- interval timers; those on CPU time are not changed ---- */

static struct timeval stretched(const struct timeval *tv)
{
    return timeval_of_ns(program_stretch_ns(tribclock.fabric, ns_of_timeval(tv)));
}

static struct timeval shrunk(const struct timeval *tv)
{
    return timeval_of_ns(program_shrink_ns(tribclock.fabric, ns_of_timeval(tv)));
}

static int stretched_itimer(const struct itimerval *set, struct itimerval *old)
{
    struct itimerval real = {stretched(&set->it_interval), stretched(&set->it_value)};
    int rc = tribclock.setitimer(ITIMER_REAL, &real, old);

    if (!rc && old)
        *old = (struct itimerval){shrunk(&old->it_interval), shrunk(&old->it_value)};
    return rc;
}

CALL int setitimer(__itimer_which_t which, const struct itimerval *restrict set,
                   struct itimerval *restrict old)
{
    if (!STRETCHES() || which != ITIMER_REAL || !set || !timeval_valid(&set->it_interval) ||
        !timeval_valid(&set->it_value))
        return tribclock.setitimer(which, set, old);
    return stretched_itimer(set, old);
}

CALL int getitimer(__itimer_which_t which, struct itimerval *left)
{
    int rc = tribclock.getitimer(which, left);

    if (!rc && which == ITIMER_REAL && STRETCHES())
        *left = (struct itimerval){shrunk(&left->it_interval), shrunk(&left->it_value)};
    return rc;
}

CALL unsigned alarm(unsigned seconds)
{
    struct itimerval set = {.it_value = {.tv_sec = seconds}}, old = {.it_value = {.tv_sec = 0}};

    if (!STRETCHES())
        return tribclock.alarm(seconds);
    if (stretched_itimer(&set, &old))
        return 0;
    return (unsigned)old.it_value.tv_sec + (old.it_value.tv_usec > 0);
}

CALL useconds_t ualarm(useconds_t us, useconds_t interval)
{
    struct itimerval set = {.it_interval = {interval / 1000000, interval % 1000000},
                            .it_value = {us / 1000000, us % 1000000}};
    struct itimerval old;

    if (!STRETCHES())
        return tribclock.ualarm(us, interval);
    if (stretched_itimer(&set, &old))
        return (useconds_t)-1;
    return (useconds_t)(old.it_value.tv_sec * 1000000 + old.it_value.tv_usec);
}

/* ---- sockets ---- */

static bool is_timeout(int level, int option)
{
    return level == SOL_SOCKET && (option == SO_RCVTIMEO || option == SO_SNDTIMEO);
}

CALL int setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
    struct timeval real;

    if (!is_timeout(level, option) || !STRETCHES() || !value || len < sizeof(real) ||
        !timeval_valid(value))
        return tribclock.setsockopt(fd, level, option, value, len);
    real = stretched(value);
    return tribclock.setsockopt(fd, level, option, &real, sizeof(real));
}

CALL int getsockopt(int fd, int level, int option, void *restrict value, socklen_t *restrict len)
{
    int rc = tribclock.getsockopt(fd, level, option, value, len);

    if (!rc && is_timeout(level, option) && *len >= sizeof(struct timeval) && STRETCHES())
        *(struct timeval *)value = shrunk(value);
    return rc;
}
