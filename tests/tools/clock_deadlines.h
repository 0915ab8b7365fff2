/* SPDX-License-Identifier: BSD-3-Clause */
/* Of clock_calls: the calls that wait until a time of a clock, which the program reads itself. */
#ifndef CLOCK_DEADLINES_H
#define CLOCK_DEADLINES_H

#include "clock_waits.h"

#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

/* ns from now on a clock as this program sees it. */
static struct timespec in(clockid_t id, int64_t ns)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return span(ts.tv_sec * 1000000000 + ts.tv_nsec + ns);
}

static const char *sleep_until(clockid_t id, int64_t ns)
{
    struct timespec t = in(id, ns);
    return EXPECT(!clock_nanosleep(id, TIMER_ABSTIME, &t, NULL));
}
static const char *d_sleep_monotonic(int64_t ns)
{
    return sleep_until(CLOCK_MONOTONIC, ns);
}
static const char *d_sleep_realtime(int64_t ns)
{
    return sleep_until(CLOCK_REALTIME, ns);
}

/* ---- condition variables ---- */

static const char *by_cond(clockid_t id, int64_t ns, int clockwait)
{
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    struct timespec t = in(id, ns);
    pthread_condattr_t attr;
    pthread_cond_t c;
    int rc;

    pthread_condattr_init(&attr);
    if (!clockwait)
        pthread_condattr_setclock(&attr, id);
    pthread_cond_init(&c, &attr);
    pthread_mutex_lock(&m);
    rc = clockwait ? pthread_cond_clockwait(&c, &m, id, &t) : pthread_cond_timedwait(&c, &m, &t);
    pthread_mutex_unlock(&m);
    pthread_cond_destroy(&c);
    pthread_condattr_destroy(&attr);
    return EXPECT(rc == ETIMEDOUT);
}
static const char *d_cond_realtime(int64_t ns)
{
    return by_cond(CLOCK_REALTIME, ns, 0);
}
static const char *d_cond_monotonic(int64_t ns)
{
    return by_cond(CLOCK_MONOTONIC, ns, 0);
}
static const char *d_cond_clock_realtime(int64_t ns)
{
    return by_cond(CLOCK_REALTIME, ns, 1);
}
static const char *d_cond_clock_monotonic(int64_t ns)
{
    return by_cond(CLOCK_MONOTONIC, ns, 1);
}

#ifdef __x86_64__
/* As in a program of before 2003: the condition variable is a pointer. */
int old_cond_timedwait(void **c, pthread_mutex_t *m, const struct timespec *t);
__asm__(".symver old_cond_timedwait, pthread_cond_timedwait@GLIBC_2.2.5");

static const char *d_cond_old(int64_t ns)
{
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    struct timespec t = in(CLOCK_REALTIME, ns);
    void *c[8] = {NULL};
    int rc;

    pthread_mutex_lock(&m);
    rc = old_cond_timedwait(c, &m, &t);
    pthread_mutex_unlock(&m);
    for (unsigned i = 1; i < 8; i++)
        if (c[i])
            return "expected the old condition variable, of one pointer";
    free(c[0]);
    return EXPECT(rc == ETIMEDOUT);
}
#endif

static const char *d_cnd(int64_t ns)
{
    struct timespec t = in(CLOCK_REALTIME, ns);
    cnd_t c;
    mtx_t m;
    int rc;

    cnd_init(&c);
    mtx_init(&m, mtx_plain);
    mtx_lock(&m);
    rc = cnd_timedwait(&c, &m, &t);
    mtx_unlock(&m);
    return EXPECT(rc == thrd_timedout);
}

/* ---- locks ---- */

static const char *by_mutex(clockid_t id, int64_t ns, int clocklock)
{
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    struct timespec t = in(id, ns);
    int rc;

    pthread_mutex_lock(&m);
    rc = clocklock ? pthread_mutex_clocklock(&m, id, &t) : pthread_mutex_timedlock(&m, &t);
    pthread_mutex_unlock(&m);
    return EXPECT(rc == ETIMEDOUT);
}
static const char *d_mutex(int64_t ns)
{
    return by_mutex(CLOCK_REALTIME, ns, 0);
}
static const char *d_mutex_clock(int64_t ns)
{
    return by_mutex(CLOCK_MONOTONIC, ns, 1);
}
static const char *d_mtx(int64_t ns)
{
    struct timespec t = in(CLOCK_REALTIME, ns);
    mtx_t m;
    int rc;

    mtx_init(&m, mtx_timed);
    mtx_lock(&m);
    rc = mtx_timedlock(&m, &t);
    mtx_unlock(&m);
    return EXPECT(rc == thrd_timedout);
}

