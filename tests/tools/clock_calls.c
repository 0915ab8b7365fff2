/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every call that reads a clock or waits, as a program has it under `trib exec --clock fabric`, against
 * the C library's own clock, which is taken from its handle.
 * usage: clock_calls DILATION wall|scaled [seconds]. wall: waits keep their length; scaled: they are
 * multiplied. seconds: only the calls that take whole seconds. Exit code 1: a line FAILED for each.
 */
#include "clock_deadlines.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <unistd.h>

#define TRIES     8
#define WAIT_NS   20000000
#define SECOND_NS 1000000000LL
#define SLACK_NS  10000000

static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_sleep)(const struct timespec *, struct timespec *);
static int64_t dilation;
static int failed;

static int64_t ns_of(const struct timespec *ts)
{
    return (int64_t)ts->tv_sec * SECOND_NS + ts->tv_nsec;
}

static int64_t real_ns(void)
{
    struct timespec ts;

    real_gettime(CLOCK_MONOTONIC, &ts);
    return ns_of(&ts);
}

/* ---- clocks ---- */

static int64_t of_id(int arg)
{
    struct timespec ts;

    return clock_gettime((clockid_t)arg, &ts) ? -1 : ns_of(&ts);
}
static int64_t of_system_call(int arg)
{
    struct timespec ts;

    return syscall(SYS_clock_gettime, arg, &ts) ? -1 : ns_of(&ts);
}
static int64_t of_day(int arg)
{
    struct timeval tv;

    (void)arg;
    gettimeofday(&tv, NULL);
    return tv.tv_sec * SECOND_NS + tv.tv_usec * 1000;
}
static int64_t of_timespec_get(int arg)
{
    struct timespec ts;

    return timespec_get(&ts, arg) == arg ? ns_of(&ts) : -1;
}
static int64_t of_times(int arg)
{
    struct tms t;

    (void)arg;
    return (int64_t)times(&t) * (SECOND_NS / sysconf(_SC_CLK_TCK));
}
static int64_t of_time(int arg)
{
    (void)arg;
    return time(NULL) * SECOND_NS;
}

static const struct clock_row {
    const char *name;
    int64_t (*now)(int arg);
    int arg, like;   /* the clock whose time it has */
    int64_t tick_ns; /* its resolution */
} clocks[] = {
    {"CLOCK_REALTIME", of_id, CLOCK_REALTIME, CLOCK_REALTIME, 0},
    {"CLOCK_MONOTONIC", of_id, CLOCK_MONOTONIC, CLOCK_MONOTONIC, 0},
    {"CLOCK_MONOTONIC_RAW", of_id, CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC, 0},
    {"CLOCK_REALTIME_COARSE", of_id, CLOCK_REALTIME_COARSE, CLOCK_REALTIME, 0},
    {"CLOCK_MONOTONIC_COARSE", of_id, CLOCK_MONOTONIC_COARSE, CLOCK_MONOTONIC, 0},
    {"CLOCK_BOOTTIME", of_id, CLOCK_BOOTTIME, CLOCK_MONOTONIC, 0},
    {"syscall(clock_gettime)", of_system_call, CLOCK_MONOTONIC, CLOCK_MONOTONIC, 0},
    {"gettimeofday", of_day, 0, CLOCK_REALTIME, 1000},
    {"timespec_get", of_timespec_get, TIME_UTC, CLOCK_REALTIME, 0},
    {"times", of_times, 0, CLOCK_MONOTONIC, 10000000},
    {"time", of_time, 0, CLOCK_REALTIME, SECOND_NS},
};

static void fail(const char *name, const char *why, int64_t found, int64_t low, int64_t high)
{
    printf("FAILED %s: %s: found %.3f ms, expected %.3f to %.3f ms\n", name, why,
           (double)found / 1e6, (double)low / 1e6, (double)high / 1e6);
    failed = 1;
}

