/* SPDX-License-Identifier: BSD-3-Clause */
/* Of clock_calls: the calls that wait for some time, each as a function that waits so many ns. */
#ifndef CLOCK_WAITS_H
#define CLOCK_WAITS_H

#include <aio.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

struct wait_row {
    const char *name;
    /* Waits for so many ns by the program's view of time. NULL, or what is wrong. */
    const char *(*wait)(int64_t ns);
    int seconds; /* takes whole seconds */
};

static struct timespec span(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

static struct timeval span_us(int64_t ns)
{
    return (struct timeval){.tv_sec = ns / 1000000000, .tv_usec = ns % 1000000000 / 1000};
}

#define EXPECT(condition) ((condition) ? NULL : "expected " #condition)

/* ---- sleeping ---- */

static const char *w_nanosleep(int64_t ns)
{
    struct timespec t = span(ns);
    return EXPECT(!nanosleep(&t, NULL));
}
static const char *w_clock_nanosleep(int64_t ns)
{
    struct timespec t = span(ns);
    return EXPECT(!clock_nanosleep(CLOCK_REALTIME, 0, &t, NULL));
}
static const char *w_thrd_sleep(int64_t ns)
{
    struct timespec t = span(ns);
    return EXPECT(!thrd_sleep(&t, NULL));
}
static const char *w_usleep(int64_t ns)
{
    return EXPECT(!usleep((useconds_t)(ns / 1000)));
}
static const char *w_sleep(int64_t ns)
{
    return EXPECT(!sleep((unsigned)(ns / 1000000000)));
}

/* ---- descriptors ---- */

int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *t, const sigset_t *mask,
                size_t size);

static const char *w_poll(int64_t ns)
{
    return EXPECT(!poll(NULL, 0, (int)(ns / 1000000)));
}
static const char *w_poll_chk(int64_t ns)
{
    return EXPECT(!__poll_chk(NULL, 0, (int)(ns / 1000000), 0));
}
static const char *w_ppoll(int64_t ns)
{
    struct timespec t = span(ns);
    return EXPECT(!ppoll(NULL, 0, &t, NULL));
}
static const char *w_ppoll_chk(int64_t ns)
{
    struct timespec t = span(ns);
    return EXPECT(!__ppoll_chk(NULL, 0, &t, NULL, 0));
}
static const char *w_select(int64_t ns)
{
    struct timeval tv = span_us(ns);
    int rc = select(0, NULL, NULL, NULL, &tv);
    return EXPECT(!rc && !tv.tv_sec && !tv.tv_usec);
}
static const char *w_pselect(int64_t ns)
{
    struct timespec t = span(ns);
    return EXPECT(!pselect(0, NULL, NULL, NULL, &t, NULL));
}

static const char *w_epoll(int64_t ns, int which)
{
    struct epoll_event event;
    struct timespec t = span(ns);
    int fd = epoll_create1(EPOLL_CLOEXEC), ms = (int)(ns / 1000000), rc = -1;

    switch (which) {
    case 0:
        rc = epoll_wait(fd, &event, 1, ms);
        break;
    case 1:
        rc = epoll_pwait(fd, &event, 1, ms, NULL);
        break;
    case 2:
        rc = epoll_pwait2(fd, &event, 1, &t, NULL);
        break;
    }
    if (rc < 0 && errno == ENOSYS) /* a kernel before 5.11 */
        nanosleep(&t, NULL);
    close(fd);
    return EXPECT(rc <= 0);
}
static const char *w_epoll_wait(int64_t ns)
{
    return w_epoll(ns, 0);
}
static const char *w_epoll_pwait(int64_t ns)
{
    return w_epoll(ns, 1);
}
static const char *w_epoll_pwait2(int64_t ns)
{
    return w_epoll(ns, 2);
}

/* What was set can be read back, and holds. */
static const char *w_socket(int64_t ns, int option)
{
    struct timeval tv = span_us(ns), back = {.tv_sec = 0};
    socklen_t len = sizeof(back);
    char text[4096] = "";
    ssize_t rc = 0;
    int s[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) ||
        setsockopt(s[0], SOL_SOCKET, option, &tv, sizeof(tv)))
        return "expected a socket";
    while (option == SO_SNDTIMEO && send(s[0], text, sizeof(text), MSG_DONTWAIT) > 0)
        ;
    getsockopt(s[0], SOL_SOCKET, option, &back, &len);
    rc = option == SO_SNDTIMEO ? send(s[0], text, sizeof(text), 0) : recv(s[0], text, 1, 0);
    close(s[0]);
    close(s[1]);
    return EXPECT(rc < 0 && errno == EAGAIN && back.tv_sec == tv.tv_sec &&
                  back.tv_usec >= tv.tv_usec && back.tv_usec <= tv.tv_usec + 4000);
}
static const char *w_rcvtimeo(int64_t ns)
{
    return w_socket(ns, SO_RCVTIMEO);
}
static const char *w_sndtimeo(int64_t ns)
{
    return w_socket(ns, SO_SNDTIMEO);
}

static const char *w_aio_suspend(int64_t ns)
{
    struct timespec t = span(ns);
    char c;
    int p[2], rc;

    if (pipe(p))
        return "expected a pipe";
    struct aiocb a = {.aio_fildes = p[0], .aio_buf = &c, .aio_nbytes = 1};
    const struct aiocb *const list[] = {&a};
    if (aio_read(&a))
        return "expected a read";
    rc = aio_suspend(list, 1, &t);
    if (write(p[1], "x", 1) != 1)
        return "expected to write";
    while (aio_error(&a) == EINPROGRESS)
        aio_suspend(list, 1, NULL);
    close(p[0]);
    close(p[1]);
    return EXPECT(rc < 0);
}

