/* SPDX-License-Identifier: BSD-3-Clause */
/* What trib and trib-keep ask of the C library about signals and descriptors of processes, answered for the task of simulated_tasks.h whose code
 * runs. */
#ifndef TRIB_TESTS_TRIB_LIFE_SIGNAL_CALLS_H
#define TRIB_TESTS_TRIB_LIFE_SIGNAL_CALLS_H

#include "process_calls.h"

#include <sys/signalfd.h>

int kill(pid_t pid, int sig)
{
    struct task *t, *to;

    if (!SIMULATED)
        return REAL(kill)(pid, sig);
    t = call_begin();
    to = task_of(pid);
    if (!to) {
        errno = ESRCH;
        return -1;
    }
    signal_send(to, sig, t);
    if (t->stopped)
        task_leave();
    signals_deliver();
    return 0;
}

static long pid_open(struct task *t, pid_t pid)
{
    struct task *to = task_of(pid);
    struct sim_open *o;

    if (CALL_FAILS(EMFILE, ENOMEM))
        return -1;
    if (!to) {
        errno = ESRCH;
        return -1;
    }
    o = open_new(OPEN_PID);
    o->id = to->id;
    return fd_of_new(t, o, true);
}

static long pid_signal(struct task *t, int fd, int sig)
{
    const struct sim_open *o = open_of(t, fd);
    struct task *to = o && o->kind == OPEN_PID ? task_by_id(o->id) : NULL;

    if (!to) {
        errno = ESRCH;
        return -1;
    }
    signal_send(to, sig, t);
    return 0;
}

long syscall(long number, ...)
{
    long a[6];
    va_list ap;

    va_start(ap, number);
    for (unsigned i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (!SIMULATED)
        return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (number == SYS_pidfd_open)
        return pid_open(call_begin(), (pid_t)a[0]);
    if (number == SYS_pidfd_send_signal)
        return pid_signal(call_begin(), (int)a[0], (int)a[1]);
    HOLDS(false, "system call %ld", number);
    return -1;
}

sighandler_t signal(int sig, sighandler_t handler)
{
    struct task *t;
    sighandler_t was;

    if (!SIMULATED)
        return REAL(signal)(sig, handler);
    t = call_begin();
    was = t->handler[sig];
    t->handler[sig] = handler;
    if (is_ignored(t, sig))
        sigdelset(&t->pending, sig);
    return was;
}

int sigaction(int sig, const struct sigaction *to, struct sigaction *old)
{
    struct task *t;

    if (!SIMULATED)
        return REAL(sigaction)(sig, to, old);
    t = call_begin();
    if (old)
        *old = (struct sigaction){.sa_handler = t->handler[sig]};
    if (to)
        t->handler[sig] = to->sa_handler;
    return 0;
}

int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    struct task *t;

    if (!SIMULATED)
        return REAL(sigprocmask)(how, set, old);
    t = call_begin();
    if (old)
        *old = t->mask;
    for (int sig = 1; set && sig < 65; sig++) {
        bool in = sigismember(set, sig);

        if (how == SIG_SETMASK ? !in : how == SIG_UNBLOCK && in)
            sigdelset(&t->mask, sig);
        else if (in)
            sigaddset(&t->mask, sig);
    }
    signals_deliver();
    return 0;
}

static int signal_wait(const sigset_t *set, int64_t until)
{
    struct task *t = call_begin();

    t->signals = *set;
    call_wait(WAITS_SIGNAL, until);
    for (int sig = 1; sig < 65; sig++)
        if (sigismember(set, sig) == 1 && sigismember(&t->pending, sig)) {
            sigdelset(&t->pending, sig);
            return sig;
        }
    errno = t->until <= sim->now ? EAGAIN : EINTR;
    return -1;
}

int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
    return SIMULATED ? signal_wait(set, INT64_MAX) : REAL(sigwaitinfo)(set, info);
}

int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *t)
{
    return SIMULATED ? signal_wait(set, sim->now + t->tv_sec * S + t->tv_nsec)
                     : REAL(sigtimedwait)(set, info, t);
}

int signalfd(int fd, const sigset_t *set, int flags)
{
    struct sim_open *o;
    struct task *t;

    if (!SIMULATED)
        return REAL(signalfd)(fd, set, flags);
    t = call_begin();
    if (CALL_FAILS(EMFILE, ENOMEM))
        return -1;
    o = open_new(OPEN_SIGNALS);
    o->signals = *set;
    o->flags = flags & SFD_NONBLOCK ? O_NONBLOCK : 0;
    return fd_of_new(t, o, flags & SFD_CLOEXEC);
}

int poll(struct pollfd *p, nfds_t n, int ms)
{
    struct task *t;
    unsigned ready = 0;

    if (!SIMULATED)
        return REAL(poll)(p, n, ms);
    t = call_begin();
    if (CALL_FAILS(ENOMEM))
        return -1;
    t->n_polled = (unsigned)n;
    memcpy(t->polled, p, n * sizeof(*p));
    if (!call_wait(POLLS, ms < 0 ? INT64_MAX : sim->now + ms * MS)) {
        errno = EINTR;
        return -1;
    }
    is_polled(t);
    for (unsigned i = 0; i < n; i++) {
        p[i].revents = t->polled[i].revents;
        ready += p[i].revents != 0;
    }
    return (int)ready;
}

#endif