/* The lock is another thread's: its own would be EDEADLK at once. */
static void *hold(void *lock)
{
    pthread_rwlock_wrlock(lock);
    return NULL;
}
static const char *by_rwlock(clockid_t id, int64_t ns, int which)
{
    pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
    struct timespec t;
    pthread_t thread;
    int rc = 0;

    pthread_create(&thread, NULL, hold, &l);
    pthread_join(thread, NULL);
    t = in(id, ns);
    switch (which) {
    case 0:
        rc = pthread_rwlock_timedrdlock(&l, &t);
        break;
    case 1:
        rc = pthread_rwlock_timedwrlock(&l, &t);
        break;
    case 2:
        rc = pthread_rwlock_clockrdlock(&l, id, &t);
        break;
    case 3:
        rc = pthread_rwlock_clockwrlock(&l, id, &t);
        break;
    }
    return EXPECT(rc == ETIMEDOUT);
}
static const char *d_rdlock(int64_t ns)
{
    return by_rwlock(CLOCK_REALTIME, ns, 0);
}
static const char *d_wrlock(int64_t ns)
{
    return by_rwlock(CLOCK_REALTIME, ns, 1);
}
static const char *d_rdlock_clock(int64_t ns)
{
    return by_rwlock(CLOCK_MONOTONIC, ns, 2);
}
static const char *d_wrlock_clock(int64_t ns)
{
    return by_rwlock(CLOCK_MONOTONIC, ns, 3);
}

/* ---- semaphores, threads, message queues ---- */

static const char *by_sem(clockid_t id, int64_t ns, int clockwait)
{
    struct timespec t = in(id, ns);
    sem_t s;
    int rc;

    sem_init(&s, 0, 0);
    rc = clockwait ? sem_clockwait(&s, id, &t) : sem_timedwait(&s, &t);
    return EXPECT(rc < 0 && errno == ETIMEDOUT);
}
static const char *d_sem(int64_t ns)
{
    return by_sem(CLOCK_REALTIME, ns, 0);
}
static const char *d_sem_clock(int64_t ns)
{
    return by_sem(CLOCK_MONOTONIC, ns, 1);
}

static void *until_post(void *sem)
{
    while (sem_wait(sem))
        ;
    return NULL;
}
static const char *by_join(clockid_t id, int64_t ns, int clockjoin)
{
    struct timespec t;
    pthread_t thread;
    sem_t s;
    int rc;

    sem_init(&s, 0, 0);
    pthread_create(&thread, NULL, until_post, &s);
    t = in(id, ns);
    rc = clockjoin ? pthread_clockjoin_np(thread, NULL, id, &t)
                   : pthread_timedjoin_np(thread, NULL, &t);
    sem_post(&s);
    pthread_join(thread, NULL);
    return EXPECT(rc == ETIMEDOUT);
}
static const char *d_join(int64_t ns)
{
    return by_join(CLOCK_REALTIME, ns, 0);
}
static const char *d_join_clock(int64_t ns)
{
    return by_join(CLOCK_MONOTONIC, ns, 1);
}

static const char *by_queue(int64_t ns, int send)
{
    struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 8};
    struct timespec t;
    char name[32], text[8] = "";
    ssize_t rc;
    mqd_t q;

    snprintf(name, sizeof(name), "/clock_calls.%d", (int)getpid());
    q = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &attr);
    t = span(ns);
    if (q == (mqd_t)-1)
        return nanosleep(&t, NULL) ? "expected a sleep" : NULL; /* there is none here */
    mq_unlink(name);
    if (send)
        mq_send(q, text, 1, 0);
    t = in(CLOCK_REALTIME, ns);
    rc = send ? mq_timedsend(q, text, 1, 0, &t) : mq_timedreceive(q, text, sizeof(text), NULL, &t);
    mq_close(q);
    return EXPECT(rc < 0 && errno == ETIMEDOUT);
}
static const char *d_receive(int64_t ns)
{
    return by_queue(ns, 0);
}
static const char *d_send(int64_t ns)
{
    return by_queue(ns, 1);
}

