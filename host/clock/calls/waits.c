/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls with relative waits. They change only with --scale-waits, except for sleeps until a
 * deadline: these become relative ones, because the system has no clock with fabric time.
 */
#include "host/clock/calls/tribclock.h"

#include <errno.h>
#include <limits.h>

#define STRETCHED(t) (STRETCHES() ? tribclock_stretched(t, &(struct timespec){.tv_sec = 0}) : (t))

/* ---- sleeping ---- */

/* Converts the rest of a wait from wall time back to the program's time. */
static void shrink(struct timespec *left)
{
    *left = timespec_of_ns(program_shrink_ns(tribclock.fabric, ns_of_timespec(left)));
}

static int stretched_sleep(const struct timespec *wait, struct timespec *left)
{
    struct timespec t;
    int rc = tribclock.clock_nanosleep(CLOCK_MONOTONIC, 0, tribclock_stretched(wait, &t), left);

    if (rc == EINTR && left)
        shrink(left);
    return rc;
}

/* Sleeps until a deadline. With --scale-waits it checks again after each sleep, as the dilation may
 * have changed. */
static int sleep_until(enum program_clock clock, const struct timespec *deadline)
{
    int64_t until = ns_of_timespec(deadline), wait;
    bool scaled = tribclock.scale_waits;
    struct timespec t;
    int rc = 0;

    if (!timespec_valid(deadline))
        return deadline->tv_sec < 0 && deadline->tv_nsec >= 0 && deadline->tv_nsec < 1000000000
                   ? 0
                   : EINVAL;
    while (!rc && (wait = program_wait_ns(tribclock.fabric, clock, until, scaled)) > 0) {
        t = timespec_of_ns(wait);
        rc = tribclock.clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
        if (!scaled)
            break;
    }
    return rc;
}

CALL int clock_nanosleep(clockid_t id, int flags, const struct timespec *t, struct timespec *left)
{
    int clock = program_clock_of(id);

    if (!APPLIES() || clock < 0)
        return tribclock.clock_nanosleep(id, flags, t, left);
    if (flags & TIMER_ABSTIME)
        return sleep_until((enum program_clock)clock, t);
    if (!tribclock.scale_waits)
        return tribclock.clock_nanosleep(id, flags, t, left);
    return stretched_sleep(t, left);
}

static int with_errno(int rc)
{
    if (!rc)
        return 0;
    errno = rc;
    return -1;
}

CALL int nanosleep(const struct timespec *t, struct timespec *left)
{
    if (!STRETCHES())
        return tribclock.nanosleep(t, left);
    return with_errno(stretched_sleep(t, left));
}

CALL int thrd_sleep(const struct timespec *t, struct timespec *left)
{
    int rc;

    if (!STRETCHES())
        return tribclock.thrd_sleep(t, left);
    rc = stretched_sleep(t, left);
    return rc == EINTR ? -1 : rc ? -2 : 0;
}

CALL int usleep(useconds_t us)
{
    struct timespec t = timespec_of_ns((int64_t)us * 1000);

    return STRETCHES() ? with_errno(stretched_sleep(&t, NULL)) : tribclock.usleep(us);
}

CALL unsigned sleep(unsigned seconds)
{
    struct timespec t = {.tv_sec = seconds}, left = {.tv_sec = 0};

    if (!STRETCHES())
        return tribclock.sleep(seconds);
    return stretched_sleep(&t, &left) ? (unsigned)left.tv_sec + (left.tv_nsec > 0) : 0;
}

/* ---- descriptors ---- */

static int stretched_ms(int ms)
{
    int64_t ns = ms > 0 ? program_stretch_ns(tribclock.fabric, ms * 1000000LL) : ms;

    return ms <= 0 ? ms : ns / 1000000 > INT_MAX ? INT_MAX : (int)(ns / 1000000);
}

CALL int poll(struct pollfd *fds, nfds_t n, int ms)
{
    return tribclock.poll(fds, n, STRETCHES() ? stretched_ms(ms) : ms);
}

CALL int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t size)
{
    return tribclock.__poll_chk(fds, n, STRETCHES() ? stretched_ms(ms) : ms, size);
}

CALL int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *t, const sigset_t *mask)
{
    return tribclock.ppoll(fds, n, STRETCHED(t), mask);
}

CALL int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *t, const sigset_t *mask,
                     size_t size)
{
    return tribclock.__ppoll_chk(fds, n, STRETCHED(t), mask, size);
}

CALL int select(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict e,
                struct timeval *restrict tv)
{
    struct timeval real;
    int rc;

    if (!STRETCHES() || !tv || !timeval_valid(tv))
        return tribclock.select(n, r, w, e, tv);
    real = timeval_of_ns(program_stretch_ns(tribclock.fabric, ns_of_timeval(tv)));
    rc = tribclock.select(n, r, w, e, &real);
    *tv = timeval_of_ns(program_shrink_ns(tribclock.fabric, ns_of_timeval(&real)));
    return rc;
}

CALL int pselect(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict e,
                 const struct timespec *restrict t, const sigset_t *restrict mask)
{
    return tribclock.pselect(n, r, w, e, STRETCHED(t), mask);
}

CALL int epoll_wait(int fd, struct epoll_event *events, int n, int ms)
{
    return tribclock.epoll_wait(fd, events, n, STRETCHES() ? stretched_ms(ms) : ms);
}

CALL int epoll_pwait(int fd, struct epoll_event *events, int n, int ms, const sigset_t *mask)
{
    return tribclock.epoll_pwait(fd, events, n, STRETCHES() ? stretched_ms(ms) : ms, mask);
}

CALL int epoll_pwait2(int fd, struct epoll_event *events, int n, const struct timespec *t,
                      const sigset_t *mask)
{
    return tribclock.epoll_pwait2(fd, events, n, STRETCHED(t), mask);
}

/* ---- others ---- */

CALL int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
                      const struct timespec *restrict t)
{
    return tribclock.sigtimedwait(set, info, STRETCHED(t));
}

CALL int semtimedop(int id, struct sembuf *ops, size_t n, const struct timespec *t)
{
    return tribclock.semtimedop(id, ops, n, STRETCHED(t));
}

CALL int aio_suspend(const struct aiocb *const list[], int n, const struct timespec *restrict t)
{
    return tribclock.aio_suspend(list, n, STRETCHED(t));
}

CALL int recvmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags, struct timespec *t)
{
    struct timespec real;
    int rc;

    if (!STRETCHES() || !t || !timespec_valid(t))
        return tribclock.recvmmsg(fd, msgs, n, flags, t);
    (void)tribclock_stretched(t, &real);
    rc = tribclock.recvmmsg(fd, msgs, n, flags, &real);
    *t = real;
    shrink(t);
    return rc;
}
