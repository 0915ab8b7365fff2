/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded: sleeps of more than OVERSLEEP_FROM_NS last OVERSLEEP_NS longer, as on a machine that is busy. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long of(const char *name)
{
    const char *v = getenv(name);

    return v ? atol(v) : 0;
}

int nanosleep(const struct timespec *want, struct timespec *left)
{
    struct timespec t = *want;

    if (t.tv_sec || t.tv_nsec > of("OVERSLEEP_FROM_NS"))
        t.tv_nsec += of("OVERSLEEP_NS");
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return (int)syscall(SYS_nanosleep, &t, left);
}
