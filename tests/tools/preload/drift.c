/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded: CLOCK_MONOTONIC runs DRIFT_PPM fast from the moment DRIFT_FROM (ns) on. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long long of(const char *name)
{
    const char *v = getenv(name);

    return v ? atoll(v) : 0;
}

int clock_gettime(clockid_t c, struct timespec *ts)
{
    static long long from, ppm;
    int rc = (int)syscall(SYS_clock_gettime, c, ts);
    long long ns;

    if (rc || c != CLOCK_MONOTONIC)
        return rc;
    if (!ppm) {
        from = of("DRIFT_FROM");
        ppm = of("DRIFT_PPM");
    }
    ns = ts->tv_sec * 1000000000LL + ts->tv_nsec;
    ns += (ns - from) / 1000000 * ppm;
    ts->tv_sec = ns / 1000000000;
    ts->tv_nsec = ns % 1000000000;
    return rc;
}