/* Reads between two looks at the real clock, so that a machine that is busy does no harm. */
static void check_clock(const struct clock_row *c)
{
    struct timespec pause = span(100000000);
    int64_t a0 = real_ns(), from = c->now(c->arg), b0 = real_ns(), a1, to, b1, like, low, high;

    real_sleep(&pause, NULL);
    a1 = real_ns();
    to = c->now(c->arg);
    b1 = real_ns();
    low = (a1 - b0) / dilation - c->tick_ns - 2000;
    high = (b1 - a0) / dilation + c->tick_ns + 2000;
    if (to - from < low || to - from > high)
        fail(c->name, "in 100 ms of wall time", to - from, low, high);
    like = of_id(c->like);
    to = c->now(c->arg);
    high = of_id(c->like);
    if (to < like - c->tick_ns || to > high)
        fail(c->name, "against its family", to, like - c->tick_ns, high);
}

/* The CPU's clocks are real. */
static void check_cpu_clock(clockid_t id, const char *name)
{
    struct timespec real, seen, later;

    real_gettime(id, &real);
    clock_gettime(id, &seen);
    real_gettime(id, &later);
    if (ns_of(&seen) < ns_of(&real) || ns_of(&seen) > ns_of(&later))
        fail(name, "CPU time", ns_of(&seen), ns_of(&real), ns_of(&later));
}

static void check_start(void)
{
    struct timespec real;
    int64_t seen = of_id(CLOCK_REALTIME);

    real_gettime(CLOCK_REALTIME, &real);
    if (seen > ns_of(&real) || seen < ns_of(&real) - 3600 * SECOND_NS)
        fail("CLOCK_REALTIME", "the time of day", seen, ns_of(&real) - 3600 * SECOND_NS,
             ns_of(&real));
}

/* ---- waits ---- */

/* Never too short, and in one of a few tries not too long: who is woken may wait for a CPU. */
static void check_wait(const struct wait_row *w, bool scaled)
{
    int64_t ns = w->seconds ? SECOND_NS : WAIT_NS, want = scaled ? ns * dilation : ns;
    int64_t low = want - want / 50, high = want + want / 2 + SLACK_NS, took = 0;

    for (unsigned i = 0; i < TRIES; i++) {
        int64_t begin = real_ns();
        const char *wrong = w->wait(ns);

        took = real_ns() - begin;
        if (wrong) {
            printf("FAILED %s: %s\n", w->name, wrong);
            failed = 1;
            return;
        }
        if (took < low || took <= high)
            break;
    }
    if (took < low || took > high)
        fail(w->name, scaled ? "multiplied" : "in wall time", took, low, high);
}

static unsigned check_waits(const struct wait_row *w, size_t rows, bool scaled, bool seconds)
{
    unsigned n = 0;

    for (size_t i = 0; i < rows; i++)
        if (!w[i].seconds == !seconds) {
            check_wait(&w[i], scaled);
            n++;
        }
    return n;
}

int main(int argc, char **argv)
{
    bool scaled = argc >= 3 && !strcmp(argv[2], "scaled"), seconds = argc == 4;
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    unsigned n = 0;
    sigset_t blocked;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    dilation = argc >= 3 ? atoi(argv[1]) : 0;
    if (dilation < 1 || !libc) {
        fprintf(stderr, "usage: clock_calls DILATION wall|scaled [seconds]\n");
        return 2;
    }
    real_gettime = (int (*)(clockid_t, struct timespec *))(uintptr_t)dlsym(libc, "clock_gettime");
    real_sleep =
        (int (*)(const struct timespec *, struct timespec *))(uintptr_t)dlsym(libc, "nanosleep");
    for (unsigned i = 0; !seconds && i < sizeof(clocks) / sizeof(clocks[0]); i++, n++)
        check_clock(&clocks[i]);
    check_cpu_clock(CLOCK_PROCESS_CPUTIME_ID, "CLOCK_PROCESS_CPUTIME_ID");
    check_cpu_clock(CLOCK_THREAD_CPUTIME_ID, "CLOCK_THREAD_CPUTIME_ID");
    check_start();
    n += check_waits(waits, sizeof(waits) / sizeof(waits[0]), scaled, seconds);
    n += check_waits(deadlines, sizeof(deadlines) / sizeof(deadlines[0]), scaled, seconds);
    printf("clock_calls: %u calls, %s\n", n, failed ? "FAILED" : "ok");
    return failed;
}
