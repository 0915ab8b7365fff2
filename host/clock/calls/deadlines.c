/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that wait until a deadline, which the program computed from fabric time. */
#include "host/clock/calls/tribclock.h"

#include <errno.h>

/* The deadline to pass to the system for the program's deadline t on clock id. */
#define DEADLINE(id, t)                                                                            \
    (APPLIES() && program_clock_of(id) >= 0                                                        \
         ? tribclock_deadline(id, t, &(struct timespec){.tv_sec = 0})                              \
         : (t))

/* Guesses the clock of a condition variable from its deadline: its attributes cannot be read back.
 */
static clockid_t clock_guess(const struct timespec *t)
{
    return program_clock_guess(tribclock.fabric, ns_of_timespec(t)) == PROGRAM_MONOTONIC
               ? CLOCK_MONOTONIC
               : CLOCK_REALTIME;
}

/* ---- condition variables ---- */

#ifdef __x86_64__
int cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
                   const struct timespec *restrict t);
int cond_timedwait_old(pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
                       const struct timespec *restrict t);

CALL int cond_timedwait_old(pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
                            const struct timespec *restrict t)
{
    if (!APPLIES())
        return tribclock.pthread_cond_timedwait_old(c, m, t);
    return tribclock.pthread_cond_timedwait_old(
        c, m, tribclock_deadline(CLOCK_REALTIME, t, &(struct timespec){.tv_sec = 0}));
}

__asm__(".symver cond_timedwait_old, pthread_cond_timedwait@GLIBC_2.2.5");
__asm__(".symver cond_timedwait, pthread_cond_timedwait@@GLIBC_2.3.2");
#else
#define cond_timedwait pthread_cond_timedwait
#endif

CALL int cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
                        const struct timespec *restrict t)
{
    if (!APPLIES())
        return tribclock.pthread_cond_timedwait(c, m, t);
    return tribclock.pthread_cond_timedwait(
        c, m, tribclock_deadline(clock_guess(t), t, &(struct timespec){.tv_sec = 0}));
}

CALL int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t id,
                                const struct timespec *t)
{
    return tribclock.pthread_cond_clockwait(c, m, id, DEADLINE(id, t));
}

CALL int cnd_timedwait(cnd_t *restrict c, mtx_t *restrict m, const struct timespec *restrict t)
{
    return tribclock.cnd_timedwait(c, m, DEADLINE(CLOCK_REALTIME, t));
}

/* ---- locks ---- */

CALL int pthread_mutex_timedlock(pthread_mutex_t *restrict m, const struct timespec *restrict t)
{
    return tribclock.pthread_mutex_timedlock(m, DEADLINE(CLOCK_REALTIME, t));
}

CALL int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t id, const struct timespec *t)
{
    return tribclock.pthread_mutex_clocklock(m, id, DEADLINE(id, t));
}

CALL int mtx_timedlock(mtx_t *restrict m, const struct timespec *restrict t)
{
    return tribclock.mtx_timedlock(m, DEADLINE(CLOCK_REALTIME, t));
}

CALL int pthread_rwlock_timedrdlock(pthread_rwlock_t *restrict l, const struct timespec *restrict t)
{
    return tribclock.pthread_rwlock_timedrdlock(l, DEADLINE(CLOCK_REALTIME, t));
}

CALL int pthread_rwlock_timedwrlock(pthread_rwlock_t *restrict l, const struct timespec *restrict t)
{
    return tribclock.pthread_rwlock_timedwrlock(l, DEADLINE(CLOCK_REALTIME, t));
}

CALL int pthread_rwlock_clockrdlock(pthread_rwlock_t *l, clockid_t id, const struct timespec *t)
{
    return tribclock.pthread_rwlock_clockrdlock(l, id, DEADLINE(id, t));
}

CALL int pthread_rwlock_clockwrlock(pthread_rwlock_t *l, clockid_t id, const struct timespec *t)
{
    return tribclock.pthread_rwlock_clockwrlock(l, id, DEADLINE(id, t));
}

/* ---- semaphores, threads, message queues ---- */

CALL int sem_timedwait(sem_t *restrict s, const struct timespec *restrict t)
{
    return tribclock.sem_timedwait(s, DEADLINE(CLOCK_REALTIME, t));
}

CALL int sem_clockwait(sem_t *s, clockid_t id, const struct timespec *t)
{
    return tribclock.sem_clockwait(s, id, DEADLINE(id, t));
}

CALL int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *t)
{
    return tribclock.pthread_timedjoin_np(thread, result, DEADLINE(CLOCK_REALTIME, t));
}

CALL int pthread_clockjoin_np(pthread_t thread, void **result, clockid_t id,
                              const struct timespec *t)
{
    return tribclock.pthread_clockjoin_np(thread, result, id, DEADLINE(id, t));
}

CALL int mq_timedsend(mqd_t q, const char *text, size_t len, unsigned priority,
                      const struct timespec *t)
{
    return tribclock.mq_timedsend(q, text, len, priority, DEADLINE(CLOCK_REALTIME, t));
}

CALL ssize_t mq_timedreceive(mqd_t q, char *restrict text, size_t len, unsigned *restrict priority,
                             const struct timespec *restrict t)
{
    return tribclock.mq_timedreceive(q, text, len, priority, DEADLINE(CLOCK_REALTIME, t));
}