/* ---- timers, futexes ---- */

static const char *d_timer_monotonic(int64_t ns)
{
    return by_timer(TIMER_ABSTIME, in(CLOCK_MONOTONIC, ns));
}
static const char *d_timer_realtime(int64_t ns)
{
    return by_timer(TIMER_ABSTIME, in(CLOCK_REALTIME, ns));
}
static const char *d_timerfd_monotonic(int64_t ns)
{
    return by_timerfd(CLOCK_MONOTONIC, TFD_TIMER_ABSTIME, in(CLOCK_MONOTONIC, ns));
}
static const char *d_timerfd_realtime(int64_t ns)
{
    return by_timerfd(CLOCK_REALTIME, TFD_TIMER_ABSTIME, in(CLOCK_REALTIME, ns));
}
static const char *by_futex(clockid_t id, int64_t ns)
{
    struct timespec t = in(id, ns);
    int op = FUTEX_WAIT_BITSET_PRIVATE | (id == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0);
    uint32_t word = 7;
    return EXPECT(syscall(SYS_futex, &word, op, 7, &t, NULL, ~0u) < 0 && errno == ETIMEDOUT);
}
static const char *d_futex_monotonic(int64_t ns)
{
    return by_futex(CLOCK_MONOTONIC, ns);
}
static const char *d_futex_realtime(int64_t ns)
{
    return by_futex(CLOCK_REALTIME, ns);
}

static const struct wait_row deadlines[] = {
    {"clock_nanosleep(MONOTONIC, TIMER_ABSTIME)", d_sleep_monotonic, 0},
    {"clock_nanosleep(REALTIME, TIMER_ABSTIME)", d_sleep_realtime, 0},
    {"pthread_cond_timedwait(REALTIME)", d_cond_realtime, 0},
    {"pthread_cond_timedwait(MONOTONIC)", d_cond_monotonic, 0},
#ifdef __x86_64__
    {"pthread_cond_timedwait@GLIBC_2.2.5", d_cond_old, 0},
#endif
    {"pthread_cond_clockwait(REALTIME)", d_cond_clock_realtime, 0},
    {"pthread_cond_clockwait(MONOTONIC)", d_cond_clock_monotonic, 0},
    {"cnd_timedwait", d_cnd, 0},
    {"pthread_mutex_timedlock", d_mutex, 0},
    {"pthread_mutex_clocklock", d_mutex_clock, 0},
    {"mtx_timedlock", d_mtx, 0},
    {"pthread_rwlock_timedrdlock", d_rdlock, 0},
    {"pthread_rwlock_timedwrlock", d_wrlock, 0},
    {"pthread_rwlock_clockrdlock", d_rdlock_clock, 0},
    {"pthread_rwlock_clockwrlock", d_wrlock_clock, 0},
    {"sem_timedwait", d_sem, 0},
    {"sem_clockwait", d_sem_clock, 0},
    {"pthread_timedjoin_np", d_join, 0},
    {"pthread_clockjoin_np", d_join_clock, 0},
    {"mq_timedreceive", d_receive, 0},
    {"mq_timedsend", d_send, 0},
    {"timer_settime(MONOTONIC, TIMER_ABSTIME)", d_timer_monotonic, 0},
    {"timer_settime(REALTIME, TIMER_ABSTIME)", d_timer_realtime, 0},
    {"timerfd_settime(MONOTONIC, TFD_TIMER_ABSTIME)", d_timerfd_monotonic, 0},
    {"timerfd_settime(REALTIME, TFD_TIMER_ABSTIME)", d_timerfd_realtime, 0},
    {"syscall(futex, WAIT_BITSET)", d_futex_monotonic, 0},
    {"syscall(futex, WAIT_BITSET | CLOCK_REALTIME)", d_futex_realtime, 0},
};

#endif
