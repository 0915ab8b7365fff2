/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libtribclock.so, preloaded by `trib exec --clock fabric`. It replaces the system's calls that
 * read a clock or wait on one, for all callers in the process except those that keep wall time
 * (machine/clock.c). Each call begins with APPLIES(); if that is false, it calls the system's.
 *
 * TRIB_CLOCK selects what it does: "fabric" or "fabric,scale-waits"; unset, "" or "wall": nothing.
 *
 * Threads: all calls are thread-safe. The first call joins the fabric of TRIB_RUN; after it, calls
 * that are safe in signal handlers are so here, too. Without a fabric the process ends with a
 * message, so that no program measures wall time by mistake.
 */
#ifndef TRIB_HOST_CLOCK_CALLS_TRIBCLOCK_H
#define TRIB_HOST_CLOCK_CALLS_TRIBCLOCK_H

#include "host/clock/program_clock.h"

#include <aio.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <threads.h>
#include <unistd.h>

#define CALL __attribute__((visibility("default")))

int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *ts, const sigset_t *mask,
                size_t size);

/* Names of the replaced calls. struct tribclock has a pointer to the system's version of each. */
#define TRIBCLOCK_CALLS(X)                                                                         \
    X(clock_gettime)                                                                               \
    X(gettimeofday)                                                                                \
    X(time)                                                                                        \
    X(timespec_get)                                                                                \
    X(times)                                                                                       \
    X(nanosleep)                                                                                   \
    X(clock_nanosleep)                                                                             \
    X(usleep)                                                                                      \
    X(sleep)                                                                                       \
    X(thrd_sleep)                                                                                  \
    X(poll)                                                                                        \
    X(__poll_chk)                                                                                  \
    X(ppoll)                                                                                       \
    X(__ppoll_chk)                                                                                 \
    X(select)                                                                                      \
    X(pselect)                                                                                     \
    X(epoll_wait)                                                                                  \
    X(epoll_pwait)                                                                                 \
    X(epoll_pwait2)                                                                                \
    X(sigtimedwait)                                                                                \
    X(semtimedop)                                                                                  \
    X(recvmmsg)                                                                                    \
    X(aio_suspend)                                                                                 \
    X(setsockopt)                                                                                  \
    X(getsockopt)                                                                                  \
    X(pthread_cond_timedwait)                                                                      \
    X(pthread_cond_clockwait)                                                                      \
    X(pthread_mutex_timedlock)                                                                     \
    X(pthread_mutex_clocklock)                                                                     \
    X(pthread_rwlock_timedrdlock)                                                                  \
    X(pthread_rwlock_timedwrlock)                                                                  \
    X(pthread_rwlock_clockrdlock)                                                                  \
    X(pthread_rwlock_clockwrlock)                                                                  \
    X(pthread_timedjoin_np)                                                                        \
    X(pthread_clockjoin_np)                                                                        \
    X(cnd_timedwait)                                                                               \
    X(mtx_timedlock)                                                                               \
    X(sem_timedwait)                                                                               \
    X(sem_clockwait)                                                                               \
    X(mq_timedsend)                                                                                \
    X(mq_timedreceive)                                                                             \
    X(timer_create)                                                                                \
    X(timer_delete)                                                                                \
    X(timer_settime)                                                                               \
    X(timer_gettime)                                                                               \
    X(timerfd_settime)                                                                             \
    X(timerfd_gettime)                                                                             \
    X(setitimer)                                                                                   \
    X(getitimer)                                                                                   \
    X(alarm)                                                                                       \
    X(ualarm)                                                                                      \
    X(syscall)

struct tribclock {
#define X(name) __typeof__(&name) name;
    TRIBCLOCK_CALLS(X)
#undef X
    /* For programs from before 2003, whose condition variables are one pointer. */
    __typeof__(&pthread_cond_timedwait) pthread_cond_timedwait_old;
    struct shared *fabric;
    bool scale_waits;
};
extern struct tribclock tribclock;

/* Whether a call from this address gets fabric time. */
bool tribclock_applies(const void *caller);
#define APPLIES() tribclock_applies(__builtin_return_address(0))
/* Whether relative waits of this caller are multiplied by the dilation. */
#define STRETCHES() (APPLIES() && tribclock.scale_waits)

/* Called by machine/clock.c when a program or library that contains it is loaded or unloaded: the
 * one that contains this address keeps wall time. */
CALL void tribclock_keep_wall_time(const void *address, bool loaded);

/* Converts a program's deadline to one on the system's clock `id`. Returns out, or `deadline`
 * itself if it is NULL or invalid. */
const struct timespec *tribclock_deadline(clockid_t id, const struct timespec *deadline,
                                          struct timespec *out);
/* Multiplies a relative wait by the dilation. Returns out, or `wait` itself if it is NULL or
 * invalid. */
const struct timespec *tribclock_stretched(const struct timespec *wait, struct timespec *out);

#endif