/* ---- others ---- */

static const char *w_sigtimedwait(int64_t ns)
{
    struct timespec t = span(ns);
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return EXPECT(sigtimedwait(&set, NULL, &t) < 0 && errno == EAGAIN);
}
static const char *w_semtimedop(int64_t ns)
{
    struct sembuf op = {.sem_op = -1};
    struct timespec t = span(ns);
    int id = semget(IPC_PRIVATE, 1, 0600), rc;

    if (id < 0)
        return nanosleep(&t, NULL) ? "expected a sleep" : NULL; /* there is none here */
    rc = semtimedop(id, &op, 1, &t);
    semctl(id, 0, IPC_RMID);
    return EXPECT(rc < 0);
}
static const char *w_futex(int64_t ns)
{
    struct timespec t = span(ns);
    uint32_t word = 7;
    return EXPECT(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 7, &t, NULL, 0) < 0 &&
                  errno == ETIMEDOUT);
}

/* ---- timers ---- */

static volatile sig_atomic_t rung;
static void ring(int signal)
{
    (void)signal;
    rung = 1;
}

/* Until SIGALRM, which `set` causes. */
static const char *until_alarm(void (*set)(int64_t ns), int64_t ns)
{
    sigset_t none, alarms;

    signal(SIGALRM, ring);
    sigemptyset(&none);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarms, NULL);
    rung = 0;
    set(ns);
    while (!rung)
        sigsuspend(&none);
    return NULL;
}
static void set_itimer(int64_t ns)
{
    struct itimerval t = {.it_value = span_us(ns)}, left = {.it_value = {.tv_sec = 0}};

    setitimer(ITIMER_REAL, &t, NULL);
    getitimer(ITIMER_REAL, &left);
    if (left.it_value.tv_usec > ns / 1000 || left.it_value.tv_usec < ns / 2000)
        abort(); /* most of it is left, in the program's time */
}
static void set_alarm(int64_t ns)
{
    alarm((unsigned)(ns / 1000000000));
    if (alarm((unsigned)(ns / 1000000000)) != ns / 1000000000)
        abort();
}
static void set_ualarm(int64_t ns)
{
    ualarm((useconds_t)(ns / 1000), 0);
}
static const char *w_setitimer(int64_t ns)
{
    return until_alarm(set_itimer, ns);
}
static const char *w_alarm(int64_t ns)
{
    return until_alarm(set_alarm, ns);
}
static const char *w_ualarm(int64_t ns)
{
    return until_alarm(set_ualarm, ns);
}

static const char *by_timer(int flags, struct timespec at)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
    struct itimerspec set = {.it_value = at};
    sigset_t all;
    timer_t t;

    sigemptyset(&all);
    sigaddset(&all, SIGUSR2);
    if (timer_create(flags & TIMER_ABSTIME && at.tv_sec > 1000000000 ? CLOCK_REALTIME
                                                                     : CLOCK_MONOTONIC,
                     &event, &t) ||
        timer_settime(t, flags, &set, NULL) || timer_gettime(t, &set))
        return "expected a timer";
    sigwaitinfo(&all, NULL);
    timer_delete(t);
    return EXPECT(!set.it_value.tv_sec && set.it_value.tv_nsec > 1000000);
}
static const char *by_timerfd(clockid_t id, int flags, struct timespec at)
{
    struct itimerspec set = {.it_value = at}, left;
    int fd = timerfd_create(id, TFD_CLOEXEC);
    uint64_t n = 0;

    if (timerfd_settime(fd, flags, &set, NULL) || timerfd_gettime(fd, &left) ||
        read(fd, &n, sizeof(n)) != sizeof(n))
        return "expected a timer";
    close(fd);
    return EXPECT(n == 1 && !left.it_value.tv_sec && left.it_value.tv_nsec > 1000000);
}
static const char *w_timer(int64_t ns)
{
    return by_timer(0, span(ns));
}
static const char *w_timerfd(int64_t ns)
{
    return by_timerfd(CLOCK_MONOTONIC, 0, span(ns));
}

static const struct wait_row waits[] = {
    {"nanosleep", w_nanosleep, 0},
    {"clock_nanosleep", w_clock_nanosleep, 0},
    {"thrd_sleep", w_thrd_sleep, 0},
    {"usleep", w_usleep, 0},
    {"sleep", w_sleep, 1},
    {"poll", w_poll, 0},
    {"__poll_chk", w_poll_chk, 0},
    {"ppoll", w_ppoll, 0},
    {"__ppoll_chk", w_ppoll_chk, 0},
    {"select", w_select, 0},
    {"pselect", w_pselect, 0},
    {"epoll_wait", w_epoll_wait, 0},
    {"epoll_pwait", w_epoll_pwait, 0},
    {"epoll_pwait2", w_epoll_pwait2, 0},
    {"SO_RCVTIMEO", w_rcvtimeo, 0},
    {"SO_SNDTIMEO", w_sndtimeo, 0},
    {"aio_suspend", w_aio_suspend, 0},
    {"sigtimedwait", w_sigtimedwait, 0},
    {"semtimedop", w_semtimedop, 0},
    {"syscall(futex, WAIT)", w_futex, 0},
    {"setitimer", w_setitimer, 0},
    {"alarm", w_alarm, 1},
    {"ualarm", w_ualarm, 0},
    {"timer_settime", w_timer, 0},
    {"timerfd_settime", w_timerfd, 0},
};

#endif
