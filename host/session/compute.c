/* SPDX-License-Identifier: BSD-3-Clause */
/* Declared computation (tributary/time.h). It needs only the fabric's clock, so it opens no
 * session. */
#include "machine/shared.h"

#include <tributary/time.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define US_MAX    1e12
#define POLL_NS   100000    /* the last part of a wait is polled, because a sleep may end late */
#define NAP_NS    100000000 /* longest sleep, because the dilation may change meanwhile */
#define LAG_SHARE 50        /* a lag above 1/50 of the declared time is reported */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct shared *fabric;
static __thread int64_t begin_ps = -1; /* of trib_compute_begin(); -1: not called */
static _Atomic int64_t declared_ps, lag_ps;
static _Atomic uint64_t calls, late;

static void compute_join(void)
{
    const char *dir = getenv("TRIB_RUN");

    if (!dir || !*dir)
        fputs("tributary: found no TRIB_RUN, expected a program that is run by trib exec CONF HOST "
              "-- PROGRAM\n",
              stderr);
    else if (shared_join(&fabric, dir))
        fabric = NULL;
}

static bool compute_joined(void)
{
    return !pthread_once(&once, compute_join) && fabric;
}

int trib_compute_begin(void)
{
    if (!compute_joined())
        return -ENODEV;
    begin_ps = clock_fabric_ps(fabric);
    return 0;
}

static void wait_until(int64_t ps)
{
    int64_t ns;

    while ((ns = clock_wall_ns_until(fabric, ps)) > 0) {
        ns -= POLL_NS;
        if (ns <= 0)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = ns < NAP_NS ? ns : NAP_NS}, NULL);
    }
}

int64_t trib_compute(double us)
{
    int64_t ps, until, lag;

    if (!(us >= 0 && us <= US_MAX))
        return -EINVAL;
    if (!compute_joined())
        return -ENODEV;
    ps = (int64_t)(us * 1e6);
    until = (begin_ps < 0 ? clock_fabric_ps(fabric) : begin_ps) + ps;
    begin_ps = -1;
    wait_until(until);
    lag = clock_fabric_ps(fabric) - until;
    atomic_fetch_add(&declared_ps, ps);
    atomic_fetch_add(&lag_ps, lag);
    atomic_fetch_add(&calls, 1);
    atomic_fetch_add(&late, lag > ps / LAG_SHARE);
    return lag;
}

__attribute__((destructor)) static void tell_lag(void)
{
    const char *host = getenv("TRIB_HOST");
    double declared = (double)declared_ps, lag = (double)lag_ps;

    if (!fabric || lag * LAG_SHARE <= declared)
        return;
    fprintf(stderr,
            "tributary: %s: lag: computation declared as %.1f us of fabric time took %.1f us; "
            "%" PRIu64 " of %" PRIu64 " ended late",
            host ? host : "?", declared / 1e6, (declared + lag) / 1e6, (uint64_t)late,
            (uint64_t)calls);
    if (declared > 0)
        fprintf(stderr, " (needs a dilation of %.0f)",
                clock_dilation(fabric) * (declared + lag) / declared + 0.5);
    fputc('\n', stderr);
}
